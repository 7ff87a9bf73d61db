"""What `fila-server` does to a data directory without serving it: copy it, check it."""

from pathlib import Path

import grpc

from fila.errors import FilaError
from fila.server.backup import read_address
from fila.storage import directory
from fila.storage.rocksdb import RocksStorage
from fila.storage.verify import VerifyReport
from fila.wire._pb import admin_pb2 as pb
from fila.wire.status import error_of

_BACKUP_METHOD = "/fila.v1.FilaAdmin/Backup"
_BACKUP_TIMEOUT_S = 600.0
# Whoever is asked is not the broker of this data directory, which left its address and died.
_ANOTHER = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
}
# It is on this machine, whatever the environment says of proxies.
_CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0),)
# Listening on all addresses, it also listens on this one.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - looked up, not bound


def back_up(data_path: Path, target: Path) -> str:
    """Copy a data directory, through its broker if one runs; says which way it went."""
    found = read_address(data_path)
    if found is not None and _broker_backs_up(*found, target):
        return f"backed up by the broker on {found[0]}"
    directory.read_format(data_path)
    storage = RocksStorage(data_path)
    try:
        storage.checkpoint(target)
    finally:
        storage.close()
    return "backed up"


def _broker_backs_up(address: str, mark: str, target: Path) -> bool:
    """Ask the broker; False when nobody is there any more."""
    host, _, port = address.rpartition(":")
    reachable = f"{_EVERYWHERE.get(host, host)}:{port}"
    with grpc.insecure_channel(reachable, options=_CHANNEL_OPTIONS) as channel:
        call = channel.unary_unary(
            _BACKUP_METHOD,
            request_serializer=pb.BackupRequest.SerializeToString,
            response_deserializer=pb.BackupResponse.FromString,
        )
        try:
            call(pb.BackupRequest(target=str(target), mark=mark), timeout=_BACKUP_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() in _ANOTHER:
                return False
            raise _as_error(error) from error
    return True


def _as_error(error: grpc.RpcError) -> FilaError:
    return error_of(error.code().name, error.details() or "the broker refused")


def report_text(report: VerifyReport) -> str:
    """What a check found, for a person."""
    counts = ", ".join(f"{count} {name}" for name, count in sorted(report.records.items()))
    verdict = "sound" if report.ok else f"{report.problem_count} problems"
    lines = [*report.problems, f"format {report.format_version}; {counts or 'no records'}"]
    return "\n".join([*lines, verdict])
