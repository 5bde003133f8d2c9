"""Sparse rows in zarr: parts of CSR, each with its row numbers.

A group with the attributes named below holds one group per part, named by
`part_name`, with the arrays ``data``, ``indices`` and ``indptr`` in one chunk each.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from scipy import sparse
from zarr.codecs import BloscCodec, Crc32cCodec

from dsel.data.collection import Collection, dask_array, even_lengths, new_name
from dsel.data.zarr_rows import check_stored, opened_again, told_by_stamps
from dsel.errors import reached
from dsel.stores import BAD_HEADER, check_array

PART_ROWS: Final = "part_rows"
N_ROWS: Final = "n_rows"
N_COLUMNS: Final = "n_columns"
ENTRIES: Final = "entries"
DTYPE: Final = "dtype"


def from_parts(
    group: Any,
    columns: tuple[str, ...] | None,
    url: str,
    storage_options: Mapping[str, Any],
) -> Collection:
    """Return the collection of a zarr group of CSR parts; every part is a block.

    Options for fsspec may hold secrets: they are neither shown nor stored, nor part of
    a graph.
    """
    n_rows, part_rows, n_columns, dtype = _shape(group, url)
    entry_nbytes = dtype.itemsize + np.dtype(np.int32).itemsize
    nbytes = _count(group, url, ENTRIES) * entry_nbytes + 4 * n_rows
    name = new_name()
    lengths = even_lengths(n_rows, part_rows)
    graph = {
        (name, number, 0): (partial(read_part, group, number, (length, n_columns)),)
        for number, length in enumerate(lengths)
    }
    like = sparse.csr_matrix((0, n_columns), dtype=dtype)
    array = dask_array(graph, lengths, like, name)
    tell = partial(_told, group, url, storage_options)
    reopen = partial(_reopened, group, url, storage_options)
    return Collection(array, columns, nbytes, tell, reopen)


def check_parts(group: Any, location: str) -> None:
    """Raise where a part is not stored, as `check_chunks` does for dense pools."""
    n_rows, part_rows, _, _ = _shape(group, location)
    n_parts = -(-n_rows // part_rows)
    wanted = ([f"{part_name(i)}/indptr/c/0"] for i in range(n_parts))
    if n_parts:
        check_stored(group, wanted, part_rows, n_rows, location)


def _shape(group: Any, url: str) -> tuple[int, int, int, np.dtype[Any]]:
    """Return rows, rows of a part, columns and type."""
    n_rows, n_columns = _count(group, url, N_ROWS), _count(group, url, N_COLUMNS)
    part_rows = _count(group, url, PART_ROWS, at_least=1)
    value = group.attrs.get(DTYPE)
    try:
        dtype = np.dtype(value if isinstance(value, str) else object)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    if dtype.kind not in "buif":
        raise _damaged(url, DTYPE, "a type of numbers", value)
    return n_rows, part_rows, n_columns, dtype


def _count(group: Any, url: str, name: str, at_least: int = 0) -> int:
    value = group.attrs.get(name)
    if type(value) is not int or not at_least <= value < 2**48:
        raise _damaged(url, name, f"a whole number from {at_least} on", value)
    return value


def _damaged(url: str, name: str, rule: str, value: Any) -> ValueError:
    return ValueError(
        f"`pool` {url!r} is damaged: {name!r} in its head must be {rule}, got "
        f"{value!r}; write the pool again."
    )


def _told(group: Any, url: str, storage_options: Mapping[str, Any]) -> tuple[str, bool]:
    text, has_stamps = told_by_stamps(dict(group.attrs), url, storage_options)
    return f"zarr-csr-{text}", has_stamps


def _reopened(
    group: Any, url: str, storage_options: Mapping[str, Any], collection: Collection
) -> Collection:
    again = opened_again(group, lambda node: dict(node.attrs))
    return from_parts(again, collection.columns, url, storage_options)


def part_name(number: int) -> str:
    """Return the name of a part's group."""
    return f"part-{number:07d}"


def read_part(group: Any, number: int, shape: tuple[int, int]) -> Any:
    """Return one part as CSR, checked: a damaged file must not reach compiled code."""
    try:
        arrays = reached(
            f"`pool` at {group.store}", lambda: _arrays(group[part_name(number)])
        )
        matrix = sparse.csr_matrix(arrays, shape=shape)
        matrix.check_format(full_check=True)
    except (*BAD_HEADER, RuntimeError) as error:
        raise ValueError(
            f"`pool` is damaged: part {number} cannot be read ({error}); write the "
            "pool again."
        ) from error
    return matrix


def _arrays(part: Any) -> tuple[Any, ...]:
    arrays = [part[name] for name in ("data", "indices", "indptr")]
    for array in arrays:
        check_array(array)
    return tuple(array[:] for array in arrays)


def write_part(group: Any, number: int, rows: Any) -> None:
    """Write one part; written again, it is replaced."""
    part = group.create_group(part_name(number), overwrite=True)
    arrays = {
        "data": rows.data,
        "indices": rows.indices.astype(np.int32),
        "indptr": rows.indptr.astype(np.int64),
    }
    for name, values in arrays.items():
        part.create_array(
            name,
            data=values,
            chunks=(max(len(values), 1),),
            compressors=fast_codecs(values.dtype),
            config={"write_empty_chunks": True},
        )


def fast_codecs(dtype: np.dtype[Any]) -> list[Any]:
    """Return the codecs of pools: measurements hardly compress, so they must be quick.

    The checksum costs a seventh of reading a chunk that is in the page cache.
    """
    blosc = BloscCodec(cname="lz4", shuffle="shuffle", typesize=dtype.itemsize)
    return [blosc, Crc32cCodec()]
