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
from dsel.data.blocks import all_allowed, first_forbidden, read_blocks
from dsel.data.chunking import count_entries, cut_rows, rechunked
from dsel.data.open import COMPLETE, NUMERIC, open_pool, rooted
from dsel.data.pool import Pool
from dsel.data.streams import RowStream, is_table, open_stream
from dsel.data.zarr_rows import file_stamps
from dsel.data.zarr_target import Heading, Progress, Target, open_target
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

CHUNK_NBYTES: Final = 2**25
"""Bytes of a chunk where the source suggests none: 20 to 100 MB read fastest."""
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
    """Write unlabeled rows as a zarr pool; killed anywhere, run it again to go on.

    Parameters
    ----------
    source
        The path of a CSV, TSV, Parquet, npz or svmlight file, or whatever
        `open_pool` takes. Only what is needed for some chunks is in memory at once.
    path
        Path or URL of the pool to write. Sparse rows become parts of CSR.
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
    if isinstance(source, (str, Path)) and is_table(str(source)):
        rows: PoolRows | StreamRows = _stream_rows(str(source), target, dtype)
    else:
        rows = _pool_rows(source, dtype, options)
    size = chunk_rows or rows.chunk_rows()
    place = rooted(str(path))
    its_options = options if "://" in place else {}
    node = open_target(place, rows.heading, size, its_options)
    if not node.attrs[COMPLETE]:
        rows.write(Target(node, size, on_progress), resolve_client(client))
    return open_pool(place, storage_options=options)


@dataclass(frozen=True)
class PoolRows:
    """Rows of a pool: chunks can be read and written in any order."""

    pool: Pool
    heading: Heading

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

    def write(self, target: Target, client: Any) -> None:
        """Write range by range as tasks; each chunk has one writer."""
        n_rows, size = self.pool.n_rows, target.chunk_rows
        source_rows = self._source_rows() or size
        # A long chunk of the source is read once and written as several.
        per_task = source_rows // size if source_rows % size == 0 else 1
        first = target.written // per_task
        starts = range(first * per_task * size, n_rows, per_task * size)
        tasks = [
            self._task(start, min(start + per_task * size, n_rows)) for start in starts
        ]
        work = (Target(target.node, size), self.heading.dtype)
        for number, entries in enumerate(records_in_order(work, tasks, client)):
            done = min((first + number + 1) * per_task, -(-n_rows // size))
            target.mark(done, entries, min(done * size, n_rows), n_rows)
        target.finish(n_rows)

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
    work: tuple[Target, np.dtype[Any]],
    payloads: Sequence[Any],
    sources: Sequence[Any],
    start: int,
    skipped: int,
    n_rows: int,
) -> tuple[int, None]:
    """Write some whole chunks from sources; return the number of entries."""
    del payloads  # rows are all that is read
    target, dtype = work
    blocks = (
        block.X for block in read_blocks(sources, target.chunk_rows, allow_nan=True)
    )
    entries = 0
    for number, rows in enumerate(
        rechunked(cut_rows(blocks, skipped, n_rows), target.chunk_rows),
        start // target.chunk_rows,
    ):
        target.write_chunk(number, _held(rows, dtype))
        entries += count_entries(rows)
    return entries, None


@dataclass(frozen=True)
class StreamRows:
    """Rows of a table, which can only be read in order."""

    stream: RowStream
    heading: Heading

    def chunk_rows(self) -> int:
        """Return the rows of a chunk; of sparse rows, by those of the first block."""
        if not self.stream.is_sparse:
            row_nbytes = self.stream.n_columns * self.heading.dtype.itemsize
            return max(CHUNK_NBYTES // max(row_nbytes, 1), 1)
        first = next(self.stream.blocks())
        row_nbytes = -(-12 * max(int(first.nnz), 1) // int(first.shape[0]))
        return max(CHUNK_NBYTES // row_nbytes, 1)

    def write(self, target: Target, client: Any) -> None:
        """Write chunk by chunk, here: the file is read once from its beginning."""
        n_rows = 0
        written = target.written
        for number, rows in enumerate(
            rechunked(self.stream.blocks(), target.chunk_rows)
        ):
            self._check(rows, n_rows)
            n_rows += rows.shape[0]
            if number < written:
                continue
            if not self.heading.is_sparse:
                target.node.resize((n_rows, self.heading.n_columns))
            target.write_chunk(number, _held(rows, self.heading.dtype))
            target.mark(number + 1, count_entries(rows), n_rows, None)
        target.finish(n_rows)

    def _check(self, rows: Any, start: int) -> None:
        values = rows.data if sparse.issparse(rows) else rows
        if not all_allowed(values, True):
            row, column = first_forbidden(rows, True)
            raise ValueError(
                f"`source` must hold finite numbers, but row {start + row}, column "
                f"{column} is {rows[row, column]}; correct or drop that row."
            )


def _number_type(dtype: Any, of_source: np.dtype[Any]) -> np.dtype[Any]:
    """Return what the pool holds, or raise TypeError where that is no number."""
    try:
        found = np.dtype(of_source if dtype is None else dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in NUMERIC or found.itemsize > 8:
        raise TypeError(
            f"`dtype` must be a type of numbers of at most 8 bytes, such as 'float32', "
            f"got {of_source if dtype is None else dtype!r}."
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


def _pool_rows(source: Any, dtype: Any, options: dict[str, Any]) -> PoolRows:
    at_url = isinstance(source, str) and "://" in source
    pool = open_pool(source, storage_options=options if at_url else None)
    pool = pool.reopened()
    heading = Heading(
        token=pool.token,
        n_rows=pool.n_rows,
        n_columns=pool.n_columns,
        dtype=_number_type(dtype, pool.dtype),
        columns=pool.columns,
        is_sparse=pool.is_sparse,
    )
    return PoolRows(pool, heading)


def _stream_rows(path: str, target: str | None, dtype: Any) -> StreamRows:
    if not os.path.exists(path):
        raise FileNotFoundError(f"`source` must exist, but nothing is at {path!r}.")
    stream = open_stream(path, target=target)
    text = f"{file_stamps(path, {})} {target} {stream.columns}"
    heading = Heading(
        token="table-" + blake2b(text.encode(), digest_size=16).hexdigest(),
        n_rows=None,
        n_columns=stream.n_columns,
        dtype=_number_type(dtype, stream.dtype),
        columns=stream.columns,
        is_sparse=stream.is_sparse,
    )
    return StreamRows(stream, heading)
