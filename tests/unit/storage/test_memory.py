"""What a crash leaves of the store in memory."""

import pytest

from fila.core.effects import PutConfig
from fila.errors import StorageError, UnsupportedError
from fila.storage.memory import MemoryStorage
from tests.contract.storage_samples import everything, state


def config(store: MemoryStorage) -> dict[str, str]:
    return store.recover().config


def written(*names: str) -> MemoryStorage:
    store = MemoryStorage()
    for name in names:
        store.write([PutConfig(name, "x"), PutConfig(name + "2", "x")])
    return store


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    store = MemoryStorage()
    store.write(everything())
    before = state(store)
    assert state(store.crash()) == before


def test_a_power_cut_leaves_what_was_synced() -> None:
    store = written("a")
    store.sync()
    store.write([PutConfig("b", "x")])
    assert config(store.crash(power_cut=True)) == {"a": "x", "a2": "x"}


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_a_power_cut_may_spare_the_first_of_the_unsynced_batches_whole(kept: int) -> None:
    store = written("a", "b", "c")
    assert store.unsynced_count == 3
    left = config(store.crash(power_cut=True, kept=kept))
    assert sorted(left) == ["a", "a2", "b", "b2", "c", "c2"][: 2 * kept]


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    store = written("a")
    covered = store.begin_sync()
    store.write([PutConfig("b", "x")])
    store.end_sync(covered)
    assert config(store.crash(power_cut=True)) == {"a": "x", "a2": "x"}


def test_what_a_sync_did_not_cover_is_still_there_after_a_kill() -> None:
    store = written("a")
    covered = store.begin_sync()
    store.write([PutConfig("b", "x")])
    store.end_sync(covered)
    assert store.unsynced_count == 1
    assert config(store.crash()) == {"a": "x", "a2": "x", "b": "x"}


def test_a_sync_in_progress_covers_nothing_yet() -> None:
    store = written("a")
    store.begin_sync()
    assert config(store.crash(power_cut=True)) == {}


def test_a_store_that_crashed_is_gone() -> None:
    store = written("a")
    again = store.crash()
    with pytest.raises(StorageError):
        store.write([])
    assert again.epoch == 2


def test_a_power_cut_does_not_take_back_the_count_of_openings() -> None:
    store = MemoryStorage().crash(power_cut=True).crash(power_cut=True)
    assert store.epoch == 3


def test_memory_can_not_be_copied(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(UnsupportedError):
        MemoryStorage().checkpoint(tmp_path_factory.getbasetemp() / "copy")
