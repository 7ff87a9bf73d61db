"""A store whose files are damaged, copied as far as it can be read.

RocksDB stops writing once it meets a damaged block while it merges files, which it will sooner or
later. So a damaged store is copied record by record, and what lost its other half is set aside.
"""

from collections.abc import Iterator
from itertools import chain

from fila.storage import keys
from fila.storage.aside import Aside
from fila.storage.engine import Engine, Reader
from fila.storage.keys import Table

_RECORDS_AT_ONCE = 1000
_EVERYTHING = (b"\x00", b"\xff")


def copy(source: Reader, target: Engine) -> int:
    """Copy all that can be read; how many records had to be set aside."""
    batch, size = target.batch(), 0
    for key, value in source.scan(*_EVERYTHING):
        batch.put(key, value)
        size += 1
        if size == _RECORDS_AT_ONCE:
            target.apply(batch)
            batch, size = target.batch(), 0
    target.apply(batch)
    aside = Aside(target)
    for key, value in chain(
        without(target, Table.MESSAGE, Table.ENTRY), without(target, Table.ENTRY, Table.MESSAGE)
    ):
        aside.move({key: value}, "its other half was lost with the damage")
    target.sync()
    return aside.count


def without(reader: Reader, table: Table, other: Table) -> Iterator[tuple[bytes, bytes]]:
    """Records of one table of messages that have none beside them in another."""
    others = reader.scan(*keys.table_range(other))
    nearest: bytes | None = b""
    for key, value in reader.scan(*keys.table_range(table)):
        while nearest is not None and nearest[1:] < key[1:]:
            nearest = next(others, (None, b""))[0]
        if nearest is None or nearest[1:] != key[1:]:
            yield key, value
