"""The polynomial kernel, (gamma x . z + coef0)^degree, of any real degree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import PRODUCTS
from dsel.kernels.parts import inner_products


@dataclass(frozen=True)
class Polynomial:
    """Polynomial kernel; a fractional degree needs features and coef0 >= 0.

    Called with two tables it gives their kernel matrix, so that scikit-learn's `SVC`
    takes it as ``kernel=`` where its own polynomial allows whole degrees only.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(gamma=2.0, coef0=1.0, degree=0.5).values(np.array([4.0])).tolist()
    [3.0]
    """

    gamma: float
    """Positive."""
    coef0: float
    """What is added to the scaled inner product."""
    degree: float
    """Any number >= 0."""

    @property
    def part(self) -> str:
        """Inner products."""
        return PRODUCTS

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return kernel values; see `Kernel.values`.

        Raises
        ------
        ValueError
            Where a number below zero had to be raised to a fractional degree.
        """
        base = part * part.dtype.type(self.gamma) + part.dtype.type(self.coef0)
        if float(self.degree).is_integer():
            return np.asarray(base ** int(self.degree))
        # Products of nonnegative features are never below zero, sums of them neither.
        lowest = base.min(initial=0.0)
        if lowest < 0:
            raise ValueError(
                f"`degree` must be whole where gamma x.z + coef0 is below zero, got "
                f"{self.degree!r} and {lowest:.6g}; scale the features of all rows, "
                f"the pool's too, to be >= 0."
            )
        return np.asarray(np.power(base, part.dtype.type(self.degree)))

    def diagonal(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel of the squared lengths."""
        return self.values(part)

    def rounding(
        self, part_error: NDArray[np.float64], part_size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the error of values; see `Kernel.rounding`."""
        base = self.gamma * part_size + abs(self.coef0)
        error = self.gamma * part_error + 2 * np.finfo(np.float64).eps * base
        if self.degree < 1:  # |a^d - b^d| <= |a - b|^d
            return np.zeros_like(error), error**self.degree * (self.degree > 0)
        slope = self.degree * (base + error) ** (self.degree - 1)
        return np.zeros_like(error), slope * error

    def __call__(self, X: Any, Z: Any) -> NDArray[np.float64]:
        """Return the kernel matrix of the rows of `X` and of `Z`."""
        return self.values(inner_products(X, Z))
