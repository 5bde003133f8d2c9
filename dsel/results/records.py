"""Rows of the journal as bytes: numbers raw, their names as JSON, nothing pickled."""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import ArrayLike, NDArray

KEY_BYTES: Final = 16
TEXT: Final = "text"
DTYPES: Final = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8")
HEAD: Final = struct.Struct("<I")


@dataclass(frozen=True)
class Rows:
    """Some rows of one kind: a key each, and columns of equal length."""

    kind: str
    """What the rows tell of, such as ``fit`` or ``span``."""
    keys: tuple[bytes, ...]
    """`KEY_BYTES` bytes each."""
    columns: Mapping[str, NDArray[Any]]
    """Arrays by name; the first axis runs over `keys`."""


def make_rows(
    kind: str, keys: Iterable[bytes], columns: Mapping[str, ArrayLike]
) -> Rows:
    """Return rows that can be written, or raise.

    Raises
    ------
    TypeError
        Where a column is neither numbers nor text.
    ValueError
        Where a key or a column has the wrong length.
    """
    keys = tuple(keys)
    if any(len(key) != KEY_BYTES for key in keys):
        raise ValueError(f"`keys` must have {KEY_BYTES} bytes each, got {keys[0]!r}.")
    arrays = {name: _storable(name, values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != len(keys):
            raise ValueError(
                f"`columns[{name!r}]` must have one row for each of {len(keys)} keys, "
                f"got shape {array.shape}."
            )
    return Rows(kind, keys, arrays)


def encode(batches: Iterable[Rows]) -> bytes:
    """Return rows as bytes.

    Examples
    --------
    >>> rows = make_rows("fit", [b"k" * 16], {"errors": [3], "message": ["fine"]})
    >>> decode(encode([rows]))[0].columns["errors"]
    array([3])
    """
    table, blobs = [], []
    for rows in batches:
        columns = []
        for name, array in rows.columns.items():
            kind, blob = _pack(array)
            columns.append([name, kind, list(array.shape), len(blob)])
            blobs.append(blob)
        table.append({"kind": rows.kind, "n_rows": len(rows.keys), "columns": columns})
        blobs.append(b"".join(rows.keys))
    head = json.dumps(table).encode()
    return b"".join([HEAD.pack(len(head)), head, *blobs])


def decode(payload: bytes) -> list[Rows]:
    """Return the rows that `encode` turned into bytes.

    Raises
    ------
    ValueError
        Where the bytes are not what `encode` makes.
    """
    try:
        return _decode(payload)
    except (KeyError, TypeError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"`payload` is no record of a journal: {error}.") from error


def _decode(payload: bytes) -> list[Rows]:
    (size,) = HEAD.unpack_from(payload)
    start = HEAD.size + size
    batches = []
    for entry in json.loads(payload[HEAD.size : start]):
        columns = {}
        for name, kind, shape, length in entry["columns"]:
            columns[name] = _unpack(kind, shape, payload[start : start + length])
            start += length
        keys = payload[start : start + entry["n_rows"] * KEY_BYTES]
        start += len(keys)
        cuts = range(0, len(keys), KEY_BYTES)
        split = tuple(keys[cut : cut + KEY_BYTES] for cut in cuts)
        batches.append(Rows(entry["kind"], split, columns))
    if start != len(payload):
        raise ValueError(f"`payload` must have {start} bytes, got {len(payload)}.")
    return batches


def _storable(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.array(values)
    if array.dtype.kind in "UTO":
        return array.astype(StringDType())
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    if array.dtype.str not in DTYPES:
        raise TypeError(
            f"`columns[{name!r}]` must hold numbers or text, got {array.dtype}."
        )
    return array


def _pack(array: NDArray[Any]) -> tuple[str, bytes]:
    if array.dtype.kind == "T":
        return TEXT, json.dumps(array.ravel().tolist()).encode()
    return array.dtype.str, array.tobytes()


def _unpack(kind: str, shape: list[int], blob: bytes) -> NDArray[Any]:
    if kind == TEXT:
        return np.array(json.loads(blob), dtype=StringDType()).reshape(shape)
    if kind not in DTYPES or prod(shape) * np.dtype(kind).itemsize != len(blob):
        raise ValueError(f"`payload` has a column {kind} {shape} in {len(blob)} bytes.")
    return np.frombuffer(blob, dtype=kind).reshape(shape)
