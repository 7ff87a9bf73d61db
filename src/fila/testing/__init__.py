"""For tests of programs that use Fila: a real broker inside the test, and a clock to turn by hand.

    clock = fila.testing.ManualClock()
    with fila.testing.broker(clock=clock) as broker, fila.Client(broker.address) as client:
        client.admin.create_queue("orders", visibility_timeout_ms=60_000)
        client.enqueue("orders", b"hello")
        [message] = client.lease("orders")
        broker.advance(61)
        [again] = client.lease("orders", wait=5)

Both `with` and `async with` work. The broker keeps its data in a temporary directory.
"""

from fila.testing.broker import Broker, broker
from fila.testing.clock import ManualClock

__all__ = ["Broker", "ManualClock", "broker"]
