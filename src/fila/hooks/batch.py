"""The calls of a batch as one value of bytes: what crosses into Lua, and is read there.

    number of chunks, end of each chunk                      u32 each
    chunk:  number of calls, whether its strings hold NULs   u16, u8
            for each call its number of headers and a number u32, u32
            the strings, each ended by a NUL, or after its length where some hold NULs

The number is the payload's size, or the attempts. A call's strings are the message's id and the
error where it has them, then each header's name and value.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, chain

from fila.hooks.calls import EnqueueCall, FailureCall

# A run that goes on in the middle of a chunk reads over its beginning.
_CHUNK_CALLS = 64
_CHUNK_CHARACTERS_MAX = 128 * 1024
_SLICE_BYTES_MAX = 512 * 1024
_U32_MAX = (1 << 32) - 1

Call = EnqueueCall | FailureCall


def pack(calls: Sequence[Call]) -> bytes:
    """A batch of calls, all of one kind."""
    chunks: list[bytes] = []
    for first in range(0, len(calls), _CHUNK_CALLS):
        chunks += _chunks(calls[first : first + _CHUNK_CALLS])
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


def _chunks(calls: Sequence[Call]) -> list[bytes]:
    strings: list[str] = []
    heads: list[int] = []
    for call in calls:
        headers = call.headers
        if isinstance(call, EnqueueCall):
            heads += (len(headers), min(call.payload_size, _U32_MAX))
        else:
            heads += (len(headers), min(call.attempts, _U32_MAX))
            strings += (call.message_id, call.error)
        strings += chain.from_iterable(headers.items())
    if len(calls) > 1 and sum(map(len, strings)) > _CHUNK_CHARACTERS_MAX:
        half = len(calls) // 2
        return _chunks(calls[:half]) + _chunks(calls[half:])
    return [_chunk(heads, strings)]


def _chunk(heads: list[int], strings: list[str]) -> bytes:
    strings.append("")
    body = "\0".join(strings).encode(errors="replace")
    if body.count(b"\0") == len(strings) - 1:
        return struct.pack(f"<HB{len(heads)}I", len(heads) // 2, 0, *heads) + body
    encoded = [text.encode(errors="replace") for text in strings[:-1]]
    parts = [part for text in encoded for part in (len(text).to_bytes(4, "little"), text)]
    return b"".join((struct.pack(f"<HB{len(heads)}I", len(heads) // 2, 1, *heads), *parts))
