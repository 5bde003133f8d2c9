"""Records of the journal as bytes: numbers raw, the rest as JSON, nothing pickled."""

import json
import struct
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Record = Mapping[str, Any]
"""Numbers, arrays of numbers, strings and lists of strings by name."""

DTYPES: Final = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8")
HEAD: Final = struct.Struct("<I")

Layout = tuple[tuple[str, str, tuple[int, ...]], ...]


def storable(record: Record) -> dict[str, Any]:
    """Return a copy of the record that can be written, or raise.

    Numbers become arrays without dimensions.

    Raises
    ------
    TypeError
        Where a value is neither numbers nor text.
    """
    return {name: _storable(name, value) for name, value in record.items()}


def encode(records: Iterable[tuple[str, Record]]) -> bytes:
    """Return keyed records, made by `storable`, as bytes.

    Examples
    --------
    >>> payload = encode([("fit/1", storable({"training": "full", "errors": [3, 4]}))])
    >>> decode(payload)
    [('fit/1', {'training': 'full', 'errors': array([3, 4])})]
    """
    layouts: dict[Layout, int] = {}
    entries, blobs = [], []
    for key, record in records:
        arrays = {n: v for n, v in record.items() if isinstance(v, np.ndarray)}
        texts = {n: v for n, v in record.items() if n not in arrays}
        layout = tuple((n, a.dtype.str, a.shape) for n, a in arrays.items())
        entries.append([key, layouts.setdefault(layout, len(layouts)), texts])
        blobs += [array.tobytes() for array in arrays.values()]
    head = json.dumps({"layouts": list(layouts), "records": entries}).encode()
    return b"".join([HEAD.pack(len(head)), head, *blobs])


def decode(payload: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the keyed records that `encode` turned into bytes.

    Raises
    ------
    ValueError
        Where the bytes are not what `encode` makes.
    """
    try:
        return _decode(payload)
    except (KeyError, IndexError, TypeError, struct.error) as error:
        raise ValueError(f"`payload` is no record of a journal: {error}.") from error


def _decode(payload: bytes) -> list[tuple[str, dict[str, Any]]]:
    (size,) = HEAD.unpack_from(payload)
    start = HEAD.size + size
    head = json.loads(payload[HEAD.size : start])
    records = []
    for key, layout, texts in head["records"]:
        record = dict(texts)
        for name, dtype, shape in head["layouts"][layout]:
            end = start + _n_bytes(dtype, shape)
            record[name] = _array(payload[start:end], dtype, shape)
            start = end
        records.append((str(key), record))
    if start != len(payload):
        raise ValueError(f"`payload` must have {start} bytes, got {len(payload)}.")
    return records


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


def _n_bytes(dtype: str, shape: list[int]) -> int:
    if dtype not in DTYPES:
        raise ValueError(
            f"`payload` has numbers of type {dtype}, which is not written."
        )
    return prod(shape) * np.dtype(dtype).itemsize


def _array(blob: bytes, dtype: str, shape: list[int]) -> NDArray[Any]:
    return np.frombuffer(blob, dtype=dtype).reshape(shape)
