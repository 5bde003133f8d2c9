"""Writing a pool to zarr: chunk by chunk, so that it may be larger than memory."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import sparse

from dsel.checks import check_integer, check_path
from dsel.data.blocks import (
    check_finite,
    count_entries,
    cut_rows,
    read_blocks,
    rechunked,
)
from dsel.data.open import COMPLETE, NUMERIC, open_pool, rooted
from dsel.data.parquet_write import check_csv, write_parquet
from dsel.data.pool import Pool
from dsel.data.pool_writer import PoolSchema, PoolWriter, Progress, open_node
from dsel.data.tables import (
    CSV,
    NPZ,
    PARQUET,
    SVMLIGHT,
    RowStream,
    open_stream,
    read_table,
)
from dsel.data.zarr_rows import file_stamps
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

CHUNK_NBYTES: Final = 2**25 - 2**12
"""Bytes of a chunk where the source suggests none: 20 to 100 MB read fastest.

With its header it stays below the 32 MiB that workers keep for the next chunk.
"""
LARGEST_CHUNK_NBYTES: Final = 10**8


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
    """Write unlabeled rows as a zarr pool; once interrupted, the same call goes on.

    Parameters
    ----------
    source
        The path of a CSV, TSV, Parquet, npz or svmlight file, or whatever
        `open_pool` takes. Only what is needed for some chunks is in memory at once;
        npz and svmlight files are read whole.
    path
        Path or URL of the pool to write. Sparse rows become parts of CSR. A CSV or TSV
        file with columns of text goes to a path that ends in ``.parquet``; it is then
        written from its beginning.
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
        current one, else local threads. Tables are read here, in order.
    on_progress
        Called with the rows written and the number of all rows, None if unknown.

    Returns
    -------
    Pool
        The pool at `path`, opened.

    Raises
    ------
    FileExistsError
        Where another pool is there already.
    TypeError
        Where `dtype` is no type of numbers.
    ValueError
        Where a value is infinite or does not fit, or the source cannot be read.

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
    if text.endswith((*CSV, *PARQUET)):
        rows: PoolRows | StreamRows = _stream_rows(str(source), target, dtype)
    elif text.endswith((*NPZ, *SVMLIGHT)):
        rows = _pool_rows(_pool_in_file(source, target), dtype)
    else:
        at_url = options if "://" in text else None
        rows = _pool_rows(open_pool(source, storage_options=at_url), dtype)
    size = chunk_rows or rows.chunk_rows()
    place = rooted(str(path))
    its_options = options if "://" in place else {}
    node = open_node(place, rows.schema, size, its_options)
    if not node.attrs[COMPLETE]:
        rows.write(PoolWriter(node, size, on_progress), resolve_client(client))
    return open_pool(place, storage_options=options)


