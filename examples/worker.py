"""A worker: many handlers at once, retries, rejections, and where the rejected ones end up."""

import asyncio
import os

import fila

ADDR = os.environ.get("FILA_ADDR", "localhost:5555")
QUEUE = "worker-example"


async def main() -> None:
    """Handle four messages: one fails once, one is hopeless."""
    async with fila.AsyncClient(ADDR) as client:
        await client.admin.create_queue(QUEUE, retry_delay_ms=50)
        for payload in (b"fine", b"flaky", b"hopeless", b"fine too"):
            await client.enqueue(QUEUE, payload)
        done: list[bytes] = []

        @client.worker(QUEUE, concurrency=4)
        async def handle(message: fila.Message) -> None:
            if message.payload == b"flaky" and message.attempts == 0:
                raise fila.Retry(after=0.1)
            done.append(message.payload)
            if len(done) == 4:
                await handle.stop()
            if message.payload == b"hopeless":
                raise fila.Reject("nobody can do this")
            await asyncio.sleep(0.01)

        await handle.run()
        print("done:", *sorted(payload.decode() for payload in done), sep="\n  ")

        async for browsed in client.admin.browse(f"{QUEUE}.dlq"):
            dead = browsed.message.dead_letter
            if dead is not None:
                print("set aside:", browsed.message.payload.decode(), "because", dead.last_error)


if __name__ == "__main__":
    asyncio.run(main())
