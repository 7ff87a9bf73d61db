"""A store of either kind that can be opened again and again."""

from pathlib import Path

from fila.storage.memory import MemoryStorage
from fila.storage.port import Storage
from fila.storage.rocksdb import RocksStorage


class Disk:
    """A place that can be opened again and again."""

    def __init__(self, kind: str, path: Path) -> None:
        self._path = path
        self._kind = kind
        self.store: Storage = MemoryStorage() if kind == "memory" else RocksStorage(path)

    def reopen(self) -> Storage:
        if isinstance(self.store, MemoryStorage):
            self.store = self.store.crash()
        else:
            self.store.close()
            self.store = RocksStorage(self._path)
        return self.store
