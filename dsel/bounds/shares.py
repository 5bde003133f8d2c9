"""Shares of delta for candidates and folds, fixed before any count is seen."""

from typing import Final

import numpy as np

from dsel import checks
from dsel.arrays import ArrayLike, Floats

LABEL_SHARE: Final = 0.95
"""Share of delta for the labeled rows; the pool, which is large, gets the rest.

It is a constant because the optimum is flat, and because bounds whose share was tuned
on the counts would fail more often than with probability delta.
"""


def uniform_deltas(n_candidates: int, *, delta: float) -> Floats:
    """Divide delta equally among all candidates, also those that are never fitted.

    Bounds at these deltas all hold at once with probability at least
    ``1 - delta``, by the union bound. So the bound of the chosen candidate holds
    however it was chosen, if the list of candidates was fixed before the data were
    inspected.
    """
    n = checks.check_count(n_candidates, "n_candidates", at_least=1)
    return np.full(n, checks.check_probability(delta, "delta") / n)


SMALLEST_WEIGHT: Final = 1e-100
"""Smallest normalized weight; with smaller shares of delta the tails underflow."""


def proportional_shares(weights: Floats) -> Floats:
    """Return shares of delta that are proportional to weights, and sum to 1.

    `weights` has one for each candidate, finite and >= 0. A candidate of weight 0 has
    no bound. ValueError where all are 0, or one is positive and less than 1e-100 of
    their sum.

    Notes
    -----
    Guarantee: bounds of all candidates at ``delta`` times these shares hold at once,
    with probability at least ``1 - delta``.
    Assumes: weights that do not depend on the labeled rows or on the pool.
    Source: the union bound; M. Kaariainen, ICSI TR-05-010, 2005, section 3, for
    structural risk minimization: "a larger share of delta to those models that are
    expected to perform well".

    Examples
    --------
    >>> proportional_shares(np.array([4.0, 2.0, 2.0, 0.0])).tolist()
    [0.5, 0.25, 0.25, 0.0]
    """
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        candidate = int(bad.argmax())
        raise ValueError(
            f"`prior` must have weights that are finite and not negative, got "
            f"{weights[candidate]:g} for candidate {candidate}; 0 leaves a candidate "
            f"without a bound."
        )
    if not (weights > 0.0).any():
        raise ValueError(
            "`prior` must give one candidate at least a weight above 0, but all are 0; "
            "leave it out for equal weights."
        )
    shares = weights / weights.max()  # large weights have no finite sum
    shares = np.asarray(shares / shares.sum())
    tiny = (weights > 0.0) & (shares < SMALLEST_WEIGHT)
    if tiny.any():
        candidate = int(tiny.argmax())
        raise ValueError(
            f"`prior` must have weights of at least {SMALLEST_WEIGHT:g} of their sum, "
            f"got {weights[candidate]:g} for candidate {candidate}; write 0 for no "
            f"bound."
        )
    return shares


MOST_HALVED_SHARES: Final = 63
"""Later folds divide the rest equally, because tails underflow at shares of 2^-960."""


def fold_shares(n_folds: int) -> Floats:
    r"""Shares of the folds that sum to 1: 1/2, 1/4, ..., the last two equal.

    A certificate that may use any of k folds needs limits that hold for all k at once.
    Any shares :math:`w_i` that are fixed before the counts and sum to 1 give this.
    Where a fold expects less than one error, most counts are 0, and only the largest
    share matters. Compared with equal shares, the smallest limit is on average from 20%
    smaller (no errors) to 1% larger (about ten errors a fold) for five folds at
    ``delta=0.05``, and from 38% smaller to 5% larger for twenty. Folds are random, so
    their numbers carry no information.

    Parameters
    ----------
    n_folds
        Number of folds, an integer >= 1.

    Returns
    -------
    ndarray
        The shares, shape (n_folds,), the largest first.

    Raises
    ------
    TypeError
        If `n_folds` is no integer.
    ValueError
        If it is below 1.

    Notes
    -----
    Guarantee: limits of the folds at shares ``delta * fold_shares(n_folds)`` hold all
    at once with probability at least ``1 - delta``.
    Assumes: folds that were numbered before any count was inspected.
    Source: the union bound over folds; derived for dsel: docs/theory/nested.md.

    Examples
    --------
    >>> fold_shares(5).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.0625]
    """
    k = checks.check_count(n_folds, "n_folds", at_least=1)
    n_halved = min(k - 1, MOST_HALVED_SHARES)
    n_last = k - n_halved
    last = np.full(n_last, 0.5**n_halved / n_last)
    return np.append(0.5 ** np.arange(1.0, n_halved + 1), last)


def fold_deltas(delta: ArrayLike, n_folds: int) -> Floats:
    """Return the deltas of the folds, at which their limits hold at once at `delta`.

    They have the shape ``(*delta.shape, n_folds)``. That of the first fold is the
    largest.

    Examples
    --------
    >>> fold_deltas(0.08, 4).tolist()
    [0.04, 0.02, 0.01, 0.01]
    """
    return np.asarray(delta)[..., np.newaxis] * fold_shares(n_folds)
