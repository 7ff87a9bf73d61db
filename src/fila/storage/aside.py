"""Records that can't be read: moved out of the way, named in the log, counted, never destroyed."""

import logging
from collections.abc import Mapping

from fila.storage import keys
from fila.storage.engine import Engine

_log = logging.getLogger(__name__)


class Aside:
    """The table of what was set aside, in the same store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.count = 0

    def move(self, found: Mapping[bytes, bytes | None], why: str) -> None:
        """Take records out of their tables. A value of None can't even be copied."""
        batch = self._engine.batch()
        for key, value in found.items():
            batch.delete(key)
            if value is not None:
                batch.put(keys.set_aside(key), value)
            _log.warning("set aside %s: %s", keys.describe(key), why)
        self._engine.apply(batch)
        self.count += len(found)

    def replace(self, key: bytes, value: bytes) -> None:
        """Put what could be reconstructed in the place of what could not be read."""
        batch = self._engine.batch()
        batch.put(key, value)
        self._engine.apply(batch)
