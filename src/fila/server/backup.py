"""Copies of the data directory while the broker runs, and how a second process asks for one."""

import asyncio
import logging
from pathlib import Path

from fila.errors import InvalidArgumentError, NotFoundError, PreconditionError
from fila.server.boundary import Context
from fila.server.log import facts
from fila.server.shell import Shell
from fila.wire._pb import admin_pb2 as pb
from fila.wire.names import has_control
from fila.wire.request import parse

log = logging.getLogger(__name__)

# In the data directory, while the broker runs: where it listens, and its mark, by which it is told
# from a broker that listens there later.
ADDRESS_FILE = "ADDRESS"
# The caller names a folder on the broker's machine: it must sit there too.
_LOCAL_PEERS = ("ipv4:127.", "ipv6:[::1]", "ipv6:%5B::1%5D", "unix:")


class BackupService:
    """Backup."""

    def __init__(self, shell: Shell, mark: str) -> None:
        self._shell = shell
        self._mark = mark

    async def backup(self, data: bytes, context: Context) -> bytes:
        """Write a consistent copy to a folder of this machine."""
        request = parse(pb.BackupRequest, data)
        if request.mark not in ("", self._mark):
            raise NotFoundError("this broker serves another data directory")
        target = _checked_target(request.target)
        if not context.peer().startswith(_LOCAL_PEERS):
            raise PreconditionError("a backup can only be asked for from the broker's own machine")
        # To another disk every byte is copied: that takes as long as it takes.
        await asyncio.to_thread(self._shell.storage.checkpoint, target)
        log.info("wrote a backup", extra=facts(target=str(target)))
        return b""


def _checked_target(text: str) -> Path:
    target = Path(text)
    if not target.is_absolute() or has_control(text):
        raise InvalidArgumentError("target must be an absolute path")
    if target.exists():
        raise PreconditionError(f"{target} exists already; name a folder that does not")
    if not target.parent.is_dir():
        raise PreconditionError(f"{target.parent} is not a folder")
    return target


def write_address(data_path: Path, address: str, mark: str) -> None:
    """Let other processes on this machine find the broker of a data directory."""
    (data_path / ADDRESS_FILE).write_text(f"{address} {mark}\n", encoding="utf-8")


def read_address(data_path: Path) -> tuple[str, str] | None:
    """Where the broker of a data directory listened last, and its mark, unless it said goodbye."""
    try:
        words = (data_path / ADDRESS_FILE).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return None
    return (words[0], words[1]) if len(words) == 2 else None


def remove_address(data_path: Path) -> None:
    """The broker does not listen any more."""
    (data_path / ADDRESS_FILE).unlink(missing_ok=True)
