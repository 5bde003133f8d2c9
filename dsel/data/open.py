"""Opening a pool: whatever holds the rows becomes a Dask collection."""

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from dask.base import tokenize
from fsspec.core import strip_protocol
from numpy.typing import NDArray
from scipy import sparse

from dsel.checks import check_url
from dsel.data.blocks import summed
from dsel.data.collection import (
    Collection,
    Partitions,
    array_of_reads,
    chunk_of_any,
    dask_array,
    in_slices,
    new_name,
)
from dsel.data.columns import check_number_of_names
from dsel.data.frames import (
    frame_of,
    has_named_columns,
    is_frame,
    pandas_of,
    renamed,
    row_nbytes_of,
)
from dsel.data.identity import content_hash
from dsel.data.parquet import as_numbers, from_parquet, has_parquet
from dsel.data.pool import Pool
from dsel.data.tables import NPZ, PARQUET, SVMLIGHT, UNREADABLE, read_table
from dsel.data.zarr_rows import (
    check_chunks,
    from_zarr,
    guarded,
    place_of,
    stored_columns,
)
from dsel.errors import reaching
from dsel.stores import BAD_HEADER, POOL, check_array

COMPLETE: Final = "complete"
"""Attribute of a zarr pool that dsel wrote: whether every row is there."""

NUMERIC: Final = "buif"
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
    names = None if columns is None else tuple(map(str, columns))
    if isinstance(source, (str, Path)):
        rows = _open_location(str(source), names, dict(storage_options or {}))
    else:
        rows = _open_object(source, names)
    if rows.columns is not None:
        check_number_of_names(rows.columns, int(rows.array.shape[1]))
    return Pool(rows)


def _open_object(source: Any, names: Names) -> Collection:
    if sparse.issparse(source):
        _check_array(source)
        return _from_memory(summed(sparse.csr_matrix(source)), names)
    if hasattr(source, "to_dask_array"):
        return _from_dask_frame(source, names)
    if is_frame(source):
        return _from_frame(source, names)
    if isinstance(source, zarr.Array):
        _check_array(source)
        place, options = place_of(source)
        source = guarded(source) if POOL in source.attrs else source
        return from_zarr(source, names or stored_columns(source.attrs), place, options)
    if hasattr(source, "dims") and hasattr(source, "coords"):
        names = names or _coordinate_names(source)
        source = source.data
    if hasattr(source, "dask"):
        _check_array(source)
        return _from_dask(source, names)
    if isinstance(source, np.memmap) and source.flags.c_contiguous:
        _check_array(source)
        return _from_file(source, names)
    if isinstance(source, (np.ndarray, list, tuple)):
        array = np.asarray(source)
        _check_array(array)
        return _from_memory(array, names)
    raise TypeError(
        "`pool` must be an array, a data frame, a sparse matrix, a Dask or zarr array, "
        f"or the path of a pool, got {type(source).__name__}."
    )


def _from_memory(rows: Any, names: Names) -> Collection:
    """Return the collection of an array, or of CSR; blocks are views."""
    parts = (rows.data, rows.indices, rows.indptr) if sparse.issparse(rows) else (rows,)
    nbytes = sum(int(part.nbytes) for part in parts)
    name, cut = new_name(), _csr_rows if sparse.issparse(rows) else operator.getitem
    graph, lengths = in_slices(rows, nbytes, cut, name)
    array = dask_array(graph, lengths, rows, name)
    tell = partial(_told_of_values, graph)
    return Collection(array, names, nbytes, tell, is_in_memory=True)


def _csr_rows(matrix: Any, rows: slice) -> Any:
    first, last = matrix.indptr[[rows.start, rows.stop]]
    indptr = matrix.indptr[rows.start : rows.stop + 1] - first
    parts = (matrix.data[first:last], matrix.indices[first:last], indptr)
    return sparse.csr_matrix(parts, shape=(len(indptr) - 1, matrix.shape[1]))


def _told_of_values(graph: Mapping[Any, Any]) -> tuple[str, bool]:
    return f"values-{content_hash(*graph.values())}", True


def _from_frame(source: Any, names: Names) -> Collection:
    """Return the collection of a data frame, as numbers where all columns are."""
    if not has_named_columns(source):
        return _from_memory(_values(source), names or tuple(map(str, source.columns)))
    frame = frame_of(source if names is None else renamed(source, names))
    graph, lengths = in_slices(frame, frame.nbytes, operator.getitem, new_name())
    rows = Collection(
        Partitions(graph, list(graph), lengths, frame.schema),
        frame.schema.names,
        frame.nbytes,
        partial(_told_of_values, graph),
        is_in_memory=True,
    )
    if not frame.schema.is_numeric:
        return rows
    # Columns of one type are an array already, of which blocks are views.
    return replace(_from_memory(_values(frame.given), rows.columns), frames=rows)


