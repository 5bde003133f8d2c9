"""Results for every row of a pool: workers compute slices, the driver writes them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.sync import sync
from zarr.errors import ContainsArrayError
from zarr.storage import FsspecStore, LocalStore

from dsel import names, zarr_stores
from dsel.arrays import Integers
from dsel.checks import check_choice
from dsel.data.pool import Pool, read_blocks
from dsel.errors import explain_store_errors, explain_write_errors
from dsel.files import check_folder, remove
from dsel.results.place import Place
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task
from dsel.typing import Options, PathLike

if TYPE_CHECKING:
    from distributed import Client


SLICE_ROWS: Final = 2**16
"""Rows of a task: seconds to predict, and about a megabyte of results to transfer."""
CHUNK_ROWS: Final = 2**18
"""Rows of a chunk of the written arrays."""
WAY_OUT: Final = "delete it and write it again"
COMPLETE: Final = "complete"
"""Attribute of the zarr group: whether every row was written."""
RowValues = Mapping[str, NDArray[Any]]
"""Arrays by field, one row each for every row of a block."""
RowTask = Callable[[Any, Integers], RowValues]
"""Takes a block and its row numbers, returns one array a field, rows first."""


def write_rows(
    pool: Pool,
    path: PathLike,
    task: RowTask,
    fields: Mapping[str, tuple[tuple[int, ...], str, Any]],
    *,
    block_rows: int,
    attributes: Options,
    client: "Client | None" = None,
    allow_nan: bool = False,
) -> None:
    """Compute `task` for every row of the pool and write its fields as zarr arrays.

    The index along rows is the global row number; rows that the pool's filters leave
    out keep the fill value. `fields` are shape of one row, dtype and fill value by
    name; the task gets `block_rows` rows at once, with missing values if `allow_nan`.
    Dimensions have names, so that xarray opens the group, too.
    """
    store = _store(path)
    n_rows = int(pool.boundaries[-1])
    attrs = {**attributes, COMPLETE: False}
    if isinstance(store, LocalStore):
        zarr_stores.check_not_in_pool(store.root, "path")
        check_folder(store.root, "path")
    # The same call may replace its own unfinished file; anything else belongs to
    # somebody.
    if _has_foreign_group(store, attrs):
        raise FileExistsError(
            f"`path` {path} exists; choose another one, or delete it."
        )
    empty = set(range(-(-n_rows // CHUNK_ROWS)))
    work = ComputeRows(block_rows, allow_nan)
    tasks = [
        Task(
            f"predict-rows={pool_slice.start}", work, partial(pool.sources, pool_slice)
        )
        for pool_slice in pool.slices(SLICE_ROWS)
    ]
    with (
        _remove_unless_done(store),
        explain_write_errors(path, "path", also_reads=True),
    ):
        group = zarr.create_group(
            store, attributes=attrs, zarr_format=3, overwrite=True
        )
        arrays: dict[str, Any] = {
            name: group.create_array(
                name,
                shape=(n_rows, *row_shape),
                chunks=(min(CHUNK_ROWS, max(n_rows, 1)), *row_shape),
                dtype=dtype,
                fill_value=fill,
                dimension_names=(names.POOL_ROW, names.OUTPUT)[: 1 + len(row_shape)],
                compressors=[ZstdCodec(), Crc32cCodec()],
                # zarr skips chunks of fill values, but `read_rows` takes a missing
                # chunk for a lost one. The setting is not stored.
                config={"write_empty_chunks": True},
            )
            for name, (row_shape, dtype, fill) in fields.items()
        }
        with pool.guard_pass():
            for rows, values in results_in_order(task, tasks, resolve_client(client)):
                first, stop = int(rows[0]), int(rows[-1]) + 1
                # Row numbers have gaps where the filters leave rows out.
                index = slice(first, stop) if len(rows) == stop - first else rows
                for name, array in arrays.items():
                    array.oindex[index] = values[name]
                empty.difference_update((rows // CHUNK_ROWS).tolist())
        for array in arrays.values():
            for chunk in empty:  # the filters leave out all rows of the chunk
                array[chunk * CHUNK_ROWS : (chunk + 1) * CHUNK_ROWS] = array.fill_value
        # The mark comes last, so that readers refuse the file of a killed run.
        group.attrs[COMPLETE] = True
        zarr_stores.consolidate(store)


def _has_foreign_group(store: Store, attrs: Options) -> bool:
    """Return whether a store has a group that is no unfinished one with `attrs`."""
    if not sync(store.exists(zarr_stores.HEAD)):
        zarr_stores.check_empty(zarr_stores.names_in(store), store, "path")
        return False
    try:
        group = zarr.open_group(store, mode="r", zarr_format=3, use_consolidated=False)
    except (FileNotFoundError, ContainsArrayError, *zarr_stores.BAD_HEADER):
        return True
    return dict(group.attrs) != attrs


@contextmanager
def _remove_unless_done(store: Store) -> Iterator[None]:
    """Remove the store if the block raises, so that a partial one takes no space."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the first error is the one to raise
            zarr_stores.finish_writes()
            if isinstance(store, LocalStore):
                remove(store.root, "path")
            else:
                sync(store.clear())
        raise


