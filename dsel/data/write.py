"""Writing pools to zarr, and text tables to Parquet, also larger than memory."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import dask
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zarr
from dask.base import tokenize
from numpy.typing import NDArray
from pyarrow import parquet
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import FsspecStore, LocalStore

from dsel import names
from dsel.checks import (
    check_integer,
    check_options,
    check_path,
    check_string,
    check_url,
    show,
)
from dsel.data.frames import NUMERIC, check_numeric
from dsel.data.kinds import Bad, ColumnScan, Kind, convert
from dsel.data.open import absolute_path, naming_argument, open_pool
from dsel.data.pool import Pool
from dsel.data.schema import ColumnSchema, TableSchema, check_converted
from dsel.data.tables import (
    NPZ,
    PARQUET,
    SINGLE_FILES,
    TextSource,
    check_source,
    decimal_of,
    feature_columns,
    is_text,
    read_table,
    scan_columns,
    text_source,
)
from dsel.data.zarr_rows import COLUMNS, COMPLETE, open_node, origin_of
from dsel.errors import writing
from dsel.files import check_folder, check_no_link, remove, whole_file
from dsel.runtime.clients import count_threads, current_worker, resolve_client
from dsel.zarr_stores import (
    POOL,
    check_empty,
    check_not_in_pool,
    finish_writes,
    names_in,
)

SOURCE: Final = "source"
"""Attribute: what the pool was written from, which is not written there again."""
TEXT_POOL: Final = b"dsel"
"""Metadata of a Parquet pool that was a text file: the kinds of its columns."""
CHUNK_NBYTES: Final = 2**25 - 2**12
"""Bytes of a chunk: 20 to 100 MB read fastest. With its header it stays below the 32
MiB that workers keep for the next chunk."""
MOST_NBYTES: Final = 2**31 - 2**12
"""Bytes of a chunk at most: Blosc takes no more."""
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
        The path of a text file (CSV and kin) or of a folder of them, or whatever
        `open_pool` takes, but no sparse rows. Only some chunks are in memory at once.
        Text files are read twice: first for the kinds of all columns, then for their
        values.
    path
        Path or URL of the pool to write. A text file with columns of text goes to a
        path that ends in ``.parquet``; there a column is of numbers or dates only
        where every value comes back as it was written, and else text, which
        `dsel select` converts by the labeled table.
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
        current one, else local threads. Text files are read here, in order.
    on_progress
        Called with the rows written and the number of all rows. A text file is read
        before: then with the rows read and None, since nobody knows how many there are.

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
        Where `dtype` is no type of numbers, or a zarr pool would have to hold text.
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
    if path.lower().rstrip("/").endswith(SINGLE_FILES):
        raise ValueError(
            f"`path` {path!r} has the ending of a file of another kind, by which it "
            f"would be read; a pool is a folder: end it in .zarr."
        )
    if chunk_rows is not None:
        chunk_rows = check_integer(chunk_rows, "chunk_rows", at_least=1)
    if target is not None:
        check_string(target, "target")
    report = (lambda done, n_rows: None) if on_progress is None else on_progress
    if not callable(report):
        raise TypeError(
            f"`on_progress` must be callable, got {show(on_progress)}; leave it out to "
            "show no progress."
        )
    is_place = isinstance(source, (str, Path))
    file = check_source(source, "source") if is_place else ""
    if file and "://" not in file and is_text(file):
        source = text_source(file)
    is_csv = isinstance(source, TextSource)
    if path.lower().endswith(PARQUET):
        if not is_csv or "://" in path or dtype is not None or chunk_rows is not None:
            raise ValueError(
                f"`path` may end in .parquet where `source` is a text file such as "
                f"CSV, the path is no URL, and `dtype` and `chunk_rows` are left out, "
                f"got {show(path)}; leave out the ending to write a zarr pool."
            )
        _write_parquet(source, target, path, report)
        return open_pool(path)
    if is_csv:
        columns: Any = source.features(target)
        n_rows, n_columns, of_source = 0, len(columns), np.dtype(np.float64)
        stamps = [origin_of(each.path, {}).fingerprint for each in source.files]
        content = f"{stamps} {columns} {source.like and source.like.to_json()}"
        fill: Any = partial(_fill_from_text, source=source, columns=columns)
    else:
        with naming_argument(file, "source") if file else nullcontext():
            pool = _open_source(source, file, target, options)
        columns = None if pool.columns is None else list(pool.columns)
        n_rows, n_columns, of_source = pool.n_rows, pool.n_columns, pool.dtype
        content = pool.token
        client = resolve_client(client, takes_function=False)
        fill = partial(_fill_from_pool, pool=pool, client=client)
    numbers = _number_type(of_source if dtype is None else dtype)
    row_nbytes = n_columns * numbers.itemsize
    size, most = chunk_rows or CHUNK_NBYTES // row_nbytes, MOST_NBYTES // row_nbytes
    check_integer(size or 1, "chunk_rows", at_least=1, at_most=max(most, 1))
    place, token = absolute_path(path), tokenize(content, str(numbers), size)
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
                    dimension_names=(names.POOL_ROW, names.COLUMN),
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
                finish_writes()
                if "://" not in place:
                    remove(place, "path")
                else:
                    files, root = fsspec.core.url_to_fs(place, **its_options)
                    files.rm(root, recursive=True)
            raise
    return open_pool(place, storage_options=options)


def _open_source(source: Any, file: str, target: str | None, options: Any) -> Pool:
    """Open a source that is not a text file as a pool, without its target column."""
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
    if pool.stored_schema.is_sparse:
        raise ValueError(
            "`source` holds sparse rows, which zarr has no arrays of; pass what holds "
            "them as the pool itself (a svmlight or npz file, a scipy matrix, a Dask "
            "array of CSR blocks), or write dense rows."
        )
    check_numeric(pool.frames, "`source`")
    return pool


def _is_to_write(place: str, options: dict[str, Any], token: str) -> bool:
    """Whether rows must be written; False where the same rows are there already."""
    is_url = "://" in place
    (check_url if is_url else check_not_in_pool)(place, "path")
    if not is_url:
        check_folder(place, "path")
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
    rows = pool.as_array(client).map_blocks(_cast_rows, array.dtype, dtype=array.dtype)
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


class _TextColumns(NamedTuple):
    """Results of the first pass over a text table."""

    columns: tuple[ColumnSchema, ...]
    decimal: str
    n_rows: int
    with_gaps: frozenset[str]
    """Names of columns in which some row has no value."""
    with_gap_words: frozenset[str]
    """Names of columns in which a gap is written as a word."""
    is_own: bool
    """Whether the kinds are those of this table, and not of a schema."""
    examples: dict[str, str]
    """Of columns of text a value that is no number, where one was seen."""

    def convert(self, values: pa.Array, column: ColumnSchema) -> pa.Array:
        """Convert the values of a column, which the first pass has checked."""
        typed, _ = convert(
            values,
            column.kind,
            self.decimal,
            column.words,
            is_sure=column.name not in self.with_gap_words,
        )
        assert typed is not None
        return typed

    def shown(self, column: ColumnSchema) -> str:
        """Return a value that is not a number, or the kind, for a message."""
        example = self.examples[column.name]
        return repr(example) if example else str(column.kind)


def _scan_text(
    source: TextSource, columns: Sequence[str], report: Progress, *, is_exact: bool
) -> _TextColumns:
    """Scan a text table for the kinds of its columns; raise where one does not fit."""
    scans = scan_columns(source.batches(columns), report)
    decimal = decimal_of(source, scans)
    if source.like is None:
        kind = ColumnScan.exact_kind if is_exact else ColumnScan.kind
        kinds = tuple(
            ColumnSchema(name, kind(scan, decimal)) for name, scan in scans.items()
        )
    else:
        kinds = source.like.columns
        suspicious = [c for c in kinds if not _is_sure(scans[c.name], c, decimal)]
        _check_values(source, suspicious, decimal)
    return _TextColumns(
        kinds,
        decimal,
        next(iter(scans.values())).n_rows,
        frozenset(n for n, scan in scans.items() if scan.n_rows > scan.n_values),
        frozenset(n for n, scan in scans.items() if scan.gap_words),
        source.like is None,
        {n: scan.examples.get("other", "") for n, scan in scans.items()},
    )


def _is_sure(scan: ColumnScan, column: ColumnSchema, decimal: str) -> bool:
    """Whether the first pass has shown that every value fits the kind."""
    kind = scan.kind(decimal)
    if column.kind.is_number:
        return kind.is_number or kind is Kind.GAPS
    is_any = column.kind in (Kind.TEXT, Kind.GAPS, Kind.OTHER)
    return is_any or (kind.is_time and kind is column.kind)


def _check_values(
    source: TextSource, columns: Sequence[ColumnSchema], decimal: str
) -> None:
    """Raise ValueError that names the first wrong value of every column."""
    wrong: dict[str, tuple[ColumnSchema, Bad | None]] = {}
    first = 0
    if not columns:
        return
    names = [column.name for column in columns]
    for batch in source.batches(names, is_checked=False):
        for column in columns:
            values = batch.column(column.name)
            typed, bad = convert(values, column.kind, decimal, column.words)
            if typed is None and bad is not None:
                there = column, bad._replace(row=first + bad.row)
                wrong.setdefault(column.name, there)
        first += batch.num_rows
    check_converted(list(wrong.values()), f"the pool {source.location!r}", 0)


def _fill_from_text(
    array: Any, *, source: TextSource, columns: list[str], report: Progress
) -> None:
    found = _scan_text(source, columns, report, is_exact=False)
    are_numbers = (Kind.WHOLE, Kind.NUMBERS, Kind.TRUTH, Kind.GAPS)
    others = [each for each in found.columns if each.kind not in are_numbers]
    if others:
        shown = ", ".join(
            f"column {each.name!r} holds {found.shown(each)}" for each in others[:5]
        )
        more = f" and {len(others) - 5} more" * (len(others) > 5)
        raise TypeError(
            f"`source` {source.location!r} must be numeric, but {shown}{more}; write "
            f"it to a path that ends in .parquet, or encode it as numbers."
        )
    size, done = array.chunks[0], 0
    waiting: list[NDArray[Any]] = []

    def write(least: int) -> int:
        written = 0
        while waiting and (n := sum(map(len, waiting))) >= least:
            rows = np.concatenate(waiting)
            part, rest = rows[:size], rows[size:]
            waiting[:] = [rest] if len(rest) else []
            array.append(_cast_rows(part, array.dtype))
            written += min(n, size)
            report(done + written, found.n_rows)
        return written

    for batch in source.batches(columns, is_checked=False):
        values = [
            _as_floats(found.convert(batch.column(each.name), each), each)
            for each in found.columns
        ]
        waiting.append(np.column_stack(values))
        done += write(size)
    write(1)


def _as_floats(typed: pa.Array, column: ColumnSchema) -> NDArray[np.float64]:
    if column.kind is Kind.TRUTH:  # Arrow makes no floats of truth values
        typed = pc.cast(typed, pa.int8())
    floats = pc.cast(typed, pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64)


def _write_parquet(
    source: TextSource, target: str | None, path: str, report: Progress
) -> None:
    """Write a table as one Parquet file, renamed into place when it is complete."""
    check_no_link(path, "path")
    if os.path.exists(path):
        raise FileExistsError(
            f"`path` must be free, but {path!r} is there; choose another path, or "
            f"remove it."
        )
    features, is_exact = source.features(target), source.like is None
    found = _scan_text(source, features, report, is_exact=is_exact)
    fields = [
        pa.field(column.name, _arrow_type(column, found)) for column in found.columns
    ]
    # It says that numbers and dates are those of a text file, and come back as text.
    kept = TableSchema(found.columns, target, is_typed=False).to_json()
    schema = pa.schema(fields, metadata={TEXT_POOL: kept.encode()})
    done = 0
    with (
        whole_file(path, "path") as file,
        parquet.ParquetWriter(file, schema) as writer,
    ):
        for batch in source.batches(schema.names, is_checked=False):
            arrays = []
            for column, field in zip(found.columns, fields, strict=True):
                typed = found.convert(batch.column(column.name), column)
                arrays.append(pc.cast(typed, field.type))
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            done += batch.num_rows
            report(done, found.n_rows)


def _arrow_type(column: ColumnSchema, found: _TextColumns) -> pa.DataType:
    if column.kind.is_number:
        is_whole = column.kind is Kind.WHOLE and column.name not in found.with_gaps
        # By a schema of whole numbers others may come, too.
        return pa.int64() if is_whole and found.is_own else pa.float64()
    if column.kind is Kind.TRUTH:
        return pa.bool_()
    if column.kind.is_time:
        return pa.timestamp("us", "UTC" if column.kind is Kind.ZONED_TIMES else None)
    return pa.string()


def _number_type(dtype: Any) -> np.dtype[Any]:
    """Return the type of the pool's values; TypeError where they are not numbers."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except Exception:  # frames and objects of a user's class have errors of their own
        found = np.dtype(object)
    if found.kind not in NUMERIC or found.itemsize > 8:
        raise TypeError(
            f"`dtype` must be a type of numbers of at most 8 bytes, such as 'float32', "
            f"got {show(dtype)}."
        )
    return found


def _cast_rows(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows in another type; ValueError where that would change a value."""
    with np.errstate(invalid="ignore"):
        held = rows.astype(dtype, copy=False)
    if dtype.kind != "f" and (wrong := rows != held).any():
        raise ValueError(
            f"`dtype` {dtype.name} cannot hold {rows[wrong].flat[0]!s}, a value of "
            f"the source; write 'float32' or 'float64'."
        )
    return held
