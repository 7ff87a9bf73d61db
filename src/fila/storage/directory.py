"""The data directory: whose it is, in which format, and where the store lies in it.

FORMAT           one line; who wrote the directory, and its format
store/           the store itself
store.damaged-1  what a store was before it was rebuilt; kept until somebody deletes it
"""

import os
import re
from pathlib import Path

from fila.errors import DataDirectoryError

FORMAT_VERSION = 1
MARKER = "FORMAT"
STORE = "store"

_LINE = "fila data directory, format {}\n"
_PATTERN = re.compile(r"fila data directory, format (\d+)\n")
_UNFINISHED = MARKER + ".new"
# What a directory may hold and still count as empty: a fresh filesystem has the first.
_NOT_OURS = {"lost+found", _UNFINISHED}


def claim(path: Path) -> int:
    """Make sure that the directory is ours or can be; the format that it is in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not (path / MARKER).exists():
            _refuse_foreign(path)
            write_format(path, FORMAT_VERSION)
        version = read_format(path)
    except OSError as error:
        raise DataDirectoryError(f"data directory {path} can't be used: {error}") from error
    if version > FORMAT_VERSION:
        raise DataDirectoryError(
            f"data directory {path} has format {version}, and this program knows formats up to "
            f"{FORMAT_VERSION}: a newer Fila wrote it; use that one"
        )
    return version


def read_format(path: Path) -> int:
    """The format that an existing data directory is in."""
    try:
        found = _PATTERN.fullmatch((path / MARKER).read_text("ascii"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataDirectoryError(f"{path} is no data directory: it has no file {MARKER}") from None
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise DataDirectoryError(f"data directory {path} has a file {MARKER} that is not Fila's")
    return int(found[1])


def write_format(path: Path, version: int) -> None:
    """Say which format the directory is in, at once or not at all."""
    unfinished = path / _UNFINISHED
    with unfinished.open("w", encoding="ascii") as file:
        file.write(_LINE.format(version))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path / MARKER)
    sync_directory(path)


def sync_directory(path: Path) -> None:
    """Put on disk which files a directory has."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_foreign(path: Path) -> None:
    foreign = sorted(entry.name for entry in path.iterdir() if entry.name not in _NOT_OURS)
    if foreign:
        raise DataDirectoryError(
            f"data directory {path} is not empty and not Fila's (it holds {foreign[0]!r}); "
            "choose another"
        )
