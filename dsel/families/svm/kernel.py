"""The kernel matrix of the labeled rows, which every C and all splits share."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.data.cache import OWN
from dsel.families.family import Cache
from dsel.families.svm.decisions import KernelBlock, errors_of, flush_to_peaks
from dsel.families.svm.rows import RowsByClass
from dsel.kernels.functions import Kernel
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows

BLOCK_NBYTES: Final = 2**23
"""Kernel blocks stay below this, so that what reads them finds them in the cache."""
SHARE: Final = 0.6
"""Of a task's memory for the matrix; the rest is for copied rows and what is voted."""


@dataclass(frozen=True)
class LabeledKernel:
    """One kernel over the labeled rows, as one split sees them."""

    labeled: RowsByClass
    """The rows."""
    kernel: Kernel
    """The kernel."""
    reference: ReferenceRows
    """The rows, prepared for the base of the kernel."""
    gram: NDArray[np.float32]
    """Kernel values of all rows with all rows, in float32 as libsvm keeps them."""
    diagonal: Floats
    """Kernel of all rows with themselves, which libsvm keeps without rounding."""
    largest: float
    """Bound of the absolute kernel values."""

    def block(self, places: Integers) -> KernelBlock:
        """Return kernel values of some rows, as predicted, with all rows."""
        seen = self.labeled.rows_at_predict[places]
        if self.labeled.rows_at_predict is self.labeled.rows:
            values = self.gram[places]
        else:
            values = self.kernel.values(self.reference.base_of(seen)).astype(np.float32)
        relative, absolute = errors_of(self.kernel, self.reference, seen)
        return KernelBlock(
            self.kernel, self.reference, seen, None, values,
            flush_to_peaks(values, self.labeled.starts),
            relative * self.largest + absolute,
        )  # fmt: skip

    @property
    def block_rows(self) -> int:
        """Rows of a block that stays in the processor's cache."""
        return max(16, BLOCK_NBYTES // (8 * max(1, len(self.labeled.numbers))))


def whole_nbytes(n_rows: int) -> int:
    """Return the bytes of a kernel of all rows, and of its base."""
    return (4 + 8) * n_rows**2


def check_limit(n_rows: int, limit: int) -> None:
    """Raise MemoryError where a task does not hold the kernel matrix of all rows."""
    needed, most = int(4 * n_rows**2 / SHARE), int((limit * SHARE / 4) ** 0.5)
    if limit < needed:
        raise MemoryError(
            f"the memory of a task must hold the kernel matrix of {n_rows:,} labeled "
            f"rows and what is made of it, {needed:,} bytes, got {limit:,}; give each "
            f"worker thread more memory, or use at most {most:,} labeled rows."
        )


def labeled_kernel(
    labeled: RowsByClass, kernel: Kernel, key: str, budget: Cache
) -> LabeledKernel:
    """Compute a kernel over the labeled rows, whose contents `key` names.

    `budget` limits the matrices and keeps the base that other kernels share. Raises
    ValueError where a kernel value is too large, or cannot be computed.
    """
    n_rows = len(labeled.numbers)
    reference = budget.get(
        f"svm-reference-{kernel.base}-{key}",
        lambda: reference_rows(labeled.rows, kernel.base),
    )
    own = np.diagonal(labeled.rows).copy() if labeled.by_column else reference.lengths
    base = None
    if whole_nbytes(n_rows) <= 0.8 * budget.limit:
        base = budget.get(
            f"svm-base-{kernel.base}-{key}",
            lambda: reference.base_of(reference.rows),
        )
    gram = budget.get(
        f"{OWN}svm-gram-{kernel!r}-{key}", lambda: _gram(kernel, reference, base)
    )
    largest = 1.0
    if kernel.base != DISTANCES:
        largest = float(np.abs(gram).max(initial=0.0))
    if not largest <= np.finfo(np.float32).max:
        raise ValueError(
            f"kernel values must be below 3.4e38, got {largest:.3g} for {kernel!r}; "
            f"scale the features."
        )
    return LabeledKernel(
        labeled, kernel, reference, gram, kernel.diagonal(own), largest
    )


def _gram(
    kernel: Kernel, reference: ReferenceRows, base: Floats | None
) -> NDArray[np.float32]:
    """Return the kernel of all rows with all rows, some rows at a time."""
    n_rows = reference.rows.shape[0]
    gram = np.empty((n_rows, n_rows), dtype=np.float32)
    # All exponentials: to compute half of them and mirror that takes as long.
    step = max(16, BLOCK_NBYTES // (16 * max(1, n_rows)))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        if base is not None:
            block = base[rows]
        else:
            block = reference.base_of(reference.rows[rows])
            if kernel.base == DISTANCES:  # as where the base is made in one piece
                places = np.arange(len(block))
                block[places, start + places] = 0.0
        gram[rows] = kernel.values(block)
    return gram
