"""What tests against a real broker share."""

from collections.abc import Iterator

import pytest

from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import Rpc


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests of a module; each makes its own queues."""
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker


@pytest.fixture
def rpc(shared_broker: BrokerProcess) -> Iterator[Rpc]:
    """Calls to it."""
    with Rpc(shared_broker.address) as calls:
        yield calls
