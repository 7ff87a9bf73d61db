"""What the acceptance tests share."""

import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.processes import Broker, running_broker

# A run in the background is started with Ctrl-C ignored, and hands that on to its programs.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for a module; tests use queues of their own."""
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker
