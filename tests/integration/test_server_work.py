"""The Work stream: what comes in which order, and what becomes of it when somebody goes."""

import queue as queues
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
import pytest

from fila.wire._pb import admin_pb2 as a
from fila.wire._pb import messages_pb2 as m
from fila.wire._pb import service_pb2 as s
from tests.integration.broker_process import BrokerProcess
from tests.integration.rpc import Rpc, refused

PATIENCE_S = 10.0


class Worker:
    """A stream with both ends in hand."""

    def __init__(self, rpc: Rpc, *, credit: int = 0, release: bool = False) -> None:
        self._requests: queues.SimpleQueue[s.WorkRequest | None] = queues.SimpleQueue()
        self.call = rpc.work(iter(self._requests.get, None))
        self.responses = iter(self.call)
        opening = s.WorkOpen(credit=credit, release_on_disconnect=release, consumer_name="me")
        self.send(s.WorkRequest(open=opening))
        self.number = self.next("opened").opened.consumer_id

    def send(self, request: s.WorkRequest) -> None:
        self._requests.put(request)

    def next(self, kind: str) -> s.WorkResponse:
        """The next response, which must be of this kind."""
        response = next(self.responses)
        assert response.WhichOneof("response") == kind, response
        return response

    def next_other_than_deliveries(self) -> s.WorkResponse:
        return next(each for each in self.responses if not each.HasField("deliveries"))

    def subscribe(self, queue: str) -> s.WorkSubscribed:
        self.send(s.WorkRequest(subscribe=s.WorkSubscribe(queue=queue)))
        return self.next_other_than_deliveries().subscribed

    def deliveries(self, count: int) -> list[m.Message]:
        found: list[m.Message] = []
        while len(found) < count:
            found.extend(self.next("deliveries").deliveries.messages)
        return found

    def ack(self, batch: int, queue: str, messages: list[m.Message]) -> None:
        self._settle(batch, queue, messages, ack=s.AckAction())

    def nack(self, batch: int, queue: str, messages: list[m.Message]) -> None:
        self._settle(batch, queue, messages, nack=s.NackAction(error="no"))

    def _settle(
        self,
        batch: int,
        queue: str,
        messages: list[m.Message],
        *,
        ack: s.AckAction | None = None,
        nack: s.NackAction | None = None,
    ) -> None:
        settlement = s.Settlement(
            queue=queue,
            message_ids=b"".join(bytes.fromhex(each.id.replace("-", "")) for each in messages),
            lease_tokens=[each.delivery.lease_token for each in messages],
            ack=ack,
            nack=nack,
        )
        self.send(s.WorkRequest(settle=s.WorkSettle(batch=batch, settlements=[settlement])))

    def finish(self) -> None:
        """No more requests."""
        self._requests.put(None)

    def leave(self) -> None:
        self.call.cancel()
        self.finish()


@contextmanager
def working(rpc: Rpc, *, credit: int = 0, release: bool = False) -> Iterator[Worker]:
    worker = Worker(rpc, credit=credit, release=release)
    try:
        yield worker
    finally:
        worker.leave()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        threading.Event().wait(0.01)


def consumers(rpc: Rpc, queue: str) -> list[a.ConsumerInfo]:
    request = a.ListConsumersRequest(queue=queue)
    return list(rpc.call(request, a.ListConsumersResponse).consumers)


def enqueue_many(rpc: Rpc, queue: str, count: int, size: int = 10) -> None:
    items = [s.EnqueueItem(payload=bytes(size))] * count
    rpc.call(s.EnqueueBatchRequest(queue=queue, items=items), s.EnqueueBatchResponse)


def test_a_subscription_is_confirmed_before_its_first_delivery(rpc: Rpc) -> None:
    names = [rpc.queue() for _ in range(20)]
    for name in names:
        enqueue_many(rpc, name, 3)
    with working(rpc) as worker:
        confirmed: set[str] = set()
        for name in names:
            worker.send(s.WorkRequest(subscribe=s.WorkSubscribe(queue=name)))
        delivered = 0
        while delivered < 60:
            response = next(worker.responses)
            confirmed.add(response.subscribed.queue)
            for message in response.deliveries.messages:
                assert message.metadata.queue_id in confirmed
                delivered += 1


