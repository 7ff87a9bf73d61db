"""`fila explain`: why a message, a key, or anything of a queue is not delivered now."""

from dataclasses import asdict
from datetime import datetime

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import fila
from fila.cli.output import (
    Json,
    console,
    duration,
    moment,
    number,
    percent,
    printable,
    stamp,
    table,
)
from fila.cli.session import Session, takes_session

_INDENT = 2
# What a colour says: someone must act; time will do; all is well or just worth knowing.
_ACT = {
    fila.CauseCode.PAUSED,
    fila.CauseCode.NO_CONSUMER,
    fila.CauseCode.DEAD_LETTER,
    fila.CauseCode.OTHER,
}
_WELL = {fila.CauseCode.DELIVERABLE, fila.CauseCode.NOTHING_PENDING}


@click.command()
@click.argument("queue")
@click.argument("message_id", required=False)
@click.option("--key", help="Ask about this fairness key.")
@takes_session
def explain(session: Session, /, queue: str, message_id: str | None, key: str | None) -> None:
    """Say why MESSAGE_ID, a key, or anything of QUEUE is not delivered now.

    \b
    fila explain orders
    fila explain orders --key acme
    fila explain orders 01890a5d-ac96-774b-bcce-b302099a8057

    What holds it back comes first, then what else stands in the way, each with what one can do.
    """
    if message_id is not None and key is not None:
        raise click.UsageError("give either MESSAGE_ID or --key")
    with session.connect() as client:
        answer = client.admin.explain(queue, message_id=message_id, key=key)
    if session.output.as_json:
        session.output.document(_document(queue, answer))
    else:
        console().print(_draw(queue, answer))


def _document(queue: str, answer: fila.Explanation) -> Json:
    match answer.subject:
        case fila.MessageFacts():
            about = "message"
        case fila.KeyFacts():
            about = "key"
        case fila.QueueFacts():
            about = "queue"
    return _plain({"queue": queue, "about": about, **asdict(answer)})


def _plain(value: object) -> Json:
    """The same in what JSON has."""
    match value:
        case fila.CauseCode() | fila.MessageState():
            return value.name.lower()
        case datetime():
            return stamp(value)
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(f"no JSON for {type(value).__name__}")


def _draw(queue: str, answer: fila.Explanation) -> RenderableType:
    parts: list[RenderableType] = [_heading(queue, answer.subject)]
    for position, cause in enumerate(answer.causes):
        parts += [Text(""), _cause(cause, is_first=position == 0)]
        details = _details(cause)
        if details is not None:
            parts.append(Padding(details, (0, 0, 0, 2 * _INDENT), expand=False))
    if isinstance(answer.subject, fila.QueueFacts) and answer.subject.longest_waiting:
        parts += [Text(""), _longest(answer.subject)]
    if answer.at_least:
        note = "There is too much to look at each: what is counted may be more."
        parts += [Text(""), Text(note, style="dim")]
    return Group(*parts)


def _heading(queue: str, subject: fila.MessageFacts | fila.KeyFacts | fila.QueueFacts) -> Text:
    match subject:
        case fila.MessageFacts():
            name, facts = f"message {subject.id}", _message_line(subject)
        case fila.KeyFacts():
            name, facts = f"key {subject.key} of {queue}", _key_line(subject)
        case fila.QueueFacts():
            name, facts = f"queue {queue}", _queue_line(subject)
    return Text.assemble((printable(name), "bold"), "\n", (printable(" · ".join(facts)), "dim"))


def _message_line(message: fila.MessageFacts) -> list[str]:
    facts = [
        f"{message.state.name.lower()} in {message.queue}",
        f"key {message.fairness_key}",
        f"enqueued {moment(message.enqueued_at)}",
    ]
    if message.priority:
        facts.append(f"priority {message.priority}")
    if message.attempts:
        facts.append(f"{number(message.attempts)} failed")
    if message.last_error:
        facts.append(f"last error: {message.last_error}")
    return facts


