"""Labeled rows as kernel machines see them: class by class, through a transformer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from dsel.arrays import Integers, as_floats
from dsel.data.frames import Frame, unchangeable
from dsel.data.splits import Split
from dsel.families.family import Cache
from dsel.families.prefixes import fitted_prefix, transformed
from dsel.kernels.reference_rows import is_sparse, squared_lengths

if TYPE_CHECKING:
    from dsel.families.svm.machines import Machines

AS_GIVEN: Final = ""
MOST: Final[Mapping[str, float]] = {"linear": float(np.finfo(np.float32).max)}
"""Squared length of rows at most: libsvm keeps kernel values in float32 ..."""
MOST_OF_OTHERS: Final = float(np.finfo(np.float64).max) / 4
"""... and squared distances are up to four times as large."""


@dataclass(frozen=True)
class RowsByClass:
    """Labeled rows, class by class, as one split's machines or all see them."""

    origin: str
    """What tells rows of one transformer from those of another; ``AS_GIVEN`` where
    there is none. Pipelines with other steps make other rows of the same split."""
    transformer: Any
    """Fitted pipeline of the steps before the SVC, or None."""
    numbers: Integers
    """Labeled row numbers, ascending within each class."""
    starts: Integers
    """Where each class code begins, and the end, (n_classes + 1,)."""
    rows: Any
    """The rows, float64, dense or CSR; for a precomputed kernel its values."""
    rows_at_predict: Any
    """The rows as they are when predicted; other than `rows` for a transformer whose
    `fit_transform` is not `fit` and `transform`."""
    n_values: int = 0
    """How many labeled rows the columns are, of a precomputed kernel; 0 of others."""
    takes_frames: bool = False
    """Whether the transformer makes numbers of data frames."""

    @property
    def by_column(self) -> bool:
        """Whether columns are labeled rows: a precomputed kernel."""
        return self.n_values > 0

    def transform(self, X: Any) -> Any:
        """Return other rows as the machines see them."""
        if self.by_column:
            values = as_floats(X)[:, self.numbers]
            return values.toarray() if is_sparse(values) else values
        return as_floats(
            X
            if self.transformer is None
            else transformed(self.transformer.steps, unchangeable(X))
        )


def usable(rows: Any, kernel: str) -> Any:
    """Return rows in float64; raise where one is not finite, or too long."""
    rows = as_floats(rows)
    with np.errstate(over="ignore"):
        longest = float(squared_lengths(rows).max(initial=0.0))
    if kernel != "precomputed" and not longest <= MOST.get(kernel, MOST_OF_OTHERS):
        raise ValueError(
            f"squared lengths of rows must be below "
            f"{MOST.get(kernel, MOST_OF_OTHERS):.2g} for kernel={kernel!r}, got "
            f"{longest:.3g}; scale the features."
        )
    return rows


def rows_as_given(X: Any, y: Integers, n_classes: int, kernel: str) -> RowsByClass:
    """Return the labeled rows themselves, class by class."""
    numbers, starts = _class_by_class(y, n_classes)
    rows, n_values = usable(X, kernel)[numbers], 0
    if kernel == "precomputed":
        rows, n_values = rows[:, numbers], len(y)
    return RowsByClass(AS_GIVEN, None, numbers, starts, rows, rows, n_values)


def rows_of_split(
    steps: list[tuple[str, Any]],
    X: Any,
    y: Integers,
    labels: NDArray[Any],
    split: Split,
    *,
    kernel: str,
    seed: int,
    cache: Cache,
    origin: str,
) -> tuple[RowsByClass, tuple[Exception | None, ...]]:
    """Return all rows as they leave the steps before an SVC, fitted on a training set.

    `labels` are those of the class codes `y`, `kernel` is the SVC's, and `origin` a
    text that other steps, rows or training rows do not have. Rows that the split does
    not name are zeros, and so are the parts of its test rows that were refused. Beside
    the rows is what was raised on each part, None where nothing was.
    """
    fitted, train, tests = fitted_prefix(
        Pipeline(steps), X, y, labels, split, seed=seed, cache=cache
    )
    seen, tables = [split.train_rows], [usable(train, kernel)]
    refusals: list[Exception | None] = []
    predicted = tables[0]
    for part, table in zip(split.tests, tests, strict=True):
        refusals.append(table if isinstance(table, Exception) else None)
        try:
            table = None if refusals[-1] or table is None else usable(table, kernel)
        except ValueError as error:
            refusals[-1], table = error, None
        if part is split.train_rows and table is not None:
            predicted = table
        elif table is not None:
            seen.append(part)
            tables.append(table)
    numbers, starts = _class_by_class(y, len(labels))
    rows = at_predict = _by_number(seen, tables, len(y))[numbers]
    if not _equal(predicted, tables[0]):
        at_predict = _by_number(seen, [predicted, *tables[1:]], len(y))[numbers]
    return RowsByClass(
        origin, Pipeline(fitted), numbers, starts, rows, at_predict,
        takes_frames=isinstance(X, Frame),
    ), tuple(refusals)  # fmt: skip


def _by_number(seen: Sequence[Integers], tables: Sequence[Any], n_rows: int) -> Any:
    """Return a table of all labeled rows; zeros for those that are in no table."""
    shape = n_rows, tables[0].shape[1]
    _, firsts = np.unique(np.concatenate((*seen, np.arange(n_rows))), return_index=True)
    if any(is_sparse(table) for table in tables):
        return sparse.vstack((*tables, sparse.csr_array(shape))).tocsr()[firsts]
    return np.concatenate((*tables, np.zeros(shape)))[firsts]


def _class_by_class(y: Integers, n_classes: int) -> tuple[Integers, Integers]:
    numbers = np.argsort(y, kind="stable")
    return numbers, np.searchsorted(y[numbers], np.arange(n_classes + 1))


def _equal(first: Any, second: Any) -> bool:
    if is_sparse(first):
        return bool((first != second).nnz == 0)
    return bool(np.array_equal(first, second))


def packed_rows(
    pieces: Sequence[Mapping[str, RowsByClass]], machines: Sequence["Machines"]
) -> dict[str, RowsByClass]:
    """Return the support vectors of the machines, by `RowsByClass.origin`."""
    needed: dict[str, list[Integers]] = {}
    for each in machines:
        needed.setdefault(each.rows_of, []).append(each.numbers)
    return {
        origin: _union([p[origin] for p in pieces if origin in p], np.concatenate(some))
        for origin, some in needed.items()
    }


def _union(several: Sequence[RowsByClass], needed: Integers) -> RowsByClass:
    """Return the rows of all that are needed, class by class."""
    first = several[0]
    n_classes = len(first.starts) - 1
    codes = np.concatenate(
        [np.repeat(np.arange(n_classes), np.diff(each.starts)) for each in several]
    )
    numbers = np.concatenate([each.numbers for each in several])
    _, firsts = np.unique(numbers, return_index=True)
    firsts = firsts[np.isin(numbers[firsts], needed)]
    order = firsts[np.argsort(codes[firsts], kind="stable")]
    # Precomputed values come with the rows that are to be predicted.
    tables = [each.rows[:, :0] if first.by_column else each.rows for each in several]
    rows: Any = tables[0]
    if len(tables) > 1:
        stack = sparse.vstack if is_sparse(rows) else np.concatenate
        rows = stack(tables)
        rows = rows.tocsr() if is_sparse(rows) else rows
    starts = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return replace(
        first, numbers=numbers[order], starts=starts, rows=rows[order],
        rows_at_predict=rows[order],
    )  # fmt: skip
