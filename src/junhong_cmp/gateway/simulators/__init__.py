"""One carrier interface a module, as the carrier's side speaks it; ``table`` lists them."""
