"""The command line, as people and programs use it, against a real broker."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.acceptance.processes import COMMAND, Broker, Finished, clean_environment, run, started

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOWHERE = "127.0.0.1:1"


def done(finished: Finished) -> str:
    assert (finished.code, finished.err) == (0, ""), finished
    return finished.out


def document(finished: Finished) -> object:
    return json.loads(done(finished))


def documents(finished: Finished) -> list[dict[str, object]]:
    return [json.loads(line) for line in done(finished).splitlines()]


def test_a_queue_is_created_listed_inspected_and_deleted(broker: Broker) -> None:
    done(broker.fila("queue", "create", "life", "--visibility-timeout", "5000"))
    listed = done(broker.fila("queue", "list"))
    inspected = document(broker.fila("queue", "inspect", "life", "--json"))
    done(broker.fila("queue", "delete", "life"))
    after = done(broker.fila("queue", "list"))

    assert "life" in listed
    assert "life.dlq" in listed
    assert isinstance(inspected, dict)
    assert inspected["settings"]["visibility_timeout_ms"] == 5000
    assert inspected["dead_letter_queue"] == "life.dlq"
    assert "life" not in after


def test_an_update_changes_what_is_given_alone(broker: Broker) -> None:
    done(broker.fila("queue", "create", "updated", "--max-attempts", "7", "--retry-delay", "10"))

    done(broker.fila("queue", "update", "updated", "--max-attempts", "3"))

    inspected = document(broker.fila("queue", "inspect", "updated", "--json"))
    assert isinstance(inspected, dict)
    assert inspected["settings"]["max_attempts"] == 3
    assert inspected["settings"]["retry_delay_ms"] == 10


def test_an_update_of_nothing_is_wrong_usage(broker: Broker) -> None:
    finished = broker.fila("queue", "update", "whatever")

    assert finished.code == 2
    assert "nothing to change" in finished.err


def test_a_message_goes_in_and_comes_out(broker: Broker) -> None:
    done(broker.fila("queue", "create", "through"))

    message_id = done(
        broker.fila("enqueue", "through", "hello", "-H", "tenant=acme", "--key", "acme")
    ).strip()
    [message] = documents(broker.fila("consume", "through", "--count", "1", "--json"))

    assert UUID.fullmatch(message_id)
    assert message["id"] == message_id
    assert message["payload"] == "hello"
    assert message["headers"] == {"tenant": "acme"}
    assert message["fairness_key"] == "acme"
    assert done(broker.fila("consume", "through", "--timeout", "0")) == ""


def test_a_payload_comes_from_a_file_or_standard_input_byte_for_byte(
    broker: Broker, tmp_path: Path
) -> None:
    done(broker.fila("queue", "create", "payloads"))
    file = tmp_path / "payload"
    file.write_bytes(b"\xff\x00")

    done(broker.fila("enqueue", "payloads", f"@{file}"))
    done(broker.fila("enqueue", "payloads", "-", stdin=b"from a pipe"))

    first, second = documents(broker.fila("consume", "payloads", "--count", "2", "--json"))
    assert first["payload_base64"] == "/wA="
    assert second["payload"] == "from a pipe"


def test_many_messages_go_in_with_one_command(broker: Broker) -> None:
    done(broker.fila("queue", "create", "many"))

    ids = done(broker.fila("enqueue", "many", "x", "--count", "1200")).split()
    taken = done(broker.fila("consume", "many", "--timeout", "0"))

    assert len(set(ids)) == 1200
    assert taken == "x\n" * 1200


def test_what_is_only_looked_at_stays_in_its_place(broker: Broker) -> None:
    done(broker.fila("queue", "create", "looked"))
    for payload in ("one", "two"):
        done(broker.fila("enqueue", "looked", payload))

    looked = done(broker.fila("consume", "looked", "--count", "2", "--no-ack"))
    taken = documents(broker.fila("consume", "looked", "--count", "2", "--json"))

    assert looked == "one\ntwo\n"
    assert [(each["payload"], each["attempts"]) for each in taken] == [("one", 0), ("two", 0)]


def test_browsing_shows_messages_and_takes_none(broker: Broker) -> None:
    done(broker.fila("queue", "create", "browsed"))
    done(broker.fila("enqueue", "browsed", "now \x1b[31mred", "--key", "acme"))
    done(broker.fila("enqueue", "browsed", "later", "--delay", "1h"))

    shown = done(broker.fila("queue", "browse", "browsed"))
    now, later = documents(broker.fila("queue", "browse", "browsed", "--json"))

    assert r"now \x1b[31mred" in shown
    assert (now["state"], now["fairness_key"]) == ("ready", "acme")
    assert later["state"] == "delayed"
    assert later["due_at"] is not None
    assert len(documents(broker.fila("queue", "browse", "browsed", "--limit", "1", "--json"))) == 1


def test_a_message_is_removed_or_moved_by_its_id(broker: Broker) -> None:
    done(broker.fila("queue", "create", "moved"))
    removed = done(broker.fila("enqueue", "moved", "away")).strip()
    moved = done(broker.fila("enqueue", "moved", "soon", "--delay", "1h")).strip()

    done(broker.fila("message", "remove", "moved", removed))
    done(broker.fila("message", "reschedule", "moved", moved, "--delay", "0"))

    assert done(broker.fila("consume", "moved", "--count", "1", "--timeout", "5")) == "soon\n"
    again = broker.fila("message", "remove", "moved", removed)
    assert again.code == 1
    assert removed in again.err


def test_rescheduling_needs_one_time(broker: Broker) -> None:
    finished = broker.fila("message", "reschedule", "q", "id", "--delay", "1", "--at", "2030-01-01")

    assert finished.code == 2
    assert "--delay or --at" in finished.err


def test_a_paused_queue_delivers_nothing_until_it_is_resumed(broker: Broker) -> None:
    done(broker.fila("queue", "create", "paused"))
    done(broker.fila("queue", "pause", "paused"))
    done(broker.fila("enqueue", "paused", "x"))

    while_paused = done(broker.fila("consume", "paused", "--timeout", "0"))
    listed = done(broker.fila("queue", "list"))
    done(broker.fila("queue", "resume", "paused"))

    assert while_paused == ""
    assert re.search(r"^paused .*paused$", listed, re.MULTILINE)
    assert done(broker.fila("consume", "paused", "--count", "1")) == "x\n"


def test_a_purge_says_how_many_it_removed(broker: Broker) -> None:
    done(broker.fila("queue", "create", "purged"))
    done(broker.fila("enqueue", "purged", "x", "--count", "3"))

    assert document(broker.fila("queue", "purge", "purged", "--json")) == {
        "queue": "purged",
        "purged": 3,
    }


def test_runtime_configuration_is_set_read_listed_and_deleted(broker: Broker) -> None:
    done(broker.fila("config", "set", "a:one", "1"))
    done(broker.fila("config", "set", "b:two", "2"))

    assert done(broker.fila("config", "get", "a:one")) == "1\n"
    assert document(broker.fila("config", "list", "a:", "--json")) == {"a:one": "1"}
    assert "b:two" in done(broker.fila("config", "list"))
    done(broker.fila("config", "delete", "a:one"))
    missing = broker.fila("config", "get", "a:one")
    assert (missing.code, missing.err) == (1, "fila: a:one is not set\n")
    assert done(broker.fila("config", "set", "b:two", "")) == "b:two has no value any more\n"
    assert broker.fila("config", "get", "b:two").code == 1


def test_stats_show_each_key_with_its_share(broker: Broker) -> None:
    done(broker.fila("queue", "create", "shares"))
    done(broker.fila("enqueue", "shares", "x", "--key", "acme", "--weight", "3", "--count", "5"))

    shown = done(broker.fila("stats", "shares"))
    stats = document(broker.fila("stats", "shares", "--json"))
    everything = document(broker.fila("stats", "--json"))

    assert "acme" in shown
    assert isinstance(stats, dict)
    assert stats["ready"] == 5
    assert stats["per_key_stats"][0]["weight"] == 3
    assert isinstance(everything, list)
    assert "shares" in [each["queue"] for each in everything]


def test_stats_and_inspect_show_what_waits_for_a_limit(broker: Broker) -> None:
    done(broker.fila("queue", "create", "throttled"))
    done(broker.fila("config", "set", "throttle:mail:rate", "0"))
    done(broker.fila("enqueue", "throttled", "x", "--throttle-key", "mail", "--count", "7"))
    assert done(broker.fila("consume", "throttled", "--count", "1", "--timeout", "0.2s")) == ""

    shown = done(broker.fila("stats", "throttled"))
    stats = document(broker.fila("stats", "throttled", "--json"))
    facts = document(broker.fila("queue", "inspect", "throttled", "--json"))
    done(broker.fila("config", "delete", "throttle:mail:rate"))

    assert re.search(r"^mail +7 +0.0 +0.0 +1.0 *$", shown, re.MULTILINE)
    assert isinstance(stats, dict)
    assert isinstance(facts, dict)
    assert stats["throttled"] == facts["throttled"] == 7
    assert stats["per_throttle_stats"][0]["waiting"] == 7


def test_a_setting_that_is_no_limit_is_refused_in_one_line(broker: Broker) -> None:
    refused = broker.fila("config", "set", "throttle:mail:rate", "NaN")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "fila: throttle:mail:rate is 'NaN'; it must be a number from 0 to 1000000000\n"
    )
    assert "throttle:" not in done(broker.fila("config", "list"))


def test_consumers_are_listed_while_they_are_there(broker: Broker) -> None:
    done(broker.fila("queue", "create", "watched"))
    assert "no consumer" in done(broker.fila("consumers", "watched"))

    import fila

    with fila.Client(broker.addr) as client, client.consume("watched", name="me") as consumer:
        done(broker.fila("enqueue", "watched", "x"))
        next(iter(consumer))
        [found] = json.loads(done(broker.fila("consumers", "watched", "--json")))
        shown = done(broker.fila("consumers"))

    assert found["name"] == "me"
    assert found["queues"] == ["watched"]
    assert found["held"] == 1
    assert "me" in shown


def test_the_doctor_looks_at_broker_and_machine_on_one_screen(
    broker: Broker, tmp_path: Path
) -> None:
    shown = broker.fila("doctor", "--data-dir", str(tmp_path))
    checks = json.loads(broker.fila("doctor", "--data-dir", str(tmp_path), "--json").out)

    assert len(shown.out.splitlines()) <= 24
    assert [check["name"] for check in checks] == [
        "version",
        "broker",
        "data",
        "fsync",
        "space",
        "open files",
        "memory",
    ]
    assert checks[1]["verdict"] == "ok"


def test_the_doctor_fails_when_no_broker_answers(tmp_path: Path) -> None:
    finished = run([*COMMAND, "doctor", "--addr", NOWHERE, "--data-dir", str(tmp_path)])

    assert finished.code == 1
    assert f"none answers at {NOWHERE}" in finished.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "list"),
        ("enqueue", "orders", "x"),
        ("consume", "orders"),
        ("stats",),
        ("config", "list"),
    ],
    ids=" ".join,
)
def test_without_a_broker_one_line_says_where_it_looked(arguments: tuple[str, ...]) -> None:
    finished = run([*COMMAND, *arguments, "--addr", NOWHERE])

    assert finished.code == 1
    assert finished.out == ""
    assert finished.err.startswith(f"fila: no broker answers at {NOWHERE}; start one with")
    assert finished.err.count("\n") == 1


@pytest.mark.parametrize("addr", ["http://localhost:1", "localhost:x", ":5555", "dns:///"])
@pytest.mark.parametrize("arguments", [("queue", "list"), ("enqueue", "q", "x"), ("consume", "q")])
def test_an_address_that_leads_nowhere_is_no_lost_connection(
    addr: str, arguments: tuple[str, ...]
) -> None:
    finished = run([*COMMAND, *arguments, "--addr", addr])

    assert finished.code == 1
    assert finished.err.splitlines()[-1].startswith(f"fila: no broker answers at {addr}; ")


@pytest.mark.parametrize(
    "arguments",
    [("config", "get"), ("queue", "inspect"), ("stats",), ("consume",), ("queue", "create")],
    ids=" ".join,
)
def test_an_argument_that_is_no_text_is_one_line(
    broker: Broker, arguments: tuple[str, ...]
) -> None:
    finished = broker.fila(*arguments, "\udcff")

    assert finished.code == 1
    assert "can't be sent" in finished.err
    assert finished.err.count("\n") == 1


def test_a_refusal_is_one_line_and_exit_code_1(broker: Broker) -> None:
    finished = broker.fila("enqueue", "nowhere", "x")

    assert finished.code == 1
    assert finished.err == "fila: queue 'nowhere' does not exist; create it first\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue",),
        ("queue", "create"),
        ("no-such-command",),
        ("enqueue", "q", "x", "--weight", "heavy"),
        ("enqueue", "q", "x", "-H", "no-equals-sign"),
        ("enqueue", "q", "@/does/not/exist"),
        ("consume", "q", "--no-ack"),
        ("consume", "q", "--timeout", "soon"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    finished = run([*COMMAND, *arguments, *(() if len(arguments) < 3 else ("--addr", NOWHERE))])

    assert finished.code == 2
    assert "Usage:" in finished.err
    assert "Traceback" not in finished.err


def test_the_address_comes_from_the_option_before_the_environment(broker: Broker) -> None:
    elsewhere = clean_environment(FILA_ADDR=NOWHERE)

    assert run([*COMMAND, "queue", "list"], environment=elsewhere).code == 1
    for arguments in (
        ["--addr", broker.addr, "queue", "list"],
        ["queue", "list", "--addr", broker.addr],
    ):
        assert run([*COMMAND, *arguments], environment=elsewhere).code == 0


def test_there_is_no_colour_in_a_pipe(broker: Broker) -> None:
    done(broker.fila("queue", "create", "plain"))

    assert "\x1b" not in done(broker.fila("queue", "list"))
    assert "\x1b" not in done(broker.fila("stats"))


def test_a_reader_that_leaves_is_no_traceback(broker: Broker) -> None:
    done(broker.fila("queue", "create", "piped"))
    done(broker.fila("enqueue", "piped", "x" * 1000, "--count", "500"))

    command = " ".join([*COMMAND, "consume", "piped", "--timeout", "0"])
    finished = run(["bash", "-c", f"{command} | head -n 1"], environment=broker.environment())

    assert finished.out.count("\n") == 1
    assert finished.err == ""


def test_ctrl_c_ends_a_consumer_quietly_and_gives_back_what_it_held(broker: Broker) -> None:
    done(broker.fila("queue", "create", "stopped"))
    done(broker.fila("enqueue", "stopped", "x"))
    with started([*COMMAND, "consume", "stopped"], broker.environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"

        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    # An end of line after the ^C that the terminal shows.
    assert err.strip() == b""
    assert done(broker.fila("consume", "stopped", "--timeout", "0")) == ""


def test_every_command_has_a_help_text_with_an_example_or_a_sentence() -> None:
    top = done(run([*COMMAND, "--help"]))

    for name in ("queue", "config", "stats", "consumers", "enqueue", "consume", "message"):
        assert name in top
        assert "Usage: fila" in done(run([*COMMAND, name, "--help"]))


def test_the_version_is_the_distributions() -> None:
    assert done(run([*COMMAND, "--version"])).startswith("fila ")
