"""What `fila-server` does to a data directory without serving it: copy it, check it."""

from dataclasses import dataclass
from pathlib import Path

import grpc

from fila.errors import DataDirectoryError, FilaError
from fila.server.backup import read_address
from fila.storage import directory
from fila.storage.rocksdb import RocksStorage
from fila.wire._pb import admin_pb2 as pb
from fila.wire.status import error_of

_BACKUP_METHOD = "/fila.v1.FilaAdmin/Backup"
_BACKUP_TIMEOUT_S = 600.0
# Listening on all addresses, it also listens on this one.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - looked up, not bound


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found."""

    queues: int
    messages: int
    unreadable: int

    @property
    def is_sound(self) -> bool:
        """Whether everything could be read."""
        return not self.unreadable

    @property
    def text(self) -> str:
        """For a person."""
        verdict = "sound" if self.is_sound else f"{self.unreadable} records cannot be read"
        return f"{self.queues} queues, {self.messages} messages: {verdict}"


def back_up(data_path: Path, target: Path) -> str:
    """Copy a data directory, through its broker if one runs; says which way it went."""
    address = read_address(data_path)
    if address is not None and _broker_backs_up(address, target):
        return f"backed up by the broker on {address}"
    directory.read_format(data_path)
    storage = RocksStorage(data_path)
    try:
        storage.checkpoint(target)
    finally:
        storage.close()
    return "backed up"


def _broker_backs_up(address: str, target: Path) -> bool:
    """Ask the broker; False when nobody is there any more."""
    host, _, port = address.rpartition(":")
    with grpc.insecure_channel(f"{_EVERYWHERE.get(host, host)}:{port}") as channel:
        call = channel.unary_unary(
            _BACKUP_METHOD,
            request_serializer=pb.BackupRequest.SerializeToString,
            response_deserializer=pb.BackupResponse.FromString,
        )
        try:
            call(pb.BackupRequest(target=str(target)), timeout=_BACKUP_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return False
            raise _as_error(error) from error
    return True


def _as_error(error: grpc.RpcError) -> FilaError:
    return error_of(error.code().name, error.details() or "the broker refused")


def verify(data_path: Path) -> Report:
    """Read everything that is stored; what cannot be read is set aside as at a start."""
    if not data_path.is_dir():
        raise DataDirectoryError(f"{data_path} is not a folder")
    directory.read_format(data_path)
    storage = RocksStorage(data_path)
    try:
        recovered = storage.recover()
        messages = 0
        for partition in recovered.partitions:
            messages += sum(1 for _ in storage.browse(partition.number, 0))
        entries = sum(1 for _ in recovered.entries)
        unreadable = storage.unreadable_count + max(0, entries - messages)
        return Report(len(recovered.queues), messages, unreadable)
    finally:
        storage.close()
