"""What the acceptance tests share."""

from collections.abc import Iterator

import pytest

from tests.acceptance.processes import Broker, running_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for a module; tests use queues of their own."""
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker
