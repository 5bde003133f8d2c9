"""Records as objects of a store: numbers raw, the rest as JSON, nothing pickled.

An object is one block or several. A block is a checksum, a JSON head that names every
array with its type and shape, and the bytes of the arrays one after the other. A zip of
arrays (npz) would cost some 0.1 ms for each of them, and a record of one fit has five.
"""

import asyncio
import json
import os
import re
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

Record = Mapping[str, Any]
"""Numbers, arrays of numbers, strings and lists of strings by name."""

DTYPES: Final = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8")
FOLDER: Final = "journal"
OBJECT: Final = re.compile(r"(\d+)-[0-9a-f]{32}\.records")
MAGIC: Final = b"dselrec2"
# Magic, checksum of all that follows, and the sizes of the JSON head and of the arrays.
HEAD: Final = struct.Struct("<8sIIQ")

Layout = tuple[tuple[str, str, tuple[int, ...]], ...]
Block = tuple[dict[str, Any], dict[str, dict[str, Any]]]
"""What belongs to all records of a block, and these by key."""


def storable(record: Record) -> dict[str, Any]:
    """Return a copy of the record that can be written.

    Numbers become arrays without dimensions. Raises TypeError where a value is neither
    numbers nor text.
    """
    return {name: _storable(name, value) for name, value in record.items()}


def encode(records: Iterable[tuple[str, Record]], *, about: Mapping[str, Any]) -> bytes:
    """Return keyed records, made by `storable`, as one block.

    Their order is kept; `about` are JSON-like values that belong to all of them.

    Examples
    --------
    >>> record = storable({"split": "full", "errors": [3, 4]})
    >>> decode(encode([("fit/1", record)], about={"seed": 7}))
    ({'seed': 7}, {'fit/1': {'split': 'full', 'errors': array([3, 4])}})
    """
    layouts: dict[Layout, int] = {}  # few, so that each is named once
    entries, blobs = [], []
    for key, record in records:
        arrays = {n: v for n, v in record.items() if isinstance(v, np.ndarray)}
        texts = {n: v for n, v in record.items() if n not in arrays}
        layout = tuple((n, a.dtype.str, a.shape) for n, a in arrays.items())
        entries.append([key, layouts.setdefault(layout, len(layouts)), texts])
        blobs += [array.tobytes() for array in arrays.values()]
    head = {"about": dict(about), "layouts": list(layouts), "records": entries}
    text = json.dumps(head).encode()
    body = b"".join([text, *blobs])
    sizes = len(text), len(body) - len(text)
    return HEAD.pack(MAGIC, zlib.crc32(body), *sizes) + body


def blocks_of(payload: bytes) -> list[bytes]:
    """Return the blocks of an object, which can be joined to another one as they are.

    Raises ValueError where the bytes are not what `encode` makes, or not all of it.
    """
    blocks: list[bytes] = []
    start = 0
    while start < len(payload) or not blocks:
        try:
            magic, checksum, *sizes = HEAD.unpack_from(payload, start)
        except struct.error as error:
            raise ValueError(f"the object has {len(payload)} bytes only") from error
        end = start + HEAD.size + sum(sizes)
        body = memoryview(payload)[start + HEAD.size : end]
        if magic != MAGIC or len(body) < sum(sizes) or zlib.crc32(body) != checksum:
            raise ValueError("the object has another checksum than its bytes")
        blocks.append(payload[start:end])
        start = end
    return blocks


def decode(block: bytes) -> Block:
    """Return what `encode` was told about its records, and these by key."""
    _, _, size, _ = HEAD.unpack_from(block)
    body = memoryview(block)[HEAD.size :]
    head = json.loads(bytes(body[:size]))
    records, start = {}, size
    for key, layout, texts in head["records"]:
        record = dict(texts)
        for name, dtype, shape in head["layouts"][layout]:
            end = start + prod(shape) * np.dtype(dtype).itemsize
            record[name] = np.frombuffer(body[start:end], dtype).reshape(shape)
            start = end
        records[str(key)] = record
    return head["about"], records


def write_object(store: Store, key: str, payload: bytes) -> None:
    """Write an object whole or not at all, whatever is there under its key.

    Raises OSError where the store takes no more, or its root is gone.
    """
    if not isinstance(store, LocalStore):
        sync(store.set(key, default_buffer_prototype().buffer.from_bytes(payload)))
        return
    path = Path(store.root) / key
    half_written = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    path.parent.mkdir(exist_ok=True)  # not the root: whoever removed that meant it
    try:
        with half_written.open("wb") as file:
            file.write(payload)
            file.flush()
            # Others are removed once this one is there, after a power cut as well.
            os.fsync(file.fileno())
        half_written.replace(path)
    except BaseException:
        half_written.unlink(missing_ok=True)
        raise


async def read_object(store: Store, key: str) -> bytes | None:
    """Return the bytes of an object, or None where there is none."""
    found = await store.get(key, default_buffer_prototype())
    return None if found is None else found.to_bytes()


def _storable(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list) and all(type(entry) is str for entry in value):
        return value.copy()
    if isinstance(value, np.ndarray) and value.dtype.str in DTYPES:
        return value.copy(order="C")
    array = np.array(value)
    if array.dtype.kind in "UTO" and array.ndim == 1:
        return [str(entry) for entry in array]
    array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.str not in DTYPES:
        raise TypeError(
            f"`record[{name!r}]` must hold numbers or strings, got {value!r}."
        )
    return array


async def read_objects(store: Store, known: set[str]) -> dict[str, bytes]:
    """Return all objects but those that are known, by name.

    One that was listed and is gone was merged with others by another run, into one that
    is listed now.
    """
    found: dict[str, bytes] = {}
    gone: set[str] = set()
    while True:
        if isinstance(store, FsspecStore):
            store.fs.invalidate_cache()  # else others' objects are not listed
        listed = [name async for name in store.list_dir(FOLDER)]
        names = [n for n in listed if OBJECT.fullmatch(n) and n not in known | gone]
        new = [name for name in names if name not in found]
        keys = [f"{FOLDER}/{name}" for name in new]
        payloads = await asyncio.gather(*[read_object(store, key) for key in keys])
        read = zip(new, payloads, strict=True)
        found |= {name: payload for name, payload in read if payload is not None}
        if None not in payloads:
            return found
        gone |= set(new) - set(found)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of objects in the order in which they were written."""
    return sorted(names, key=lambda name: (number_of(name), name))


def number_of(name: str) -> int:
    """Return the number with which the name of an object begins."""
    return int(name.partition("-")[0])
