"""The calls by which operators change something: queues, runtime settings, single messages."""

import asyncio
from collections.abc import Callable

from fila import ids
from fila.core.commands import (
    Command,
    CreateQueue,
    DeleteQueue,
    PauseQueue,
    PurgeQueue,
    RemoveMessage,
    Reschedule,
    SetConfig,
    UpdateQueue,
)
from fila.core.records import Entry
from fila.errors import FilaError, InvalidArgumentError
from fila.model import DLQ_SUFFIX, NS_PER_MS, QueueSettings, is_dlq
from fila.server.boundary import Context
from fila.server.runner import Answer
from fila.server.settle import checked_delay
from fila.server.shell import Shell
from fila.wire._pb import admin_pb2 as pb
from fila.wire.names import check_name, check_queue_name, check_size
from fila.wire.options import moment_ns
from fila.wire.request import parse
from fila.wire.settings import config_of, merged_settings


class QueueService:
    """Queues as a whole."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._changing = asyncio.Lock()

    async def create_queue(self, data: bytes, _context: Context) -> bytes:
        """Create a queue and its dead-letter queue."""
        request = parse(pb.CreateQueueRequest, data)
        queue = request.name
        check_queue_name(queue, self._shell.limits)
        defaults = self._shell.queue_defaults
        settings = merged_settings(
            defaults, request.config, defaults=defaults, in_dlq=is_dlq(queue)
        )
        async with self._changing:
            await self._apply(
                queue,
                settings,
                lambda answer: CreateQueue(tag=answer, queue=queue, settings=settings),
            )
        return pb.CreateQueueResponse(queue_id=queue).SerializeToString()

    async def update_queue(self, data: bytes, _context: Context) -> bytes:
        """Change the settings that the request sets."""
        request = parse(pb.UpdateQueueRequest, data)
        # One at a time: what a request leaves unset is what the one before it has set.
        async with self._changing:
            queue = self._known(request.queue)
            settings = merged_settings(
                self._shell.scheduler.settings(queue),
                request.config,
                defaults=self._shell.queue_defaults,
                in_dlq=is_dlq(queue),
            )
            await self._apply(
                queue,
                settings,
                lambda answer: UpdateQueue(tag=answer, queue=queue, settings=settings),
            )
        return pb.UpdateQueueResponse(config=config_of(settings)).SerializeToString()

    async def delete_queue(self, data: bytes, _context: Context) -> bytes:
        """Delete a queue with its dead-letter queue."""
        request = parse(pb.DeleteQueueRequest, data)
        queue, keep = self._known(request.queue), request.keep_dead_letters
        async with self._changing:
            await self._shell.runner.ask(
                lambda answer: DeleteQueue(tag=answer, queue=queue, keep_dead_letters=keep),
                then=lambda: self._shell.policy.remove(queue),
            )
        return b""

    async def get_queue(self, data: bytes, _context: Context) -> bytes:
        """One queue's settings."""
        queue = self._known(parse(pb.GetQueueRequest, data).queue)
        scheduler = self._shell.scheduler
        return pb.GetQueueResponse(
            config=config_of(scheduler.settings(queue)),
            paused=scheduler.is_paused(queue),
            dead_letter_queue="" if is_dlq(queue) else queue + DLQ_SUFFIX,
        ).SerializeToString()

    async def list_queues(self, data: bytes, _context: Context) -> bytes:
        """All queues, by name."""
        parse(pb.ListQueuesRequest, data)
        scheduler = self._shell.scheduler
        response = pb.ListQueuesResponse()
        for name in scheduler.queue_names():
            summary = scheduler.summary(name)
            response.queues.add(
                name=name,
                depth=summary.depth,
                in_flight=summary.in_flight,
                active_consumers=summary.consumers,
                paused=summary.paused,
            )
        return response.SerializeToString()

    async def purge_queue(self, data: bytes, _context: Context) -> bytes:
        """Remove what waits, on request also what is leased."""
        request = parse(pb.PurgeQueueRequest, data)
        queue, leased = self._known(request.queue), request.include_leased
        purged = await self._shell.runner.ask(
            lambda answer: PurgeQueue(tag=answer, queue=queue, include_leased=leased)
        )
        assert isinstance(purged, int)
        return pb.PurgeQueueResponse(purged=purged).SerializeToString()

    async def pause_queue(self, data: bytes, _context: Context) -> bytes:
        """Stop deliveries."""
        await self._set_paused(parse(pb.PauseQueueRequest, data).queue, paused=True)
        return b""

    async def resume_queue(self, data: bytes, _context: Context) -> bytes:
        """Let deliveries go on."""
        await self._set_paused(parse(pb.ResumeQueueRequest, data).queue, paused=False)
        return b""

    async def _set_paused(self, queue: str, *, paused: bool) -> None:
        self._known(queue)
        await self._shell.runner.ask(
            lambda answer: PauseQueue(tag=answer, queue=queue, paused=paused)
        )

    async def _apply(
        self, queue: str, settings: QueueSettings, command: Callable[[Answer], Command]
    ) -> None:
        """Compile the scripts first, so that one that is wrong lets nothing take effect."""
        policy = self._shell.policy
        compiled = await policy.compile(queue, settings)
        try:
            await self._shell.runner.ask(command, then=lambda: policy.install(compiled))
        except FilaError:
            policy.discard(compiled)
            raise

    def _known(self, queue: str) -> str:
        check_queue_name(queue, self._shell.limits)
        self._shell.scheduler.partition_of(queue)
        return queue


