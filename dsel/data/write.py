"""Writing a pool to zarr, or a table of text to Parquet, larger than memory."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import dask
import fsspec
import numpy as np
import pandas as pd
import zarr
from dask.base import tokenize
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import FsspecStore, LocalStore

from dsel.checks import check_integer, check_options, check_path, check_url
from dsel.data.frames import NUMERIC, check_finite, check_numeric, frame_of
from dsel.data.open import open_pool, rooted
from dsel.data.pool import Pool
from dsel.data.tables import (
    CSV,
    NPZ,
    PARQUET,
    csv_columns,
    csv_frames,
    feature_columns,
    parquet_module,
    read_table,
)
from dsel.data.zarr_rows import COLUMNS, COMPLETE, open_node, stamped
from dsel.errors import writing
from dsel.files import check_no_link, check_no_links_inside, remove, whole_file
from dsel.runtime.clients import count_threads, current_worker, resolve_client
from dsel.stores import POOL, check_empty, check_outside, names_in

SOURCE: Final = "source"
"""Attribute: what the pool was written from, which is not written there again."""
CHUNK_NBYTES: Final = 2**25 - 2**12
"""Bytes of a chunk: 20 to 100 MB read fastest. With its header it stays below the 32
MiB that workers keep for the next chunk."""
MOST_NBYTES: Final = 2**31 - 2**12
"""Bytes of a chunk at most: Blosc takes no more."""
_PARQUET_ROWS: Final = 50_000
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
        Rows of a chunk; None takes about 32 MB.
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
    path, options = check_path(path, "path"), check_options(storage_options)
    if chunk_rows is not None:
        chunk_rows = check_integer(chunk_rows, "chunk_rows", at_least=1)
    report = on_progress or (lambda done, n_rows: None)
    if not callable(report):
        raise TypeError(
            f"`on_progress` must be callable, got {on_progress!r}; leave it out to "
            "show no progress."
        )
    file = str(source) if isinstance(source, (str, Path)) else ""
    if file and "://" not in file and not os.path.exists(file):
        raise FileNotFoundError(f"`source` must exist, but nothing is at {source!r}.")
    is_csv = file.lower().endswith(CSV)
    if path.lower().endswith(PARQUET):
        if not is_csv or "://" in path or dtype is not None or chunk_rows is not None:
            raise ValueError(
                f"`path` may end in .parquet where `source` is a CSV or TSV file, the "
                f"path is no URL, and `dtype` and `chunk_rows` are left out, got "
                f"{path!r}; leave out the ending to write a zarr pool."
            )
        _write_parquet(file, target, path, report)
        return open_pool(path)
    if is_csv:
        columns: Any = csv_columns(file, target)
        n_rows, n_columns, of_source = 0, len(columns), np.dtype(np.float64)
        content = f"{stamped(file, {})[0]['name']} {columns}"
        fill: Any = partial(_fill_from_csv, source=file, columns=columns)
    else:
        pool = _opened(source, file, target, options)
        columns = None if pool.columns is None else list(pool.columns)
        n_rows, n_columns, of_source = pool.n_rows, pool.n_columns, pool.dtype
        content = pool.token
        fill = partial(_fill_from_pool, pool=pool, client=resolve_client(client))
    numbers = _number_type(of_source if dtype is None else dtype)
    row_nbytes = n_columns * numbers.itemsize
    size, most = chunk_rows or CHUNK_NBYTES // row_nbytes, MOST_NBYTES // row_nbytes
    check_integer(size or 1, "chunk_rows", at_least=1, at_most=max(most, 1))
    place, token = rooted(path), tokenize(content, str(numbers), size)
    its_options = options if "://" in place else {}
    if _is_to_write(place, its_options, token):
        # Measurements hardly compress, so codecs must be quick; the checksum costs a
        # seventh of reading a chunk that is in the page cache.
        compressor = BloscCodec(
            cname="lz4", shuffle="shuffle", typesize=numbers.itemsize
        )
        attributes = {POOL: "dense", COMPLETE: False, COLUMNS: columns, SOURCE: token}
        try:
            with writing(path, "path", also_reads=True):
                array = zarr.create_array(
                    place,
                    shape=(n_rows, n_columns),
                    chunks=(size or 1, n_columns),
                    dtype=numbers,
                    compressors=[compressor, Crc32cCodec()],
                    attributes=attributes,
                    zarr_format=3,
                    config={"write_empty_chunks": True},
                    storage_options=its_options or None,
                    overwrite=True,
                )
                fill(array, report=report)
                array.attrs[COMPLETE] = True
        except BaseException:
            with suppress(OSError, ValueError):  # the first error is the one to tell
                if "://" not in place:
                    remove(place, "path")
                else:
                    files, root = fsspec.core.url_to_fs(place, **its_options)
                    files.rm(root, recursive=True)
            raise
    return open_pool(place, storage_options=options)


def _opened(source: Any, file: str, target: str | None, options: Any) -> Pool:
    """Return a source that is no CSV file as a pool, without its column of labels."""
    if file.lower().endswith(NPZ):  # whose labels are apart
        table, target = read_table(file, target=target), None
        pool = open_pool(table.X, columns=table.columns)
    else:
        pool = open_pool(source, storage_options=options if "://" in file else None)
    if target is not None:
        where = repr(file) if file else "`source`"
        pool = pool.with_columns(feature_columns(pool.columns or (), target, where))
    if not pool.n_rows or not pool.n_columns:
        raise ValueError(
            f"`source` must have rows and columns, got {pool.n_rows} rows of "
            f"{pool.n_columns} columns; there is nothing to write."
        )
    if pool.is_sparse:
        raise ValueError(
            "`source` holds sparse rows, which zarr has no arrays of; pass what holds "
            "them as the pool itself (a svmlight or npz file, a scipy matrix, a Dask "
            "array of CSR blocks), or write dense rows."
        )
    check_numeric(pool.frames, "`source`")
    return pool


def _is_to_write(place: str, options: dict[str, Any], token: str) -> bool:
    """Whether the place is free, or begun; it is not where the same rows are."""
    is_url = "://" in place
    (check_url if is_url else check_outside)(place, "path")
    if not is_url:
        check_no_links_inside(place, "path")
    try:
        way = "remove it, or choose another path"
        attributes, _ = open_node(place, options, f"`path` {place!r}", way)
    except FileNotFoundError:
        store: Any = LocalStore(place)
        if is_url:
            store = FsspecStore.from_url(place, storage_options=options)
        if is_url or os.path.exists(place):
            check_empty(names_in(store), store, "path")
        return True
    if attributes.get(COMPLETE, True) and attributes.get(SOURCE) != token:
        raise FileExistsError(
            f"`path` must be free, but {place!r} holds another pool; choose another "
            f"path, or remove it."
        )
    return not attributes.get(COMPLETE, True)


def _fill_from_pool(array: Any, *, pool: Pool, client: Any, report: Progress) -> None:
    """Write the rows of a pool by Dask, each chunk by one task."""
    import dask.array as da

    n_threads = 1 if current_worker() is not None else count_threads()
    # Dask does not wait for threads of its own when a task fails, and they would write
    # chunks after what was written has been removed.
    threads = nullcontext() if client else ThreadPoolExecutor(n_threads)
    size, scheduler = array.chunks[0], client or "threads"
    rows = pool.as_array(client).map_blocks(_held, array.dtype, dtype=array.dtype)
    rows = rows.rechunk((size, -1))
    with (
        pool.unchanged(),
        threads as own,
        dask.config.set(scheduler=scheduler, pool=own),
    ):
        for start in range(0, pool.n_rows, size * _CHUNKS_AT_ONCE):
            stop = min(start + size * _CHUNKS_AT_ONCE, pool.n_rows)
            region = (slice(start, stop), slice(None))
            da.store(rows[start:stop], array, regions=region, lock=False)
            report(stop, pool.n_rows)


def _finite_frames(
    source: str, columns: list[str], n_rows: int, report: Progress
) -> Iterator[pd.DataFrame]:
    """Read a table once from its beginning; report what was written of it."""
    done = 0
    for frame in csv_frames(source, columns, n_rows):
        here = np.arange(done, done + len(frame))
        check_finite(frame_of(frame), "`source`", here, None, allow_nan=True)
        done += len(frame)
        yield frame
        report(done, None)


def _fill_from_csv(
    array: Any, *, source: str, columns: list[str], report: Progress
) -> None:
    for frame in _finite_frames(source, columns, array.chunks[0], report):
        for name, dtype in frame.dtypes.items():
            if getattr(dtype, "kind", "O") not in NUMERIC:
                values = frame[name].dropna()
                texts = values[pd.to_numeric(values, errors="coerce").isna()]
                shown = texts.iloc[0] if len(texts) else values.iloc[0]
                raise TypeError(
                    f"`source` {source!r} must be numeric, but column {name!r} holds "
                    f"{shown!r}; write it to a path that ends in .parquet, or encode "
                    f"it as numbers."
                )
        rows = frame.to_numpy(dtype=np.float64, na_value=np.nan)
        array.append(_held(rows, array.dtype))


def _write_parquet(
    source: str, target: str | None, path: str, report: Progress
) -> None:
    """Write a table as one Parquet file at once, of types that the first rows tell."""
    parquet = parquet_module()
    import pyarrow as pa

    check_no_link(path, "path")
    if os.path.exists(path):
        raise FileExistsError(
            f"`path` must be free, but {path!r} is there; choose another path, or "
            f"remove it."
        )
    columns = csv_columns(source, target)
    frames = _finite_frames(source, columns, _PARQUET_ROWS, report)
    first = next(frames)
    types = {}
    for field in pa.Schema.from_pandas(first, preserve_index=False):
        types[field.name] = field.type
        if pa.types.is_null(field.type):
            types[field.name] = pa.string()
        elif pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            types[field.name] = pa.float64()  # later rows may have gaps
    schema = pa.schema(types)
    try:
        with (
            whole_file(path, "path") as file,
            parquet.ParquetWriter(file, schema) as writer,
        ):
            for frame in chain([first], frames):
                writer.write_table(
                    pa.Table.from_pandas(frame, schema, preserve_index=False)
                )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(
            f"`source` must have one type in a column, but "
            f"{' '.join(map(str, error.args))}."
        ) from error


def _number_type(dtype: Any) -> np.dtype[Any]:
    """Return what the pool holds, or raise TypeError where that is no number."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
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
