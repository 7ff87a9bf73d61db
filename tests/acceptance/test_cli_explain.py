"""`fila explain`, as an operator and a program read it."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

from tests.acceptance.processes import COMMAND, Broker, Finished

COLUMNS = 80


def out(finished: Finished) -> str:
    assert (finished.code, finished.err) == (0, ""), finished
    return finished.out


def on_a_terminal(broker: Broker, *arguments: str) -> str:
    """What a person sees in a window of 80 columns."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {**broker.environment(), "TERM": "xterm-256color"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen([*COMMAND, *arguments], env=environment, stdout=there, stderr=there)
    os.close(there)
    seen = b""
    try:
        while chunk := os.read(here, 4096):
            seen += chunk
    except OSError:
        # The other end of a pseudo-terminal is closed so.
        process.wait(timeout=60)
    os.close(here)
    return seen.decode()


def test_it_says_what_holds_a_message_back_and_what_to_do(broker: Broker) -> None:
    out(broker.fila("queue", "create", "why"))
    out(broker.fila("queue", "pause", "why"))
    message_id = out(broker.fila("enqueue", "why", "x", "--key", "acme")).strip()

    text = out(broker.fila("explain", "why", message_id))

    lines = text.splitlines()
    assert lines[0] == f"message {message_id}"
    assert "key acme" in lines[1]
    assert lines[3].strip() == "● The queue is paused."
    assert lines[4].strip() == "→ `fila queue resume why` lets deliveries go on."
    assert lines[6].strip() == "○ Nobody consumes the queue."


def test_what_it_advises_works(broker: Broker) -> None:
    out(broker.fila("queue", "create", "advised"))
    out(broker.fila("config", "set", "throttle:mail:rate", "0"))
    message_id = out(broker.fila("enqueue", "advised", "x", "--throttle-key", "mail")).strip()

    before = out(broker.fila("explain", "advised", message_id))
    out(broker.fila("config", "set", "throttle:mail:rate", "1000"))
    taken = out(broker.fila("consume", "advised", "--count", "1"))

    assert "`fila config set throttle:mail:rate N`" in before
    assert taken == "x\n"


def test_a_program_gets_all_of_it(broker: Broker) -> None:
    out(broker.fila("queue", "create", "told"))
    message_id = out(broker.fila("enqueue", "told", "x", "--delay", "1h")).strip()

    message = json.loads(out(broker.fila("explain", "told", message_id, "--json")))
    key = json.loads(out(broker.fila("explain", "told", "--key", "default", "--json")))
    queue = json.loads(out(broker.fila("explain", "told", "--json")))

    assert [cause["code"] for cause in message["causes"]] == ["delayed", "no_consumer"]
    assert (message["about"], message["subject"]["id"]) == ("message", message_id)
    assert message["causes"][0]["facts"]["kind"] == "delay"
    assert message["causes"][0]["facts"]["until"].endswith("Z")
    assert (key["about"], key["subject"]["delayed"]) == ("key", 1)
    assert (queue["about"], queue["queue"], queue["subject"]["delayed"]) == ("queue", "told", 1)


def test_a_person_sees_colours_within_the_window_and_a_pipe_none(broker: Broker) -> None:
    out(broker.fila("queue", "create", "seen"))
    out(broker.fila("config", "set", "throttle:sms:rate", "0.5"))
    out(broker.fila("enqueue", "seen", "x", "--count", "3", "--throttle-key", "sms"))
    out(broker.fila("consume", "seen", "--count", "1"))

    seen = on_a_terminal(broker, "explain", "seen", "--key", "default")
    piped = out(broker.fila("explain", "seen", "--key", "default"))

    assert "\x1b[" in seen
    assert "\x1b[" not in piped
    assert max(map(len, piped.splitlines())) < 250, "padded"
    plain = "".join(part.partition("m")[2] for part in ("m" + seen).split("\x1b["))
    assert max(map(len, plain.splitlines())) <= COLUMNS
    assert "throttle key" in plain


def test_two_subjects_are_wrong_usage(broker: Broker) -> None:
    finished = broker.fila("explain", "any", "x", "--key", "y")

    assert finished.code == 2
    assert "either MESSAGE_ID or --key" in finished.err


def test_what_is_not_there_is_one_line(broker: Broker) -> None:
    out(broker.fila("queue", "create", "lines"))

    for arguments in (
        ("nowhere",),
        ("lines", "not-an-id"),
        ("lines", "0" * 32),
        ("lines", "--key", "a\x1b[31mb"),
        ("lines", "--key", ""),
        ("lines", "--key", b"\xff".decode(errors="surrogateescape")),
    ):
        finished = broker.fila("explain", *arguments)
        assert (finished.code, finished.out) == (1, ""), finished
        assert len(finished.err.splitlines()) == 1
        assert finished.err.startswith("fila: ")
        assert finished.err.rstrip("\n").isprintable()


def test_stats_lead_to_it(broker: Broker) -> None:
    out(broker.fila("queue", "create", "led"))
    out(broker.fila("enqueue", "led", "x"))

    assert "`fila explain led --key KEY`" in out(broker.fila("stats", "led"))
