"""The seam of kernel functions: values from a part that many kernels share."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DISTANCES = "distances"
PRODUCTS = "products"
VALUES = "values"


class Kernel(Protocol):
    """A kernel function, given what all kernels of a grid share.

    Members are frozen dataclasses of numbers; equal parameters make equal members.
    """

    @property
    def part(self) -> str:
        """``DISTANCES`` (squared), ``PRODUCTS`` (inner) or ``VALUES`` (as given)."""

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return kernel values in a new array, of the part's shape and float type."""

    def diagonal(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel of rows with themselves, from that part's diagonal."""

    def rounding(
        self, part_error: NDArray[np.float64], part_size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the error of values made of a part that is off by `part_error`.

        Parameters
        ----------
        part_error
            Largest absolute error of the part, any shape.
        part_size
            Largest absolute value of the part, of the same shape.

        Returns
        -------
        relative, absolute
            The error of a value k is at most ``relative * abs(k) + absolute``, beside
            the few units in the last place of the last operation.
        """
