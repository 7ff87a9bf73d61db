"""The door: all commands, and the one place where an error becomes a line and an exit code."""

import contextlib
import sys

import click

from fila import errors, stdio
from fila.cli.config import config
from fila.cli.consume import consume
from fila.cli.consumers import consumers
from fila.cli.demo import demo
from fila.cli.doctor import doctor
from fila.cli.enqueue import enqueue
from fila.cli.explain import explain
from fila.cli.message import message
from fila.cli.output import printable
from fila.cli.queue import queue
from fila.cli.redrive import redrive
from fila.cli.release import installed_version
from fila.cli.stats import stats

DONE, FAILED, USAGE = 0, 1, 2
INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--addr", metavar="HOST:PORT", help="The broker; else FILA_ADDR, localhost:5555.")
@click.version_option(installed_version(), message="fila %(version)s")
@click.pass_context
def cli(context: click.Context, addr: str | None) -> None:
    """Fila: a message broker that is fair between tenants.

    \b
    fila demo                     watch it work, nothing to prepare
    fila queue create orders      against a broker that `fila-server` started
    fila enqueue orders hello
    fila consume orders --count 1

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
    """
    context.obj = {"addr": addr}


for command in (
    queue,
    config,
    stats,
    consumers,
    enqueue,
    consume,
    message,
    redrive,
    explain,
    doctor,
    demo,
):
    cli.add_command(command)


def main() -> None:
    """Run the program."""
    stdio.prepare()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; nothing is raised."""
    try:
        code = cli.main(args=arguments, prog_name="fila", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        stdio.silence_stdout()
        return FAILED
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        return _fail(error.format_message())
    except (errors.FilaError, OSError) as error:
        return _fail(str(error))
    return code if isinstance(code, int) else DONE


def _fail(text: str) -> int:
    with contextlib.suppress(OSError):
        click.echo(f"fila: {printable(text)}", err=True)
    return FAILED


if __name__ == "__main__":
    main()
