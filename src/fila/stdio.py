"""Standard input, output and error, made fit for use whatever a program was started with."""

import atexit
import io
import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def prepare() -> None:
    """Let what is closed lead nowhere, and write in escapes what the encoding lacks.

    The number of a closed one would go to the next file that is opened, and the text with it.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            if not _is_open(number):
                _lead_nowhere(number)
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    atexit.register(_drop_what_nobody_takes)


def silence_stdout() -> None:
    """Whoever read our output has gone: let the interpreter flush what is left into nothing."""
    _lead_nowhere(sys.stdout.fileno())


def _drop_what_nobody_takes() -> None:
    """What stderr could not take must not change the exit code, as it would at the very end."""
    try:
        sys.stderr.flush()
    except OSError:
        _lead_nowhere(sys.stderr.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _lead_nowhere(number: int) -> None:
    handle = os.open(os.devnull, os.O_RDWR)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
