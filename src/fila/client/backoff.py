"""How long to wait before trying again."""

from collections.abc import Callable


class Backoff:
    """Doubles from `first` to `most` seconds, each wait shortened at random by up to a half."""

    def __init__(
        self, chance: Callable[[], float], *, first: float = 0.02, most: float = 1.0
    ) -> None:
        self._chance = chance
        self._first = first
        self._most = most
        self._tries = 0

    def next(self) -> float:
        """Seconds to wait now."""
        wait = wait_before(self._tries, self._chance(), first=self._first, most=self._most)
        self._tries += 1
        return wait

    def reset(self) -> None:
        """It worked: the next trouble starts from the beginning."""
        self._tries = 0


def wait_before(tries: int, chance: float, *, first: float = 0.02, most: float = 1.0) -> float:
    """Seconds before the next try, after `tries` waits; `chance` is from 0 to 1."""
    full = min(most, first * 2.0 ** min(tries, 30))
    return float(full * (1 - chance / 2))
