"""A tenant uses two providers, and one of them has a limit: the other's messages do not wait."""

import os
from collections import Counter

import fila

ADDR = os.environ.get("FILA_ADDR", "localhost:5555")
QUEUE = "throttling"
COUNTS = {"sms": 60, "mail": 600}


def main() -> None:
    """Limit one provider, and look at what is served until the other one has nothing left."""
    with fila.Client(ADDR) as client:
        client.admin.create_queue(QUEUE)
        client.admin.set_config("throttle:provider:sms:burst", "5")
        client.admin.set_config("throttle:provider:sms:rate", "1")
        for provider, count in COUNTS.items():
            work = fila.NewMessage(
                provider.encode(), fairness_key="acme", throttle_keys=[f"provider:{provider}"]
            )
            client.enqueue_batch(QUEUE, [work] * count)

        served: Counter[str] = Counter()
        while served["mail"] < COUNTS["mail"]:
            for message in client.lease(QUEUE, 60, wait=1):
                served[message.payload.decode()] += 1
                client.ack(message)
        client.flush()

        for provider, count in COUNTS.items():
            print(f"{provider:<6}{served[provider]:>4} of {count} served")
        print(client.admin.explain(QUEUE, key="acme").summary)


if __name__ == "__main__":
    main()
