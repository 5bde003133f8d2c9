"""The linear kernel, x . z."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import PRODUCTS


@dataclass(frozen=True)
class Linear:
    """Inner products as they are."""

    @property
    def part(self) -> str:
        """Inner products."""
        return PRODUCTS

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return kernel values; see `Kernel.values`."""
        return part.copy()

    def diagonal(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared lengths."""
        return part

    def rounding(
        self, part_error: NDArray[np.float64], part_size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the error of values; see `Kernel.rounding`."""
        return np.zeros_like(part_error), part_error
