"""The smallest program: put a message in, take it out, say that it is done."""

import os

import fila

ADDR = os.environ.get("FILA_ADDR", "localhost:5555")


def main() -> None:
    """Enqueue three orders and consume them."""
    with fila.Client(ADDR) as client:
        client.admin.create_queue("first-program")
        for number in range(3):
            client.enqueue("first-program", f"order {number}".encode(), headers={"tenant": "acme"})

        left = 3
        for message in client.consume("first-program"):
            print(message.id, message.payload.decode(), message.headers)
            client.ack(message)
            left -= 1
            if not left:
                break


if __name__ == "__main__":
    main()
