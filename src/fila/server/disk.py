"""Whether there is room left: enqueue stops while there is still enough for everything else.

A log that cannot be written ends the process. What `min_free_bytes` keeps back lets consumers
settle and operators purge, which need a little disk before they give some back, so that it never
comes to that. By default it is 1 GiB or 5 % of the filesystem, whichever is less: a small disk is
not refused from the start, and a big one does not lie idle.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from fila.errors import ExhaustedError, StorageError
from fila.model import NS_PER_S
from fila.server.clock import Clock
from fila.storage.port import Storage

log = logging.getLogger(__name__)

_DEFAULT_FREE_BYTES = 1 << 30
_DEFAULT_FREE_SHARE = 20
_CHECK_EVERY_NS = NS_PER_S
_RECLAIM_EVERY_S = 2.0
# Look again once this part of what was free above the floor may have been used up.
_MARGIN_SHARE = 8


def floor_bytes(configured: int, data_path: Path) -> int:
    """What must stay free: as configured, or the default for the filesystem."""
    if configured >= 0:
        return configured
    return min(_DEFAULT_FREE_BYTES, shutil.disk_usage(data_path).total // _DEFAULT_FREE_SHARE)


class DiskWatch:
    """Looks once a second, and sooner when much is written.

    `waiting` is how many bytes were admitted and are not written yet.
    """

    def __init__(
        self, storage: Storage, clock: Clock, floor: int, *, waiting: Callable[[], int]
    ) -> None:
        self._storage = storage
        self._waiting = waiting
        self._clock = clock
        self._floor = floor
        self._look()

    @property
    def is_low(self) -> bool:
        """Whether enqueue is refused now."""
        if self._clock.now_ns() - self._looked_ns >= _CHECK_EVERY_NS:
            self._look()
        return self._free < self._floor

    def admit(self, size: int) -> None:
        """Take note of so many bytes to be written, or refuse them when there is little left."""
        self._admitted += size
        if self._admitted > (self._free - self._floor) // _MARGIN_SHARE >= 0:
            self._look()
        if self.is_low:
            raise ExhaustedError(
                f"the disk has {self._free} bytes left and {self._floor} must stay free "
                "(storage.min_free_bytes); consume, purge or delete something, or free some space"
            )

    def _look(self) -> None:
        self._looked_ns = self._clock.now_ns()
        self._free = self._storage.free_bytes() - self._waiting()
        self._admitted = 0


async def reclaim_when_low(watch: DiskWatch, storage: Storage) -> None:
    """While enqueue is refused, give back the space of what is consumed and purged meanwhile."""
    while True:
        await asyncio.sleep(_RECLAIM_EVERY_S)
        if not watch.is_low:
            continue
        try:
            await asyncio.to_thread(storage.reclaim)
        except StorageError as error:
            # Nothing is worse than before: the next attempt may find more room.
            log.warning("could not give back disk space: %s", error)
