"""Results for every row of a pool: computed span by span, written by the driver."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray

from dsel.data.blocks import read_blocks
from dsel.data.clients import resolve_client
from dsel.data.pool import Pool
from dsel.searches.executing.executors import make_executor
from dsel.searches.executing.jobs import Job, completed

SPAN_ROWS: Final = 2**16
"""Rows of a task: seconds of scoring, and a megabyte to bring home."""
CHUNK_ROWS: Final = 2**18
"""Rows of a chunk of the written arrays."""

RowTask = Callable[[Any, NDArray[np.int64]], Mapping[str, NDArray[Any]]]
"""Takes a block and its row numbers, returns one array a field, rows first."""


def write_rows(
    pool: Pool,
    path: Any,
    task: RowTask,
    fields: Mapping[str, tuple[tuple[int, ...], str, Any]],
    *,
    block_rows: int,
    attributes: Mapping[str, Any],
    client: Any = None,
) -> None:
    """Compute `task` for every row of the pool and write its fields as zarr arrays.

    Rows stand at their global numbers; those that the pool's filters leave out keep
    the fill value. One process writes, so no two writers share a chunk, and what a
    span returns is dropped once it is written.

    Parameters
    ----------
    pool
        The rows.
    path
        Folder or URL of a new zarr group.
    task
        What to compute for a block.
    fields
        Name to shape of one row, dtype and fill value.
    block_rows
        Rows that `task` gets at once.
    attributes
        Attributes of the group.
    client
        Dask client; None is the current one, else local threads.
    """
    arrays = _create(path, int(pool.boundaries[-1]), fields, attributes)
    with closing(make_executor((task, block_rows), resolve_client(client))) as executor:
        jobs = (
            Job(f"rows-{span.start}", _compute_span, (sources,))
            for span in pool.spans(SPAN_ROWS)
            for sources in [pool.sources(span, executor.client)]
        )
        for finished in completed(executor, jobs):
            _write(arrays, *finished.result())


def _create(
    path: Any,
    n_rows: int,
    fields: Mapping[str, tuple[tuple[int, ...], str, Any]],
    attributes: Mapping[str, Any],
) -> dict[str, Any]:
    try:
        group = zarr.open_group(path, mode="w-")
    except FileExistsError as error:
        raise FileExistsError(
            f"`path` {path} exists; choose another one, or delete it."
        ) from error
    group.attrs.update(dict(attributes))
    return {
        name: group.create_array(
            name,
            shape=(n_rows, *row_shape),
            chunks=(min(CHUNK_ROWS, max(n_rows, 1)), *row_shape),
            dtype=dtype,
            fill_value=fill,
        )
        for name, (row_shape, dtype, fill) in fields.items()
    }


def _write(
    arrays: Mapping[str, Any],
    rows: NDArray[np.int64],
    values: Mapping[str, NDArray[Any]],
) -> None:
    start, stop = int(rows[0]), int(rows[-1]) + 1
    whole = len(rows) == stop - start
    for name, array in arrays.items():
        if whole:
            array[start:stop] = values[name]
        else:
            array.set_orthogonal_selection((rows,), values[name])


def _compute_span(
    work: tuple[RowTask, int], payloads: Sequence[Any], sources: list[Any]
) -> tuple[tuple[NDArray[np.int64], dict[str, NDArray[Any]]], None]:
    del payloads  # a span depends on nothing but its rows
    task, block_rows = work
    blocks = [
        (block.rows, task(block.X, block.rows))
        for block in read_blocks(sources, block_rows)
    ]
    names = blocks[0][1].keys()
    rows = np.concatenate([rows for rows, _ in blocks])
    values = {
        name: np.concatenate([found[name] for _, found in blocks]) for name in names
    }
    return (rows, values), None
