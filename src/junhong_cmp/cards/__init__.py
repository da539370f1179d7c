"""SIM cards: identity, states, usage rules, and the stores that keep them."""
