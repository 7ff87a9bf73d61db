"""Clients that were generated from the fixed contract work against this broker unchanged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import v1_client
from tests.integration.broker_process import BrokerProcess

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def results(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What the other client found."""
    stubs = tmp_path_factory.mktemp("stubs")
    out = [f"--python_out={stubs}", f"--grpc_python_out={stubs}"]
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}", *out]
    subprocess.run([*protoc, str(HERE / "fixed_v1.proto")], check=True)
    done = subprocess.run(
        [sys.executable, v1_client.__file__, shared_broker.address, str(stubs)],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [function.__name__ for function in v1_client.CHECKS])
def test_a_client_of_the_fixed_contract_finds_that(results: dict[str, str], name: str) -> None:
    assert results[name] == ""
