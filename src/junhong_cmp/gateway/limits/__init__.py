"""Limits on calls that this process keeps by itself, or the whole fleet through Redis."""
