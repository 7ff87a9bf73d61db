"""Where the figures come from: the machine, its disk, the versions, the commit."""

import os
import platform
import statistics
import subprocess
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
_FSYNCS = 100
_IN_MEMORY = {"tmpfs", "ramfs"}


class NotADiskError(Exception):
    """Data kept in memory would make durability look free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The conditions of a run."""

    cpu: str
    cores: int
    memory_gb: float
    kernel: str
    filesystem: str
    # Median and 99th percentile of an append of 4 KB and its fdatasync.
    fsync_ms: float
    fsync_p99_ms: float
    load: float
    python: str
    rocksdict: str
    grpcio: str
    protobuf: str
    uvloop: str
    commit: str


def inspect(folder: Path) -> Machine:
    """The conditions for data kept in this folder; refuses one that is not on a disk."""
    filesystem = _filesystem(folder)
    if filesystem in _IN_MEMORY:
        raise NotADiskError(f"{folder} is on {filesystem}; the benchmarks need a disk")
    syncs = _fsync_times_ms(folder)
    return Machine(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        kernel=platform.release(),
        filesystem=filesystem,
        fsync_ms=round(statistics.median(syncs), 3),
        fsync_p99_ms=round(statistics.quantiles(syncs, n=100)[98], 3),
        load=round(os.getloadavg()[0], 2),
        python=platform.python_version(),
        rocksdict=version("rocksdict"),
        grpcio=version("grpcio"),
        protobuf=version("protobuf"),
        uvloop=version("uvloop"),
        commit=_commit(),
    )


def _filesystem(folder: Path) -> str:
    """The type of the filesystem that holds the folder."""
    # The longest mount point that leads to it.
    mounts = psutil.disk_partitions(all=True)
    holding = [mount for mount in mounts if folder.resolve().is_relative_to(mount.mountpoint)]
    # Of two mounts on one point, the later one is seen.
    seen = max(holding, key=lambda mount: (len(mount.mountpoint), mounts.index(mount)))
    return str(seen.fstype)


def _fsync_times_ms(folder: Path) -> list[float]:
    path = folder / "fsync-probe"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(_FSYNCS):
            file.write(bytes(4096))
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1000)
    path.unlink()
    return times


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() or "unknown"
