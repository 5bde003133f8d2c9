"""Opening a pool: whatever holds the rows becomes blocks in a Dask graph."""

import math
import os
import sys
from collections.abc import Mapping, Sequence, Set
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import zarr
from dask.base import tokenize
from fsspec.core import strip_protocol
from numpy.typing import NDArray
from scipy import sparse

from dsel.checks import check_options, check_url
from dsel.data.blocks import summed
from dsel.data.frames import (
    NUMERIC,
    Frame,
    FrameSchema,
    check_names,
    frame_of,
    has_named_columns,
    is_frame,
    table_nbytes,
    taken,
)
from dsel.data.identity import content_hash
from dsel.data.parquet import from_parquet, has_parquet
from dsel.data.pool import POOL, Pool, edges_of_blocks, in_blocks
from dsel.data.tables import NPZ, PARQUET, SVMLIGHT, UNREADABLE, read_table
from dsel.data.zarr_rows import from_zarr, open_zarr, place_of

_LOOK: Final = 1000  # rows by which the kind of a column of Python objects is told

Names = tuple[str, ...] | None


def open_pool(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Pool:
    """Open unlabeled rows as a pool; rows are read when they are used.

    Parameters
    ----------
    source
        A numpy array or memory map, a data frame of pandas, polars or Arrow, a scipy
        sparse matrix, a Dask array or data frame, a zarr array, a DataArray, the path
        or URL of a zarr pool, of a Parquet file or of a folder of them (partitioned
        ones too), the path of an ``.npy``, npz or svmlight file, or a pool, which is
        returned as it is.
        Two-dimensional; columns of data frames may have any type, all else is numeric.
        A Dask collection whose chunk lengths are unknown is read once to count them.
        Each of its chunks is computed by itself: what all chunks depend on, such as
        means of columns, is computed again for each of them, so persist it first.
    columns
        Names of the columns, where the source has none; of Parquet files, the columns
        to read.
    storage_options
        For fsspec, where the source is a URL; else unused.

    Returns
    -------
    Pool
        The rows with their global row numbers.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    TypeError
        Where the source is of no such kind, an array that is not numeric, or files
        that differ in their types.
    ModuleNotFoundError
        Where a URL needs a package that is not installed.
    ValueError
        Where it is no pool, not two-dimensional, or was not written to the end.

    See Also
    --------
    write_pool : Converts rows to zarr, chunk by chunk.

    Examples
    --------
    >>> open_pool(np.zeros((3, 2)), columns=["a", "b"])
    <Pool: 3 rows x 2 columns, float64, 1 chunks, 0.0 MiB>
    """
    if isinstance(source, Pool):
        return source
    options, names = check_options(storage_options), _names(columns)
    if isinstance(source, (str, Path)):
        pool = _open_location(str(source), names, options)
    else:
        pool = _open_object(source, names)
    if not pool.n_columns:
        raise ValueError(f"{pool.where} must have columns, got none.")
    if pool.columns is not None:
        what = "`columns`" if names else f"columns of {pool.where}"
        check_names(pool.columns, pool.n_columns, what)
    return pool


def _names(columns: Any) -> Names:
    if columns is None:
        return None
    is_listed = hasattr(columns, "__iter__") and hasattr(columns, "__len__")
    if not is_listed or isinstance(columns, (str, bytes, Set, Mapping)):
        raise TypeError(
            f"`columns` must be a list of names of columns, got {columns!r}."
        )
    if not len(columns):
        raise ValueError(
            "`columns` must name columns, got none; leave it out to take all of them."
        )
    return tuple(map(str, columns))


def _open_object(source: Any, names: Names) -> Pool:
    if sparse.issparse(source):
        return _from_memory(summed(sparse.csr_matrix(_checked(source))), names)
    if hasattr(source, "to_dask_array"):
        return _from_dask_frame(source, names)
    if is_frame(source) and not has_named_columns(source):  # a matrix, then
        names = names or tuple(map(str, source.columns))
        return _from_memory(_checked(source.to_numpy()), names)
    if is_frame(source):
        if names is not None:
            given = nw.from_native(source)
            check_names(names, len(given.columns))
            source = given.rename(dict(zip(given.columns, names, strict=True)))
        frame = frame_of(source)
        return _from_memory(frame.given, frame.schema.names, frame.schema)
    if isinstance(source, zarr.Array):
        return from_zarr(_checked(source), names, *place_of(source))
    if hasattr(source, "dims") and hasattr(source, "coords"):
        if source.ndim == 2 and source.dims[1] in source.coords:
            names = names or tuple(map(str, source.coords[source.dims[1]].values))
        source = source.data
    if hasattr(source, "dask"):
        return _from_dask(_checked(source), names)
    if isinstance(source, np.memmap) and source.flags.c_contiguous:
        return _from_file(_checked(source), names)
    if isinstance(source, (np.ndarray, list, tuple)):
        return _from_memory(_checked(np.asarray(source)), names)
    raise TypeError(
        "`pool` must be an array, a data frame, a sparse matrix, a Dask or zarr array, "
        f"or the path of a pool, got {type(source).__name__}."
    )


def _checked(array: Any) -> Any:
    """Return a two-dimensional array of numbers, or raise."""
    if len(array.shape) != 2:
        raise ValueError(
            "`pool` must be two-dimensional, rows by columns, "
            f"got shape {tuple(array.shape)}."
        )
    if np.dtype(array.dtype).kind not in NUMERIC:
        raise TypeError(f"`pool` must be numeric, got values of type {array.dtype}.")
    return array


def _from_memory(rows: Any, names: Names, schema: FrameSchema | None = None) -> Pool:
    """Return the rows of an array, CSR or a frame of pandas; blocks are views."""
    row_nbytes = table_nbytes(rows) / max(rows.shape[0], 1)
    edges = edges_of_blocks(rows.shape[0], 0, row_nbytes)
    cut = _csr_rows if sparse.issparse(rows) else taken
    blocks = [cut(rows, slice(*ends)) for ends in pairwise(edges)]
    return in_blocks(
        blocks,
        np.diff(edges),
        schema or rows,
        partial(_told_of_values, blocks, schema),
        names,
        row_nbytes=row_nbytes,
        is_sparse=sparse.issparse(rows),
    )


def _csr_rows(matrix: Any, rows: slice) -> Any:
    first, last = matrix.indptr[[rows.start, rows.stop]]
    indptr = matrix.indptr[rows.start : rows.stop + 1] - first
    parts = (matrix.data[first:last], matrix.indices[first:last], indptr)
    return sparse.csr_matrix(parts, shape=(len(indptr) - 1, matrix.shape[1]))


def _told_of_values(
    blocks: Sequence[Any], schema: FrameSchema | None
) -> tuple[str, bool]:
    rows = [each if schema is None else Frame(each, schema) for each in blocks]
    return f"values-{content_hash(*rows)}", True


def _from_dask(array: Any, names: Names) -> Pool:
    """Return the blocks of a Dask array.

    Chunk lengths that are unknown cost one pass, of which only they are kept.
    """
    if any(math.isnan(length) for length in array.chunks[0]):
        array = array.copy().compute_chunk_sizes()
    array = array.rechunk({1: -1})
    keys = [row[0] for row in array.__dask_keys__()]
    return in_blocks(
        keys,
        array.chunks[0],
        array,
        partial(_told_by_name, keys, array.chunks[0]),
        names,
        graph=_graph_of(array),
        is_sparse=sparse.issparse(array._meta),
    )


def _from_dask_frame(source: Any, names: Names) -> Pool:
    """Return the partitions of a Dask data frame; their lengths cost one pass."""
    names = names or tuple(map(str, source.columns))
    source = source.rename(columns=dict(zip(source.columns, names, strict=True)))
    check = partial(_of_same_names, names=list(source.columns))
    source = source.map_partitions(check, meta=source._meta, enforce_metadata=False)
    lengths = tuple(map(int, source.map_partitions(len).compute()))
    head = source._meta
    if any(dtype.kind == "O" for dtype in source.dtypes) and any(lengths):
        head = source.get_partition(int(np.argmax(np.array(lengths) > 0))).head(_LOOK)
    schema = FrameSchema(head.iloc[:0], frame_of(head).schema.columns)
    keys = list(source.__dask_keys__())
    return in_blocks(
        keys,
        lengths,
        schema,
        partial(_told_by_name, keys, lengths),
        graph=_graph_of(source),
    )


def _graph_of(collection: Any) -> dict[Any, Any]:
    """Return the graph of a Dask collection, with the futures of what is persisted."""
    graph = dict(collection.__dask_graph__())
    if "distributed" in sys.modules:
        from distributed import futures_of

        graph |= {future.key: future for future in futures_of(collection)}
    return graph


def _told_by_name(keys: Sequence[Any], lengths: Sequence[int]) -> tuple[str, bool]:
    """Return Dask's name of the rows, and their chunks: how they are made, not which.

    What the name stands for may have changed: files, arrays in memory.
    """
    return f"dask-{tokenize(keys, lengths)}", False


def _of_same_names(part: Any, names: list[Any]) -> Any:
    """Return a partition, or raise where it has other columns than Dask believes."""
    if list(part.columns) != names:
        found, wanted = (", ".join(map(str, each)) for each in (part.columns, names))
        raise ValueError(
            f"`pool` must have the columns {wanted} in every partition, but one has "
            f"{found}; give all of them the same names in the same order."
        )
    return part


def _from_file(array: "np.memmap[Any, Any]", names: Names) -> Pool:
    """Return the blocks of a C-contiguous map of a file, which tasks map themselves."""
    root: Any = array
    while isinstance(root.base, np.memmap):  # a slice keeps its parent's attribute
        root = root.base
    path = os.path.realpath(str(array.filename))
    offset = int(root.offset) + array.ctypes.data - int(root.ctypes.data)
    mapped = partial(np.memmap, path, array.dtype, "r", offset, array.shape)
    edges = edges_of_blocks(array.shape[0], 0, array.shape[1] * array.itemsize)
    # What is written through a map does not change the time on every file system.
    is_fixed = array.mode not in ("r+", "w+")
    return in_blocks(
        [(partial(_mapped_rows, mapped, slice(*ends)),) for ends in pairwise(edges)],
        np.diff(edges),
        array,
        partial(_told_of_file, path, mapped, is_fixed),
        names,
        where=f"`pool` {path!r}" if is_fixed else POOL,
    )


def _mapped_rows(mapped: Any, rows: slice) -> NDArray[Any]:
    return np.array(mapped()[rows])


def _told_of_file(path: str, mapped: Any, is_fixed: bool) -> tuple[str, bool]:
    if not is_fixed:
        return f"values-{content_hash(mapped())}", True
    status = os.stat(path)
    stamp = (status.st_size, status.st_mtime_ns)
    return f"file-{tokenize(stamp, str(mapped.args[1]), mapped.args[3:])}", True


def _open_location(location: str, names: Names, options: dict[str, Any]) -> Pool:
    if "://" in location:
        check_url(location, "pool")
    elif not os.path.exists(location):
        raise FileNotFoundError(
            f"`pool` must be a pool that exists, but there is nothing at {location!r}."
        )
    if location.endswith(".npy"):
        try:
            array = np.load(location, mmap_mode="r", allow_pickle=False)
        except UNREADABLE as error:
            raise ValueError(
                f"`pool` {location!r} is no pool: {str(error).rstrip('.')}. Save a "
                f"numeric array."
            ) from error
        return _open_object(array, names)
    if location.lower().endswith((*NPZ, *SVMLIGHT)) and "://" not in location:
        table = read_table(location)
        return _open_object(table.X, names or table.columns)
    place = rooted(location)
    options = options if "://" in place else {}
    if location.lower().rstrip("/").endswith(PARQUET):
        return from_parquet(place, names, options)
    try:
        array = open_zarr(place, location, options)
    except ValueError:
        if has_parquet(place, options):
            return from_parquet(place, names, options)
        raise
    url = f"{place.rstrip('/')}/{array.path}".rstrip("/")
    return from_zarr(_checked(array), names, url, options)


def rooted(location: str) -> str:
    """Return a path from the root on, for tasks that run elsewhere; a URL as it is.

    A URL of a local place becomes its path: fsspec makes no folders there.
    """
    if location.startswith(("file://", "local://")):
        return str(strip_protocol(location))
    return location if "://" in location else os.path.abspath(location)
