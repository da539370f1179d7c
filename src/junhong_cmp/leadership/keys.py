"""Redis keys of the leadership package; both lie in one cluster slot, because scripts use both."""


def lease() -> str:
    """HASH of the leader's lease; its field ``epoch``, the highest epoch given, outlives the lease."""
    return "polling:lease"


def standbys() -> str:
    """ZSET of processes that wait for the lease: a JSON text each → until when it counts, unix ms."""
    return "{polling:lease}:standbys"
