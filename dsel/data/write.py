"""Writing a pool to zarr, or a table of text to Parquet, larger than memory."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import dask
import fsspec
import numpy as np
import zarr
from dask.base import tokenize
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import FsspecStore

from dsel.checks import check_integer, check_path, check_url
from dsel.data.blocks import check_finite, rechunked
from dsel.data.filters import RowFilter
from dsel.data.frames import NUMERIC
from dsel.data.open import open_pool, rooted
from dsel.data.parquet_write import check_csv, write_parquet
from dsel.data.pool import Pool
from dsel.data.tables import CSV, NPZ, PARQUET, RowStream, open_stream, read_table
from dsel.data.zarr_rows import COLUMNS, COMPLETE, file_stamps
from dsel.runtime.clients import current_worker, local_threads, resolve_client
from dsel.stores import POOL, check_empty, check_outside

SOURCE: Final = "source"
"""Attribute: what the pool was written from, which is not written there again."""
CHUNK_NBYTES: Final = 2**25 - 2**12
"""Bytes of a chunk where the source suggests none: 20 to 100 MB read fastest.

With its header it stays below the 32 MiB that workers keep for the next chunk.
"""
LARGEST_CHUNK_NBYTES: Final = 10**8
_CHUNKS_AT_ONCE: Final = 16
"""Chunks between two calls of `on_progress`."""

Progress = Callable[[int, int | None], None]


def write_pool(
    source: Any,
    path: str | Path,
    *,
    target: str | None = None,
    dtype: Any = None,
    chunk_rows: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    client: Any = None,
    on_progress: Progress | None = None,
) -> Pool:
    """Write unlabeled rows as a zarr pool; once interrupted, it is written anew.

    Parameters
    ----------
    source
        The path of a CSV, TSV, Parquet or npz file, or whatever `open_pool` takes, but
        no sparse rows. Only some chunks are in memory at once.
    path
        Path or URL of the pool to write. A CSV or TSV file with columns of text goes
        to a path that ends in ``.parquet``.
    target
        Column of labels of a table, which is left out.
    dtype
        Type of the numbers; None keeps that of the source. Whole numbers must hold
        every value of the source.
    chunk_rows
        Rows of a chunk; None takes about 32 MB, along the chunks of the source.
    storage_options
        For fsspec, where `path` or `source` is a URL.
    client
        Dask client on which chunks of a pool are read and written; None is the
        current one, else local threads. CSV files are read here, in order.
    on_progress
        Called with the rows written and the number of all rows, None if unknown.

    Returns
    -------
    Pool
        The pool at `path`, opened. One that was written there from the same source
        before is returned as it is.

    Raises
    ------
    FileExistsError
        Where another pool is there already.
    TypeError
        Where `dtype` is no type of numbers.
    ValueError
        Where a value is infinite or does not fit, rows are sparse, or the source
        cannot be read. Nothing is left at `path` then.

    See Also
    --------
    open_pool : Opens what was written, or anything else.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_pool(np.zeros((3, 2)), f"{folder}/pool.zarr").n_rows
    3
    """
    check_path(str(path), "path")
    options = dict(storage_options or {})
    if chunk_rows is not None:
        check_integer(chunk_rows, "chunk_rows", at_least=1)
    text = str(source).lower() if isinstance(source, (str, Path)) else ""
    if str(path).lower().endswith(PARQUET):
        check_csv(text, str(path))
        stream = open_stream(_existing_file(source), target=target)
        write_parquet(stream, str(path), on_progress=on_progress)
        return open_pool(path)
    place = rooted(str(path))
    its_options = options if "://" in place else {}
    if text.endswith(CSV):
        stream = open_stream(_existing_file(source), target=target)
        _write_stream(stream, place, its_options, dtype, chunk_rows, on_progress)
    else:
        at_url = options if "://" in text else None
        pool = _opened(source, text, target, at_url).reopened()
        given = (dtype, chunk_rows, resolve_client(client), on_progress)
        _write_blocks(pool, place, its_options, *given)
    return open_pool(place, storage_options=options)


def _opened(
    source: Any, text: str, target: str | None, options: Mapping[str, Any] | None
) -> Pool:
    """Return the rows to write, without the column of labels."""
    if target is not None and text.endswith((*PARQUET, *NPZ)):
        if text.endswith(NPZ):
            table = read_table(_existing_file(source), target=target)
            return open_pool(table.X, columns=table.columns)
        stream = open_stream(_existing_file(source), target=target)
        return open_pool(source, columns=stream.columns)
    return open_pool(source, storage_options=options)


def _existing_file(path: Any) -> str:
    if not os.path.exists(path):
        raise FileNotFoundError(f"`source` must exist, but nothing is at {path!r}.")
    return str(path)


def _write_blocks(
    pool: Pool,
    place: str,
    options: dict[str, Any],
    dtype: Any,
    chunk_rows: int | None,
    client: Any,
    on_progress: Progress | None,
) -> None:
    """Write the rows of a pool by Dask, each chunk by one task."""
    import dask.array as da

    if pool.is_sparse:
        raise ValueError(
            "`source` holds sparse rows, which zarr has no arrays of; pass what holds "
            "them as the pool itself (a svmlight or npz file, a scipy matrix, a Dask "
            "array of CSR blocks), or write dense rows."
        )
    for column in pool.collection.schema.columns if pool.collection.schema else ():
        if not column.is_number:
            raise TypeError(
                f"`source` must be numeric, but column {column.name!r} holds "
                f"{column.kind}; a search takes such a table itself as its pool, or "
                f"encode it as numbers."
            )
    numbers = _number_type(dtype, pool.dtype)
    size = chunk_rows or _chunk_rows(pool)
    rows, n_rows = _remaining(pool, numbers).rechunk((size, -1)), pool.n_rows
    token = tokenize(pool.token, str(numbers), size)
    scheduler: dict[str, Any] = {"scheduler": client or "threads"}
    if client is None and current_worker() is not None:
        scheduler = {"scheduler": "sync"}
    elif client is None:
        scheduler["num_workers"] = local_threads()
    with _writing(
        place, options, (n_rows, pool.n_columns), size, numbers, pool.columns, token
    ) as array:
        if array is None:
            return
        for start in range(0, n_rows, size * _CHUNKS_AT_ONCE):
            stop = min(start + size * _CHUNKS_AT_ONCE, n_rows)
            region = (slice(start, stop), slice(None))
            with dask.config.set(**scheduler):
                da.store(rows[start:stop], array, regions=region, lock=False)
            if on_progress is not None:
                on_progress(stop, n_rows)


def _chunk_rows(pool: Pool) -> int:
    """Return the rows of a chunk that suits the source's chunks."""
    nearby = max(CHUNK_NBYTES // pool.row_nbytes, 1)
    lengths = np.diff(pool.boundaries)
    is_even = len(lengths) > 1 and (lengths[:-1] == lengths[0]).all()
    if not (is_even and pool.filter.is_void):
        return nearby
    source_rows = int(lengths[0])
    if source_rows < nearby:
        return nearby // source_rows * source_rows
    most = max(LARGEST_CHUNK_NBYTES // pool.row_nbytes, 1)
    fewest = -(-source_rows // most)
    parts = (n for n in range(fewest, fewest + 64) if source_rows % n == 0)
    return source_rows // next(parts, source_rows // nearby)


def _remaining(pool: Pool, dtype: np.dtype[Any]) -> Any:
    """Return the rows that the pool's filters leave, as a Dask array in one type."""
    kept = tuple(np.diff(pool.kept_before).tolist())
    return pool.collection.array.map_blocks(
        partial(_of_block, starts=pool.boundaries, rule=pool.filter, dtype=dtype),
        dtype=dtype,
        chunks=(kept, (pool.n_columns,)),
        meta=np.empty((0, 0), dtype),
    )


def _of_block(
    X: Any,
    *,
    starts: NDArray[np.int64],
    rule: RowFilter,
    dtype: np.dtype[Any],
    block_id: tuple[int, ...] = (0,),
) -> NDArray[Any]:
    numbers = starts[block_id[0]] + np.arange(X.shape[0])
    if not rule.is_void:
        mask = rule.mask(int(numbers[0]), int(numbers[-1]) + 1)
        numbers, X = numbers[mask], X[mask]
    check_finite(X, "`pool`", numbers, None, allow_nan=True)
    return _held(np.ascontiguousarray(X), dtype)


def _write_stream(
    stream: RowStream,
    place: str,
    options: dict[str, Any],
    dtype: Any,
    chunk_rows: int | None,
    on_progress: Progress | None,
) -> None:
    """Write a table that is read once from its beginning, chunk by chunk."""
    n_columns = len(stream.columns)
    numbers = _number_type(dtype, np.dtype(np.float64))
    size = chunk_rows or max(CHUNK_NBYTES // max(n_columns * numbers.itemsize, 1), 1)
    stamps = file_stamps(stream.path, {})
    token = tokenize(stamps, stream.columns, str(numbers), size)
    with _writing(
        place, options, (0, n_columns), size, numbers, stream.columns, token
    ) as array:
        if array is None:
            return
        n_rows = 0
        for rows in rechunked(stream.blocks(), size):
            first, n_rows = n_rows, n_rows + rows.shape[0]
            here = np.arange(first, n_rows)
            check_finite(rows, "`source`", here, stream.columns, allow_nan=True)
            array.resize((n_rows, n_columns))
            array[first:n_rows] = _held(rows, numbers)
            if on_progress is not None:
                on_progress(n_rows, None)


@contextmanager
def _writing(
    place: str,
    options: dict[str, Any],
    shape: tuple[int, int],
    chunk_rows: int,
    dtype: np.dtype[Any],
    columns: tuple[str, ...] | None,
    token: str,
) -> Iterator[Any]:
    """Give a new array, which is whole where nothing is raised, else gone.

    Gives None where the same rows are there already. What a killed process began is
    replaced.
    """
    if "://" in place:
        check_url(place, "path")
    else:
        check_outside(place, "path")
    there = _attributes_at(place, options)
    if there.get(SOURCE) == token and there.get(COMPLETE):
        yield None
        return
    if there and there.get(COMPLETE, True):
        raise FileExistsError(
            f"`path` must be free, but {place!r} holds another pool; choose another "
            f"path, or remove it."
        )
    array = zarr.create_array(
        place,
        shape=shape,
        chunks=(chunk_rows, max(shape[1], 1)),
        dtype=dtype,
        compressors=_fast_codecs(dtype),
        attributes={
            POOL: "dense",
            COLUMNS: None if columns is None else list(columns),
            COMPLETE: False,
            SOURCE: token,
        },
        zarr_format=3,
        config={"write_empty_chunks": True},
        storage_options=options or None,
        overwrite=bool(there),
    )
    try:
        yield array
        array.attrs[COMPLETE] = True
    except BaseException:
        if "://" in place:
            files, root = fsspec.core.url_to_fs(place, **options)
            files.rm(root, recursive=True)
        else:
            shutil.rmtree(place, ignore_errors=True)
        raise


def _attributes_at(place: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of the zarr data at a place; none where it is free."""
    is_url = "://" in place
    if not is_url and not os.path.exists(place):
        return {}
    try:
        node = zarr.open(place, mode="r", storage_options=options or None)
    except FileNotFoundError:
        if is_url:
            store = FsspecStore.from_url(place, storage_options=options)
            check_empty(store, "path")
        elif not os.path.isdir(place) or os.listdir(place):
            raise FileExistsError(
                f"`path` must be free, but {place!r} is there and is no pool."
            ) from None
        return {}
    return {SOURCE: None, **node.attrs}


def _fast_codecs(dtype: np.dtype[Any]) -> list[Any]:
    """Return the codecs of pools: measurements hardly compress, so they must be quick.

    The checksum costs a seventh of reading a chunk that is in the page cache.
    """
    blosc = BloscCodec(cname="lz4", shuffle="shuffle", typesize=dtype.itemsize)
    return [blosc, Crc32cCodec()]


def _number_type(dtype: Any, of_source: np.dtype[Any]) -> np.dtype[Any]:
    """Return what the pool holds, or raise TypeError where that is no number."""
    try:
        found = np.dtype(of_source if dtype is None else dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in NUMERIC or found.itemsize > 8:
        raise TypeError(
            f"`dtype` must be a type of numbers of at most 8 bytes, such as 'float32', "
            f"got {dtype!r}."
        )
    return found


def _held(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows in another type, or raise ValueError where it changes a value."""
    with np.errstate(invalid="ignore"):
        held = rows.astype(dtype, copy=False)
    if dtype.kind != "f" and (wrong := rows != held).any():
        raise ValueError(
            f"`dtype` {dtype.name} cannot hold {rows[wrong].flat[0]!s}, a value of "
            f"the source; write 'float32' or 'float64'."
        )
    return held
