"""Kernel functions of a base: squared distances, or inner products.

To add a kernel, write a frozen dataclass with the methods of `Kernel` and list it in
`KERNELS`. A kernel that scikit-learn's `SVC` does not know by name also needs a
`__call__` that returns the kernel matrix of two tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import ArrayLike, Floats
from dsel.kernels.reference_rows import (
    DISTANCES,
    PRODUCTS,
    VALUES,
    ReferenceRows,
    inner_products,
)


class Kernel:
    """Base class of kernel functions, which are computed from the shared base.

    Kernels are frozen dataclasses of numbers, so equal parameters make equal kernels.

    Examples
    --------
    >>> Rbf(gamma=0.5).values(np.array([0.0, 2.0])).round(4).tolist()
    [1.0, 0.3679]
    >>> Polynomial(gamma=2.0, coef0=1.0, degree=0.5).values(np.array([4.0])).tolist()
    [3.0]
    """

    base: ClassVar[str]
    """``DISTANCES`` (squared), ``PRODUCTS`` (inner) or ``VALUES`` (as given)."""

    @property
    def decay(self) -> float | None:
        """The number c > 0 where values are exp(-c base), else None.

        Then votes in float32 keep the digits of values close to 1, and only rows within
        a reach count for rounding errors, see `errors_of`.
        """
        return None

    def values(self, base: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel values of base values.

        Parameters
        ----------
        base
            Products, squared distances or kernel values, as `Kernel.base` says, any
            shape. The array is not changed.

        Returns
        -------
        ndarray
            Kernel values, in the shape and type of `base`.
        """
        raise NotImplementedError

    def diagonal(self, base: Floats) -> Floats:
        """Return the kernel of rows with themselves.

        Parameters
        ----------
        base
            Squared norms of the rows, shape (n_rows,); for ``VALUES`` the diagonal of
            the user's matrix.

        Returns
        -------
        ndarray
            Kernel values, shape (n_rows,).
        """
        # A row has the distance 0 to itself, and its squared norm is its inner product.
        diagonal_base = np.zeros_like(base) if self.base == DISTANCES else base
        return self.values(diagonal_base)

    def rounding(self, base_error: Floats, base_size: Floats) -> tuple[Floats, Floats]:
        """Bound the error of kernel values from the error of the base.

        Parameters
        ----------
        base_error
            Largest absolute error of the base, any shape; 0 for ``VALUES``.
        base_size
            Largest absolute value of the base, of the same shape.

        Returns
        -------
        relative, absolute
            The error of a value k is at most ``relative * abs(k) + absolute``, apart
            from a few units in the last place from the last operation.
        """
        return np.zeros_like(base_error), base_error


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel, <x, z>."""

    base: ClassVar[str] = PRODUCTS

    def values(self, base: NDArray[Any]) -> NDArray[Any]:
        """See `Kernel.values`."""
        return base


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A kernel that the user computed; the table `X` is the Gram matrix."""

    base: ClassVar[str] = VALUES

    def values(self, base: NDArray[Any]) -> NDArray[Any]:
        """See `Kernel.values`."""
        return base


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel, (gamma <x, z> + coef0)^degree, of any degree >= 0.

    A fractional degree needs features and coef0 >= 0. It can be called with two tables
    and returns their kernel matrix, so scikit-learn's `SVC` takes it as ``kernel=``;
    the polynomial kernel of `SVC` itself allows whole degrees only.
    """

    base: ClassVar[str] = PRODUCTS
    gamma: float
    coef0: float
    degree: float

    def values(self, base: NDArray[Any]) -> NDArray[Any]:
        """See `Kernel.values`."""
        scaled = base * base.dtype.type(self.gamma) + base.dtype.type(self.coef0)
        if float(self.degree).is_integer():
            return np.asarray(scaled ** int(self.degree))
        # Products of nonnegative features and their sums are never negative, so this
        # refuses only negative features or a negative coef0.
        lowest = scaled.min(initial=0.0)
        if lowest < 0:
            raise ValueError(
                f"`degree` must be whole where gamma x.z + coef0 is below zero, got "
                f"{self.degree!r} and {lowest:.6g}; scale the features of all rows, "
                f"the pool's too, to be >= 0."
            )
        return np.asarray(np.power(scaled, base.dtype.type(self.degree)))

    def rounding(self, base_error: Floats, base_size: Floats) -> tuple[Floats, Floats]:
        """See `Kernel.rounding`."""
        size = self.gamma * base_size + abs(self.coef0)  # of gamma x . z + coef0
        error = self.gamma * base_error + 2 * np.finfo(np.float64).eps * size
        if self.degree < 1:  # |a^d - b^d| <= |a - b|^d
            return np.zeros_like(error), error**self.degree * (self.degree > 0)
        slope = self.degree * (size + error) ** (self.degree - 1)
        return np.zeros_like(error), slope * error

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return the kernel matrix of the rows of `X` and of `Z`."""
        return self.values(inner_products(X, Z))


@dataclass(frozen=True)
class Rbf(Kernel):
    """The Gaussian kernel, exp(-gamma ||x - z||^2)."""

    base: ClassVar[str] = DISTANCES
    gamma: float

    @property
    def decay(self) -> float:
        """See `Kernel.decay`."""
        return self.gamma

    def values(self, base: NDArray[Any]) -> NDArray[Any]:
        """See `Kernel.values`."""
        exponent = base * base.dtype.type(-self.gamma)
        return np.asarray(np.exp(exponent, out=exponent))

    def rounding(self, base_error: Floats, base_size: Floats) -> tuple[Floats, Floats]:
        """See `Kernel.rounding`."""
        # Beyond this exponent the bound is useless anyway; capped, it does not
        # overflow.
        relative = np.expm1(np.minimum(self.gamma * base_error, 500.0))
        return relative, np.zeros_like(base_error)


def errors_of(
    kernel: Kernel, reference: ReferenceRows, X: ArrayLike
) -> tuple[Floats, ...]:
    """Bound the rounding errors of kernel values in float64; see `Kernel.rounding`.

    A kernel exp(-gamma d) of a squared distance d is below exp(-800) beyond a squared
    distance of 800 / gamma, the reach. Let e bound the error of squared distances d
    within the reach of a row. Beyond it the error is below 1.5 e + d / 1000, because
    the longer one of two rows is at most the sum of the other one and their distance.
    So where gamma e <= 100, values beyond the reach are computed as less than
    exp(-640); else the bound for the row is so large that its values are not used.
    """
    reach = np.inf if kernel.decay is None else 800.0 / kernel.decay
    return kernel.rounding(*reference.rounding(X, reach))


MakeKernel = Callable[[Any, float], Kernel]
KERNELS: Final[dict[str, MakeKernel]] = {
    "linear": lambda svc, gamma: Linear(),
    "poly": lambda svc, gamma: Polynomial(gamma, float(svc.coef0), float(svc.degree)),
    "precomputed": lambda svc, gamma: Precomputed(),
    "rbf": lambda svc, gamma: Rbf(gamma),
}
"""Functions that make the kernel of an SVC from it and its gamma as a number, by the
value of its parameter `kernel`."""


def find_user_kernels() -> dict[str, MakeKernel]:
    """Return the entries of `KERNELS` that are not of dsel."""
    return {
        name: make
        for name, make in KERNELS.items()
        if getattr(make, "__module__", "") != __name__
    }