def _key_line(key: fila.KeyFacts) -> list[str]:
    facts = [
        f"{number(key.ready)} ready",
        f"{number(key.delayed)} delayed",
        f"{number(key.in_flight)} in flight",
        f"weight {number(key.weight)}",
        f"{number(key.delivered_per_second)}/s",
    ]
    if key.ready:
        facts.append(f"oldest waits {duration(key.oldest_waiting_ms)}")
    return facts


def _queue_line(queue: fila.QueueFacts) -> list[str]:
    return [
        f"{number(queue.ready)} ready",
        f"{number(queue.delayed)} delayed",
        f"{number(queue.in_flight)} in flight",
        _many(queue.key_count, "key"),
        _many(queue.consumers, "consumer"),
        f"{number(queue.delivered_per_second)}/s",
    ]


def _cause(cause: fila.Cause, *, is_first: bool) -> Table:
    """The sentence behind its mark, the advice behind an arrow; both fold behind the margin."""
    drawn = Table.grid(padding=(0, 1, 0, 0))
    drawn.add_column(width=_INDENT - 1, no_wrap=True)
    drawn.add_column(overflow="fold")
    style = "green" if cause.code in _WELL else "red" if cause.code in _ACT else "yellow"
    mark = Text("●" if is_first else "○", style=style)
    drawn.add_row(mark, Text(printable(cause.text), style="bold" if is_first else ""))
    drawn.add_row(Text("→", style="cyan"), Text(printable(cause.advice), style="cyan"))
    return drawn


def _details(cause: fila.Cause) -> RenderableType | None:
    details: RenderableType | None = None
    match cause.facts:
        case fila.ThrottleFacts():
            details = _buckets(cause.facts)
        case fila.CreditFacts():
            details = _consumers(cause.facts)
        case fila.TurnFacts():
            details = _turn(cause.facts)
        case fila.LeaseFacts():
            since, until = moment(cause.facts.leased_at), moment(cause.facts.until)
            details = Text(f"leased {since}, until {until}")
        case fila.DelayFacts():
            details = Text(f"until {moment(cause.facts.until)}")
        case fila.DeadLetter():
            details = Text(f"since {moment(cause.facts.dead_at)}")
    return details


def _buckets(facts: fila.ThrottleFacts) -> RenderableType:
    rows = [
        (
            bucket.key,
            f"{bucket.tokens:.1f} of {bucket.burst:g}",
            f"{bucket.rate_per_second:g}/s",
            "never" if bucket.next_token_ms is None else duration(bucket.next_token_ms),
            bucket.waiting,
        )
        for bucket in facts.buckets
    ]
    return table(("throttle key", "tokens", "rate", "next in", "waiting"), rows)


def _consumers(facts: fila.CreditFacts) -> RenderableType:
    rows = [
        (
            str(consumer.id),
            consumer.name,
            consumer.peer,
            f"{consumer.held:,} of {consumer.credit:,}",
            duration(consumer.idle_ms),
        )
        for consumer in facts.consumers
    ]
    drawn = table(("consumer", "name", "from", "holds", "idle"), rows)
    rest = facts.count - len(rows)
    return Group(drawn, Text(f"and {number(rest)} more", style="dim")) if rest > 0 else drawn


def _turn(facts: fila.TurnFacts) -> Text:
    return Text(
        f"weight {number(facts.weight)} × quantum {number(facts.quantum)} a turn · deficit "
        f"{number(facts.deficit)} · cost {number(facts.cost)} · "
        f"{_many(facts.active_keys, 'active key')}"
    )


def _longest(queue: fila.QueueFacts) -> RenderableType:
    rows = [
        (
            key.key,
            duration(key.oldest_waiting_ms),
            key.ready,
            percent(key.throttled / key.ready) if key.ready else "",
        )
        for key in queue.longest_waiting
    ]
    return table(("waits longest", "for", "ready", "throttled"), rows)


def _many(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"
