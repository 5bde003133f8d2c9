"""How delta is divided among candidates, before any of them is looked at."""

from typing import Final

import numpy as np

from dsel import checks
from dsel.arrays import Floats

LABEL_SHARE: Final = 0.95
"""Part of delta that goes to the labeled rows; the pool, which is large, gets the rest.

Fixed: the optimum is flat, and a share that is picked after a look at the bounds would
make them fail more often than delta says.
"""

_ROUNDING = 1e-12


def uniform_shares(n_candidates: int, *, delta: float) -> Floats:
    """Divide delta equally.

    Parameters
    ----------
    n_candidates
        Number of candidates declared, those that are never fitted included. At least 1.
    delta
        Total probability of failure, in ``(0, 1)``.

    Returns
    -------
    ndarray
        Shares that sum to delta, shape ``(n_candidates,)``.

    Raises
    ------
    ValueError
        Where there is no candidate or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: bounds that use these shares all hold at once with probability
    at least ``1 - delta``, so that of the chosen candidate does, however chosen.
    Assumes: the list of candidates is fixed before data are looked at.
    Source: the union bound.

    Examples
    --------
    >>> uniform_shares(4, delta=0.1).tolist()
    [0.025, 0.025, 0.025, 0.025]
    """
    n = checks.check_integer(n_candidates, "n_candidates", at_least=1)
    return np.full(n, checks.check_probability(delta, "delta") / n)
