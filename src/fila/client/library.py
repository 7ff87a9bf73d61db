"""Which gRPC library this process talks through: after a fork, an instance of its own.

gRPC keeps threads that a fork does not copy, so the library that a child inherits answers nothing
and hangs. Closing everything before each fork would cost the parent its leases. So a child loads
the library a second time, under a file of its own, and never touches what it inherited. Only this
module knows; the others ask it for `aio()`.

gRPC's own support for forks must be off in the library that is inherited: it starts threads in the
child, which stumble over what the fork did not copy and end the process. It is decided when gRPC is
imported; where somebody else has done that before, a second instance serves from the beginning.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import grpc.aio

_EXTENSION = "grpc._cython.cygrpc"
_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"
_OFF = ("0", "false")


class UnaryMethod(Protocol):
    """A call with one request and one answer, both as bytes."""

    def __call__(self, request: bytes, *, timeout: float | None) -> Awaitable[bytes]:
        """Make the call."""


class StreamCall(Protocol):
    """A stream that is open in both directions."""

    async def read(self) -> object:
        """The next message, or `EOF`."""

    async def write(self, message: bytes) -> None:
        """Send a message."""

    async def done_writing(self) -> None:
        """Send nothing more."""

    def cancel(self) -> bool:
        """End the stream."""


class Channel(Protocol):
    """A channel whose messages are bytes."""

    def unary_unary(self, path: str) -> UnaryMethod:
        """A method with one request and one answer."""

    def stream_stream(self, path: str) -> Callable[[], StreamCall]:
        """A method that streams both ways."""

    async def close(self) -> None:
        """End all calls."""


class Aio(Protocol):
    """What we use of `grpc.aio`."""

    AioRpcError: "type[grpc.aio.AioRpcError]"
    EOF: object

    def insecure_channel(self, target: str, options: Sequence[tuple[str, int]]) -> Channel:
        """Make a channel."""


class _Process:
    """What there is once in a process."""

    def __init__(self) -> None:
        self.generation = 0
        self.library = _first_instance()
        self.loading = threading.Lock()
        self.inherited: weakref.WeakSet[object] = weakref.WeakSet()


def _first_instance() -> ModuleType | None:
    """The library as the process has it, unless its support for forks is on."""
    was_imported = _EXTENSION in sys.modules
    if was_imported and os.environ.get(_FORK_SUPPORT, "").lower() not in _OFF:
        return None
    with _without_fork_support():
        importlib.import_module("grpc.aio")
        return sys.modules["grpc"]


@contextmanager
def _without_fork_support() -> Iterator[None]:
    """For what is imported meanwhile."""
    before = os.environ.get(_FORK_SUPPORT)
    os.environ[_FORK_SUPPORT] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FORK_SUPPORT]
        else:
            os.environ[_FORK_SUPPORT] = before


_process = _Process()


def generation() -> int:
    """How many forks lie between this process and the one that imported Fila."""
    return _process.generation


def aio() -> Aio:
    """The `grpc.aio` of this process."""
    if _process.library is None:
        with _process.loading:
            if _process.library is None:
                _process.library = _second_instance()
    return cast("Aio", _process.library.aio)


def leave_to_the_parent(owner: object) -> None:
    """Whatever `owner` holds of gRPC must not be torn down by a child that inherits it."""
    _process.inherited.add(owner)


def _after_fork_in_child() -> None:
    _process.generation += 1
    _process.library = None
    _process.loading = threading.Lock()
    for owner in list(_process.inherited):
        # One reference that nobody gives back: a destructor would wait for the missing threads.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    _process.inherited = weakref.WeakSet()


os.register_at_fork(after_in_child=_after_fork_in_child)


class _Finder:
    """Finds the extension module in another file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _EXTENSION:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, self._path)
        return importlib.util.spec_from_file_location(name, self._path, loader=loader)

    def invalidate_caches(self) -> None:
        """Nothing is cached."""


def _second_instance() -> ModuleType:
    original = sys.modules[_EXTENSION].__file__
    if original is None:
        raise ImportError("the gRPC library has no file; it can't be loaded again after a fork")
    inherited = _take_modules()
    try:
        with _copy_of(original) as path:
            finder = _Finder(path)
            sys.meta_path.insert(0, finder)
            try:
                with _without_fork_support():
                    importlib.import_module("grpc.aio")
                return sys.modules["grpc"]
            finally:
                sys.meta_path.remove(finder)
    finally:
        _take_modules()
        sys.modules.update(inherited)


def _take_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "grpc" or name.startswith("grpc.")]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def _copy_of(original: str) -> Iterator[str]:
    """A path with the same content and another identity, for as long as it takes to load it."""
    with open(original, "rb") as source:
        content = source.read()
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("fila-grpc")
        with os.fdopen(number, "wb") as copy:
            copy.write(content)
            copy.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.NamedTemporaryFile(suffix=os.path.basename(original)) as named:
        named.write(content)
        named.flush()
        yield named.name
