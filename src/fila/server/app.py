"""Wires the broker together, starts it and stops it."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection

from fila.core.scheduler import Scheduler
from fila.errors import ConfigError, ShuttingDownError
from fila.server.address import check_free
from fila.server.admin import ConfigService, MessageService, QueueService
from fila.server.backup import BackupService, remove_address, write_address
from fila.server.boundary import Boundary, Handler
from fila.server.clock import Clock, SystemClock
from fila.server.config import REQUEST_BYTES_MAX, Config
from fila.server.consume import ConsumeService
from fila.server.disk import DiskWatch, floor_bytes, reclaim_when_low
from fila.server.enqueue import EnqueueService
from fila.server.explain import ExplainService
from fila.server.health import Health
from fila.server.hook_thread import HookThread
from fila.server.log import facts
from fila.server.policy import Policy
from fila.server.redrive import RedriveService
from fila.server.runner import Fsync, Runner
from fila.server.settle import SettleService
from fila.server.shell import Shell
from fila.server.views import ViewService
from fila.server.work import WorkService
from fila.storage.port import Storage
from fila.storage.rocksdb import RocksStorage

log = logging.getLogger(__name__)

FILA_SERVICE = "fila.v1.FilaService"
ADMIN_SERVICE = "fila.v1.FilaAdmin"
# For the last responses to leave after everything is answered; a health watch never ends by itself.
_FAREWELL_S = 0.5
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_send_message_length", -1),
    # A second server on the port is an error, not a colleague.
    ("grpc.so_reuseport", 0),
    # A peer that is gone without a word is noticed.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Clients may look whether we are there as often as we do.
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
)


class App:
    """One running broker."""

    def __init__(self, config: Config, runner: Runner, shell: Shell) -> None:
        self.config = config
        self.runner = runner
        self.address = ""
        self._shell = shell
        self._boundary = Boundary()
        self._server = grpc.aio.server(options=_CHANNEL_OPTIONS)
        self._health = Health((FILA_SERVICE, ADMIN_SERVICE), shell.disk)
        self._reclaiming: asyncio.Task[None] | None = None
        self._mark = secrets.token_hex(8)

    @classmethod
    async def start(
        cls,
        config: Config,
        *,
        on_failure: Callable[[BaseException], None],
        clock: Clock | None = None,
    ) -> "App":
        """Open the data directory, recover, and listen."""
        clock = clock or SystemClock()
        check_free(config.server.listen_addr)
        storage = RocksStorage(config.data_path)
        try:
            shell = _shell(config, storage, clock, on_failure)
            app = cls(config, shell.runner, shell)
            try:
                await app._listen()
            except BaseException:
                await app._give_up()
                raise
        except BaseException:
            storage.close()
            raise
        return app

    async def stop(self) -> None:
        """Take nothing new, finish what is in flight within the deadline, flush, let go."""
        deadline_s = self.config.server.shutdown_timeout_ms / 1000
        await self._health.stop()
        if self._reclaiming is not None:
            self._reclaiming.cancel()
        self.runner.refuse_new_work()
        for stream in list(self._shell.streams):
            stream.end(ShuttingDownError())
        stopping = asyncio.create_task(self._server.stop(deadline_s))
        try:
            async with asyncio.timeout(deadline_s):
                await self._boundary.wait_until_idle()
        except TimeoutError:
            log.warning("some calls were cut off", extra=facts(after_s=deadline_s))
        await self._server.stop(_FAREWELL_S)
        await stopping
        await self.runner.drain()
        self.runner.close()
        self._shell.policy.close()
        remove_address(self.config.data_path)
        self._shell.storage.close()

    async def _listen(self) -> None:
        self._register()
        addr = self.config.server.listen_addr
        try:
            port = self._server.add_insecure_port(addr)
        except RuntimeError as error:
            raise ConfigError(f"cannot listen on {addr}: {error}") from error
        await self._server.start()
        self.runner.start()
        await self._health.start()
        reclaiming = reclaim_when_low(self._shell.disk, self._shell.storage)
        self._reclaiming = asyncio.create_task(reclaiming)
        self.address = f"{addr.rpartition(':')[0]}:{port}"
        write_address(self.config.data_path, self.address, self._mark)

    async def _give_up(self) -> None:
        """Let go of what was begun; nobody was told of it."""
        await self._health.stop()
        if self._reclaiming is not None:
            self._reclaiming.cancel()
        await self._server.stop(None)
        self.runner.close()

    def _register(self) -> None:
        services = {
            FILA_SERVICE: _fila_service(self._boundary, self._shell),
            ADMIN_SERVICE: _admin_service(self._boundary, self._shell, self._mark),
        }
        self._server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(name, handlers)
                for name, handlers in services.items()
            )
        )
        self._health.register(self._server)
        names = (*services, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)


def _shell(
    config: Config, storage: Storage, clock: Clock, on_failure: Callable[[BaseException], None]
) -> Shell:
    scheduler = Scheduler(epoch=storage.epoch, quantum=config.scheduler.quantum)
    scheduler.restore(storage.recover(), now_ns=clock.now_ns(), wall_ns=clock.wall_ns())
    if storage.unreadable_count:
        log.warning(
            "records that cannot be read were set aside",
            extra=facts(count=storage.unreadable_count),
        )
    runner = Runner(
        scheduler=scheduler,
        storage=storage,
        clock=clock,
        limits=config.limits,
        fsync=Fsync(config.storage.fsync),
        fsync_interval_ms=config.storage.fsync_interval_ms,
        on_failure=on_failure,
    )
    policy = Policy(
        thread=HookThread(clock), lua=config.lua, limits=config.limits, config=scheduler.config.get
    )
    policy.restore((name, scheduler.settings(name)) for name in scheduler.queue_names())
    floor = floor_bytes(config.storage.min_free_bytes, Path(config.data_path))
    return Shell(
        runner=runner,
        disk=DiskWatch(storage, clock, floor, waiting=runner.waiting_bytes),
        policy=policy,
        limits=config.limits,
        queue_defaults=config.queue_defaults,
    )


def _fila_service(boundary: Boundary, shell: Shell) -> dict[str, Handler]:
    enqueueing, settling = EnqueueService(shell), SettleService(shell)
    consuming, working = ConsumeService(shell), WorkService(shell, settling)
    return {
        "Enqueue": boundary.unary(enqueueing.enqueue),
        "EnqueueBatch": boundary.unary(enqueueing.enqueue_batch),
        "Consume": boundary.server_stream(consuming.consume),
        "Lease": boundary.unary(consuming.lease),
        "Ack": boundary.unary(settling.ack),
        "Nack": boundary.unary(settling.nack),
        "Settle": boundary.unary(settling.settle),
        "Work": boundary.both_streams(working.work),
    }


def _admin_service(boundary: Boundary, shell: Shell, mark: str) -> dict[str, Handler]:
    queues, messages = QueueService(shell), MessageService(shell)
    redriving = RedriveService(shell)
    settings, views, backups = ConfigService(shell), ViewService(shell), BackupService(shell, mark)
    return {
        "CreateQueue": boundary.unary(queues.create_queue),
        "UpdateQueue": boundary.unary(queues.update_queue),
        "DeleteQueue": boundary.unary(queues.delete_queue),
        "GetQueue": boundary.unary(queues.get_queue),
        "ListQueues": boundary.unary(queues.list_queues),
        "PurgeQueue": boundary.unary(queues.purge_queue),
        "PauseQueue": boundary.unary(queues.pause_queue),
        "ResumeQueue": boundary.unary(queues.resume_queue),
        "Redrive": boundary.unary(redriving.redrive),
        "RemoveMessage": boundary.unary(messages.remove_message),
        "Reschedule": boundary.unary(messages.reschedule),
        "SetConfig": boundary.unary(settings.set_config),
        "GetConfig": boundary.unary(settings.get_config),
        "ListConfig": boundary.unary(settings.list_config),
        "DeleteConfig": boundary.unary(settings.delete_config),
        "GetStats": boundary.unary(views.get_stats),
        "ListConsumers": boundary.unary(views.list_consumers),
        "Browse": boundary.unary(views.browse),
        "Backup": boundary.unary(backups.backup),
        "Explain": boundary.unary(ExplainService(shell).explain),
    }
