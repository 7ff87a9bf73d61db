"""The calls that look: statistics, consumers, and messages page by page."""

import asyncio
from dataclasses import asdict
from itertools import islice

from fila.core.records import Entry, Progress, Status
from fila.core.views import BucketStats, ConsumerView, KeyStats
from fila.errors import InvalidArgumentError
from fila.hooks.calls import HookKind
from fila.model import NS_PER_MS, is_dlq
from fila.server.boundary import Context
from fila.server.shell import Shell
from fila.storage.port import Row
from fila.wire import envelope
from fila.wire._pb import admin_pb2 as pb
from fila.wire._pb.messages_pb2 import Message
from fila.wire.names import check_queue_name
from fila.wire.request import parse

_PAGE_DEFAULT = 100
_PAGE_MAX = 1000
# What clients accept by default is 4 MiB; the last message of a page may be large by itself.
_PAGE_BYTES_MAX = 1024 * 1024
# A queue and its dead-letter queue are stored together: how many rows of the other one a call skips
# before it answers with a shorter page, and how many it reads before others get their turn.
_SCAN_MAX = 20_000
_SLICE = 256
STATES = {
    Status.READY: pb.MESSAGE_STATE_READY,
    Status.DELAYED: pb.MESSAGE_STATE_DELAYED,
    Status.LEASED: pb.MESSAGE_STATE_LEASED,
}


class ViewService:
    """GetStats, ListConsumers and Browse."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def get_stats(self, data: bytes, _context: Context) -> bytes:
        """One queue in numbers."""
        queue = parse(pb.GetStatsRequest, data).queue
        check_queue_name(queue, self._shell.limits)
        stats = self._shell.scheduler.stats(queue, now_ns=self._shell.runner.clock.now_ns())
        summary = stats.summary
        response = pb.GetStatsResponse(
            depth=summary.depth,
            in_flight=summary.in_flight,
            active_fairness_keys=stats.active_keys,
            active_consumers=summary.consumers,
            quantum=stats.quantum,
            ready=stats.ready,
            delayed=stats.delayed,
            throttled=stats.throttled,
            per_throttle_stats=map(_throttle_stats, stats.buckets),
            paused=summary.paused,
            key_count=stats.key_count,
        )
        for kind in HookKind:
            hook = self._shell.policy.stats(queue, kind, now_ns=self._shell.runner.clock.now_ns())
            if hook is not None:
                getattr(response, kind.value).CopyFrom(pb.HookStats(**asdict(hook)))
        partition = self._shell.scheduler.partition_of(queue)
        for key in stats.keys:
            oldest_waiting_ms = waiting_ms(self._shell, partition, key.oldest_sequence)
            response.per_key_stats.append(_key_stats(key, oldest_waiting_ms))
        response.oldest_waiting_ms = max(
            (key.oldest_waiting_ms for key in response.per_key_stats), default=0
        )
        return response.SerializeToString()

    async def list_consumers(self, data: bytes, _context: Context) -> bytes:
        """Who consumes, and how far they are."""
        queue = parse(pb.ListConsumersRequest, data).queue
        if queue:
            check_queue_name(queue, self._shell.limits)
        found = self._shell.scheduler.consumers(
            queue or None, now_ns=self._shell.runner.clock.now_ns()
        )
        response = pb.ListConsumersResponse()
        response.consumers.extend(consumer_info(consumer) for consumer in found)
        return response.SerializeToString()

    async def browse(self, data: bytes, _context: Context) -> bytes:
        """Messages without leasing them, in order of acceptance."""
        request = parse(pb.BrowseRequest, data)
        check_queue_name(request.queue, self._shell.limits)
        page = _Page(request.queue, request.page_size, self._shell.runner.clock.wall_ns())
        partition = self._shell.scheduler.partition_of(request.queue)
        after = _after_sequence(request.page_token)
        while True:
            # A new look for each slice: the rows may change while others have their turn.
            rows = list(islice(self._shell.storage.browse(partition, after), _SLICE))
            for row in rows:
                after = row[0].sequence
                if not page.take(row):
                    page.response.next_page_token = str(after)
                    return page.response.SerializeToString()
            if len(rows) < _SLICE:
                return page.response.SerializeToString()
            await asyncio.sleep(0)


def waiting_ms(shell: Shell, partition: int, sequence: int) -> int:
    """How long a message has been ready, by its sequence; 0 for none."""
    entry = shell.storage.read_entry(partition, sequence) if sequence else None
    if entry is None:
        return 0
    since_ns = max(entry.accepted_at_ns, entry.deliver_at_ns)
    return max(0, shell.runner.clock.wall_ns() - since_ns) // NS_PER_MS


def consumer_info(consumer: ConsumerView) -> pb.ConsumerInfo:
    """One consumer on the wire."""
    return pb.ConsumerInfo(
        id=consumer.number,
        name=consumer.name,
        peer=consumer.peer,
        queues=consumer.queues,
        credit=consumer.credit,
        held=consumer.held,
        idle_ms=consumer.idle_ns // NS_PER_MS,
    )


class _Page:
    """One answer in the making."""

    def __init__(self, queue: str, size: int, wall_ns: int) -> None:
        if size > _PAGE_MAX:
            raise InvalidArgumentError(f"page_size is {size}; the limit is {_PAGE_MAX}")
        self.response = pb.BrowseResponse()
        self._queue = queue
        self._in_dlq = is_dlq(queue)
        self._wall_ns = wall_ns
        self._messages_left = size or _PAGE_DEFAULT
        self._bytes_left = _PAGE_BYTES_MAX
        self._scans_left = _SCAN_MAX

    def take(self, row: Row) -> bool:
        """Show a message, if it is this queue's; whether to look further."""
        entry, progress, stored = row
        self._scans_left -= 1
        if (progress or entry).in_dlq == self._in_dlq:
            self._show(entry, progress, stored)
        return self._messages_left > 0 and self._bytes_left > 0 and self._scans_left > 0

    def _show(self, entry: Entry, progress: Progress | None, stored: bytes) -> None:
        shown = self.response.messages.add()
        shown.message.ParseFromString(stored)
        self._messages_left -= 1
        self._bytes_left -= len(stored)
        if progress is not None:
            _show_progress(shown.message, self._queue, progress)
        status, due_ns = _status(entry, progress, self._wall_ns)
        shown.state = STATES[status]
        if due_ns:
            envelope.set_time(shown.due_at, due_ns)


