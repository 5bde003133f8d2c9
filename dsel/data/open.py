"""Opening a pool: rows of any source become blocks of a Dask graph."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
import zarr
from dask.base import tokenize
from fsspec.core import strip_protocol
from numpy.typing import NDArray
from pandas.api.types import is_list_like
from scipy import sparse

from dsel.argument_words import OF_READ_TABLE, name_arguments
from dsel.arrays import check_distinct_columns, fill_masked_values
from dsel.checks import as_array, check_storage_options, is_single, show
from dsel.data.frames import (
    FrameSchema,
    check_names,
    check_number_type,
    frame_of,
    has_named_columns,
    merge_entries,
    table_nbytes,
    take_rows,
)
from dsel.data.parquet import from_parquet, has_parquet
from dsel.data.pool import Pool, pool_of_blocks, pool_of_slices
from dsel.data.pool_parts import LET_NOTHING_WRITE, POOL, Origin
from dsel.data.table_files import NPY, PARQUET, check_source, name_file
from dsel.data.tables import FORMATS, read_table, reader_of
from dsel.data.text_tables import is_text
from dsel.data.zarr_rows import from_zarr, open_zarr, origin_of, place_of
from dsel.errors import PoolChangedError
from dsel.typing import Options, PoolLike

_LOOK = 1000  # rows by which the kind of a column of Python objects is decided


def open_pool(
    source: PoolLike,
    *,
    columns: Sequence[str] | None = None,
    storage_options: Options | None = None,
    other_records: bool | None = None,
) -> Pool:
    """Open unlabeled rows as a pool; rows are read when they are used.

    Parameters
    ----------
    source
        A numpy array or memory map, a data frame of pandas, polars or Arrow, a scipy
        sparse matrix, a Dask array or data frame, a zarr array, a DataArray, a Dataset
        of one table or of a variable for each column, the path
        or URL of a zarr pool, of a Parquet file or of a folder of them (partitioned
        ones too), the path of a text file (CSV and kin), a Feather, JSON lines,
        npz or svmlight file, which is read at once, of a ``.npy`` file, or a pool,
        which is returned as it is.
        Two-dimensional; columns of data frames may have any type, all else is numeric.
        A Dask collection whose chunk lengths are unknown is read once to count them.
        Each of its chunks is computed by itself: what all chunks depend on, such as
        means of columns, is computed again for each of them, so persist it first.
        Files must stay as they are while they are read: their sizes and times are
        compared before and after every pass, but not those behind a Dask collection.
        A mapped array (``np.load(file, mmap_mode="r")``) whose file becomes shorter
        ends the process, as everywhere; the path of the file does not.
    columns
        The columns to read, or, of rows that are no data frame, names for all of them.
    storage_options
        For fsspec, where the source is a URL; else unused.
    other_records
        True declares that no row of the pool is the record of a labeled row, even if
        some equal one, as rows of a few categories do by chance. Without it pool rows
        that equal labeled ones make the bound of the model of all rows larger, and
        learners whose `fit` takes the pool get no certificate if there are any. None
        keeps the declaration of an opened pool, which is False at first.

    Returns
    -------
    Pool
        The rows with their global row numbers.

    Raises
    ------
    FileNotFoundError
        Where the path does not exist.
    TypeError
        Where the source is of another kind, an array is not numeric, or files differ
        in their types.
    ModuleNotFoundError
        Where a URL needs a package that is not installed.
    ValueError
        Where the source is no pool, not two-dimensional, or not completely written.

    See Also
    --------
    write_pool : Converts rows to zarr, chunk by chunk.

    Examples
    --------
    >>> open_pool(np.zeros((3, 2)), columns=["a", "b"])
    <Pool: 3 rows x 2 columns, float64, 1 chunk, 48 B>
    Next      `dsel.certify(model, X, y, pool)`
    """
    if other_records is not None:
        if not isinstance(other_records, bool | np.bool_):
            raise TypeError(
                f"`other_records` must be True, False or None, got "
                f"{show(other_records)}."
            )
        pool = open_pool(source, columns=columns, storage_options=storage_options)
        origin = replace(pool.origin, other_records=bool(other_records))
        return replace(pool, origin=origin)
    if isinstance(source, Pool):
        return source
    options, names = check_storage_options(storage_options), None
    if columns is not None:
        is_listed = is_list_like(columns, allow_sets=False) and not is_single(columns)
        names = tuple(map(str, columns)) if is_listed else ()
        if not names:
            raise (ValueError if is_listed else TypeError)(
                f"`columns` must be a list of names of columns, got {show(columns)}; "
                f"leave it out to take all of them."
            )
        check_names(names, len(names))
    if isinstance(source, (str, Path)):
        location = check_source(source, "pool")
        with name_argument(location, "pool"):
            pool = _at_location(location, options)
    else:
        # A delayed object of Dask seems to have any attribute.
        if not isinstance(getattr(source, "shape", ()), tuple):
            raise TypeError(
                f"`pool` must be an array, a data frame or a path, got "
                f"{type(source).__name__}; call its compute()."
            )
        pool = _pool_of_object(source)
        if (own := _index_of_frame(source)) is not None:
            pool = replace(pool, origin=replace(pool.origin, index=own))
    if not pool.n_columns:
        raise ValueError(f"{pool.where} must have columns, got none.")
    if names and pool.frames is None and not {*names} <= {*(pool.columns or ())}:
        check_names(names, pool.n_columns)
        return _change_stored_schema(pool, columns=names)
    if pool.columns is not None:
        check_names(pool.columns, pool.n_columns, f"columns of {pool.where}")
    # A list of names also declares an order.
    if names:
        return _change_stored_schema(
            pool.with_columns(names, "`columns`"), has_order=True
        )
    return pool


@contextmanager
def name_argument(location: str, name: str) -> Iterator[None]:
    """Add the name of the argument to errors of readers, which only know the file."""
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        # Messages of dsel begin with an argument. Those of other packages may quote a
        # name, too, which is no argument of the caller.
        if text.startswith("`") or f"`{name}`" in text:
            raise
        kinds = FileNotFoundError, PermissionError, OSError, TypeError, ValueError
        kind = next(error_kind for error_kind in kinds if isinstance(error, error_kind))
        raise kind(f"`{name}` {location!r} cannot be opened: {text}") from error


def _at_location(location: str, options: dict[str, Any]) -> Pool:
    """Return the pool in a file, folder or URL."""
    lower, place = location.lower().rstrip("/"), absolute_path(location)
    options = options if "://" in place else {}
    if lower.endswith(NPY) and "://" not in location:  # tasks read the file themselves
        with name_file(place):
            array = np.load(place, mmap_mode="r", allow_pickle=False)
        origin = replace(origin_of(place, {}), location=f"`pool` {place!r}")
        is_by_column = np.isfortran(_check_array(array))
        file = _NpyFile(place, array.dtype, array.shape, array.offset, is_by_column)
        return pool_of_slices(file.read, array, len(array), origin)
    if lower.endswith(PARQUET):
        return from_parquet(place, options)
    if "://" not in location:
        is_file = os.path.isfile(location)
        if is_text(location) or (is_file and lower.endswith(tuple(FORMATS))):
            with name_arguments(OF_READ_TABLE):
                table = read_table(location)
            return _change_stored_schema(
                _pool_of_object(table.X), columns=table.columns
            )
        if is_file:
            reader_of(location)  # raises, and lists what is read
    # A folder without an ending may be zarr or Parquet. A zarr header costs few
    # requests, and the search for Parquet files lists the folder.
    try:
        array = open_zarr(place, location, options)
    except ValueError:
        if has_parquet(place, options):
            return from_parquet(place, options)
        raise
    if array is None:
        stored = xr.open_zarr(
            place, chunks={}, consolidated=False, storage_options=options or None
        )
        origin = replace(origin_of(place, options), location=f"`pool` {location!r}")
        return replace(_rows_of_dataset(stored), origin=origin)
    url = f"{place.rstrip('/')}/{array.path}".rstrip("/")
    return from_zarr(_check_array(array), url, options, is_whole=True)


def absolute_path(location: str) -> str:
    """Return an absolute path, for tasks that run elsewhere; a URL unchanged."""
    # A local URL becomes a path, because fsspec creates no folders for it.
    if location.startswith(("file://", "local://")):
        return str(strip_protocol(location))
    return location if "://" in location else os.path.abspath(location)


def _pool_of_object(source: Any) -> Pool:
    """Return the pool of an array, a data frame or a collection of Dask."""
    if isinstance(source, xr.Dataset):
        return _rows_of_dataset(source)
    check_distinct_columns(source, POOL)
    if hasattr(source, "to_dask_array") and source.ndim == 2:
        return _rows_of_dask_frame(source)
    if has_named_columns(source):
        frame = frame_of(source)
        return _rows_of_memory(frame.given, frame.schema)
    rows, columns = _array_and_columns(fill_masked_values(source, POOL))
    if not hasattr(rows, "shape") or not hasattr(rows, "dtype"):
        raise TypeError(
            "`pool` must be an array, a data frame, a sparse matrix, a Dask or zarr "
            f"array, or the path of a pool, got {type(rows).__name__}"
            f"{'; call its collect()' if hasattr(rows, 'collect') else ''}."
        )
    _check_array(rows)
    if isinstance(rows, zarr.Array):  # it may have names of columns of its own
        return from_zarr(rows, *place_of(rows))
    names = None if columns is None else tuple(map(str, columns))
    return _change_stored_schema(_pool_of_array(rows), columns=names)


def _index_of_frame(source: Any) -> pd.Index | None:
    """Return the index of a pandas frame, None where it is that of the row numbers."""
    if not isinstance(source, pd.DataFrame) or source.index.nlevels > 1:
        return None
    is_default = source.index.equals(pd.RangeIndex(len(source)))
    return None if is_default else source.index


def _array_and_columns(source: Any) -> tuple[Any, Any]:
    """Return the array that an object holds, and names of its columns, or None."""
    if hasattr(source, "dims") and hasattr(source, "coords"):  # of xarray
        has_names = source.ndim == 2 and source.dims[1] in source.coords
        return source.data, source.coords[source.dims[1]].values if has_names else None
    if isinstance(source, pd.DataFrame):  # its names are no strings: a matrix
        return source.to_numpy(), source.columns
    if isinstance(source, (list, tuple)):
        if isinstance(next(iter(source), None), (str, Path)):
            raise ValueError(
                f"`pool` must be two-dimensional, or one path, got a list of "
                f"{len(source)} texts or paths; pass the path of a folder of the "
                f"Parquet files, or of texts pandas.DataFrame({{'text': pool}})."
            )
        if isinstance(source, tuple) and any(np.ndim(part) == 2 for part in source[:1]):
            raise TypeError(
                f"`pool` must be rows without labels, got a tuple of {len(source)} "
                f"arrays; pass the rows alone, its first one."
            )
        return as_array(source, "pool"), None
    return source, None


def _pool_of_array(rows: Any) -> Pool:
    """Return the pool of an array of Dask, a sparse matrix, or an array in memory."""
    if hasattr(rows, "dask"):
        if any(math.isnan(length) for length in rows.chunks[0]):
            # Dask sets the lengths in place, and the array belongs to the caller.
            rows = rows.copy().compute_chunk_sizes()
        # A task reads whole rows, so columns must not be divided among chunks.
        rows = rows.rechunk({1: -1})
        task_keys = [row[0] for row in rows.__dask_keys__()]
        pool = _pool_of_collection(rows, task_keys, rows.chunks[0], rows)
        return _change_stored_schema(pool, is_sparse=sparse.issparse(rows._meta))
    if sparse.issparse(rows):
        return _rows_of_memory(merge_entries(sparse.csr_matrix(rows)))
    pool = _rows_of_memory(as_array(rows, "pool"))
    file = _mapped_file(rows)
    if not file:
        return pool
    # It is identified by its content, like rows in memory, and its file is watched for
    # changes.
    location = f"`pool` {file!r}"
    origin = origin_of(file, {})
    origin = replace(origin, fingerprint="", is_content=True, location=location)
    return replace(pool, origin=origin)


def _change_stored_schema(pool: Pool, **changes: Any) -> Pool:
    """Return the pool with changes to its stored schema."""
    return replace(pool, stored_schema=replace(pool.stored_schema, **changes))


def _check_array(array: Any) -> Any:
    """Return a two-dimensional array of numbers, or raise."""
    if len(array.shape) > 2:
        raise ValueError(
            f"`pool` must be two-dimensional, got shape {tuple(array.shape)}; pass "
            f"pool.reshape(len(pool), -1)."
        )
    if len(array.shape) != 2:
        raise ValueError(
            f"`pool` must be two-dimensional, unlabeled rows with the columns of `X`, "
            f"got shape {tuple(array.shape)}; it takes no labels, and weights of `fit` "
            f"have a name: sample_weight=weights."
        )
    check_number_type(np.dtype(array.dtype), "pool")
    return array


def _rows_of_memory(rows: Any, schema: FrameSchema | None = None) -> Pool:
    """Return the rows of an array, CSR or a frame of pandas; blocks are views."""
    return pool_of_slices(
        partial(_csr_rows if sparse.issparse(rows) else take_rows, rows),
        schema or rows,
        rows.shape[0],
        Origin(),
        row_nbytes=max(table_nbytes(rows) / max(rows.shape[0], 1), 1),
        is_in_memory=True,
    )


def _mapped_file(rows: Any) -> str:
    """Return the file that an array is mapped from; "" for an array in memory."""
    while rows is not None and not isinstance(rows, np.memmap):
        rows = getattr(rows, "base", None)
    name = getattr(rows, "filename", None)
    return os.path.abspath(name) if name else ""


def _csr_rows(matrix: Any, rows: slice) -> Any:
    # All slices of a pool in memory are made at once, and those of scipy are copies.
    first, last = matrix.indptr[[rows.start, rows.stop]]
    indptr = matrix.indptr[rows.start : rows.stop + 1] - first
    parts = (matrix.data[first:last], matrix.indices[first:last], indptr)
    return sparse.csr_matrix(parts, shape=(len(indptr) - 1, matrix.shape[1]))


@dataclass(frozen=True)
class _NpyFile:
    """An array in a file, which is read and not mapped.

    While another program rewrites a file, the file is short for a moment, and a process
    that reads a mapped file at this time is killed.
    """

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, int]
    offset: int
    """Bytes before the first value."""
    is_by_column: bool
    """Whether the values of a column follow each other, and not those of a row."""

    def read(self, rows: slice) -> NDArray[Any]:
        """Return some rows; raise PoolChangedError where the file has them no more."""
        n_rows, n_columns = self.shape
        n = rows.stop - rows.start
        if not self.is_by_column:
            first, count = rows.start * n_columns, n * n_columns
            return self._values(first, count).reshape(n, n_columns)
        starts = range(rows.start, n_columns * n_rows, n_rows)
        return np.stack([self._values(start, n) for start in starts], axis=1)

    def _values(self, first: int, count: int) -> NDArray[Any]:
        offset = self.offset + first * self.dtype.itemsize
        values = np.fromfile(self.path, self.dtype, count, offset=offset)
        if len(values) < count:
            raise PoolChangedError(
                f"`pool` {self.path!r} changed after it was opened: it has fewer than "
                f"its {self.shape[0]} rows. {LET_NOTHING_WRITE}"
            )
        return values


def _rows_of_dask_frame(source: Any) -> Pool:
    """Return the partitions of a Dask data frame; one pass counts their rows."""
    names = list(source.columns)

    def rename(partition: Any) -> Any:  # partitions may have columns in another order
        partition = partition if list(partition.columns) == names else partition[names]
        return partition.set_axis(list(map(str, names)), axis=1)

    source = source.map_partitions(
        rename, meta=rename(source._meta), enforce_metadata=False
    )
    lengths = tuple(map(int, source.map_partitions(len).compute()))
    head = source._meta
    # The type of Python objects is known only once some of them are read.
    if any(dtype.kind == "O" for dtype in source.dtypes) and any(lengths):
        head = source.get_partition(int(np.argmax(np.array(lengths) > 0))).head(_LOOK)
    schema = FrameSchema(head.iloc[:0], frame_of(head).schema.columns)
    return _pool_of_collection(source, list(source.__dask_keys__()), lengths, schema)


def _rows_of_dataset(source: xr.Dataset) -> Pool:
    """Return the rows of a Dataset: one table, or a variable for each column."""
    names = list(source.data_vars)
    dims = {source[name].dims for name in names}
    if len(names) == 1 and source[names[0]].ndim == 2:
        return _pool_of_object(source[names[0]])
    if len(dims) != 1 or len(*dims) != 1:
        variables = (
            ", ".join(f"{name} {source[name].dims}" for name in names[:5]) or "none"
        )
        raise ValueError(
            f"`pool` must be a Dataset with one two-dimensional variable, or with a "
            f"variable for each column over one dimension, got {variables}; choose "
            f"some, as by dataset[['a', 'b']]."
        )
    columns = tuple(map(str, names))
    if not source.chunks:
        values = {str(name): source[name].to_numpy() for name in names}
        return _change_stored_schema(
            _pool_of_object(pd.DataFrame(values)), has_order=False
        )
    source = source.drop_vars(list(source.coords))
    source = source.chunk(source.unify_chunks().chunks)  # those in memory, too
    arrays = [source[name].data for name in names]
    head = source.isel(dict.fromkeys(source.dims, slice(0, 0)))
    if any(array.dtype.kind in ("O", "T") for array in arrays):
        head = source.isel(dict.fromkeys(source.dims, slice(0, _LOOK)))
    first = _frame_of_columns(columns, *(head[name].to_numpy() for name in names))
    schema = FrameSchema(first.iloc[:0], frame_of(first).schema.columns)
    task_keys = list(zip(*(array.__dask_keys__() for array in arrays), strict=True))
    make, lengths = partial(_frame_of_columns, columns), arrays[0].chunks[0]
    origin = Origin(f"dask-{tokenize(task_keys, lengths)}", is_content=False)
    tasks = [(make, *block_keys) for block_keys in task_keys]
    pool = pool_of_blocks(tasks, lengths, schema, origin, graph=_graph_of(source))
    return _change_stored_schema(pool, has_order=False)


def _frame_of_columns(names: Sequence[str], *columns: Any) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def _graph_of(source: Any) -> dict[Any, Any]:
    """Return the graph of a Dask collection, with futures of persisted data."""
    graph = dict(source.__dask_graph__())
    if "distributed" in sys.modules:
        from distributed import futures_of

        graph |= {future.key: future for future in futures_of(source)}
    return graph


def _pool_of_collection(
    source: PoolLike, task_keys: list[Any], lengths: Sequence[int], like: Any
) -> Pool:
    """Return a pool of the blocks of a Dask collection."""
    origin = Origin(f"dask-{tokenize(task_keys, lengths)}", is_content=False)
    return pool_of_blocks(task_keys, lengths, like, origin, graph=_graph_of(source))
