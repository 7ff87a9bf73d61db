"""The calls of a batch as one value of bytes: what crosses into Lua, and is read there.

    number of chunks, end of each chunk     u32 each
    chunk:  number of calls                 u16
            length of each call             u32 each
            the calls

A message that arrived is its outline (`fila.wire.outline`). A delivery that failed is the attempts
(u32), the message's id and the error, each behind its length (u32), and the outline.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate

from fila.hooks.calls import EnqueueCall, FailureCall

# A run that goes on in the middle of a chunk passes over its beginning.
_CHUNK_CALLS = 64
_CHUNK_BYTES_MAX = 128 * 1024
_SLICE_BYTES_MAX = 512 * 1024
_U32_MAX = (1 << 32) - 1
_LENGTH = struct.Struct("<I")
_FULL_CHUNK = struct.Struct(f"<H{_CHUNK_CALLS}I")

Call = EnqueueCall | FailureCall


def pack(calls: Sequence[Call]) -> bytes:
    """A batch of calls, all of one kind."""
    bodies = [call if isinstance(call, bytes) else _failure(call) for call in calls]
    chunks: list[bytes] = []
    for first in range(0, len(bodies), _CHUNK_CALLS):
        chunks += _chunks(bodies[first : first + _CHUNK_CALLS])
    begin = 4 + 4 * len(chunks)
    ends = list(accumulate(map(len, chunks), initial=begin))[1:]
    return b"".join((struct.pack(f"<I{len(ends)}I", len(ends), *ends), *chunks))


def slice_from(packed: bytes, start: int) -> tuple[bytes, int]:
    """Whole chunks from the one that holds call `start`, and how many of its calls to pass over."""
    (count,) = struct.unpack_from("<I", packed)
    ends = struct.unpack_from(f"<{count}I", packed, 4)
    at, passed = 4 + 4 * count, 0
    for index, end in enumerate(ends):
        (calls,) = struct.unpack_from("<H", packed, at)
        if passed + calls > start:
            fitting = [later for later in ends[index:] if later - at <= _SLICE_BYTES_MAX]
            return packed[at : max(fitting, default=end)], start - passed
        at, passed = end, passed + calls
    raise IndexError(start)


def _failure(call: FailureCall) -> bytes:
    texts = [text.encode(errors="replace") for text in (call.message_id, call.error)]
    parts = [_LENGTH.pack(min(call.attempts, _U32_MAX))]
    for text in texts:
        parts += (_LENGTH.pack(len(text)), text)
    return b"".join((*parts, call.outline))


def _chunks(bodies: Sequence[bytes]) -> list[bytes]:
    sizes = list(map(len, bodies))
    if len(bodies) > 1 and sum(sizes) > _CHUNK_BYTES_MAX:
        half = len(bodies) // 2
        return _chunks(bodies[:half]) + _chunks(bodies[half:])
    count = len(bodies)
    full = count == _CHUNK_CALLS
    head = _FULL_CHUNK.pack(count, *sizes) if full else struct.pack(f"<H{count}I", count, *sizes)
    return [head + b"".join(bodies)]
