"""Leadership over the single-instance duties: terms numbered by a growing fencing epoch."""
