"""When enqueue is refused for want of disk."""

from pathlib import Path

import pytest

from fila.errors import ExhaustedError
from fila.server.disk import DiskWatch, floor_bytes
from fila.storage.memory import MemoryStorage
from fila.testing.clock import ManualClock

MIB = 1 << 20


@pytest.fixture
def storage() -> MemoryStorage:
    made = MemoryStorage()
    made.free = 10 * MIB
    return made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_below_the_floor_enqueue_is_refused_with_what_is_missing(
    storage: MemoryStorage, clock: ManualClock
) -> None:
    watch = DiskWatch(storage, clock, 10 * MIB + 1, waiting=lambda: 0)

    with pytest.raises(ExhaustedError, match=rf"{10 * MIB}.*{10 * MIB + 1}.*min_free_bytes"):
        watch.admit(1)


def test_freed_space_is_noticed_within_a_second(storage: MemoryStorage, clock: ManualClock) -> None:
    watch = DiskWatch(storage, clock, 20 * MIB, waiting=lambda: 0)
    storage.free = 30 * MIB

    assert watch.is_low
    clock.advance(1)
    assert not watch.is_low


def test_many_bytes_make_it_look_before_the_second_is_over(
    storage: MemoryStorage, clock: ManualClock
) -> None:
    watch = DiskWatch(storage, clock, 2 * MIB, waiting=lambda: 0)
    storage.free = MIB

    watch.admit(MIB // 2)
    with pytest.raises(ExhaustedError):
        watch.admit(MIB)


def test_what_was_admitted_and_is_not_written_yet_counts_as_used(
    storage: MemoryStorage, clock: ManualClock
) -> None:
    admitted = 0
    watch = DiskWatch(storage, clock, 2 * MIB, waiting=lambda: admitted)
    for _ in range(9):
        watch.admit(MIB)
        admitted += MIB

    with pytest.raises(ExhaustedError):
        watch.admit(MIB)


def test_the_default_floor_is_small_on_a_small_disk(tmp_path: Path) -> None:
    assert 0 < floor_bytes(-1, tmp_path) <= 1 << 30
    assert floor_bytes(0, tmp_path) == 0
