"""Writing pools to zarr, and text tables to Parquet, also larger than memory."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from dsel.argument_words import OF_READ_TABLE, name_arguments
from dsel.arrays import DTypeLike
from dsel.checks import (
    MOST_COLUMNS_NAMED,
    check_integer,
    check_path,
    check_storage_options,
    check_string,
    check_url,
    listing,
    show,
)
from dsel.data.frames import NUMERIC, check_numeric, find_cast_changes
from dsel.data.open import absolute_path, name_argument, open_pool
from dsel.data.parquet import columns_of_few_values
from dsel.data.pool import Pool
from dsel.data.schema import (
    ColumnSchema,
    TableSchema,
    find_wrong_values,
    refuse_wrong_values,
)
from dsel.data.table_files import (
    FEATHER,
    JSON_LINES,
    NPZ,
    PARQUET,
    SINGLE_FILES,
    check_source,
)
from dsel.data.table_request import feature_columns
from dsel.data.tables import read_table
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.conversion import WrongValue
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.text_reasons import TextReason, text_reason
from dsel.data.text_tables import (
    TextSource,
    decimal_of,
    is_text,
    scan_columns,
    text_source,
)
from dsel.data.typed_tables import read_typed_rows
from dsel.data.zarr_rows import COLUMNS, COMPLETE, open_node, origin_of
from dsel.errors import explain_interrupt, explain_write_errors
from dsel.files import check_folder, check_no_link, remove, whole_file
from dsel.runtime.clients import count_threads, current_worker, resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task
from dsel.typing import AnyArray, PoolLike
from dsel.zarr_stores import (
    POOL,
    check_empty,
    check_not_in_pool,
    finish_writes,
    names_in,
)

if TYPE_CHECKING:
    from distributed import Client


SOURCE: Final = "source"
"""Attribute with the identity of the source; the same source is not written again."""
TEXT_POOL: Final = b"dsel"
"""Metadata key of a Parquet pool from a text file, for the kinds of its columns."""
PLAIN_WHOLE: Final = {b"dsel": b"whole numbers have no point"}
"""Metadata of a column of such a pool, in which 3 is not written 3.0."""
NOTE: Final = b"dsel note"
"""Metadata key of a column of text in such a pool: why it is text."""
CHUNK_NBYTES: Final = 2**25 - 2**12
"""Bytes of a chunk; 20 to 100 MB are fastest to read. With its header it is smaller
than the 32 MiB that workers reserve for the next chunk."""
MAX_CHUNK_NBYTES: Final = 2**31 - 2**12
"""Largest chunk that Blosc accepts, in bytes."""
_CHUNKS_AT_ONCE: Final = 16
"""Chunks between two calls of `on_progress`."""

_ROWS_OF_GROUP: Final = 2**20
"""Rows that are read at once from a Parquet pool of a file with types."""

ShowProgress = Callable[[int, int | None], None]


@name_arguments(OF_READ_TABLE)
def write_pool(
    source: Any,
    path: str | Path,
    *,
    target: str | None = None,
    dtype: DTypeLike | None = None,
    chunk_rows: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    client: "Client | None" = None,
    on_progress: ShowProgress | None = None,
) -> Pool:
    """Write unlabeled rows as a zarr pool; an interrupted pool is written anew.

    Parameters
    ----------
    source
        The path of a text file (CSV and kin) or of a folder of them, or anything that
        `open_pool` takes except sparse rows. Only some chunks are in memory at once.
        Text files are read twice: first for the kinds of all columns, then for their
        values.
    path
        Path or URL of the pool to write. A text file with columns of text goes to a
        path that ends in ``.parquet``; there a column is of numbers or dates only
        where every value comes back as it was written, and else text, which
        `dsel select` converts by the labeled table. A Feather file or JSON lines may
        go there too, and keep their types.
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
        current one, else this machine. Text files are read here, in order.
    on_progress
        Called with the number of rows written and of all rows. While a text file is
        read first, it is called with the rows read and None, as the total is unknown.

    Returns
    -------
    Pool
        The pool at `path`, opened. A pool that was written there before from the same
        source is returned unchanged.

    Raises
    ------
    FileExistsError
        Where another pool is at `path` already.
    TypeError
        Where `dtype` is no type of numbers, or a zarr pool would have to hold text.
    ValueError
        Where a value is infinite or does not fit, rows are sparse, or the source
        cannot be read; nothing is left at `path`.

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
    path, options = check_path(path, "path"), check_storage_options(storage_options)
    if path.lower().rstrip("/").endswith(SINGLE_FILES):
        raise ValueError(
            f"`path` {path!r} has the ending of a file of another kind, by which it "
            f"would be read; a pool is a folder: end it in .zarr."
        )
    if chunk_rows is not None:
        chunk_rows = check_integer(chunk_rows, "chunk_rows", at_least=1)
    if target is not None:
        check_string(target, "target")
    show_progress = (lambda done, n_rows: None) if on_progress is None else on_progress
    if not callable(show_progress):
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
        has_options = dtype is not None or chunk_rows is not None
        _write_parquet(
            source, file, target, path, show_progress, has_options=has_options
        )
        return open_pool(path)
    if is_csv:
        columns: Any = source.features(target)
        n_rows, n_columns, source_dtype = 0, len(columns), np.dtype(np.float64)
        stamps = [origin_of(each.path, {}).fingerprint for each in source.files]
        content = f"{stamps} {columns} {source.like and source.like.to_json()}"
        fill: Any = partial(_fill_from_text, source=source, columns=columns)
    else:
        with name_argument(file, "source") if file else nullcontext():
            pool = _open_source(source, file, target, options)
        columns = None if pool.columns is None else list(pool.columns)
        n_rows, n_columns, source_dtype = pool.n_rows, pool.n_columns, pool.dtype
        content = pool.token
        client = resolve_client(client, takes_function=False)
        fill = partial(_fill_from_pool, pool=pool, client=client)
    numbers = _check_dtype(source_dtype if dtype is None else dtype)
    row_nbytes = n_columns * numbers.itemsize
    size, most = (
        chunk_rows or CHUNK_NBYTES // row_nbytes,
        MAX_CHUNK_NBYTES // row_nbytes,
    )
    check_integer(size or 1, "chunk_rows", at_least=1, at_most=max(most, 1))
    place, token = absolute_path(path), tokenize(content, str(numbers), size)
    its_options = options if "://" in place else {}
    if _must_write(place, its_options, token):
        attributes = {POOL: "dense", COMPLETE: False, COLUMNS: columns, SOURCE: token}
        nothing = f"Nothing of the interrupted pool is kept at {path}."
        with (
            _remove_on_error(place, its_options),
            explain_interrupt(nothing),
            explain_write_errors(path, "path", also_reads=True),
        ):
            array = _create_array(
                place,
                (n_rows, n_columns),
                size or 1,
                numbers,
                attributes,
                its_options,
            )
            fill(array, show_progress=show_progress)
            array.attrs[COMPLETE] = True
    return open_pool(place, storage_options=options)


