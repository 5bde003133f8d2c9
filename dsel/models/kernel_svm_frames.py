"""Labeled rows as kernel machines see them: class by class, through a transformer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from dsel.data.content import content_hash
from dsel.data.trainings import Training
from dsel.data.words import hashed_seed
from dsel.kernels.parts import is_sparse

AS_GIVEN: Final = -1


@dataclass(frozen=True)
class Frame:
    """Labeled rows, class by class, as one training's machines or all see them."""

    training: int
    """Training whose transformer made the rows, ``AS_GIVEN`` where there is none."""
    transformer: Any
    """Fitted pipeline of the steps before the SVC, or None."""
    numbers: NDArray[np.int64]
    """Labeled row numbers, ascending within each class."""
    starts: NDArray[np.int64]
    """Where each class code begins, and the end, (n_classes + 1,)."""
    rows: Any
    """The rows, float64, dense or CSR; for a precomputed kernel its values."""
    asked: Any
    """The rows as they are when predicted; other than `rows` for a transformer whose
    `fit_transform` is not `fit` and `transform`."""
    by_column: bool = False
    """Whether columns are labeled rows: a precomputed kernel."""

    def transform(self, X: Any) -> Any:
        """Return other rows as the machines see them."""
        if self.by_column:
            return as_floats(X)[:, self.numbers]
        return as_floats(
            X if self.transformer is None else self.transformer.transform(X)
        )

    def cut(self, places: NDArray[np.int64]) -> "Frame":
        """Return some of the rows, by ascending place."""
        # Precomputed values come with the rows that are asked about.
        kept = self.rows[places, :0] if self.by_column else self.rows[places]
        starts = np.searchsorted(places, self.starts)
        return replace(
            self, numbers=self.numbers[places], starts=starts, rows=kept, asked=kept
        )


def as_floats(X: Any) -> Any:
    """Return rows in float64, dense in C order or CSR.

    Raises
    ------
    ValueError
        Where an entry is infinite or not a number.
    """
    if is_sparse(X):
        rows = X.tocsr().astype(np.float64)
        finite = np.isfinite(rows.data).all()
    else:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        finite = np.isfinite(rows).all()
    if not finite:
        raise ValueError(
            "`X` must be finite for an SVC, got NaN or infinity; put an imputer before "
            "it in a pipeline."
        )
    return rows


def fingerprint(*arrays: Any) -> str:
    """Return a text that names the contents of arrays, dense or sparse."""
    return content_hash(*arrays)


def frame_as_given(
    X: Any, y: NDArray[np.int64], n_classes: int, *, by_column: bool
) -> Frame:
    """Return the labeled rows themselves, class by class."""
    numbers, starts = _class_by_class(y, n_classes)
    rows = as_floats(X)[numbers]
    rows = rows[:, numbers] if by_column else rows
    return Frame(AS_GIVEN, None, numbers, starts, rows, rows, by_column)


def frame_of_training(
    steps: list[tuple[str, Any]],
    X: Any,
    y: NDArray[np.int64],
    labels: NDArray[Any],
    training: Training,
    *,
    seed: int,
) -> Frame:
    """Fit the steps before an SVC on one training set and pass all rows through them.

    Parameters
    ----------
    steps
        Named, unfitted; at least one.
    X, y
        All labeled rows and their class codes.
    labels
        Label of each class code.
    training
        Whose rows the steps are fitted on.
    seed
        Steps whose `random_state` is None get a hash of it.
    """
    front = _seeded(clone(Pipeline(steps)), training, seed)
    train = training.train_rows
    fitted_on = as_floats(
        front.fit_transform(_safe_indexing(X, train), labels[y[train]])
    )
    asked = as_floats(front.transform(X))
    numbers, starts = _class_by_class(y, len(labels))
    rows = asked
    if not _equal(asked[train], fitted_on):
        rows = asked.tolil(copy=True) if is_sparse(asked) else asked.copy()
        rows[train] = fitted_on
        rows = rows.tocsr() if is_sparse(rows) else rows
    ordered = rows[numbers]
    seen = ordered if rows is asked else asked[numbers]
    return Frame(training.number, front, numbers, starts, ordered, seen)


def _class_by_class(
    y: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers = np.argsort(y, kind="stable")
    return numbers, np.searchsorted(y[numbers], np.arange(n_classes + 1))


def _equal(first: Any, second: Any) -> bool:
    if is_sparse(first):
        return bool((first != second).nnz == 0)
    return bool(np.array_equal(first, second))


def _seeded(front: Any, training: Training, seed: int) -> Any:
    """Give every parameter `random_state` that is None a hash of its surroundings."""
    parameters = front.get_params()
    missing = {
        name: hashed_seed(seed, name, training.name)
        for name, value in parameters.items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    return front.set_params(**missing) if missing else front


def places_in_order(
    numbers: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the place of each labeled row among all `numbers`, a permutation."""
    where = np.empty(len(numbers), dtype=np.int64)
    where[numbers] = np.arange(len(numbers))
    return where[rows]


def places_of(numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of labeled rows among all `numbers`, ascending."""
    return np.sort(places_in_order(numbers, rows))


def join_frames(pieces: Sequence[Mapping[int, Frame]]) -> dict[int, Frame]:
    """Return the union of the rows of frames, transformer by transformer."""
    by_training: dict[int, list[Frame]] = {}
    for frames in pieces:
        for key, frame in frames.items():
            by_training.setdefault(key, []).append(frame)
    return {key: _union(frames) for key, frames in by_training.items()}


def _union(frames: list[Frame]) -> Frame:
    """Return a frame with the rows of all, class by class."""
    first = frames[0]
    n_classes = len(first.starts) - 1
    codes = np.concatenate(
        [np.repeat(np.arange(n_classes), np.diff(frame.starts)) for frame in frames]
    )
    numbers = np.concatenate([frame.numbers for frame in frames])
    stack = sparse.vstack if is_sparse(first.rows) else np.concatenate
    rows: Any = stack([frame.rows for frame in frames])
    _, firsts = np.unique(numbers, return_index=True)
    order = firsts[np.argsort(codes[firsts], kind="stable")]
    kept = rows.tocsr()[order] if is_sparse(rows) else rows[order]
    starts = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return replace(first, numbers=numbers[order], starts=starts, rows=kept, asked=kept)
