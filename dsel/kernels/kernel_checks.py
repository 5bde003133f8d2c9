"""A check for kernel functions that users add.

A kernel need not be positive semidefinite: SVMs take others, too, and a polynomial of
fractional degree is an example.
"""

from copy import deepcopy
from dataclasses import is_dataclass
from itertools import product

import numpy as np

from dsel.arrays import Floats
from dsel.kernels.functions import Kernel
from dsel.kernels.reference_rows import DISTANCES, PRODUCTS, VALUES


def check_kernel(kernel: object, *, n_rows: int = 30, seed: int = 0) -> None:
    """Raise where a kernel does not meet what a kernel SVM needs.

    Parameters
    ----------
    kernel
        A member of `Kernel`, with all its parameters.
    n_rows, seed
        Number and seed of the random rows of the check. Their features are nonnegative.

    Raises
    ------
    TypeError, ValueError
        With the method of `Kernel` that breaks the interface.

    Examples
    --------
    >>> from dsel.kernels.functions import Rbf
    >>> check_kernel(Rbf(gamma=0.5))
    """
    name = type(kernel).__name__
    if not (isinstance(kernel, Kernel) and is_dataclass(type(kernel))):
        raise TypeError(f"{name} must be a frozen dataclass that inherits from Kernel.")
    if deepcopy(kernel) != kernel or hash(kernel) != hash(kernel):
        raise ValueError(f"{name} must be equal to its copy, since it is a cache key.")
    if kernel.base not in (DISTANCES, PRODUCTS, VALUES):
        raise ValueError(f"{name}.base must be one of the bases, got {kernel.base!r}.")
    rows = np.random.default_rng(seed).random((n_rows, 3))
    products = rows @ rows.T
    lengths = np.diag(products)
    base = products
    if kernel.base == DISTANCES:
        base = np.maximum(lengths[:, np.newaxis] - 2 * products + lengths, 0.0)
        np.fill_diagonal(base, 0.0)
    gram = _check_values(kernel, base)
    if not np.allclose(kernel.diagonal(lengths), np.diag(gram), rtol=1e-9):
        raise ValueError(
            f"{name}.diagonal must give the kernel of rows with themselves, from their "
            f"squared lengths."
        )
    # SVMs vote in float32 where the bound of the rounding proves the label, so a bound
    # that is too small would change counts.
    for error, sign in product((1e-6, 1e-3), (-1, 1)):
        relative, absolute = kernel.rounding(
            np.full(base.shape, error), np.abs(base) + error
        )
        # The last term is the rounding of the values themselves.
        limit = relative * np.abs(gram) + absolute + 1e-12 * (1.0 + np.abs(gram))
        moved = base + sign * error
        if kernel.base == DISTANCES:
            moved = np.maximum(moved, 0.0)
        if not (np.abs(kernel.values(moved) - gram) <= limit).all():
            raise ValueError(
                f"{name}.rounding must bound the error of values whose base is off by "
                f"{error:g}."
            )
    if callable(kernel):
        called = kernel(rows, rows[:5])
        if not np.allclose(called, gram[:, :5], rtol=1e-6, atol=1e-9):
            raise ValueError(f"{name}.__call__ must give the values of two tables.")


def _check_values(kernel: Kernel, base: Floats) -> Floats:
    """Return kernel values; raise where their type or shape is not that of the base."""
    name = type(kernel).__name__
    for dtype in (np.float32, np.float64):
        typed = base.astype(dtype)
        values = kernel.values(typed)
        if values.dtype != dtype or values.shape != typed.shape:
            raise ValueError(
                f"{name}.values must keep type and shape of the base, got "
                f"{values.dtype} {values.shape} for {typed.dtype} {typed.shape}."
            )
        if not np.array_equal(typed, base.astype(dtype)):
            raise ValueError(f"{name}.values must not change the base.")
        if not np.isfinite(values).all():
            raise ValueError(f"{name}.values must be finite.")
    return np.asarray(values)
