"""Shares of delta for candidates and folds, fixed before any count is seen."""

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
    """Divide delta equally among all candidates, also those that are never fitted.

    Bounds that use these shares all hold at once with probability at least
    ``1 - delta``, by the union bound, so that of the chosen candidate does, however
    chosen; the list of candidates is fixed before data are looked at.
    """
    n = checks.check_count(n_candidates, "n_candidates", at_least=1)
    return np.full(n, checks.check_probability(delta, "delta") / n)


SMALLEST_WEIGHT: Final = 1e-100
"""Of a candidate's weight divided by all: tails are computed down to such shares."""


def normalized_weights(weights: Floats) -> Floats:
    """Return parts of delta that are proportional to weights, and sum to 1.

    Bounds at these parts of delta all hold at once with probability at least
    ``1 - delta``, as at equal ones, if the weights were fixed before data were looked
    at. A candidate of weight 0 has no bound.

    Parameters
    ----------
    weights
        One for each candidate, finite and >= 0, one of them at least > 0; shape
        (n_candidates,).

    Returns
    -------
    ndarray
        Shape (n_candidates,).

    Raises
    ------
    ValueError
        Where a weight is negative or not finite, all are 0, or one is positive and
        less than 1e-100 of their sum.

    Notes
    -----
    Guarantee: bounds of all candidates at ``delta`` times these parts hold at once with
    probability at least ``1 - delta``.
    Assumes: weights that do not depend on the labeled rows or on the pool.
    Source: the union bound; M. Kaariainen, ICSI TR-05-010, 2005, section 3, for
    structural risk minimization: "a larger share of delta to those models that are
    expected to perform well".

    Examples
    --------
    >>> normalized_weights(np.array([4.0, 2.0, 2.0, 0.0])).tolist()
    [0.5, 0.25, 0.25, 0.0]
    """
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"`prior` must have weights that are finite and not negative, got "
            f"{weights[place]:g} for candidate {place}; 0 leaves a candidate without a "
            f"bound."
        )
    if not (weights > 0.0).any():
        raise ValueError(
            "`prior` must give one candidate at least a weight above 0, but all are 0; "
            "leave it out for equal weights."
        )
    parts = weights / weights.max()  # large weights have no finite sum
    parts = np.asarray(parts / parts.sum())
    tiny = (weights > 0.0) & (parts < SMALLEST_WEIGHT)
    if tiny.any():
        place = int(tiny.argmax())
        raise ValueError(
            f"`prior` must have weights of at least {SMALLEST_WEIGHT:g} of their sum, "
            f"got {weights[place]:g} for candidate {place}; write 0 for no bound."
        )
    return parts


MOST_HALVINGS: Final = 63
"""The folds after so many divide the rest equally: tails underflow at 2^-960."""


def fold_shares(n_folds: int) -> Floats:
    r"""Shares of the folds that sum to 1: 1/2, 1/4, ..., the last two equal.

    A certificate that may take any of k folds needs limits that hold for all k at once.
    Any shares :math:`w_i` that are fixed before the counts and sum to 1 give this.
    On average, halves cost at most .010 of the limit where equal shares are better, and
    save up to a quarter of it where a fold expects less than one error: there all
    counts are 0, and only the largest share matters. Folds are random, so their numbers
    carry no information.

    Notes
    -----
    Guarantee: limits of the folds at shares ``delta * fold_shares(n_folds)`` hold all
    at once with probability at least ``1 - delta``.
    Assumes: folds that were numbered before any count was looked at.
    Source: the union bound; not in the papers that dsel follows.

    Examples
    --------
    >>> fold_shares(5).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.0625]
    """
    k = checks.check_count(n_folds, "n_folds", at_least=1)
    n_halvings = min(k - 1, MOST_HALVINGS)
    n_others = k - n_halvings
    others = np.full(n_others, 0.5**n_halvings / n_others)
    return np.append(0.5 ** np.arange(1.0, n_halvings + 1), others)
