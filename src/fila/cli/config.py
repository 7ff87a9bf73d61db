"""`fila config`: the runtime configuration, key by key."""

import click

from fila.cli.output import console, table
from fila.cli.session import Session, takes_session


@click.group()
def config() -> None:
    """Runtime configuration: stored by the broker, changed while it runs.

    `throttle:KEY:rate` limits a throttle key to so many deliveries a second over all queues and
    consumers, `throttle:KEY:burst` is how many may follow each other at once (one second's worth,
    if not set). Rate 0 holds everything back; without a rate there is no limit.

    \b
    fila config set throttle:mail:rate 50
    fila config set throttle:mail:burst 100
    fila config list throttle:
    fila config delete throttle:mail:rate
    """


@config.command("set")
@click.argument("key")
@click.argument("value")
@takes_session
def set_value(session: Session, /, key: str, value: str) -> None:
    """Store VALUE under KEY; an empty one deletes it."""
    with session.connect() as client:
        client.admin.set_config(key, value)
    done = f"{key} = {value}" if value else f"{key} has no value any more"
    session.output.done(done, {"key": key, "value": value})


@config.command("get")
@click.argument("key")
@takes_session
def get_value(session: Session, /, key: str) -> None:
    """Print the value of KEY; exit code 1 when it has none."""
    with session.connect() as client:
        value = client.admin.get_config(key)
    if value is None:
        raise click.ClickException(f"{key} is not set")
    session.output.done(value, {"key": key, "value": value})


@config.command("list")
@click.argument("prefix", default="")
@takes_session
def list_values(session: Session, /, prefix: str) -> None:
    """List what is set, or only the keys that begin with PREFIX."""
    with session.connect() as client:
        entries = dict(client.admin.list_config(prefix))
    if session.output.as_json:
        session.output.document(entries)
    elif entries:
        console().print(table(("key", "value"), sorted(entries.items())))
    else:
        session.output.line(f"no key begins with {prefix}" if prefix else "nothing is set")


@config.command("delete")
@click.argument("key")
@takes_session
def delete_value(session: Session, /, key: str) -> None:
    """Delete KEY."""
    with session.connect() as client:
        found = client.admin.delete_config(key)
    session.output.done(
        f"deleted {key}" if found else f"{key} was not set", {"key": key, "deleted": found}
    )
