"""Redrive: dead letters go back through the way that new messages come in.

A call is worked off in chunks, each one write, with everything else having its turn in between. It
goes through what waited when it began, the lowest place first, so that a message that dies again
meanwhile is not taken a second time. Whoever called may go away: what has moved has moved.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from fila.core.backlog import Backlog
from fila.core.commands import Redrive
from fila.core.effects import RedriveResult
from fila.core.records import Entry
from fila.errors import ExhaustedError
from fila.hooks.calls import HookKind
from fila.model import EnqueueDecision, Limits, Timing
from fila.server.boundary import Context
from fila.server.hook_line import Call
from fila.server.rulings import Rulings
from fila.server.runner import Answer
from fila.server.shell import Shell
from fila.wire import envelope
from fila.wire._pb import admin_pb2 as pb
from fila.wire._pb.messages_pb2 import Message
from fila.wire.names import check_queue_name
from fila.wire.options import OptionReader, Wishes
from fila.wire.outline import outline_of
from fila.wire.request import parse

# What one write moves: few enough not to hold the loop, and not too many bytes to look at.
_CHUNK_MESSAGES_MAX = 200
_CHUNK_BYTES_MAX = 1024 * 1024
# Options were within the limits when they were accepted.
_UNLIMITED = Limits(key_bytes_max=1 << 31, throttle_keys_max=1 << 31)
# Read at once: a message may be large.
_READ_AT_ONCE = 50


@dataclass(slots=True)
class _Chunk:
    """Dead letters of one write, as columns."""

    entries: list[Entry] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    # What their own options say. A delay is over; a time to live starts anew.
    wishes: list[Wishes] = field(default_factory=list)
    # As the script of the source queue is asked about them.
    calls: list[Call] = field(default_factory=list)
    size: int = 0
    # Whether nothing is left behind it.
    is_last: bool = False


class RedriveService:
    """Redrive."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._rulings = Rulings()
        self._options = OptionReader(_UNLIMITED)

    async def redrive(self, data: bytes, _context: Context) -> bytes:
        """Move dead letters back to where they came from."""
        request = parse(pb.RedriveRequest, data)
        dlq = request.dlq_queue
        check_queue_name(dlq, self._shell.limits)
        source = self._shell.scheduler.source_of(dlq)
        moved = await self._move(dlq, source, request.count)
        return pb.RedriveResponse(redriven=moved).SerializeToString()

    async def _move(self, dlq: str, source: str, count: int) -> int:
        """So many of those that wait now, 0 for all; less where there is no room for more."""
        partition = self._shell.scheduler.partition_of(dlq)
        backlog = self._shell.scheduler.backlog(dlq)
        moved = 0
        is_last = False
        while not is_last and (not count or moved < count):
            chunk = self._look_up(partition, backlog, count - moved if count else sys.maxsize)
            is_last = chunk.is_last
            try:
                moved += await self._move_chunk(dlq, source, partition, chunk)
            except ExhaustedError:
                if not moved:
                    raise
                break
        return moved

    def _look_up(self, partition: int, backlog: Backlog, wanted: int) -> _Chunk:
        chunk = _Chunk()
        left = min(wanted, _CHUNK_MESSAGES_MAX)
        while left and chunk.size < _CHUNK_BYTES_MAX:
            found = backlog.take(min(left, _READ_AT_ONCE))
            if not found:
                chunk.is_last = True
                break
            left -= len(found)
            self._read(partition, found, chunk)
        return chunk

    def _read(self, partition: int, found: Sequence[tuple[int, int]], chunk: _Chunk) -> None:
        storage = self._shell.storage
        entries = storage.read_entries(partition, [sequence for sequence, _ in found])
        # Those that are not stored any more have been settled or removed meanwhile.
        known = [
            (entry, place)
            for entry, (_, place) in zip(entries, found, strict=True)
            if entry is not None
        ]
        messages = storage.read_messages(partition, [entry.sequence for entry, _ in known])
        for (entry, place), stored in zip(known, messages, strict=True):
            message = envelope.read_stored(stored)
            if message is not None and stored is not None:
                chunk.entries.append(entry)
                chunk.places.append(place)
                self._ask_for(message, chunk)
                chunk.size += len(stored)

    def _ask_for(self, message: Message, chunk: _Chunk) -> None:
        spec, timing = self._options.read(message.options)
        chunk.wishes.append((spec, Timing(ttl_ms=timing.ttl_ms) if timing else None))
        chunk.calls.append(outline_of(message.headers, len(message.payload)))

    async def _decide(self, source: str, chunk: _Chunk) -> Sequence[Wishes]:
        """What the messages ask for from now on: the script's word, else their own."""
        line = self._shell.policy.line(source, HookKind.ON_ENQUEUE)
        if line is None:
            return chunk.wishes
        decisions = await self._shell.policy.ask(line, chunk.calls)
        return [
            self._rulings.rule(*wishes, cast("EnqueueDecision | None", decision))
            for wishes, decision in zip(chunk.wishes, decisions, strict=True)
        ]

    async def _move_chunk(self, dlq: str, source: str, partition: int, chunk: _Chunk) -> int:
        if not chunk.entries:
            # All of these were settled or removed meanwhile; others get their turn before the next.
            await asyncio.sleep(0)
            return 0
        self._shell.disk.admit(chunk.size)
        wishes = await self._decide(source, chunk)
        timings = {index: timing for index, (_, timing) in enumerate(wishes) if timing is not None}

        def command(answer: Answer) -> Redrive:
            return Redrive(
                tag=answer,
                queue=dlq,
                partition=partition,
                entries=chunk.entries,
                places=chunk.places,
                specs=[spec for spec, _ in wishes],
                timings=timings,
            )

        result = await self._shell.runner.ask(command)
        assert isinstance(result, RedriveResult)
        if result.is_full and not result.moved:
            raise self._full(source)
        return result.moved

    def _full(self, source: str) -> ExhaustedError:
        depth_max = self._shell.scheduler.settings(source).max_depth
        return ExhaustedError(
            f"queue {source!r} is full: no dead letter fits below its max_depth of {depth_max}; "
            "consume some, or raise max_depth"
        )
