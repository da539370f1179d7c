"""Redis keys of the leadership package."""


def lease() -> str:
    """HASH of the leader's lease; its field ``epoch`` holds the highest epoch given."""
    return "polling:lease"