def test_a_subscription_to_nothing_is_refused_and_the_stream_goes_on(rpc: Rpc) -> None:
    name = rpc.queue()
    with working(rpc) as worker:
        assert worker.subscribe("none").error.code == 5
        assert worker.subscribe("").error.code == 3
        assert not worker.subscribe(name).HasField("error")


def test_an_ack_does_not_wait_behind_a_nack_that_waits_for_a_script(rpc: Rpc) -> None:
    name = rpc.queue()
    slow = "function on_failure(msg) for i = 1, 3000000 do end return {} end"
    config = a.QueueConfig(on_failure_script=slow, hook_timeout_ms=1000)
    rpc.call(a.UpdateQueueRequest(queue=name, config=config), a.UpdateQueueResponse)
    enqueue_many(rpc, name, 21)
    with working(rpc, credit=21) as worker:
        worker.subscribe(name)
        messages = worker.deliveries(21)
        worker.nack(1, name, messages[:20])
        worker.ack(2, name, messages[20:])
        settled = [worker.next_other_than_deliveries().settled.batch for _ in range(2)]

    assert settled == [2, 1]


def test_each_settle_is_answered_with_what_was_refused(rpc: Rpc) -> None:
    name = rpc.queue()
    enqueue_many(rpc, name, 4)
    with working(rpc, credit=4) as worker:
        worker.subscribe(name)
        messages = worker.deliveries(4)
        worker.ack(1, name, messages[:2])
        worker.ack(2, "none", messages[2:3])
        worker.ack(3, name, messages[1:])
        worker.send(s.WorkRequest(settle=s.WorkSettle(batch=4)))
        settled = [worker.next("settled").settled for _ in range(4)]
    answers = sorted(settled, key=lambda answer: answer.batch)

    assert [answer.batch for answer in answers] == [1, 2, 3, 4]
    errors = [
        [(error.index, error.code) for error in result.errors]
        for answer in answers
        for result in answer.results
    ]
    assert errors == [[], [(0, 5)], [(0, 5)]]
    assert rpc.stats(name).depth == 0


def test_all_queues_share_one_credit_which_can_grow_and_shrink(rpc: Rpc) -> None:
    names = [rpc.queue(), rpc.queue()]
    for name in names:
        enqueue_many(rpc, name, 50)
    with working(rpc, credit=10) as worker:
        for name in names:
            worker.subscribe(name)
        wait_until(lambda: sum(rpc.stats(name).in_flight for name in names) == 10)
        worker.send(s.WorkRequest(credit=s.WorkCredit(credit=25)))
        wait_until(lambda: sum(rpc.stats(name).in_flight for name in names) == 25)
        worker.send(s.WorkRequest(credit=s.WorkCredit(credit=5)))
        wait_until(lambda: consumers(rpc, names[0])[0].credit == 5)
        [info] = consumers(rpc, names[0])

    assert (info.name, info.held, sorted(info.queues)) == ("me", 25, sorted(names))


def test_a_reply_does_not_wait_behind_a_backlog_of_deliveries(rpc: Rpc) -> None:
    name = rpc.queue()
    for _ in range(20):
        enqueue_many(rpc, name, 10, size=100_000)
    with working(rpc, credit=200) as worker:
        worker.send(s.WorkRequest(subscribe=s.WorkSubscribe(queue=name)))
        worker.next("subscribed")
        [first, *_] = worker.deliveries(1)
        # Nothing is read for now: deliveries pile up behind the stream's flow control.
        wait_until(lambda: rpc.stats(name).in_flight == 200)
        worker.ack(7, name, [first])
        wait_until(lambda: rpc.stats(name).depth == 199)
        delivered = 0
        for response in worker.responses:
            if response.HasField("settled"):
                break
            delivered += len(response.deliveries.messages)

    # What gRPC had buffered on its way, and one chunk; not the whole backlog.
    assert delivered < 100


