"""The Gaussian kernel, exp(-gamma ||x - z||^2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import DISTANCES


@dataclass(frozen=True)
class Rbf:
    """Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> Rbf(gamma=0.5).values(np.array([0.0, 2.0])).round(4).tolist()
    [1.0, 0.3679]
    """

    gamma: float
    """Positive."""

    @property
    def part(self) -> str:
        """Squared distances."""
        return DISTANCES

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return kernel values; see `Kernel.values`."""
        exponent = part * part.dtype.type(-self.gamma)
        return np.asarray(np.exp(exponent, out=exponent))

    def diagonal(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ones: a row has no distance from itself."""
        return np.ones_like(part)

    def rounding(
        self, part_error: NDArray[np.float64], part_size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the error of values; see `Kernel.rounding`."""
        return np.expm1(self.gamma * part_error), np.zeros_like(part_error)
