"""How long calls took: counts in buckets, eight to each doubling."""

_PER_DOUBLING = 8


class Histogram:
    """Durations of which only the bucket is kept; a value read back is off by 9 % at most."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._total = 0

    def add(self, bucket: int, count: int) -> None:
        """Count calls of a bucket: 0 is under a microsecond, 1 begins at one."""
        self._counts[bucket] = self._counts.get(bucket, 0) + count
        self._total += count

    def quantile_us(self, share: float) -> float:
        """What that share of the calls took at most, by the upper end of its bucket."""
        wanted = share * self._total
        for bucket in sorted(self._counts):
            wanted -= self._counts[bucket]
            if wanted <= 0:
                return _end_us(bucket)
        return 0.0


def _end_us(bucket: int) -> float:
    end: float = 2.0 ** (bucket / _PER_DOUBLING)
    return round(end, 2)
