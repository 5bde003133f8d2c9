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


def uniform_shares(n_candidates: int, *, delta: float) -> Floats:
    """Divide delta equally among candidates, those that are never fitted included.

    Bounds that use these shares all hold at once with probability at least
    ``1 - delta``, by the union bound, so that of the chosen candidate does, however
    chosen; the list of candidates is fixed before data are looked at.
    """
    n = checks.check_integer(n_candidates, "n_candidates", at_least=1)
    return np.full(n, checks.check_probability(delta, "delta") / n)
