"""The bytes of deliveries: what is stored of a message, and behind it what the lease adds."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from fila.core.effects import Delivery
from fila.storage.port import Storage
from fila.wire import envelope
from fila.wire.reply import embedded


def read_deliveries(
    storage: Storage, deliveries: Sequence[Delivery], lost: list[Delivery]
) -> Iterator[tuple[bytes, Delivery]]:
    """Each whose lease is still live, as a field of a response, in order.

    Those whose bytes can't be read any more, which storage has set aside, are appended to `lost`.
    """
    live = [
        delivery
        for delivery in deliveries
        if delivery[0].token == delivery[1]
        and delivery[0].queue.leased.get(delivery[0].sequence) is delivery[0]
    ]
    for partition, group in groupby(live, _partition):
        batch = list(group)
        stored = storage.read_messages(partition, [message.sequence for message, _ in batch])
        yield from _messages(batch, stored, lost)


def _partition(delivery: Delivery) -> int:
    return delivery[0].queue.partition.number


def _messages(
    batch: Sequence[Delivery], stored: Sequence[bytes | None], lost: list[Delivery]
) -> Iterator[tuple[bytes, Delivery]]:
    # Those of one pass have all but the token in common.
    attempts, leased_at_ns, due_wall_ns, lease_part = -1, 0, 0, b""
    for delivery, data in zip(batch, stored, strict=True):
        if data is None:
            lost.append(delivery)
            continue
        message, token = delivery
        if (
            message.leased_at_ns != leased_at_ns
            or message.due_wall_ns != due_wall_ns
            or message.attempts != attempts
        ):
            attempts, leased_at_ns = message.attempts, message.leased_at_ns
            due_wall_ns = message.due_wall_ns
            lease_part = envelope.lease_part(attempts, leased_at_ns, due_wall_ns)
        part = lease_part
        if message.dead is not None:
            part = envelope.dead_letter_part(message.queue.name, message.dead) + part
        yield embedded(data, part, envelope.token_part(token)), delivery