def read_rows(
    path: PathLike, name: str | None = None
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Read a field that was written for every row of a pool, chunk by chunk.

    Zarr alone would return fill values for a lost chunk, which look like rows that the
    pool left out; here a missing chunk is an error.

    Parameters
    ----------
    path
        Folder or URL that ``predict_pool`` or `write_row_disagreement` wrote.
    name
        The field, such as ``label`` or ``disagreement``. None means the only one.

    Yields
    ------
    start, values
        Row number of the first value, and the values of consecutive rows.

    Raises
    ------
    FileNotFoundError
        If nothing is there.
    ValueError
        If it has no such field, was not written to the end, or a chunk is missing or
        damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.arange(4.0).reshape(-1, 1)
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.5, 2.5, 3.5, 4.5])
    >>> from dsel.search import predict_pool
    >>> with TemporaryDirectory() as folder:
    ...     path = predict_pool(model, X[:3], f"{folder}/predictions.zarr")
    ...     [values.tolist() for start, values in read_rows(path)]
    [[1.5, 2.5, 3.5]]
    """
    store = _store(path, read_only=True)
    try:
        with explain_store_errors(f"`path` {store}"):
            whole = zarr_stores.WholeStore(store)
            group = zarr.open_group(
                whole, mode="r", zarr_format=3, use_consolidated=False
            )
            fields: dict[str, Any] = dict(group.arrays())
    except (FileNotFoundError, ContainsArrayError) as error:
        raise FileNotFoundError(f"`path` {store} holds no results for rows.") from error
    except zarr_stores.BAD_HEADER as error:
        raise ValueError(f"`path` {store} is damaged ({error}); {WAY_OUT}.") from error
    if not group.attrs.get(COMPLETE):
        raise ValueError(f"`path` {store} was not written to the end; {WAY_OUT}.")
    wanted = next(iter(fields)) if name is None and len(fields) == 1 else name
    array = fields[check_choice(wanted, "name", sorted(fields))]
    zarr_stores.check_array(array)
    for start in range(0, array.shape[0], array.chunks[0]):
        stop = min(start + array.chunks[0], array.shape[0])
        try:
            values = np.asarray(array[start:stop])
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"`path` {array.store} is damaged in {name}, rows {start} to "
                f"{stop - 1} ({error}); {WAY_OUT}."
            ) from error
        yield start, values


def _store(path: PathLike, *, read_only: bool = False) -> Store:
    place = Place(path, name="path")
    if place.folder is not None:
        return LocalStore(place.folder, read_only=read_only)
    return FsspecStore.from_url(str(place), read_only=read_only)


@dataclass(frozen=True)
class ComputeRows:
    """Computes values for consecutive rows of a pool."""

    block_rows: int
    """Rows that are computed at once."""
    allow_nan: bool

    def run(
        self, compute: RowTask, inputs: Inputs
    ) -> Output[tuple[Integers, RowValues]]:
        """Return row numbers, and values by name that `compute` returns."""
        rows, results = zip(
            *(
                (block.row_numbers, compute(block.X, block.row_numbers))
                for block in read_blocks(
                    inputs.sources, self.block_rows, allow_nan=self.allow_nan
                )
            ),
            strict=True,
        )
        values = {
            name: np.concatenate([result[name] for result in results])
            for name in results[0]
        }
        return Output((np.concatenate(rows), values))
