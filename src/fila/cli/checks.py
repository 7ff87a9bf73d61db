"""What `fila doctor` looks at on this machine. Each check answers; none raises."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from fila.cli.output import duration, number

Verdict = Literal["ok", "look", "bad"]

_FSYNC_ROUNDS = 50
_FSYNC_SECONDS_MAX = 3.0
_BLOCK = b"\0" * 4096
# Each commit waits for one: slower, and a lone enqueue is slow; many at once still share it.
_FSYNC_SLOW_MS = 20.0
_GIB = 1 << 30
_FREE_SHARE_MIN = 0.05
_OPEN_FILES_MIN = 4096
_MEMORY_MIN = 512 << 20
_VOLATILE = {"tmpfs", "ramfs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one look came to."""

    name: str
    verdict: Verdict
    text: str
    advice: str = ""


def existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    path = path.expanduser().absolute()
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def guarded(name: str, check: Callable[[Path], Check], folder: Path) -> Check:
    """A check whose own failure is its answer."""
    try:
        return check(folder)
    except OSError as error:
        return Check(name=name, verdict="bad", text=f"{folder}: {error.strerror}")


def fsync_time(folder: Path) -> Check:
    """How long the disk takes to say that data is safe."""
    times = sorted(_fsync_times_ms(folder))
    middle, worst = median(times), times[-1]
    text = f"{middle:.2f} ms in the median of {len(times)}, {worst:.2f} ms at worst"
    kind = filesystem(folder)
    if kind in _VOLATILE:
        return Check(
            name="fsync",
            verdict="look",
            text=f"{text}, on {kind}",
            advice="this is memory: stored messages are gone when the machine restarts",
        )
    if middle > _FSYNC_SLOW_MS:
        return Check(
            name="fsync",
            verdict="look",
            text=text,
            advice="slow: each commit waits for it; put the data directory on a faster disk",
        )
    return Check(name="fsync", verdict="ok", text=text)


def _fsync_times_ms(folder: Path) -> list[float]:
    times: list[float] = []
    stop = time.perf_counter() + _FSYNC_SECONDS_MAX
    with tempfile.TemporaryFile(dir=folder, prefix="fila-doctor-") as file:
        while len(times) < _FSYNC_ROUNDS and time.perf_counter() < stop:
            os.write(file.fileno(), _BLOCK)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1000)
    return times


def filesystem(folder: Path) -> str:
    """The kind of the filesystem that holds a folder, empty when the system does not say."""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    mounts = [(fields[1], fields[2]) for fields in (line.split() for line in lines)]
    inside = [(point, kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]), default=("", ""))[1]


def free_space(folder: Path) -> Check:
    """Whether there is room; the broker refuses enqueues when there is little."""
    usage = shutil.disk_usage(folder)
    least = min(_GIB, int(usage.total * _FREE_SHARE_MIN))
    text = f"{_size(usage.free)} of {_size(usage.total)} free"
    if usage.free < least:
        return Check(
            name="space",
            verdict="bad",
            text=text,
            advice=f"below {_size(least)} enqueues are refused; make room or move the data",
        )
    if usage.free < 2 * least:
        return Check(
            name="space",
            verdict="look",
            text=text,
            advice=f"below {_size(least)} enqueues are refused",
        )
    return Check(name="space", verdict="ok", text=text)


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB"


def open_files(_: Path) -> Check:
    """How many connections and table files a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = soft == resource.RLIM_INFINITY
    text = "no limit" if unlimited else f"{number(soft)} for a process"
    if unlimited or soft >= _OPEN_FILES_MIN:
        return Check(name="open files", verdict="ok", text=text)
    more = "no limit" if hard == resource.RLIM_INFINITY else number(hard)
    return Check(
        name="open files",
        verdict="look",
        text=f"{text} (allowed: {more})",
        advice=f"raise it to {_OPEN_FILES_MIN} or more: ulimit -n, or LimitNOFILE= in systemd",
    )


def memory(_: Path) -> Check:
    """What is left for the broker and the system's page cache."""
    fields = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line
    )
    available = int(fields["MemAvailable"].split()[0]) * 1024
    text = f"{_size(available)} available, {os.cpu_count()} processors"
    if available < _MEMORY_MIN:
        return Check(name="memory", verdict="look", text=text, advice="little for a broker")
    return Check(name="memory", verdict="ok", text=text)


def round_trip(begin: float) -> str:
    """The time since a moment, for a person."""
    return duration((time.perf_counter() - begin) * 1000)


MACHINE: dict[str, Callable[[Path], Check]] = {
    "fsync": fsync_time,
    "space": free_space,
    "open files": open_files,
    "memory": memory,
}