def _show_progress(message: Message, queue: str, progress: Progress) -> None:
    parts = envelope.attempts_part(progress.attempts)
    if progress.dead is not None:
        parts += envelope.dead_letter_part(queue, progress.dead)
    message.MergeFromString(parts)
    if progress.status is Status.LEASED:
        envelope.set_time(message.timestamps.leased_at, progress.leased_at_ns)


def _status(entry: Entry, progress: Progress | None, wall_ns: int) -> tuple[Status, int]:
    if progress is not None:
        due_ns = 0 if progress.status is Status.READY else progress.due_wall_ns
        return progress.status, due_ns
    if entry.deliver_at_ns > wall_ns:
        return Status.DELAYED, entry.deliver_at_ns
    return Status.READY, 0


def _after_sequence(token: str) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdigit() and len(token) <= 18):
        raise InvalidArgumentError("page_token is not one that Browse gave out")
    return int(token)


def _key_stats(key: KeyStats, oldest_waiting_ms: int) -> pb.PerFairnessKeyStats:
    return pb.PerFairnessKeyStats(
        key=key.key,
        pending_count=key.pending,
        current_deficit=key.deficit,
        weight=key.weight,
        delivered=key.delivered,
        delivered_per_second=key.delivered_per_second,
        share=key.share,
        weight_share=key.weight_share,
        in_flight=key.in_flight,
        oldest_waiting_ms=oldest_waiting_ms,
    )


def _throttle_stats(bucket: BucketStats) -> pb.PerThrottleKeyStats:
    return pb.PerThrottleKeyStats(
        key=bucket.key,
        tokens=bucket.tokens,
        rate_per_second=bucket.rate,
        burst=bucket.burst,
        waiting=bucket.waiting,
    )
