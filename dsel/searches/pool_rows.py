"""Results for every row of a pool: computed span by span, written by the driver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted
from zarr.abc.store import Store
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.sync import sync
from zarr.storage import LocalStore

from dsel.data.blocks import read_blocks
from dsel.data.collection import Partitions
from dsel.data.frames import native, pandas_of, unchangeable
from dsel.data.labeled import check_columns, codes_of
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.families.vote import FoldVote
from dsel.results.store import naming_damage, open_store
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Task
from dsel.searches.candidates import takes_nan
from dsel.stores import HEAD, WholeStore, check_array, check_empty, check_outside

SPAN_ROWS: Final = 2**16
"""Rows of a task: seconds of scoring, and a megabyte to bring home."""
CHUNK_ROWS: Final = 2**18
"""Rows of a chunk of the written arrays."""
WAY_OUT: Final = "delete it and write it again"
PREDICTED_ROWS: Final = 2**14
"""Rows that a model predicts at once."""
STORED: Final = {"label": ("int32", -1), "value": ("float64", np.nan)}
"""Type and fill value of what is predicted."""
COMPLETE: Final = "complete"
"""Attribute of the group: whether every row is there."""

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
    allow_nan: bool = False,
) -> None:
    """Compute `task` for every row of the pool and write its fields as zarr arrays.

    Rows stand at their global numbers; those that the pool's filters leave out keep the
    fill value. One process writes, so no two writers share a chunk, and what a span
    returns is dropped once it is written. `fields` are shape of one row, dtype and fill
    value by name; the task gets `block_rows` rows at once, with missing values if it
    may.

    Raises FileExistsError where results for rows or other zarr data are there,
    ValueError where anything else is, or the place lies in a pool or in results.
    """
    group, arrays = _create(path, int(pool.boundaries[-1]), fields, attributes)
    touched: set[int] = set()
    work = task, block_rows, allow_nan
    with closing(make_executor(work, resolve_client(client))) as executor:
        tasks = (
            Task(
                f"rows-{span.start}", _compute_span, sources=partial(pool.sources, span)
            )
            for span in pool.spans(SPAN_ROWS)
        )
        for finished in completed(executor, tasks):
            rows, values = finished.result()
            _write(arrays, rows, values)
            touched.update(np.unique(rows // CHUNK_ROWS).tolist())
    for array in arrays.values():
        for start in range(0, array.shape[0], CHUNK_ROWS):
            if start // CHUNK_ROWS not in touched:  # its rows are all left out
                array[start : start + CHUNK_ROWS] = array.fill_value
    group.attrs[COMPLETE] = True


def predict_pool(model: Any, pool: Any, path: Any, *, client: Any = None) -> None:
    """Predict every row of a pool by a fitted model, and write the answers as zarr.

    Parameters
    ----------
    model
        Any fitted search, estimator or pipeline with `predict`, of dsel or not.
    pool
        Unlabeled rows: anything that `open_pool` takes. A search gets frames of the
        library that it was fitted on; of Parquet files others get those of pandas.
    path
        Folder or URL of a new zarr group. Of a classifier ``label`` holds class codes,
        places in `classes_` (-1 for rows that the pool's filters leave out, -2 for
        answers that are none of them), else ``value`` holds numbers (NaN for rows left
        out). `read_rows` reads them.
    client
        Dask client; None is the current one, else local threads. Tasks return some
        bytes a row, the driver writes.

    Raises
    ------
    FileExistsError
        Where results for rows, or other zarr data, are there.
    ValueError
        Where the model does not take the pool's rows.

    See Also
    --------
    NonconformityClassifier.predict_pool : Writes more than labels.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier().fit(X[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     predict_pool(model, X[1::2], f"{folder}/answers.zarr")
    ...     [(_, codes)] = read_rows(f"{folder}/answers.zarr", "label")
    >>> bool((model.classes_[codes] == model.predict(X[1::2])).all())
    True
    """
    if hasattr(model, "predict_pool"):  # its answers depend on the numbers of the rows
        model.predict_pool(pool, path, client=client)
        return
    check_is_fitted(model)
    opened = open_pool(pool)
    frames = opened.collection.frames
    if frames is not None and hasattr(model, "feature_names_in_"):
        opened = replace(opened, collection=frames())
    n_columns = getattr(model, "n_features_in_", opened.n_columns)
    check_columns(opened, n_columns, getattr(model, "feature_names_in_", None))
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    rows = opened.collection
    is_read = isinstance(rows.array, Partitions) and not rows.is_in_memory
    answers = Answers(model, classes, is_read and not hasattr(model, "frame_schema_"))
    fitted = getattr(model, "best_estimator_", model)  # of a search
    allow_nan = takes_nan(fitted.models if isinstance(fitted, FoldVote) else [fitted])
    if opened.n_rows == 0:
        raise ValueError("`pool` must have rows to predict, got none.")
    # A row is answered first: an unfitted model, or other columns, are told at once.
    span = opened.spans(1)[0]
    found = opened.between(span.start, span.stop).reduce(
        lambda X, rows: answers(X[:1], rows[:1]),
        lambda first, _: first,
        client=client,
        allow_nan=allow_nan,
    )
    write_rows(
        opened,
        path,
        answers,
        {name: (some.shape[1:], *STORED[name]) for name, some in found.items()},
        block_rows=PREDICTED_ROWS,
        attributes={}
        if classes is None
        else {"classes": [str(label) for label in classes]},
        client=client,
        allow_nan=allow_nan,
    )


@dataclass(frozen=True)
class Answers:
    """What a fitted model predicts, as the arrays that are written for a pool."""

    model: Any
    classes: NDArray[Any] | None
    as_pandas: bool
    """Whether blocks are frames, of which the model did not say the library."""

    def __call__(self, X: Any, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the codes of labels, or values, of a block."""
        del rows
        given = unchangeable(pandas_of(native(X)) if self.as_pandas else X)
        found = np.asarray(self.model.predict(given))
        if self.classes is None:
            return {"value": found}
        # Answers that are no class have codes of their own, too long for an int32.
        return {"label": np.maximum(codes_of(found, self.classes), -2)}


def read_rows(path: Any, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
    """Read a field that was written for every row of a pool, chunk by chunk.

    Zarr by itself takes a chunk that was lost for rows that the pool left out.

    Parameters
    ----------
    path
        Folder, URL or zarr store that ``predict_pool``, `write_row_disagreement` or
        `write_half_disagreement` wrote.
    name
        The field, such as ``label`` or ``disagreement``.

    Yields
    ------
    start, values
        Row number of the first value, and the values of consecutive rows.

    Raises
    ------
    FileNotFoundError
        Where nothing is there.
    ValueError
        Where it has no such field, was not written to the end, or a chunk is missing
        or damaged.
    """
    store = open_store(path, read_only=True, name="path")
    array = _opened(store, name)
    for start in range(0, array.shape[0], array.chunks[0]):
        stop = min(start + array.chunks[0], array.shape[0])
        with naming_damage(store, way_out=WAY_OUT):
            values = _values(array, start, stop)
        yield start, values


def _opened(store: Store, name: str) -> Any:
    try:
        with naming_damage(store, way_out=WAY_OUT):
            group = zarr.open_group(store, mode="r", zarr_format=3)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"`path` {store} holds no results for rows.") from error
    if group.attrs.get(COMPLETE) is False:
        raise ValueError(f"`path` {store} was not written to the end; {WAY_OUT}.")
    # Earlier versions left chunks out where no row had a value.
    whole = WholeStore(store) if COMPLETE in group.attrs else store
    with naming_damage(store, way_out=WAY_OUT):
        fields = dict(zarr.open_group(whole, mode="r", zarr_format=3).arrays())
        if name in fields:
            check_array(fields[name])
            return fields[name]
    raise ValueError(
        f"`name` must be a field of {store}, which has {', '.join(sorted(fields))}; "
        f"got {name!r}."
    )


def _values(array: Any, start: int, stop: int) -> NDArray[Any]:
    try:
        return np.asarray(array[start:stop])
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"{array.basename}, rows {start} to {stop - 1}: {error}"
        ) from error


def _create(
    path: Any,
    n_rows: int,
    fields: Mapping[str, tuple[tuple[int, ...], str, Any]],
    attributes: Mapping[str, Any],
) -> tuple[zarr.Group, dict[str, Any]]:
    store = open_store(path, name="path")
    if isinstance(store, LocalStore):
        check_outside(store.root, "path")
    if sync(store.exists(HEAD)):
        raise FileExistsError(
            f"`path` {path} exists; choose another one, or delete it."
        )
    check_empty(store, "path")
    group = zarr.create_group(
        store, attributes={**attributes, COMPLETE: False}, zarr_format=3
    )
    arrays = {
        name: group.create_array(
            name,
            shape=(n_rows, *row_shape),
            chunks=(min(CHUNK_ROWS, max(n_rows, 1)), *row_shape),
            dtype=dtype,
            fill_value=fill,
            compressors=[ZstdCodec(), Crc32cCodec()],
            config={"write_empty_chunks": True},  # of these objects, not stored
        )
        for name, (row_shape, dtype, fill) in fields.items()
    }
    return group, arrays


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
    work: tuple[RowTask, int, bool], payloads: Sequence[Any], sources: list[Any]
) -> tuple[tuple[NDArray[np.int64], dict[str, NDArray[Any]]], None]:
    del payloads  # a span depends on nothing but its rows
    task, block_rows, allow_nan = work
    blocks = [
        (block.rows, task(block.X, block.rows))
        for block in read_blocks(sources, block_rows, allow_nan=allow_nan)
    ]
    names = blocks[0][1].keys()
    rows = np.concatenate([rows for rows, _ in blocks])
    values = {
        name: np.concatenate([found[name] for _, found in blocks]) for name in names
    }
    return (rows, values), None
