"""The gRPC health service: whether to send work here, and whether the disk has room."""

import asyncio
from typing import TYPE_CHECKING

import grpc.aio
from grpc_health.v1 import _async, health_pb2, health_pb2_grpc

if TYPE_CHECKING:
    from fila.server.disk import DiskWatch

# Not serving while there is too little disk to enqueue.
STORAGE_SERVICE = "fila.storage"
_CHECK_EVERY_S = 1.0
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """Answers health checks for the whole broker, each service, and the storage."""

    def __init__(self, services: tuple[str, ...], disk: "DiskWatch") -> None:
        self._services = services
        self._disk = disk
        self._servicer = _async.HealthServicer()
        self._watch: asyncio.Task[None] | None = None

    def register(self, server: grpc.aio.Server) -> None:
        """Add the service to a server."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def start(self) -> None:
        """Serving from now on."""
        for service in self._services:
            await self._servicer.set(service, _SERVING)
        await self._tell_disk()
        self._watch = asyncio.create_task(self._watch_disk())

    async def stop(self) -> None:
        """Not serving from now on, and nothing changes that again."""
        if self._watch is not None:
            self._watch.cancel()
        await self._servicer.enter_graceful_shutdown()

    async def _watch_disk(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_EVERY_S)
            await self._tell_disk()

    async def _tell_disk(self) -> None:
        await self._servicer.set(STORAGE_SERVICE, _NOT_SERVING if self._disk.is_low else _SERVING)
