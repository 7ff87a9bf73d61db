"""Every test of the storage port runs on every implementation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.storage.port import Storage
from tests.contract.disk import Disk


@pytest.fixture(params=["memory", "rocksdb"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    made = Disk(request.param, tmp_path / "data")
    yield made
    made.store.close()


@pytest.fixture
def store(disk: Disk) -> Storage:
    return disk.store
