"""How delta is divided among candidates, before any of them is looked at."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dsel import checks
from dsel.bounds.binomial import Floats

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


def prior_shares(prior: ArrayLike, *, delta: float) -> Floats:
    """Divide delta in proportion to weights fixed in advance.

    Parameters
    ----------
    prior
        Weight of each candidate, positive, summing to at most 1, else a ValueError.
    delta
        As :func:`uniform_shares` takes it.

    Returns
    -------
    ndarray
        Shares, in the shape of `prior`.

    Notes
    -----
    Guarantee: as :func:`uniform_shares`.
    Assumes: weights chosen before data are looked at.
    Source: the union bound.

    Examples
    --------
    >>> prior_shares([0.5, 0.3, 0.2], delta=0.1).round(3).tolist()
    [0.05, 0.03, 0.02]
    """
    weights = np.asarray(prior, dtype=np.float64)
    _check_prior(weights)
    return weights * checks.check_probability(delta, "delta")


def leading_shares(label_terms: ArrayLike, *, delta: float, n_leaders: int) -> Floats:
    """Divide delta among the candidates with the smallest label terms.

    For the disagreement term only: given the labeled rows every model is fixed and the
    pool is fresh, so the shares may depend on the labeled rows in any way.

    Parameters
    ----------
    label_terms
        Label term of each candidate's bound, a function of labeled rows alone. Shape
        ``(n_candidates,)``, at least one; NaN or infinite where a fit failed.
    delta
        Probability with which any of the disagreement terms may fail, in ``(0, 1)``.
    n_leaders
        How many candidates share it, fixed in advance. At least 1, else a ValueError.

    Returns
    -------
    ndarray
        ``delta / n_leaders`` for the smallest label terms (of equal ones the first), 0
        for the others, which have no bound.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the pool the disagreement
    terms of all leaders hold at once, whatever the labeled rows are.
    Assumes: leaders picked before a row of the pool is read; `n_leaders` fixed in
    advance.
    Source: the union bound, conditionally on the labeled rows.

    Examples
    --------
    >>> leading_shares([0.3, 0.1, 0.2], delta=0.04, n_leaders=2).tolist()
    [0.0, 0.02, 0.02]
    """
    terms = np.asarray(label_terms, dtype=np.float64)
    if terms.ndim != 1 or not terms.size:
        raise ValueError(
            f"`label_terms` must be those of one candidate or more, in one row, got "
            f"shape {terms.shape}."
        )
    n = checks.check_integer(n_leaders, "n_leaders", at_least=1)
    # Ties by the order of candidates, so that the leaders depend on labeled rows alone.
    leaders = np.argsort(terms, kind="stable")[:n]
    shares = np.zeros(terms.shape)
    shares[leaders] = checks.check_probability(delta, "delta") / len(leaders)
    return shares


def checked_prior(prior: ArrayLike | None, n_candidates: int) -> Floats | None:
    """Return the weight of each candidate in C order, or raise; None for equal ones."""
    if prior is None:
        return None
    try:
        weights = np.asarray(prior, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise TypeError(f"`prior` must hold numbers, got {prior!r}.") from error
    if len(weights) != n_candidates:
        raise ValueError(
            f"`prior` must have one weight for each of {n_candidates} candidates, in "
            f"the order of the grid, got {len(weights)}."
        )
    _check_prior(weights)
    return weights


def _check_prior(weights: Floats) -> None:
    total = float(weights.sum())
    if not weights.size or not (weights > 0).all() or not total <= 1 + _ROUNDING:
        raise ValueError(
            f"`prior` must hold positive weights with a sum of at most 1, got a "
            f"smallest weight of {weights.min() if weights.size else None} and a sum "
            f"of {total:g}; divide the weights by their sum."
        )
