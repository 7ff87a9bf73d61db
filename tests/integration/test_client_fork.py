"""A client that a child process inherits opens a connection of its own, and harms nobody's."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

import fila
from tests.integration.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as process:
        yield process


@pytest.fixture
def queue(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    name = f"f-{abs(hash(request.node.name))}"
    with fila.Client(broker.address) as client:
        client.admin.create_queue(name)
    return name


def run(program: str, broker: BrokerProcess, queue: str) -> str:
    """What the program printed; it must end by itself and without complaint."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), broker.address, queue],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def payloads(broker: BrokerProcess, queue: str) -> list[bytes]:
    with fila.Client(broker.address) as client:
        return sorted(one.message.payload for one in client.admin.browse(queue))


def test_child_and_grandchild_enqueue_through_the_inherited_client(
    broker: BrokerProcess, queue: str
) -> None:
    run(
        """
        import os, sys, fila

        client = fila.Client(sys.argv[1])
        client.enqueue(sys.argv[2], b"parent before")
        child = os.fork()
        if not child:
            client.enqueue(sys.argv[2], b"child")
            grandchild = os.fork()
            if not grandchild:
                client.enqueue(sys.argv[2], b"grandchild")
                sys.exit(0)
            assert os.waitpid(grandchild, 0)[1] == 0
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        client.enqueue(sys.argv[2], b"parent after")
        client.close()
        """,
        broker,
        queue,
    )

    assert payloads(broker, queue) == [b"child", b"grandchild", b"parent after", b"parent before"]


@pytest.mark.parametrize("before", ["", "import grpc.aio"], ids=["plain", "grpc was imported"])
def test_a_fork_leaves_the_consumer_of_the_parent_alone(
    broker: BrokerProcess, queue: str, before: str
) -> None:
    # Many forks: what a library's threads do to a child shows in some of them only.
    output = run(
        f"{before}\n"
        + textwrap.dedent("""
        import os, sys, fila

        client = fila.Client(sys.argv[1])
        queue = sys.argv[2]
        client.enqueue_batch(queue, [fila.NewMessage(b"%d" % n) for n in range(100)])
        seen = []
        consumer = client.consume(queue, prefetch=10)
        for message in consumer:
            if len(seen) % 10 == 5 and len(seen) < 100:
                child = os.fork()
                if not child:
                    client.enqueue(queue, b"from the child")
                    try:
                        while True:
                            next(consumer)
                    except RuntimeError as error:
                        print("child:", error, flush=True)
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
            client.ack(message)
            seen.append((message.payload, message.attempts))
            if len(seen) == 110:
                break
        client.flush()
        assert all(attempts == 0 for _, attempts in seen), seen
        print(client.admin.stats(queue).depth)
        client.close()
        """),
        broker,
        queue,
    )

    lines = output.splitlines()
    assert len(lines) == 11
    assert all("belongs to the parent process" in line for line in lines[:10])
    assert lines[10] == "0"


def test_an_asynchronous_client_works_again_in_the_childs_own_loop(
    broker: BrokerProcess, queue: str
) -> None:
    run(
        """
        import asyncio, os, sys, fila

        client = fila.AsyncClient(sys.argv[1])

        async def main():
            await client.enqueue(sys.argv[2], b"parent")
            child = os.fork()
            if not child:
                return False
            await client.enqueue(sys.argv[2], b"parent again")
            assert os.waitpid(child, 0)[1] == 0
            await client.close()
            return True

        async def child_main():
            await client.enqueue(sys.argv[2], b"child")
            await client.close()

        # A child leaves its parent's loop as it is.
        if not asyncio.new_event_loop().run_until_complete(main()):
            asyncio.run(child_main())
            os._exit(0)
        """,
        broker,
        queue,
    )

    assert payloads(broker, queue) == [b"child", b"parent", b"parent again"]


def test_processes_of_a_pool_share_a_client_made_before(broker: BrokerProcess, queue: str) -> None:
    run(
        """
        import multiprocessing, sys, fila

        client = fila.Client(sys.argv[1])

        def send(number):
            return client.enqueue(sys.argv[2], b"%d" % number)

        if __name__ == "__main__":
            send(0)
            with multiprocessing.get_context("fork").Pool(4) as pool:
                ids = pool.map(send, range(1, 41))
            assert len(set(ids)) == 40
            client.close()
        """,
        broker,
        queue,
    )

    assert len(payloads(broker, queue)) == 41


def test_a_program_that_closes_nothing_ends(broker: BrokerProcess, queue: str) -> None:
    output = run(
        """
        import sys, fila

        client = fila.Client(sys.argv[1])
        client.enqueue(sys.argv[2], b"x")
        message = next(client.consume(sys.argv[2]))
        print(message.payload)
        """,
        broker,
        queue,
    )

    assert output == "b'x'\n"
