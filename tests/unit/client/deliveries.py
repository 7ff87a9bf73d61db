"""Deliveries as a broker would send them."""

from fila.client.leases import LeaseBook
from fila.client.message import Message
from fila.client.settling import Action
from fila.wire._pb import messages_pb2 as pb
from fila.wire.envelope import set_time

START_NS = 1_700_000_000 * 10**9


class Holder:
    """Where settles would go."""

    def __init__(self) -> None:
        self.settled: list[tuple[Message, Action]] = []

    @property
    def unsettled(self) -> int:
        return 0

    def settle(self, message: Message, action: Action) -> None:
        self.settled.append((message, action))


def wire_message(number: int, *, queue: str = "q", lease_s: float = 30.0) -> pb.Message:
    message = pb.Message(
        id=f"01890000-0000-7000-8000-{number:012x}",
        payload=b"%d" % number,
        metadata=pb.MessageMetadata(queue_id=queue),
        delivery=pb.Delivery(lease_token=1000 + number),
    )
    set_time(message.timestamps.leased_at, START_NS)
    set_time(message.delivery.lease_expires_at, START_NS + int(lease_s * 1e9))
    return message


def deliver(
    count: int, *, book: LeaseBook | None = None, queue: str = "q", lease_s: float = 30.0
) -> list[Message]:
    wires = [wire_message(number, queue=queue, lease_s=lease_s) for number in range(count)]
    return (book or LeaseBook(Holder())).receive(wires, 0.0)
