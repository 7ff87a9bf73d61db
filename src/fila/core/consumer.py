"""Someone who takes deliveries: of any number of queues, under one credit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.core.message import Message
    from fila.core.queue import Queue


class Consumer:
    """One open stream."""

    __slots__ = (
        "credit",
        "enlisted",
        "idle_since_ns",
        "leases",
        "name",
        "number",
        "peer",
        "queues",
        "release_on_disconnect",
    )

    def __init__(
        self, number: int, *, credit: int, name: str, peer: str, release_on_disconnect: bool
    ) -> None:
        self.number = number
        self.credit = credit
        self.name = name
        self.peer = peer
        self.release_on_disconnect = release_on_disconnect
        self.queues: dict[str, Queue] = {}
        # Queues that count on this consumer as one with room.
        self.enlisted: set[str] = set()
        # What it holds, in order of delivery.
        self.leases: dict[Message, None] = {}
        self.idle_since_ns = 0

    @property
    def room(self) -> int:
        """How many more messages it may hold; negative after its credit shrank."""
        return self.credit - len(self.leases)
