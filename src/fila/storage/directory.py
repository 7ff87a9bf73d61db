"""The data directory: whose it is, in which format, who uses it, and where the store lies in it.

FORMAT           one line: who wrote the directory, and its format
LOCK             held by the one server that uses it
store/           the store itself
DAMAGED          there while the store has damage: the next start rebuilds it
store.rebuilt/   a rebuilt store that is not in its place yet
store.damaged-1/ what the store was before; kept until somebody deletes it
"""

import fcntl
import os
import re
import shutil
from pathlib import Path

from fila.errors import DataDirectoryError

FORMAT_VERSION = 1
MARKER = "FORMAT"
STORE = "store"
REBUILT = "store.rebuilt"

_LOCK = "LOCK"
_DAMAGED = "DAMAGED"
_LINE = "fila data directory, format {}\n"
_PATTERN = re.compile(r"fila data directory, format ([1-9]\d*)\n")
_UNFINISHED = MARKER + ".new"
# What a directory may hold and still count as empty: a fresh filesystem has the first.
_NOBODYS = {"lost+found", _UNFINISHED}


class Lock:
    """Held from its making until `release`, against all other processes."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            self._handle = os.open(path / _LOCK, os.O_RDONLY | os.O_CREAT, 0o644)
        except OSError as error:
            raise DataDirectoryError(f"data directory {path} can't be used: {error}") from error
        try:
            fcntl.flock(self._handle, kind | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise DataDirectoryError(
                f"data directory {path} is in use: another server holds it"
            ) from error

    def release(self) -> None:
        """Let others have the directory."""
        os.close(self._handle)


def claim(path: Path) -> int:
    """Make sure that the directory is ours or can be; the format that it is in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not (path / MARKER).exists():
            _refuse_foreign(path)
            write_format(path, FORMAT_VERSION)
        return read_format(path)
    except OSError as error:
        raise DataDirectoryError(f"data directory {path} can't be used: {error}") from error


def read_format(path: Path) -> int:
    """The format that an existing data directory is in, if this program knows it."""
    try:
        found = _PATTERN.fullmatch((path / MARKER).read_text("ascii"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataDirectoryError(f"{path} is no data directory: it has no file {MARKER}") from None
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise DataDirectoryError(f"data directory {path} has a file {MARKER} that is not Fila's")
    version = int(found[1])
    if version > FORMAT_VERSION:
        raise DataDirectoryError(
            f"data directory {path} has format {version}, and this program knows formats up to "
            f"{FORMAT_VERSION}: a newer Fila wrote it; use that one"
        )
    return version


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


def mark_damaged(path: Path) -> None:
    """Let the next start rebuild the store."""
    (path / _DAMAGED).touch()
    sync_directory(path)


def is_damaged(path: Path) -> bool:
    """Whether the store must be rebuilt."""
    return (path / _DAMAGED).exists()


def clear_rebuilt(path: Path) -> None:
    """Delete what an interrupted rebuilding left."""
    shutil.rmtree(path / REBUILT, ignore_errors=True)


def put_rebuilt_in_place(path: Path) -> None:
    """Swap in a complete rebuilt store. Interrupted anywhere, `finish_swap` ends it."""
    kept = 1
    while (path / f"{STORE}.damaged-{kept}").exists():
        kept += 1
    (path / STORE).rename(path / f"{STORE}.damaged-{kept}")
    sync_directory(path)
    finish_swap(path)
    (path / _DAMAGED).unlink(missing_ok=True)
    sync_directory(path)


def finish_swap(path: Path) -> None:
    """Only a complete rebuilt store lies beside an empty place."""
    if (path / REBUILT).exists() and not (path / STORE).exists():
        (path / REBUILT).rename(path / STORE)
        sync_directory(path)


def _refuse_foreign(path: Path) -> None:
    foreign = sorted(entry.name for entry in path.iterdir() if entry.name not in _NOBODYS)
    if foreign:
        raise DataDirectoryError(
            f"data directory {path} is not empty and not Fila's (it holds {foreign[0]!r}); "
            "choose another"
        )
