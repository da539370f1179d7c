"""One carrier interface a module; each turns it into the answers and errors of ``gateway.client``."""
