"""A log of payloads in one zarr array: a write is one chunk, whole or not there.

The array is longer than any run needs; chunks that were never written read as zeros.
A payload takes as many chunks as it needs, each with a head that names the write, the
part and a checksum. A write that was cut short lacks a part, and is ignored.
"""

import struct
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, Final, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore, StorePath

Log: TypeAlias = "zarr.Array[Any]"

CHUNK: Final = 65536
MOST_CHUNKS: Final = 2**24
MAGIC: Final = b"dsj1"
HEAD: Final = struct.Struct("<4s16sIIII")  # magic, write, part, parts, length, checksum
ROOM: Final = CHUNK - HEAD.size
HEADER: Final = "zarr.json"


@dataclass(frozen=True)
class _Part:
    write: bytes
    number: int
    n_parts: int
    payload: bytes


@dataclass(frozen=True)
class LogContent:
    """What a log holds."""

    payloads: tuple[bytes, ...]
    """Every payload that was written whole, in order."""
    n_bytes: int
    """Bytes of all payloads."""
    n_chunks: int
    """Chunks in use; the next write goes behind them."""
    n_damaged: int
    """Chunks that are missing, cannot be read or lack their other parts."""


NOTHING: Final = LogContent((), 0, 0, 0)


def create_log(group: zarr.Group, name: str) -> Log:
    """Make an empty log."""
    return group.create_array(
        name,
        shape=(CHUNK * MOST_CHUNKS,),
        chunks=(CHUNK,),
        dtype=np.uint8,
        fill_value=0,
        compressors=ZstdCodec(level=1),
        overwrite=True,
    )


def open_log(group: zarr.Group, name: str) -> Log:
    """Open a log whatever became of its header, which is the same for all.

    Raises
    ------
    KeyError
        Where there is neither a header nor a chunk.
    """
    place = StorePath(group.store, f"{group.path}/{name}".strip("/"))
    log: Log = zarr.Array(zarr.AsyncArray(_blank().metadata, place))
    if not sync((place / HEADER).exists()) and not sync(_n_listed(log)):
        raise KeyError(place.path)
    return log


def mend_header(log: Log) -> None:
    """Write the header again unless it is there, whole and right."""
    place, prototype = log.store_path / HEADER, default_buffer_prototype()
    right = log.metadata.to_buffer_dict(prototype)[HEADER]
    stored = sync(place.get(prototype))
    if stored is None or stored.to_bytes() != right.to_bytes():
        sync(place.set(right))


@cache
def _blank() -> Log:
    return create_log(zarr.open_group(MemoryStore(), mode="w"), "log")


def write_payload(log: Log, payload: bytes, *, at: int) -> int:
    """Write a payload from chunk `at` on; return the chunk behind it.

    Chunks go one by one: of several under way at once, one that fails would leave
    others to land whenever they like, on top of what is written next.
    """
    n_parts = max(1, ceil(len(payload) / ROOM))
    write = uuid.uuid4().bytes
    for part in range(n_parts):
        piece = payload[part * ROOM : (part + 1) * ROOM]
        head = HEAD.pack(MAGIC, write, part, n_parts, len(piece), zlib.crc32(piece))
        chunk = np.zeros(CHUNK, dtype=np.uint8)
        chunk[: HEAD.size + len(piece)] = np.frombuffer(head + piece, dtype=np.uint8)
        log[(at + part) * CHUNK : (at + part + 1) * CHUNK] = chunk
    return at + n_parts


def read_log(log: Log) -> LogContent:
    """Read all payloads; of a write that lost a chunk nothing is left."""
    parts = list(_parts(log))
    payloads, n_whole = [], 0
    for place, first in enumerate(parts):
        if first is None or first.number != 0:
            continue
        rest = parts[place : place + first.n_parts]
        if _is_whole(rest, first):
            payloads.append(b"".join(part.payload for part in rest if part))
            n_whole += len(rest)
    n_bytes = sum(map(len, payloads))
    return LogContent(tuple(payloads), n_bytes, len(parts), len(parts) - n_whole)


def _is_whole(parts: list[_Part | None], first: _Part) -> bool:
    numbers = [part.number for part in parts if part and part.write == first.write]
    return numbers == list(range(first.n_parts))


def _parts(log: Log) -> Iterator[_Part | None]:
    """Yield all chunks; a listing may be older than the last, but not than a gap."""
    listed = sync(_n_listed(log))
    start, step = 0, min(listed + 1, 1024)
    while start < MOST_CHUNKS:
        for place, chunk in enumerate(_read_chunks(log, start, step), start):
            is_missing = chunk is not None and not chunk[: HEAD.size].any()
            if is_missing and place >= listed:
                return
            yield None if chunk is None or is_missing else _parse(chunk.tobytes())
        start, step = start + step, min(4 * step, 1024)


async def _n_listed(log: Log) -> int:
    """Return the number of chunks up to the last one that the store lists."""
    keys = [key async for key in log.store.list_prefix(f"{log.path}/c/")]
    numbers = [name for key in keys if (name := key.rpartition("/")[2]).isdecimal()]
    return max(map(int, numbers), default=-1) + 1


def _read_chunks(
    log: Log, start: int, count: int
) -> Iterator[NDArray[np.uint8] | None]:
    try:
        block = np.asarray(log[start * CHUNK : (start + count) * CHUNK])
    except (RuntimeError, ValueError):  # a chunk that its codec cannot read
        if count == 1:
            yield None
            return
        for place in range(start, start + count):
            yield from _read_chunks(log, place, 1)
        return
    yield from block.reshape(count, CHUNK)


def _parse(chunk: bytes) -> _Part | None:
    magic, write, number, n_parts, length, checksum = HEAD.unpack_from(chunk)
    payload = chunk[HEAD.size : HEAD.size + length]
    if magic != MAGIC or zlib.crc32(payload) != checksum:
        return None
    return _Part(write, number, n_parts, payload)
