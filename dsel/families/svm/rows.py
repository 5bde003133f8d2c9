"""Labeled rows as input of kernel SVMs: transformed, and sorted by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse

from dsel.arrays import Features, Integers, as_floats
from dsel.data.frames import read_only_rows
from dsel.families.prefixes import transform_rows
from dsel.kernels.reference_rows import squared_lengths

if TYPE_CHECKING:
    from dsel.families.svm.machines import Machines

MAX_SQUARED_NORM: Final[Mapping[str, float]] = {
    "linear": float(np.finfo(np.float32).max)
}
"""Largest squared norm of a row by kernel; libsvm keeps kernel values in float32."""
MAX_SQUARED_NORM_OTHERWISE: Final = float(np.finfo(np.float64).max) / 4
"""Largest squared norm for other kernels: squared distances are up to four times as
large, and computed in float64."""


@dataclass(frozen=True)
class RowsByClass:
    """Labeled rows sorted by class, as input of the SVMs of one split or of all."""

    origin: str
    """Cache key of these rows and the steps that transformed them."""
    steps: Sequence[tuple[str, Any]]
    """Fitted steps before the SVC."""
    numbers: Integers
    """Labeled row numbers, ascending within each class."""
    starts: Integers
    """Where each class code begins, and the end, (n_classes + 1,)."""
    rows: Any
    """The rows, float64, dense or CSR; for a precomputed kernel the kernel values."""
    n_values: int = 0
    """Number of columns of a precomputed kernel, one for each labeled row; 0 for other
    kernels."""
    takes_frames: bool = False
    """Whether the steps turn data frames into numbers."""
    columns: tuple[str, ...] | None = None
    """Names of the columns, if the rows that an SVC would get are a data frame."""

    def positions(self, numbers: Integers) -> Integers:
        """Return the positions of labeled rows in `rows`, by their row numbers."""
        order = np.argsort(self.numbers)
        return order[np.searchsorted(self.numbers, numbers, sorter=order)]

    def transform(self, X: Features) -> Any:
        """Transform other rows as input of the SVMs."""
        if self.n_values:
            values = as_floats(X)[:, self.numbers]
            return values.toarray() if sparse.issparse(values) else values
        return as_floats(
            transform_rows(self.steps, read_only_rows(X)) if self.steps else X
        )


def rows_by_class(
    y: Integers, n_classes: int, numbers: Integers, X: Features, **fields: Any
) -> RowsByClass:
    """Return rows `X` of class codes `y` and ascending labeled row numbers."""
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], np.arange(n_classes + 1))
    return RowsByClass(numbers=numbers[order], starts=starts, rows=X[order], **fields)


def check_row_norms(rows: Any, kernel: str) -> Any:
    """Return rows in float64; raise if one is not finite, or its norm is too large."""
    rows = as_floats(rows)
    with np.errstate(over="ignore"):
        largest = float(squared_lengths(rows).max(initial=0.0))
    most = MAX_SQUARED_NORM.get(kernel, MAX_SQUARED_NORM_OTHERWISE)
    if kernel != "precomputed" and not largest <= most:
        raise ValueError(
            f"squared lengths of rows in `X` and `pool` must be below {most:.2g} for "
            f"kernel={kernel!r}, got {largest:.3g}; scale the features."
        )
    return rows


def pack_rows(
    row_sets: Sequence[Mapping[str, RowsByClass]], machines: Sequence["Machines"]
) -> dict[str, RowsByClass]:
    """Return the support vectors of the SVMs, by `RowsByClass.origin`."""
    support: dict[str, list[Integers]] = {}
    for svms in machines:
        support.setdefault(svms.rows_of, []).append(svms.numbers)
    packed = {}
    for origin, wanted in support.items():
        sources = [row_set[origin] for row_set in row_sets if origin in row_set]
        first = sources[0]
        n_classes = len(first.starts) - 1
        codes = np.concatenate(
            [np.repeat(np.arange(n_classes), np.diff(s.starts)) for s in sources]
        )
        numbers = np.concatenate([source.numbers for source in sources])
        _, places = np.unique(numbers, return_index=True)
        places = places[np.isin(numbers[places], np.concatenate(wanted))]
        # Precomputed kernel values come with the rows that are predicted, so the
        # columns are not stored.
        tables = [s.rows[:, :0] if first.n_values else s.rows for s in sources]
        stack: Any = sparse.vstack if sparse.issparse(first.rows) else np.concatenate
        rows = stack(tables) if len(tables) > 1 else tables[0]
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        packed[origin] = rows_by_class(
            codes[places],
            n_classes,
            numbers[places],
            rows[places],
            origin=origin,
            steps=first.steps,
            n_values=first.n_values,
            takes_frames=first.takes_frames,
            columns=first.columns,
        )
    return packed