@dataclass(frozen=True)
class PoolRows:
    """Rows of a pool: chunks can be read and written in any order."""

    pool: Pool
    schema: PoolSchema

    def chunk_rows(self) -> int:
        """Return the rows of a chunk that suits the source's chunks."""
        nearby = max(CHUNK_NBYTES // self.pool.row_nbytes, 1)
        source_rows = self._source_rows()
        if source_rows is None:
            return nearby
        if source_rows < nearby:
            return nearby // source_rows * source_rows
        most = max(LARGEST_CHUNK_NBYTES // self.pool.row_nbytes, 1)
        fewest = -(-source_rows // most)
        for parts in range(fewest, fewest + 64):
            if source_rows % parts == 0:
                return source_rows // parts
        return nearby

    def write(self, writer: PoolWriter, client: Any) -> None:
        """Write range by range as tasks; each chunk has one writer."""
        n_rows, size = self.pool.n_rows, writer.chunk_rows
        source_rows = self._source_rows() or size
        # A long chunk of the source is read once and written as several.
        per_task = source_rows // size if source_rows % size == 0 else 1
        first = writer.written // per_task
        starts = range(first * per_task * size, n_rows, per_task * size)
        tasks = [
            self._task(start, min(start + per_task * size, n_rows)) for start in starts
        ]
        work = (PoolWriter(writer.node, size), self.schema.dtype)
        for number, entries in enumerate(records_in_order(work, tasks, client)):
            done = min((first + number + 1) * per_task, -(-n_rows // size))
            writer.mark(done, entries, min(done * size, n_rows), n_rows)
        writer.finish(n_rows)

    def _task(self, start: int, stop: int) -> Task:
        span, skipped = self.pool.covering(start, stop)
        arguments = (start, skipped, stop - start)
        sources = partial(self.pool.sources, span)
        return Task(f"write-{start}", write_range, arguments, sources)

    def _source_rows(self) -> int | None:
        """Return the length of the source's chunks, if they have one and matter."""
        lengths = np.diff(self.pool.boundaries)
        if self.pool.filters or len(lengths) < 2 or (lengths[:-1] != lengths[0]).any():
            return None
        return int(lengths[0])


def write_range(
    work: tuple[PoolWriter, np.dtype[Any]],
    payloads: Sequence[Any],
    sources: Sequence[Any],
    start: int,
    skipped: int,
    n_rows: int,
) -> tuple[int, None]:
    """Write some whole chunks from sources; return the number of entries."""
    del payloads  # rows are all that is read
    writer, dtype = work
    blocks = (
        block.X for block in read_blocks(sources, writer.chunk_rows, allow_nan=True)
    )
    entries = 0
    for number, rows in enumerate(
        rechunked(cut_rows(blocks, skipped, n_rows), writer.chunk_rows),
        start // writer.chunk_rows,
    ):
        writer.write_chunk(number, _held(rows, dtype))
        entries += count_entries(rows)
    return entries, None


@dataclass(frozen=True)
class StreamRows:
    """Rows of a table, which can only be read in order."""

    stream: RowStream
    schema: PoolSchema

    def chunk_rows(self) -> int:
        """Return the rows of a chunk."""
        row_nbytes = self.schema.n_columns * self.schema.dtype.itemsize
        return max(CHUNK_NBYTES // max(row_nbytes, 1), 1)

    def write(self, writer: PoolWriter, client: Any) -> None:
        """Write chunk by chunk, here: the file is read once from its beginning."""
        n_rows = 0
        written = writer.written
        for number, rows in enumerate(
            rechunked(self.stream.blocks(), writer.chunk_rows)
        ):
            here = np.arange(n_rows, n_rows + rows.shape[0])
            check_finite(rows, "`source`", here, self.schema.columns, allow_nan=True)
            n_rows += rows.shape[0]
            if number < written:
                continue
            writer.node.resize((n_rows, self.schema.n_columns))
            writer.write_chunk(number, _held(rows, self.schema.dtype))
            writer.mark(number + 1, count_entries(rows), n_rows, None)
        writer.finish(n_rows)


def _number_type(dtype: Any, of_source: np.dtype[Any]) -> np.dtype[Any]:
    """Return what the pool holds, or raise TypeError where that is no number."""
    try:
        found = np.dtype(of_source if dtype is None else dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in NUMERIC or found.itemsize > 8:
        if dtype is None:
            raise TypeError(
                f"`source` must be numeric, but holds {of_source}; a search takes "
                f"tables of text or other types themselves as pools, or name a `dtype` "
                f"of numbers."
            )
        raise TypeError(
            f"`dtype` must be a type of numbers of at most 8 bytes, such as 'float32', "
            f"got {dtype!r}."
        )
    return found


def _held(rows: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows in another type, or raise ValueError where it changes a value."""
    with np.errstate(invalid="ignore"):
        held = rows.astype(dtype, copy=False)
    before, after = (x.data if sparse.issparse(x) else x for x in (rows, held))
    if dtype.kind != "f" and (wrong := before != after).any():
        raise ValueError(
            f"`dtype` {dtype.name} cannot hold {before[wrong].flat[0]!s}, a value of "
            f"the source; write 'float32' or 'float64'."
        )
    return held


def _pool_rows(pool: Pool, dtype: Any) -> PoolRows:
    pool = pool.reopened()
    schema = PoolSchema(
        token=pool.token,
        n_rows=pool.n_rows,
        n_columns=pool.n_columns,
        dtype=_number_type(dtype, pool.dtype),
        columns=pool.columns,
        is_sparse=pool.is_sparse,
    )
    return PoolRows(pool, schema)


def _pool_in_file(path: Any, target: str | None) -> Pool:
    table = read_table(_existing_file(path), target=target)
    if sparse.issparse(table.X) and not table.X.shape[0]:
        raise ValueError(
            f"`source` {str(path)!r} must hold a row at least, but has none."
        )
    return open_pool(table.X, columns=table.columns)


def _existing_file(path: Any) -> str:
    if not os.path.exists(path):
        raise FileNotFoundError(f"`source` must exist, but nothing is at {path!r}.")
    return str(path)


def _stream_rows(path: str, target: str | None, dtype: Any) -> StreamRows:
    stream = open_stream(_existing_file(path), target=target)
    text = f"{file_stamps(path, {})} {target} {stream.columns}"
    schema = PoolSchema(
        token="table-" + blake2b(text.encode(), digest_size=16).hexdigest(),
        n_rows=None,
        n_columns=len(stream.columns),
        dtype=_number_type(dtype, np.dtype(np.float64)),
        columns=stream.columns,
        is_sparse=False,
    )
    return StreamRows(stream, schema)
