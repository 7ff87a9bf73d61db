"""What the storage tests write, and how they look at what a store holds."""

from collections.abc import Sequence

from fila.core.effects import (
    Mutation,
    PutConfig,
    PutKeyWeight,
    PutMessages,
    PutOutcome,
    PutPartition,
    PutProgress,
    PutQueue,
)
from fila.core.message import Message
from fila.core.partition import Partition
from fila.core.queue import Queue
from fila.core.records import KeyWeight, PartitionRecord, Progress, QueueRecord, Status
from fila.core.throttle import Throttle
from fila.model import (
    DLQ_SUFFIX,
    DeadLetter,
    ItemError,
    Outcome,
    ProducerSequence,
    QueueSettings,
    Reason,
    Spec,
)
from fila.storage.port import Storage
from fila.wire._pb import messages_pb2 as pb

ID_HIGH = 0x0199_0000_0000_7001
PRODUCER = ProducerSequence(b"a producer\xff\xff", 7)


def body(payload: bytes, **headers: str) -> bytes:
    """An accepted item's own bytes."""
    return pb.Message(payload=payload, headers=headers).SerializeToString()


def put_messages(
    bodies: Sequence[bytes],
    *,
    partition: int = 1,
    first: int = 1,
    specs: Sequence[Spec] | None = None,
    times: dict[int, tuple[int, int]] | None = None,
    in_dlq: bool = False,
    accepted_at_ns: int = 1_000,
) -> PutMessages:
    """Accept messages into a partition."""
    return PutMessages(
        partition=partition,
        queue="orders",
        in_dlq=in_dlq,
        id_high=ID_HIGH,
        first_sequence=first,
        accepted_at_ns=accepted_at_ns,
        bodies=bodies,
        specs=[Spec()] * len(bodies) if specs is None else specs,
        times=times or {},
    )


def put_queue(
    name: str = "orders", partition: int = 1, settings: QueueSettings | None = None
) -> list[Mutation]:
    """A queue and its dead-letter queue with their partition, whose counter is far ahead."""
    counted = PartitionRecord(number=partition, base=name, next_sequence=1_000_000)
    queue = QueueRecord(name=name, partition=partition, settings=settings or QueueSettings())
    dlq = QueueRecord(name=name + DLQ_SUFFIX, partition=partition, settings=QueueSettings())
    return [PutPartition(counted), PutQueue(queue), PutQueue(dlq)]


def message(progress: Progress, sequence: int, *, partition: int = 1) -> Message:
    """A live message in the state that `progress` tells of."""
    owner = Partition(PartitionRecord(number=partition, base="orders"))
    name = "orders.dlq" if progress.in_dlq else "orders"
    return Message(
        Queue(name, owner, QueueSettings(), quantum=1, throttle=Throttle()),
        Spec(),
        sequence,
        progress.place,
        progress.status,
        attempts=progress.attempts,
        delivered=progress.delivered,
        due_wall_ns=progress.due_wall_ns,
        span_ns=progress.span_ns,
        wall_timed=progress.wall_timed,
        token=progress.token,
        leased_at_ns=progress.leased_at_ns,
        last_error=progress.last_error,
        dead=progress.dead,
    )


def put_progress(became: dict[int, Progress], *, partition: int = 1) -> PutProgress:
    """What became of messages, by sequence."""
    return PutProgress(
        partition, [message(p, sequence, partition=partition) for sequence, p in became.items()]
    )


LEASED = Progress(
    status=Status.LEASED,
    in_dlq=False,
    place=2,
    attempts=3,
    delivered=True,
    due_wall_ns=31_000,
    span_ns=30_000,
    token=0xFEDC_BA98_7654_3210,
    leased_at_ns=1_000,
)
DEAD = Progress(
    status=Status.DELAYED,
    in_dlq=True,
    place=90,
    attempts=20,
    delivered=True,
    due_wall_ns=5,
    span_ns=6,
    wall_timed=True,
    last_error="it broke: ü\x00",
    dead=DeadLetter(
        reason=Reason.MAX_ATTEMPTS, last_error="", source_queue="orders", dead_at_ns=77
    ),
)
OUTCOME = Outcome(ID_HIGH, 1, 4, 1_000, (ItemError(2, "INVALID_ARGUMENT", "weight is 0"),))


def everything() -> list[Mutation]:
    """One of each kind."""
    settings = QueueSettings(visibility_timeout_ms=5_000, on_failure_script="return 1\n")
    mixed = [Spec(), Spec("tenant ü", 10_000, ("mail", "sms"), 255, 10_000), Spec()]
    return [
        *put_queue(settings=settings),
        PutQueue(
            QueueRecord(name="orders.dlq", partition=1, settings=QueueSettings(), paused=True)
        ),
        put_messages(
            [body(b"one", a="b"), body(b"two"), body(b"three")],
            specs=mixed,
            times={1: (9_000, 10_000)},
        ),
        put_progress({2: LEASED, 3: DEAD}),
        PutOutcome(1, PRODUCER, OUTCOME),
        PutConfig("throttle:mail:rate", "10"),
        PutKeyWeight(
            KeyWeight(partition=1, in_dlq=True, fairness_key="tenant ü", weight=4, place=3)
        ),
    ]


def state(store: Storage) -> tuple[object, ...]:
    """All that a store gives back, for comparison."""
    recovered = store.recover()
    entries = list(recovered.entries)
    stored = [store.read_messages(number, [entry.sequence]) for number, entry, _ in entries]
    return (
        list(recovered.partitions),
        list(recovered.queues),
        entries,
        stored,
        list(recovered.key_weights),
        list(recovered.producers),
        recovered.config,
    )
