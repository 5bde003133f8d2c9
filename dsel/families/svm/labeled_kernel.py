"""The kernel matrix of the labeled rows: in full where it fits, else row by row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import OWN
from dsel.families.arrays import Floats, Integers
from dsel.families.family import Cache
from dsel.families.svm.labeled_rows import RowsByClass
from dsel.families.svm.smo_rows import Gram, RowCache
from dsel.families.svm.votes import KernelBlock, flush_to_peaks
from dsel.kernels.functions import Kernel, reach_of
from dsel.kernels.reference_rows import (
    DISTANCES,
    PRODUCTS,
    ReferenceRows,
    is_sparse,
    reference_rows,
)

BLOCK_NBYTES: Final = 2**23
"""Kernel blocks stay below this, so that what reads them finds them in the cache."""


@dataclass(frozen=True)
class LabeledKernel:
    """One kernel over the labeled rows, as one split sees them."""

    labeled: RowsByClass
    """The rows."""
    kernel: Kernel
    """The kernel."""
    reference: ReferenceRows
    """The rows, prepared for the base of the kernel."""
    gram: Gram | None
    """Kernel values of all rows with all rows, where they fit."""
    base: Floats | None
    """What they are computed from, where it fits, too."""
    diagonal: Floats
    """Kernel of all rows with themselves, which libsvm keeps without rounding."""
    largest: float
    """Bound of the absolute kernel values."""
    limit: int
    """Bytes for rows that are computed one by one."""

    def block(self, places: Integers) -> KernelBlock:
        """Return kernel values of some rows, as predicted, with all rows."""
        from dsel.families.svm import compiled_votes

        seen = self.labeled.rows_at_predict
        if self.gram is not None and seen is self.labeled.rows:
            values = self.gram.values[places]
        else:
            values = self._values(seen[places]).astype(np.float32)
        lengths = self.reference.lengths_of(seen[places])
        relative, absolute = self.kernel.rounding(
            *self.reference.rounding(lengths, reach_of(self.kernel))
        )
        return KernelBlock(
            values,
            flush_to_peaks(values, self.labeled.starts),
            relative * self.largest + absolute,
            lambda some: self._precise(places[some]),
            lambda one: self._exact_values(seen[places[one] : places[one] + 1]),
            compiled_votes.room_for(len(places), len(self.labeled.starts) - 1),
        )

    def _precise(self, places: Integers) -> Floats:
        """Return the kernel of rows, as predicted, with all rows in float64."""
        seen = self.labeled.rows_at_predict
        if self.base is not None and seen is self.labeled.rows:
            return self.kernel.values(self.base[places])
        return self._values(seen[places])

    def _values(self, rows: Any) -> Floats:
        return self.kernel.values(self.reference.base_of(rows))

    def _exact_values(self, row: Any) -> Floats:
        """Return a row's kernel values, computed for it alone."""
        return self.kernel.values(self.reference.exact_base_of(row))

    def rows_of(self, members: Integers) -> RowCache:
        """Return a cache of kernel rows at the columns of these rows."""
        rows = self.labeled.rows[members]
        if self.labeled.by_column:
            make_row: Callable[[int], Any] = rows[:, members].__getitem__
        else:
            reference = reference_rows(rows, self.kernel.base)

            def make_row(row: int) -> Any:
                base = reference.base_of(reference.rows[row : row + 1])[0]
                if self.kernel.base == DISTANCES:
                    base[row] = 0.0
                return self.kernel.values(base)

        return RowCache(make_row, self.diagonal[members], nbytes=self.limit)

    @property
    def block_rows(self) -> int:
        """Rows of a block that stays in the processor's cache."""
        return max(16, BLOCK_NBYTES // (8 * max(1, len(self.labeled.numbers))))


def whole_nbytes(n_rows: int) -> int:
    """Return the bytes of a kernel of all rows, and of its base."""
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
        Limits the full matrices and keeps the base that other kernels share.

    Raises
    ------
    ValueError
        Where a kernel value is too large, or cannot be computed.
    """
    n_rows = len(labeled.numbers)
    reference = budget.get(
        f"svm-reference-{kernel.base}-{key}",
        lambda: reference_rows(labeled.rows, kernel.base),
    )
    _check_distances(kernel, reference)

    own = np.diagonal(labeled.rows).copy() if labeled.by_column else reference.lengths
    diagonal, limit = kernel.diagonal(own), int(0.6 * budget.limit)

    base = gram = None
    if whole_nbytes(n_rows) <= 0.8 * budget.limit:
        base = budget.get(
            f"svm-base-{kernel.base}-{key}",
            lambda: reference.base_of(reference.rows),
        )
    if 4 * n_rows**2 <= limit:
        gram = budget.get(
            f"{OWN}svm-gram-{kernel!r}-{key}", lambda: _gram(kernel, reference, base)
        )
    largest = _largest(kernel, reference, None if gram is None else gram.values)
    if not largest <= np.finfo(np.float32).max:
        raise ValueError(
            f"kernel values must be below 3.4e38, got {largest:.3g} for {kernel!r}; "
            f"scale the features."
        )
    return LabeledKernel(
        labeled, kernel, reference, gram, base, diagonal, largest, limit
    )


def _check_distances(kernel: Kernel, reference: ReferenceRows) -> None:
    """Raise where squared distances would be infinite, or the difference of such."""
    if kernel.base != DISTANCES:
        return
    longest = float(reference.lengths.max(initial=0.0))
    if not 4.0 * longest < np.inf:
        raise ValueError(
            f"squared distances must be below 1.8e308, but a row has a squared length "
            f"of {longest:.3g}; scale the features."
        )


def _gram(kernel: Kernel, reference: ReferenceRows, base: Floats | None) -> Gram:
    """Return the kernel of all rows with all rows, some rows at a time."""
    n_rows = reference.rows.shape[0]
    whole = Gram.empty(n_rows)
    # All exponentials: to compute half of them and mirror that takes as long.
    step = max(16, BLOCK_NBYTES // (16 * max(1, n_rows)))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        if base is None:
            block = reference.base_of(reference.rows[rows])
            if kernel.base == DISTANCES:  # as where the base is made in one piece
                places = np.arange(len(block))
                block[places, start + places] = 0.0
            whole.values[rows] = kernel.values(block)
        else:
            whole.values[rows] = kernel.values(base[rows])
    return whole


def _largest(
    kernel: Kernel, reference: ReferenceRows, gram: NDArray[np.float32] | None
) -> float:
    """Return a bound of absolute kernel values: the diagonal's, if nothing is known."""
    if kernel.base == DISTANCES:
        return 1.0
    if gram is not None:
        return float(np.abs(gram).max(initial=0.0))
    if kernel.base == PRODUCTS:
        return float(np.abs(kernel.diagonal(reference.lengths)).max(initial=1.0))
    whole = reference.rows.data if is_sparse(reference.rows) else reference.rows
    return float(np.abs(whole).max(initial=0.0))
