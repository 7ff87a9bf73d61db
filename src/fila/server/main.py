"""`fila-server`: the command line of the broker.

Everything a person can do wrong is one line on stderr and a status that is not 0.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fila import stdio
from fila.errors import FilaError
from fila.server import log as logs
from fila.server.sources import Loaded, effective_toml, load

log = logging.getLogger("fila.server.main")

EXIT_REFUSED = 1
# The disk failed under a commit; the next start recovers from what is on it.
EXIT_COMMIT_FAILED = 70


def main(arguments: list[str] | None = None) -> None:
    """Run the program; ends the process."""
    stdio.prepare()
    options = _parser().parse_args(arguments)
    try:
        sys.exit(options.run(options))
    except FilaError as error:
        sys.exit(_refused(str(error)))
    except OSError as error:
        sys.exit(_refused(f"{error.filename or 'error'}: {error.strerror or error}"))
    except ModuleNotFoundError as error:
        # The SDK is installed without what only the broker needs.
        sys.exit(_refused(f"{error.name} is not installed; pip install 'fila-mq[server]'"))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _refused(text: str) -> int:
    sys.stderr.write(f"fila-server: {' '.join(text.split())}\n")
    return EXIT_REFUSED


def _parser() -> argparse.ArgumentParser:
    # The same flags before and after a subcommand; those that are not given leave no trace.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--config", metavar="FILE", type=Path, help="settings; default: fila.toml")
    shared.add_argument("--data-dir", metavar="DIR", help="default: ./fila-data")
    parser = argparse.ArgumentParser(
        prog="fila-server", description="The Fila message broker.", parents=[shared]
    )
    parser.add_argument("--listen", metavar="ADDR", help="host:port; default: 127.0.0.1:5555")
    parser.add_argument(
        "--check-config", action="store_true", help="print the effective settings and exit"
    )
    parser.add_argument("--version", action="version", version=f"fila-server {_version()}")
    parser.set_defaults(run=_serve_or_check)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    backup = commands.add_parser("backup", parents=[shared], help="copy the data directory")
    backup.add_argument("target", metavar="DIR", type=Path, help="a folder that does not exist yet")
    backup.set_defaults(run=_backup)
    verify = commands.add_parser("verify", parents=[shared], help="check a data directory")
    verify.add_argument("directory", metavar="DIR", type=Path, nargs="?")
    verify.set_defaults(run=_verify)
    return parser


def _version() -> str:
    try:
        return version("fila-mq")
    except PackageNotFoundError:
        return "unknown"


def _loaded(options: argparse.Namespace) -> Loaded:
    flags: dict[tuple[str, str], str] = {}
    if getattr(options, "data_dir", None) is not None:
        flags["server", "data_dir"] = options.data_dir
    if getattr(options, "listen", None) is not None:
        flags["server", "listen_addr"] = options.listen
    environ: Mapping[str, str] = os.environ
    return load(getattr(options, "config", None), environ, flags)


def _serve_or_check(options: argparse.Namespace) -> int:
    loaded = _loaded(options)
    if options.check_config:
        for warning in loaded.warnings:
            sys.stderr.write(f"fila-server: warning: {warning}\n")
        sys.stdout.write(effective_toml(loaded))
        return 0
    settings = loaded.config.logging
    logs.configure(settings.level, settings.format)
    for warning in loaded.warnings:
        log.warning(warning)
    return run_loop(loaded)


def run_loop(loaded: Loaded) -> int:
    """Run the broker on its loop until a signal ends it."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(loaded))


async def _serve(loaded: Loaded) -> int:
    stop = asyncio.Event()
    _on_signals(stop)
    from fila.server.app import App

    app = await App.start(loaded.config, on_failure=_end_process)
    data_dir = str(loaded.config.data_path.resolve())
    log.info("ready", extra=logs.facts(listen_addr=app.address, data_dir=data_dir))
    _announce(f"fila-server listening on {app.address}, data in {data_dir}")
    await stop.wait()
    log.info("stopping")
    await app.stop()
    log.info("stopped")
    return 0


def _announce(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        # The log has it too; a broker does not stop because nobody listens to it.
        stdio.silence_stdout()
        log.warning("stdout cannot be written: %s", error.strerror)


def _on_signals(stop: asyncio.Event) -> None:
    def take(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    stopping = [signal.SIGTERM, signal.SIGINT]
    # The terminal was closed; nohup has a program outlive that.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    for number in stopping:
        asyncio.get_running_loop().add_signal_handler(number, take, number)


def _end_process(error: BaseException) -> None:
    """Memory and disk may differ: nothing may be answered any more, not even a goodbye."""
    if not isinstance(error, FilaError):
        log.critical("a pass failed", exc_info=error)
    text = " ".join(str(error).split())
    sys.stderr.write(
        f"fila-server: could not commit, stopping: {text}; the next start recovers from disk\n"
    )
    sys.stderr.flush()
    os._exit(EXIT_COMMIT_FAILED)


def _backup(options: argparse.Namespace) -> int:
    from fila.server.maintenance import back_up

    target = options.target.absolute()
    how = back_up(_loaded(options).config.data_path, target)
    sys.stdout.write(f"{how}: {target}\n")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from fila.server.maintenance import report_text
    from fila.storage.verify import verify

    report = verify(options.directory or _loaded(options).config.data_path)
    sys.stdout.write(f"{report_text(report)}\n")
    return 0 if report.ok else EXIT_REFUSED


if __name__ == "__main__":
    main()
