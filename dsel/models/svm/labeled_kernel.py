"""The kernel matrix of the labeled rows: in full where it fits, else row by row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import DISTANCES, PRODUCTS, Kernel
from dsel.kernels.parts import Anchors, anchor, is_sparse
from dsel.models.arrays import Floats, Integers
from dsel.models.family import Cache
from dsel.models.svm.labeled_rows import RowsByClass
from dsel.solvers.smo_rows import RowCache

BLOCK_NBYTES: Final = 2**23
"""Kernel blocks stay below this, so that what reads them finds them in the cache."""


@dataclass(frozen=True)
class LabeledKernel:
    """One kernel over the labeled rows, as one training sees them."""

    labeled: RowsByClass
    """The rows."""
    kernel: Kernel
    """The kernel."""
    anchors: Anchors
    """The rows as anchors of the kernel's part."""
    part: Floats | None
    """The part of all rows with all rows, where it fits."""
    gram: NDArray[np.float32] | None
    """Kernel values of all rows with all rows, where they fit; as libsvm keeps them."""
    diagonal: Floats
    """Kernel of all rows with themselves, which libsvm keeps without rounding."""
    largest: float
    """Bound of the absolute kernel values."""
    limit: int
    """Bytes for rows that are computed one by one."""

    def block(self, places: Integers) -> Floats:
        """Return kernel values of some rows, as predicted, with all rows."""
        if self.part is not None and self.labeled.rows_at_predict is self.labeled.rows:
            return self.kernel.values(self.part[places])
        return self.kernel.values(
            self.anchors.part_of(self.labeled.rows_at_predict[places])
        )

    def rounding(self, places: Integers) -> tuple[Floats, Floats]:
        """Return relative and absolute error of these rows' kernel values."""
        return self.kernel.rounding(
            *self.anchors.rounding(self.labeled.rows_at_predict[places])
        )

    def exact_row(self, place: int) -> Floats:
        """Return a row's kernel values, computed for it alone."""
        part = self.anchors.exact_part_of(
            self.labeled.rows_at_predict[place : place + 1]
        )
        return self.kernel.values(part)

    def rows_of(self, members: Integers) -> RowCache:
        """Return a cache of kernel rows at the columns of these rows."""
        rows = self.labeled.rows[members]
        if self.labeled.by_column:
            make_row: Callable[[int], Any] = rows[:, members].__getitem__
        else:
            anchors = anchor(rows, self.kernel.part)

            def make_row(row: int) -> Any:
                part = anchors.part_of(anchors.rows[row : row + 1])[0]
                if self.kernel.part == DISTANCES:
                    part[row] = 0.0
                return self.kernel.values(part)

        return RowCache(make_row, self.diagonal[members], nbytes=self.limit)

    @property
    def block_rows(self) -> int:
        """Rows of a block that stays in the processor's cache."""
        return max(16, BLOCK_NBYTES // (8 * max(1, len(self.labeled.numbers))))


def whole_nbytes(n_rows: int) -> int:
    """Return the bytes of a kernel of all rows with all rows, and of its part."""
    return (4 + 8) * n_rows**2


def labeled_kernel(
    labeled: RowsByClass, kernel: Kernel, key: str, budget: Cache
) -> LabeledKernel:
    """Compute what fits of a kernel over the labeled rows.

    Parameters
    ----------
    labeled
        The rows.
    kernel
        The kernel.
    key
        Names the contents of the rows, for the cache.
    budget
        Limits the full matrices and keeps the part that other kernels share.

    Raises
    ------
    ValueError
        Where a kernel value is too large, or cannot be computed.
    """
    n_rows = len(labeled.numbers)
    anchors = anchor(labeled.rows, kernel.part)
    _check_distances(kernel, anchors)
    part, gram = None, None
    if whole_nbytes(n_rows) <= 0.8 * budget.limit:
        part = budget.get(
            f"svm-part-{kernel.part}-{key}", lambda: anchors.part_of(labeled.rows)
        )
    if 4 * n_rows**2 <= 0.6 * budget.limit:
        gram = _gram(kernel, anchors, part)
    largest = _largest(kernel, anchors, gram)
    if not largest <= np.finfo(np.float32).max:
        raise ValueError(
            f"kernel values must be below 3.4e38, got {largest:.3g} for {kernel!r}; "
            f"scale the features."
        )
    own = np.diagonal(labeled.rows).copy() if labeled.by_column else anchors.lengths
    diagonal, limit = kernel.diagonal(own), int(0.6 * budget.limit)
    return LabeledKernel(labeled, kernel, anchors, part, gram, diagonal, largest, limit)


def _check_distances(kernel: Kernel, anchors: Anchors) -> None:
    """Raise where squared distances would be infinite, or the difference of such."""
    if kernel.part != DISTANCES:
        return
    longest = float(anchors.lengths.max(initial=0.0))
    if not 4.0 * longest < np.inf:
        raise ValueError(
            f"squared distances must be below 1.8e308, but a row has a squared length "
            f"of {longest:.3g}; scale the features."
        )


def _gram(kernel: Kernel, anchors: Anchors, part: Floats | None) -> NDArray[np.float32]:
    n_rows = anchors.rows.shape[0]
    gram = np.empty((n_rows, n_rows), dtype=np.float32)
    step = max(16, BLOCK_NBYTES // (8 * max(1, n_rows)))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        if part is not None:
            gram[rows] = kernel.values(part[rows])
            continue
        block = anchors.part_of(anchors.rows[rows])
        if kernel.part == DISTANCES:  # as it is where the part is made in one piece
            block[np.arange(len(block)), np.arange(start, start + len(block))] = 0.0
        gram[rows] = kernel.values(block)
    return gram


def _largest(
    kernel: Kernel, anchors: Anchors, gram: NDArray[np.float32] | None
) -> float:
    """Return a bound of absolute kernel values: the diagonal's, if nothing is known."""
    if kernel.part == DISTANCES:
        return 1.0
    if gram is not None:
        return float(np.abs(gram).max(initial=0.0))
    if kernel.part == PRODUCTS:
        return float(np.abs(kernel.diagonal(anchors.lengths)).max(initial=1.0))
    whole = anchors.rows.data if is_sparse(anchors.rows) else anchors.rows
    return float(np.abs(whole).max(initial=0.0))