def _values(frame: Any) -> Any:
    """Return a frame's numbers; of types that have none in common, as float64."""
    values = frame.to_numpy() if hasattr(frame, "to_numpy") else None
    if values is None or values.dtype.kind not in NUMERIC:
        frame = pandas_of(frame)
        values = frame.to_numpy()
    if values.dtype.kind in NUMERIC:
        return values
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _from_dask(array: Any, names: Names) -> Collection:
    """Return the collection of a Dask array.

    Chunk lengths that are unknown cost one pass, of which only they are kept.
    """
    if any(math.isnan(length) for length in array.chunks[0]):
        array = array.copy().compute_chunk_sizes()
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    nbytes = int(array.shape[0]) * int(array.shape[1]) * array.dtype.itemsize
    return Collection(array, names, nbytes, partial(_told_by_name, array))


def _told_by_name(array: Any) -> tuple[str, bool]:
    """Return Dask's name of the array, and its chunks: how rows are made, not which.

    What the name stands for may have changed: files, arrays in memory.
    """
    return f"dask-{tokenize(array.__dask_keys__(), array.chunks[0])}", False


def _from_dask_frame(source: Any, names: Names) -> Collection:
    """Return the collection of a Dask data frame; its lengths cost one pass."""
    if names is not None:
        source = source.rename(columns=dict(zip(source.columns, names, strict=True)))
    check = partial(_of_same_names, names=list(source.columns))
    source = source.map_partitions(check, meta=source._meta, enforce_metadata=False)
    lengths = list(map(int, source.map_partitions(len).compute()))
    head = source._meta
    if any(dtype.kind == "O" for dtype in source.dtypes) and any(lengths):
        head = source.get_partition(int(np.argmax(np.array(lengths) > 0))).head(_LOOK)
    schema = replace(frame_of(head).schema, empty=head.iloc[:0])
    graph, keys = source.__dask_graph__(), source.__dask_keys__()
    array = Partitions(graph, keys, lengths, schema)
    nbytes = sum(lengths) * row_nbytes_of(schema)
    rows = Collection(array, schema.names, nbytes, partial(_told_by_name, array))
    if not schema.is_numeric:
        return rows
    return as_numbers(rows, _values(head).dtype)


def _of_same_names(part: Any, names: list[Any]) -> Any:
    """Return a partition, or raise where it has other columns than Dask believes."""
    if list(part.columns) != names:
        found, wanted = (", ".join(map(str, each)) for each in (part.columns, names))
        raise ValueError(
            f"`pool` must have the columns {wanted} in every partition, but one has "
            f"{found}; give all of them the same names in the same order."
        )
    return part