def _create_array(
    place: str,
    shape: tuple[int, int],
    chunk_rows: int,
    numbers: np.dtype[Any],
    attributes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Any:
    """Create the array of a pool, in the place of an unfinished one."""
    # Measurements hardly compress, so a fast codec is best; the checksum takes a
    # seventh of the time to read a chunk from the page cache.
    compressor = BloscCodec(cname="lz4", shuffle="shuffle", typesize=numbers.itemsize)
    return zarr.create_array(
        place,
        shape=shape,
        chunks=(chunk_rows, shape[1]),
        dtype=numbers,
        dimension_names=(names.POOL_ROW, names.COLUMN),
        compressors=[compressor, Crc32cCodec()],
        attributes=dict(attributes),
        zarr_format=3,
        config={"write_empty_chunks": True},
        storage_options=dict(options) or None,
        overwrite=True,
    )


@contextmanager
def _remove_on_error(place: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Remove what was written of a pool if anything raises."""
    try:
        yield
    except BaseException:
        with suppress(OSError, ValueError):  # the first error is the one to report
            finish_writes()
            if "://" not in place:
                remove(place, "path")
            else:
                files, root = fsspec.core.url_to_fs(place, **options)
                files.rm(root, recursive=True)
        raise


def _open_source(source: PoolLike, file: str, target: str | None, options: Any) -> Pool:
    """Open a source that is not a text file as a pool, without its target column."""
    if file.lower().endswith(NPZ):  # labels are an array of their own there
        table, target = read_table(file, target=target), None
        pool = open_pool(table.X, columns=table.columns)
    else:
        pool = open_pool(source, storage_options=options if "://" in file else None)
    if target is not None:
        where = repr(file) if file else "`source`"
        pool = pool.with_columns(feature_columns(pool.columns or (), target, where))
    _check_size(pool.n_rows, pool.n_columns)
    if pool.stored_schema.is_sparse:
        raise ValueError(
            "`source` holds sparse rows, which zarr has no arrays of; pass what holds "
            "them as the pool itself (a svmlight or npz file, a scipy matrix, a Dask "
            "array of CSR blocks), or write dense rows."
        )
    check_numeric(pool.frames, "`source`")
    return pool


def _check_size(n_rows: int, n_columns: int) -> None:
    if not n_rows or not n_columns:
        raise ValueError(
            f"`source` must have rows and columns, got {n_rows} rows of {n_columns} "
            f"columns; there is nothing to write."
        )


def _must_write(place: str, options: dict[str, Any], token: str) -> bool:
    """Return whether rows must be written; False if the same rows are there already."""
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


def _fill_from_pool(
    array: Any, *, pool: Pool, client: "Client | None", show_progress: ShowProgress
) -> None:
    """Write the rows of a pool by Dask, each chunk by one task."""
    import dask.array as da

    n_threads = 1 if current_worker() is not None else count_threads()
    # This code waits for its own threads when a task fails. It could not wait for
    # Dask's threads, which would write chunks after the failed pool has been removed.
    threads = nullcontext() if client else ThreadPoolExecutor(n_threads)
    size, scheduler = array.chunks[0], client or "threads"
    rows = pool.as_array(client).map_blocks(_cast_rows, array.dtype, dtype=array.dtype)
    rows = rows.rechunk((size, -1))
    with (
        pool.guard_pass(),
        threads as executor,
        dask.config.set(scheduler=scheduler, pool=executor),
    ):
        for start in range(0, pool.n_rows, size * _CHUNKS_AT_ONCE):
            stop = min(start + size * _CHUNKS_AT_ONCE, pool.n_rows)
            region = (slice(start, stop), slice(None))
            da.store(rows[start:stop], array, regions=region, lock=False)
            show_progress(stop, pool.n_rows)


class _TextColumns(NamedTuple):
    """Results of the first pass over a text table."""

    columns: tuple[ColumnSchema, ...]
    decimal: str
    n_rows: int
    with_gaps: frozenset[str]
    """Names of columns in which some row has no value."""
    with_gap_words: frozenset[str]
    """Names of columns in which a gap is written as a word."""
    with_plain_whole: frozenset[str]
    """Names of columns in which whole numbers are written without a point."""
    is_own: bool
    """Whether the kinds are those of this table, not of a schema."""
    examples: dict[str, str]
    """A value that is not a number, for columns of text that have one."""
    why_texts: dict[str, str]
    """Reasons why columns are text, by name, if another kind was likely."""

    def convert(self, values: pa.Array, column: ColumnSchema) -> pa.Array:
        """Convert the values of a column; the first pass has checked them.

        Amounts stay texts, so that their sign is known to all who read the pool.
        """
        if column.form.is_amount:
            return values
        is_sure = column.name not in self.with_gap_words
        typed, _ = column.convert(values, self.decimal, is_sure=is_sure)
        assert typed is not None
        return typed

    def example(self, column: ColumnSchema) -> str:
        """Return a value that is not a number, or the kind, for a message."""
        example = self.examples[column.name]
        return repr(example) if example else str(column.kind)


def _scan_text(
    source: TextSource,
    columns: Sequence[str],
    show_progress: ShowProgress,
    *,
    is_exact: bool,
) -> _TextColumns:
    """Scan a text table for the kinds of its columns; raise where one does not fit."""
    scans = scan_columns(source.batches(columns), show_progress)
    like = source.like
    decimal = decimal_of(source, scans, {} if like is None else like.amount_marks)
    if source.like is None:
        kind = ColumnScan.exact_kind if is_exact else ColumnScan.kind
        kinds = tuple(
            ColumnSchema(name, kind(scan, decimal)) for name, scan in scans.items()
        )
    else:
        kinds = source.like.columns
        suspicious = [c for c in kinds if not _fits_all(scans[c.name], c, decimal)]
        _check_values(source, suspicious, decimal)
    texts = [c.name for c in kinds if c.kind is Kind.TEXT and source.like is None]
    reasons = ((name, _why_text(scans[name], name, decimal)) for name in texts)
    return _TextColumns(
        kinds,
        decimal,
        next(iter(scans.values())).n_rows,
        frozenset(n for n, scan in scans.items() if scan.n_rows > scan.n_values),
        frozenset(n for n, scan in scans.items() if scan.gap_words),
        frozenset(n for n, scan in scans.items() if scan.n_whole),
        source.like is None,
        {n: scan.examples.get("other", "") for n, scan in scans.items()},
        {name: reason.text for name, reason in reasons if reason},
    )


def _why_text(scan: ColumnScan, name: str, decimal: str) -> TextReason | None:
    """Return why a column of a pool stays text, if another kind is likely."""
    kind = scan.kind(decimal)
    if kind.is_number or kind.is_time:
        return TextReason(
            f"column {name!r} stays text, because not every value would come back as "
            f"it is written; `dsel select` reads it as {kind}, or as LABELED has it"
        )
    return text_reason(scan, name)


def _fits_all(scan: ColumnScan, column: ColumnSchema, decimal: str) -> bool:
    """Return whether the first pass has shown that every value fits the kind."""
    kind = scan.kind(decimal)
    if column.form.is_amount:
        return False
    if column.kind.is_number:
        is_right = kind.is_number and not (column.kind is Kind.WHOLE and scan.n_codes)
        return is_right or kind is Kind.GAPS
    is_any = column.kind in (Kind.TEXT, Kind.GAPS, Kind.OTHER)
    # Dates of numbers are right in one order of day and month only, which each value
    # must show.
    return is_any or (kind.is_time and kind is column.kind and not scan.date_signs)


def _check_values(
    source: TextSource, columns: Sequence[ColumnSchema], decimal: str
) -> None:
    """Raise ValueError that names the first wrong value of every column."""
    wrong: dict[str, tuple[ColumnSchema, WrongValue]] = {}
    first, names = 0, [column.name for column in columns]
    for batch in source.batches(names, is_checked=False) if names else ():
        rows = range(first, first + batch.num_rows)
        wrong = find_wrong_values(columns, batch.column, rows, decimal) | wrong
        first += batch.num_rows
    with source.name_lines():
        refuse_wrong_values(list(wrong.values()), f"the pool {source.location!r}", 0)


def _fill_from_text(
    array: Any, *, source: TextSource, columns: list[str], show_progress: ShowProgress
) -> None:
    """Append the rows of a text file to a zarr array; raise if some are no numbers."""
    scanned = _scan_text(source, columns, show_progress, is_exact=False)
    are_numbers = (Kind.WHOLE, Kind.NUMBERS, Kind.TRUTH, Kind.GAPS)
    not_numeric = [
        c for c in scanned.columns if c.kind not in are_numbers or c.form.is_amount
    ]
    if not_numeric:
        kinds = [f"column {c.name!r} holds {scanned.example(c)}" for c in not_numeric]
        shown = listing(kinds, MOST_COLUMNS_NAMED)
        raise TypeError(
            f"`source` {source.location!r} must be numeric, but {shown}; write "
            f"it to a path that ends in .parquet, or encode it as numbers."
        )
    size, done = array.chunks[0], 0
    waiting: list[NDArray[Any]] = []

    def write(least: int) -> int:
        """Write full chunks while at least `least` rows wait; return their rows."""
        written = 0
        while waiting and (n := sum(map(len, waiting))) >= least:
            rows = np.concatenate(waiting)
            part, remaining_rows = rows[:size], rows[size:]
            waiting[:] = [remaining_rows] if len(remaining_rows) else []
            array.append(_cast_rows(part, array.dtype))
            written += min(n, size)
            show_progress(done + written, scanned.n_rows)
        return written

    for batch in source.batches(columns, is_checked=False):
        values = []
        for column in scanned.columns:
            typed = scanned.convert(batch.column(column.name), column)
            if column.kind is Kind.TRUTH:  # Arrow makes no floats of truth values
                typed = pc.cast(typed, pa.int8())
            floats = pc.cast(typed, pa.float64()).to_numpy(zero_copy_only=False)
            values.append(floats)
        waiting.append(np.column_stack(values))
        done += write(size)
    write(1)


def _write_parquet(
    source: Any,
    file: str,
    target: str | None,
    path: str,
    show_progress: ShowProgress,
    *,
    has_options: bool,
) -> None:
    """Write a table as one Parquet file, renamed into place when it is complete."""
    is_csv = isinstance(source, TextSource)
    is_typed = file.lower().endswith((*FEATHER, *JSON_LINES)) and "://" not in file
    if not (is_csv or is_typed) or "://" in path or has_options:
        raise ValueError(
            f"`path` may end in .parquet where `source` is a text file such as CSV, a "
            f"Feather file or JSON lines, the path is no URL, and `dtype` and "
            f"`chunk_rows` are left out, got {show(path)}; leave out the ending to "
            f"write a zarr pool."
        )
    check_no_link(path, "path")
    if os.path.exists(path):
        raise FileExistsError(
            f"`path` must be free, but {path!r} is there; choose another path, or "
            f"remove it."
        )
    if is_csv:
        _write_texts(source, target, path, show_progress)
        return
    rows = read_typed_rows(file)
    rows = rows.select(feature_columns(rows.column_names, target, repr(file)))
    _check_size(rows.num_rows, rows.num_columns)
    with whole_file(path, "path") as out:
        parquet.write_table(rows, out, row_group_size=_ROWS_OF_GROUP)
    show_progress(rows.num_rows, rows.num_rows)


def _write_texts(
    source: TextSource, target: str | None, path: str, show_progress: ShowProgress
) -> None:
    """Write a text table as a Parquet file; see `write_pool`."""
    features, is_exact = source.features(target), source.like is None
    scanned = _scan_text(source, features, show_progress, is_exact=is_exact)
    metadata = {
        **dict.fromkeys(scanned.with_plain_whole, PLAIN_WHOLE),
        **{name: {NOTE: note.encode()} for name, note in scanned.why_texts.items()},
    }
    fields = [
        pa.field(
            column.name,
            _arrow_type(column, scanned),
            metadata=metadata.get(column.name),
        )
        for column in scanned.columns
    ]
    # This schema records that numbers and dates come from a text file, so that they can
    # be written back as the same text. The schema of another table does not allow this:
    # 1.50 has become 1.5 there.
    text_schema = TableSchema(scanned.columns, target, is_typed=False).to_json()
    own_metadata = {TEXT_POOL: text_schema.encode()} if scanned.is_own else None
    schema = pa.schema(fields, metadata=own_metadata)
    batches = source.batches(schema.names, is_checked=False)
    tasks = (
        Task(f"convert-{batch_number}", _ConvertBatch(batch))
        for batch_number, batch in enumerate(batches)
    )
    converted = results_in_order((scanned, schema), tasks, None)
    first, done = next(converted), 0
    few = columns_of_few_values(first)
    with (
        closing(converted),
        whole_file(path, "path") as file,
        parquet.ParquetWriter(file, schema, use_dictionary=few) as writer,
    ):
        for batch in chain([first], converted):
            writer.write_batch(batch)
            done += batch.num_rows
            show_progress(done, scanned.n_rows)


def pool_notes(path: str | Path) -> list[str]:
    """Return why columns of a pool from a text file are text, if that is not plain."""
    location = os.fspath(path)
    if not location.lower().endswith(PARQUET) or not os.path.isfile(location):
        return []
    metadata = (field.metadata or {} for field in parquet.read_schema(location))
    return [
        field_metadata[NOTE].decode()
        for field_metadata in metadata
        if NOTE in field_metadata
    ]


class _ConvertBatch(NamedTuple):
    """Some rows of a text table, to be converted to the types of their columns."""

    texts: pa.RecordBatch

    def run(
        self, columns_and_schema: tuple[_TextColumns, pa.Schema], inputs: Inputs
    ) -> Output[pa.RecordBatch]:
        """Return the rows as they are written."""
        scanned, schema = columns_and_schema
        arrays = [
            pc.cast(scanned.convert(self.texts.column(column.name), column), field.type)
            for column, field in zip(scanned.columns, schema, strict=True)
        ]
        return Output(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _arrow_type(column: ColumnSchema, scanned: _TextColumns) -> pa.DataType:
    """Return the type in which a column is written to Parquet."""
    if column.form.is_amount:
        return pa.string()
    if column.kind.is_number:
        is_whole = column.kind is Kind.WHOLE and column.name not in scanned.with_gaps
        # Under the schema of another table integers may still have fractions here.
        return pa.int64() if is_whole and scanned.is_own else pa.float64()
    if column.kind is Kind.TRUTH:
        return pa.bool_()
    if column.kind.is_time:
        return pa.timestamp("us", "UTC" if column.kind is Kind.ZONED_TIMES else None)
    return pa.string()


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type of the pool's values; TypeError where they are not numbers."""
    try:
        numbers: np.dtype[Any] = np.dtype(dtype)
    except Exception:  # frames and user classes may raise anything
        numbers = np.dtype(object)
    if numbers.kind not in NUMERIC or numbers.itemsize > 8:
        raise TypeError(
            f"`dtype` must be a type of numbers of at most 8 bytes, such as 'float32', "
            f"got {show(dtype)}."
        )
    return numbers


def _cast_rows(rows: AnyArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows in another type; ValueError where that would change a value."""
    with np.errstate(invalid="ignore"):
        cast = rows.astype(dtype, copy=False)
    if (changed := find_cast_changes(rows, cast)) is not None:
        raise ValueError(
            f"`dtype` {dtype.name} cannot hold {rows[changed].flat[0]!s}, a value of "
            f"the source; write 'float32' or 'float64'."
        )
    return cast
