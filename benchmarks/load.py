"""The program of a client process: a job for each line it reads, a result for each it writes."""

import asyncio
import json
import sys
import time
import traceback
from typing import Any

import fila
from benchmarks import jobs

# The harness has deadlines of its own; a client's must not cut off a machine that is merely slow.
_TIMEOUT_S = 30.0


class Desk:
    """Carries out jobs, with one client for each broker."""

    def __init__(self) -> None:
        self._clients: dict[str, fila.AsyncClient] = {}

    async def serve(self) -> None:
        """Carry out jobs until the pipe is closed."""
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            sys.stdout.write(json.dumps(await self._answer(line)) + "\n")
            sys.stdout.flush()
        await self._leave()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        name, address, arguments = json.loads(line)
        cpu_s, begin = time.process_time(), time.monotonic()
        try:
            if name == "leave":
                await self._leave()
                return {}
            found = await jobs.JOBS[name](self._client(address), **arguments)
        except Exception:  # noqa: BLE001 - supervision: whatever it is, it ends the measurement
            return {"error": traceback.format_exc()}
        return {
            "began_s": begin,
            "ended_s": time.monotonic(),
            "cpu_s": time.process_time() - cpu_s,
            **(found or {}),
        }

    def _client(self, address: str) -> fila.AsyncClient:
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = fila.AsyncClient(address, timeout=_TIMEOUT_S)
        return client

    async def _leave(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


if __name__ == "__main__":
    asyncio.run(Desk().serve())