def test_stop_ends_deliveries_while_settles_still_flow(rpc: Rpc) -> None:
    name = rpc.queue()
    enqueue_many(rpc, name, 20)
    with working(rpc, credit=5) as worker:
        worker.subscribe(name)
        messages = worker.deliveries(5)
        worker.send(s.WorkRequest(stop=s.WorkStop()))
        worker.next("stopped")
        worker.ack(1, name, messages)
        worker.next("settled")
        worker.send(s.WorkRequest(credit=s.WorkCredit(credit=10)))
        worker.ack(2, name, [])

        assert worker.next("settled").settled.batch == 2
        assert (rpc.stats(name).depth, rpc.stats(name).in_flight) == (15, 0)


def test_after_an_unsubscription_nothing_of_the_queue_comes(rpc: Rpc) -> None:
    name = rpc.queue()
    with working(rpc, credit=5) as worker:
        worker.subscribe(name)
        worker.send(s.WorkRequest(unsubscribe=s.WorkUnsubscribe(queue=name)))
        assert worker.next("unsubscribed").unsubscribed.queue == name
        enqueue_many(rpc, name, 3)
        worker.ack(1, name, [])
        worker.next("settled")

    assert rpc.stats(name).ready == 3


def test_the_end_of_a_queue_is_told_with_the_reason(rpc: Rpc) -> None:
    name, other = rpc.queue(), rpc.queue()
    with working(rpc) as worker:
        worker.subscribe(name)
        worker.subscribe(other)
        rpc.call(a.DeleteQueueRequest(queue=name), a.DeleteQueueResponse)
        gone = worker.next("unsubscribed").unsubscribed
        enqueue_many(rpc, other, 1)
        worker.deliveries(1)

    assert (gone.queue, gone.error.code) == (name, 5)


def test_a_client_that_has_sent_everything_gets_its_answers_and_a_good_end(rpc: Rpc) -> None:
    name = rpc.queue()
    enqueue_many(rpc, name, 3)
    worker = Worker(rpc, credit=3)
    worker.subscribe(name)
    worker.ack(9, name, worker.deliveries(3))
    worker.finish()

    assert worker.next("settled").settled.batch == 9
    assert next(worker.responses, None) is None
    assert worker.call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "request_",
    [
        s.WorkRequest(),
        s.WorkRequest(stop=s.WorkStop()),
        s.WorkRequest(open=s.WorkOpen(credit=1 << 31)),
    ],
)
def test_a_stream_that_begins_wrong_is_refused(rpc: Rpc, request_: s.WorkRequest) -> None:
    responses = iter(rpc.work([request_]))

    with pytest.raises(grpc.RpcError) as caught:
        next(responses)
    assert refused(caught.value).code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("release", [True, False])
def test_a_client_that_goes_keeps_nothing(rpc: Rpc, release: bool) -> None:
    name = rpc.queue()
    enqueue_many(rpc, name, 4)
    with working(rpc, credit=3, release=release) as worker:
        worker.subscribe(name)
        worker.deliveries(3)

    wait_until(lambda: not consumers(rpc, name))
    # Without the wish they come back when their leases end.
    wait_until(lambda: rpc.stats(name).in_flight == (0 if release else 3))


def test_a_client_whose_connection_breaks_is_deregistered(
    shared_broker: BrokerProcess, rpc: Rpc
) -> None:
    name = rpc.queue()
    enqueue_many(rpc, name, 2)
    with Tunnel(shared_broker.address) as tunnel, Rpc(tunnel.address) as distant:
        worker = Worker(distant, credit=1, release=True)
        worker.subscribe(name)
        worker.deliveries(1)
        assert len(consumers(rpc, name)) == 1

        tunnel.cut()

        wait_until(lambda: not consumers(rpc, name))
        wait_until(lambda: rpc.stats(name).in_flight == 0)
        worker.leave()


class Tunnel:
    """Passes bytes between a client and the broker until it is cut, without a goodbye of theirs."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Tunnel":
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def cut(self) -> None:
        self._listener.close()
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            end.close()
        self._ends.clear()

    def _accept(self) -> None:
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        far = socket.create_connection(self._target)
        self._ends += [near, far]
        threading.Thread(target=self._pass, args=(near, far), daemon=True).start()
        threading.Thread(target=self._pass, args=(far, near), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            return
