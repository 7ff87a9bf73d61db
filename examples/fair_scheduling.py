"""Three tenants share a queue: the shares follow the weights, whoever came first."""

import os
from collections import Counter

import fila

ADDR = os.environ.get("FILA_ADDR", "localhost:5555")
QUEUE = "fair-scheduling"
WEIGHTS = {"free": 1, "team": 2, "enterprise": 3}


def main() -> None:
    """Fill the queue tenant by tenant, and look at who is served first."""
    with fila.Client(ADDR) as client:
        client.admin.create_queue(QUEUE)
        for tenant, weight in WEIGHTS.items():
            work = fila.NewMessage(b"work", fairness_key=tenant, weight=weight)
            client.enqueue_batch(QUEUE, [work] * 1000)

        served: Counter[str] = Counter()
        while served.total() < 600:
            for message in client.lease(QUEUE, 60, wait=1):
                served[message.fairness_key] += 1
                client.ack(message)
        client.flush()

        for tenant, weight in WEIGHTS.items():
            share = served[tenant] / served.total()
            print(f"{tenant:<12}weight {weight}  {share:6.1%}  {'#' * round(60 * share)}")


if __name__ == "__main__":
    main()
