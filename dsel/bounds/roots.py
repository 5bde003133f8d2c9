"""Roots of monotone functions, returned from the side that is safe."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def bracket_root(
    is_above: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Halve brackets until they are as narrow as floats allow; return both ends.

    Parameters
    ----------
    is_above
        Whether each point lies above its root; never asked about the first ends.
    low, high
        Ends of the brackets, same shape, in [0, 1].
    """
    low, high = low.copy(), high.copy()
    for _ in range(200):
        middle = (low + high) / 2
        if (high - low <= 1e-13 * high).all():
            break
        above = is_above(middle)
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return low, high