@dataclass(frozen=True)
class MappedFile:
    """A C-contiguous array in a file, of which tasks map the rows that they read."""

    path: str
    offset: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim: int = 2

    def __getitem__(self, key: Any) -> NDArray[Any]:
        return np.array(self.mapped()[key])

    def mapped(self) -> NDArray[Any]:
        """Map the file; nothing is read."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)

    def told(self) -> tuple[str, bool]:
        """Return size and time of the file, and where the array lies in it."""
        status = os.stat(self.path)
        stamp = (status.st_size, status.st_mtime_ns)
        place = (self.offset, self.shape, str(self.dtype))
        return f"file-{tokenize(stamp, place)}", True


def _from_file(array: "np.memmap[Any, Any]", names: Names) -> Collection:
    """Return the collection of a C-contiguous map of a file."""
    root: Any = array
    while isinstance(root.base, np.memmap):  # a slice keeps its parent's attribute
        root = root.base
    file = MappedFile(
        os.path.realpath(str(array.filename)),
        int(root.offset) + array.ctypes.data - int(root.ctypes.data),
        (int(array.shape[0]), int(array.shape[1])),
        array.dtype,
    )
    rows = array_of_reads(file, chunk_of_any(len(array), int(array.nbytes)))
    if array.mode in ("r+", "w+"):
        # What is written through a map does not change the time on every file system.
        tell = partial(_told_of_map, file)
        return Collection(rows, names, rows.nbytes, tell)
    where = f"`pool` {file.path!r}"
    return Collection(rows, names, rows.nbytes, file.told, where=where)


def _told_of_map(file: MappedFile) -> tuple[str, bool]:
    return f"values-{content_hash(file.mapped())}", True


def _coordinate_names(source: Any) -> Names:
    if source.ndim != 2 or source.dims[1] not in source.coords:
        return None
    return tuple(str(name) for name in source.coords[source.dims[1]].values)


def _open_location(location: str, names: Names, options: dict[str, Any]) -> Collection:
    if "://" in location:
        check_url(location, "pool")
    elif not os.path.exists(location):
        raise FileNotFoundError(
            f"`pool` must be a pool that exists, but there is nothing at {location!r}."
        )
    if location.endswith(".npy"):
        return _open_object(_mapped(location), names)
    if location.lower().endswith((*NPZ, *SVMLIGHT)) and "://" not in location:
        table = read_table(location)
        return _open_object(table.X, names or table.columns)
    place = rooted(location)
    options = options if "://" in place else {}
    if location.lower().rstrip("/").endswith(PARQUET):
        return from_parquet(place, names, options)
    try:
        node = _open_zarr(place, location, options)
    except ValueError:
        if has_parquet(place, options):
            return from_parquet(place, names, options)
        raise
    if node.attrs.get(COMPLETE) is False:
        raise ValueError(
            f"`pool` {location!r} was not written to the end; write it again with "
            f"`write_pool` or `dsel pool build`."
        )
    if node.attrs.get(POOL) == "csr":
        raise ValueError(
            f"`pool` {location!r} holds sparse rows as dsel 0.1 wrote them; open what "
            f"it was made of: svmlight files, or a Dask array of CSR blocks."
        )
    node = guarded(node) if POOL in node.attrs else node
    array = node if isinstance(node, zarr.Array) else _only_array(node, location)
    _check_array(array)
    url = f"{place.rstrip('/')}/{array.path}".rstrip("/")
    check_chunks(array, location)
    return from_zarr(array, names or stored_columns(array.attrs), url, options)


def _mapped(path: str) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise ValueError(
            f"`pool` {path!r} is no pool: {str(error).rstrip('.')}. Save a numeric "
            f"array."
        ) from error


def rooted(location: str) -> str:
    """Return a path from the root on, for tasks that run elsewhere; a URL as it is.

    A URL of a local place becomes its path: fsspec makes no folders there.
    """
    if location.startswith(("file://", "local://")):
        return str(strip_protocol(location))
    return location if "://" in location else os.path.abspath(location)


def _open_zarr(place: str, location: str, options: dict[str, Any]) -> Any:
    try:
        with reaching(f"`pool` {location!r}"):
            return zarr.open(place, mode="r", storage_options=options or None)
    except FileNotFoundError as error:
        raise ValueError(
            f"`pool` {location!r} is no pool: no zarr array is there. Convert tables "
            "with `write_pool` or `dsel pool build`."
        ) from error
    except BAD_HEADER as error:
        raise ValueError(
            f"`pool` {location!r} is no pool: its zarr.json cannot be read ({error}); "
            "write the pool again."
        ) from error


def _only_array(group: Any, location: str) -> Any:
    arrays = {name: array for name, array in group.arrays() if array.ndim == 2}
    if len(arrays) != 1:
        found = ", ".join(sorted(arrays)) or "none"
        raise ValueError(
            f"`pool` {location!r} must hold exactly one two-dimensional array, found "
            f"{found}; name one as {location.rstrip('/')}/NAME."
        )
    return next(iter(arrays.values()))


def _check_array(array: Any) -> None:
    if len(array.shape) != 2:
        raise ValueError(
            "`pool` must be two-dimensional, rows by columns, "
            f"got shape {tuple(array.shape)}."
        )
    if np.dtype(array.dtype).kind not in NUMERIC:
        raise TypeError(f"`pool` must be numeric, got values of type {array.dtype}.")
    if isinstance(array, zarr.Array):
        check_array(array)
        _check_unpacked(array)


def _check_unpacked(array: Any) -> None:
    """Raise ValueError where values stand for others, by attributes of xarray."""
    packed = array.attrs.get("scale_factor", 1), array.attrs.get("add_offset", 0)
    if packed != (1, 0):
        raise ValueError(
            f"`pool` at {array.store} holds packed numbers (scale_factor {packed[0]}, "
            f"add_offset {packed[1]}); open it by xarray.open_zarr, and pass the "
            f"DataArray."
        )
