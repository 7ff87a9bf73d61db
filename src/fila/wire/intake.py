"""Messages as a producer sends them, checked and laid out in columns for the core.

The bytes of an item are what will be stored and delivered: nothing may ride along in them that the
broker did not check, so fields it does not know are dropped first.
"""

from dataclasses import dataclass, field

from fila.errors import FilaError, InvalidArgumentError
from fila.model import ItemError, Limits, ProducerSequence, Spec, Timing
from fila.wire._pb import service_pb2 as pb
from fila.wire.names import check_size, has_control
from fila.wire.options import OptionReader
from fila.wire.outline import headers_size, outline

_PRODUCER_BYTES_MAX = 64
# Messages have the same headers again and again; these need not be looked at twice.
_KNOWN_HEADS_MAX = 4096
_KNOWN_HEAD_BYTES_MAX = 256


@dataclass(slots=True)
class Columns:
    """The accepted items of a call, and those that were refused by their place in it."""

    bodies: list[bytes] = field(default_factory=list)
    # What a script may know of them, where one is asked.
    outlines: list[bytes] = field(default_factory=list)
    specs: list[Spec] = field(default_factory=list)
    # By position in the columns.
    timings: dict[int, Timing] = field(default_factory=dict)
    refused: list[ItemError] = field(default_factory=list)


class Intake:
    """Turns enqueue requests into columns."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._options = OptionReader(limits)
        # The bytes of headers that were looked at.
        self._known_heads: set[bytes | None] = set()
        # An item no larger than this has no header or payload that could be too large.
        self._surely_small = min(limits.header_bytes_max, limits.message_bytes_max)

    def one(self, request: pb.EnqueueRequest, *, outlined: bool = False) -> Columns:
        """The message of a unary call; it consumes the request."""
        request.ClearField("queue")
        request.ClearField("producer")
        request.DiscardUnknownFields()
        columns = Columns()
        self._take(columns, request, outlined)
        return columns

    def many(self, request: pb.EnqueueBatchRequest, *, outlined: bool = False) -> Columns:
        """The messages of a batch; those that fail their checks are in `refused`."""
        limit = self._limits.batch_messages_max
        if len(request.items) > limit:
            raise InvalidArgumentError(
                f"{len(request.items)} messages in a batch; the limit is {limit} "
                "(limits.batch_messages_max)"
            )
        request.DiscardUnknownFields()
        columns = Columns()
        for index, item in enumerate(request.items):
            try:
                self._take(columns, item, outlined)
            except FilaError as error:
                columns.refused.append(ItemError(index, error.code, str(error)))
        return columns

    def _take(
        self, columns: Columns, item: pb.EnqueueItem | pb.EnqueueRequest, outlined: bool
    ) -> None:
        body = item.SerializeToString()
        size = headers_size(body)
        head = None if size is None else body[:size]
        if head not in self._known_heads:
            self._check_headers(item, head)
        if len(body) > self._surely_small:
            self._check_sizes(item, len(body))
        options = item.options if item.HasField("options") else None
        if options is None:
            columns.specs.append(self._options.plain)
        else:
            spec, timing = self._options.read(options)
            if timing is not None:
                columns.timings[len(columns.bodies)] = timing
            columns.specs.append(spec)
        columns.bodies.append(body)
        if outlined:
            columns.outlines.append(outline(item, body, head, options is None))

    def _check_headers(self, item: pb.EnqueueItem | pb.EnqueueRequest, head: bytes | None) -> None:
        for name in item.headers:
            if not name:
                raise InvalidArgumentError("header name must not be empty")
            if has_control(name):
                raise InvalidArgumentError("header name must not contain control characters")
        if len(item.headers) > self._limits.headers_max:
            raise InvalidArgumentError(
                f"{len(item.headers)} headers; the limit is {self._limits.headers_max} "
                "(limits.headers_max)"
            )
        if head is not None and len(head) <= _KNOWN_HEAD_BYTES_MAX:
            if len(self._known_heads) >= _KNOWN_HEADS_MAX:
                self._known_heads.clear()
            self._known_heads.add(head)

    def _check_sizes(self, item: pb.EnqueueItem | pb.EnqueueRequest, size: int) -> None:
        limits = self._limits
        check_size("message", size, limits.message_bytes_max, "message_bytes_max")
        for name, value in item.headers.items():
            header_size = len(name.encode()) + len(value.encode())
            check_size("header", header_size, limits.header_bytes_max, "header_bytes_max")


def producer_sequence(producer: pb.Producer) -> ProducerSequence:
    """The name of a call that may be repeated."""
    if not 1 <= len(producer.id) <= _PRODUCER_BYTES_MAX:
        raise InvalidArgumentError(f"producer.id must have 1 to {_PRODUCER_BYTES_MAX} bytes")
    return ProducerSequence(producer.id, producer.sequence)
