"""The sigmoid kernel, tanh(gamma x . z + coef0); not positive definite."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import PRODUCTS


@dataclass(frozen=True)
class Sigmoid:
    """Sigmoid kernel, as libsvm has it."""

    gamma: float
    """Positive."""
    coef0: float
    """What is added to the scaled inner product."""

    @property
    def part(self) -> str:
        """Inner products."""
        return PRODUCTS

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return kernel values; see `Kernel.values`."""
        argument = part * part.dtype.type(self.gamma) + part.dtype.type(self.coef0)
        return np.asarray(np.tanh(argument, out=argument))

    def diagonal(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel of the squared lengths."""
        return self.values(part)

    def rounding(
        self, part_error: NDArray[np.float64], part_size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the error of values; see `Kernel.rounding`."""
        base = self.gamma * part_size + abs(self.coef0)
        error = self.gamma * part_error + 2 * np.finfo(np.float64).eps * base
        return np.zeros_like(error), error  # tanh is nowhere steeper than 1
