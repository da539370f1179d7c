"""Sharded polling of SIM cards: who is due, who may ask, and when each is due again."""