class MessageService:
    """Single messages that wait."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def remove_message(self, data: bytes, _context: Context) -> bytes:
        """Remove one waiting message."""
        request = parse(pb.RemoveMessageRequest, data)
        queue, message_id = request.queue, request.message_id
        partition, entry = self._entry(queue, message_id)
        await self._shell.runner.ask(
            lambda answer: RemoveMessage(
                tag=answer,
                queue=queue,
                message_id=message_id,
                partition=partition,
                entry=entry,
            )
        )
        return b""

    async def reschedule(self, data: bytes, _context: Context) -> bytes:
        """Move a delayed message to another time."""
        request = parse(pb.RescheduleRequest, data)
        queue, message_id = request.queue, request.message_id
        deliver_at_ns = self._deliver_at_ns(request)
        partition, entry = self._entry(queue, message_id)
        await self._shell.runner.ask(
            lambda answer: Reschedule(
                tag=answer,
                queue=queue,
                message_id=message_id,
                partition=partition,
                entry=entry,
                deliver_at_ns=deliver_at_ns,
            )
        )
        return b""

    def _entry(self, queue: str, message_id: str) -> tuple[int, Entry | None]:
        check_queue_name(queue, self._shell.limits)
        high, low = ids.parse_id(message_id)
        partition = self._shell.scheduler.partition_of(queue)
        if not ids.belongs_to(low, partition):
            return partition, None
        entry = self._shell.storage.read_entry(partition, ids.sequence_of(low))
        return partition, entry if entry is not None and entry.id_high == high else None

    def _deliver_at_ns(self, request: pb.RescheduleRequest) -> int:
        match request.WhichOneof("when"):
            case "delay_ms":
                delay_ms = checked_delay("delay_ms", request.delay_ms)
                return self._shell.runner.clock.wall_ns() + delay_ms * NS_PER_MS
            case "deliver_at":
                return moment_ns("deliver_at", request.deliver_at)
            case _:
                raise InvalidArgumentError("set delay_ms or deliver_at")


class ConfigService:
    """Runtime settings."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def set_config(self, data: bytes, _context: Context) -> bytes:
        """Store a setting; an empty value deletes it."""
        request = parse(pb.SetConfigRequest, data)
        limits = self._shell.limits
        value_size = len(request.value.encode())
        check_size(
            "config value", value_size, limits.config_value_bytes_max, "config_value_bytes_max"
        )
        await self._set(request.key, request.value)
        return b""

    async def get_config(self, data: bytes, _context: Context) -> bytes:
        """One setting; a missing one is an empty value."""
        request = parse(pb.GetConfigRequest, data)
        self._check_key(request.key)
        value = self._shell.scheduler.config.get(request.key)
        return pb.GetConfigResponse(value=value or "", found=value is not None).SerializeToString()

    async def list_config(self, data: bytes, _context: Context) -> bytes:
        """All settings whose key has a prefix."""
        prefix = parse(pb.ListConfigRequest, data).prefix
        found = sorted(
            (key, value)
            for key, value in self._shell.scheduler.config.items()
            if key.startswith(prefix)
        )
        return pb.ListConfigResponse(
            entries=[pb.ConfigEntry(key=key, value=value) for key, value in found],
            total_count=len(found),
        ).SerializeToString()

    async def delete_config(self, data: bytes, _context: Context) -> bytes:
        """Delete a setting, and say whether it was there."""
        found = await self._set(parse(pb.DeleteConfigRequest, data).key, "")
        return pb.DeleteConfigResponse(found=bool(found)).SerializeToString()

    async def _set(self, key: str, value: str) -> object:
        self._check_key(key)
        return await self._shell.runner.ask(
            lambda answer: SetConfig(tag=answer, key=key, value=value),
            then=self._shell.policy.config_changed,
        )

    def _check_key(self, key: str) -> None:
        limit = self._shell.limits.config_key_bytes_max
        check_name("config key", key, limit, "config_key_bytes_max")
