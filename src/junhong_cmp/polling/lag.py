"""Distribution of lags in fixed memory: a histogram on a logarithmic scale, and its quantiles."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

BUCKETS: Final = 96
_PER_OCTAVE: Final = 4
"""Four buckets double the lag: a quantile is right within 19 %, up to 2^24 ms = 4.6 hours."""


def lag_bucket(lag_ms: int) -> int:
    """Return the bucket a lag is counted in."""
    if lag_ms <= 0:
        return 0
    return min(BUCKETS - 1, int(_PER_OCTAVE * math.log2(lag_ms + 1)))


def lag_quantile(histogram: Sequence[int], quantile: float) -> timedelta | None:
    """Return the upper edge of the bucket the quantile falls into, None for an empty histogram."""
    total = sum(histogram)
    if not total:
        return None
    rank, seen = max(1, math.ceil(total * quantile)), 0
    for bucket, count in enumerate(histogram):
        seen += count
        if seen >= rank:
            return timedelta(milliseconds=2 ** ((bucket + 1) / _PER_OCTAVE) - 1)
    raise AssertionError  # pragma: no cover - the ranks end with the total
