"""What the disagreement of given models says about the errors of pairs and clusters."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import lower_limits, upper_limits
from dsel.bounds.semi_supervised import BoundTerms
from dsel.checks import (
    check_counts,
    check_counts_of,
    check_integer,
    check_probabilities,
    check_probability,
)


class PairFacts(NamedTuple):
    """Two bounds on the errors of two models, which hold at once."""

    difference: NDArray[np.float64]
    """Upper bound on the difference of their errors."""
    larger_error: NDArray[np.float64]
    """Lower bound on the larger of their errors, and on the mean of both."""


def pair_facts(
    n_disagreements: ArrayLike, n_unlabeled: ArrayLike, *, delta: ArrayLike
) -> PairFacts:
    r"""Bounds on the errors of two models from how often they disagree.

    For any distribution, with :math:`d` the probability that they differ,
    :math:`|\mathrm{err}(f) - \mathrm{err}(g)| \le d` and
    :math:`\max(\mathrm{err}(f), \mathrm{err}(g)) \ge d / 2`; :math:`d` lies between
    its binomial limits at :math:`\delta / 2` each.

    Parameters
    ----------
    n_disagreements, n_unlabeled
        Pool rows on which the two differ, and those compared.
    delta
        Probability with which either bound may fail. For every pair of N candidates at
        once, divide it by ``N (N - 1) / 2``. Ranges, shapes and errors are those of
        :func:`binomial_tail_inversion`.

    Returns
    -------
    PairFacts
        `difference` and `larger_error`, in the broadcast shape.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the pool both bounds hold.
    Assumes: two models fixed before independent pool rows were drawn; nothing about
    the rows that they were trained on.
    Source: the triangle inequality; the binomial limits of Clopper and Pearson (1934).
    :func:`pair_error_bound` is the lower bound alone, at all of delta.

    Examples
    --------
    >>> facts = pair_facts(100, 1_000, delta=0.05)
    >>> [round(float(fact), 4) for fact in facts]
    [0.1203, 0.0411]
    """
    counts, rows = check_counts_of(
        n_disagreements, n_unlabeled, "n_disagreements", "n_unlabeled"
    )
    side = check_probabilities(delta, "delta") / 2.0
    difference = upper_limits(counts, rows, side)
    return PairFacts(difference, lower_limits(counts, rows, side) / 2.0)


def clustered_holdout(
    n_errors: ArrayLike,
    n_samples: int,
    disagreements: ArrayLike,
    n_unlabeled: int,
    *,
    delta: float,
    radius: int,
    label_share: float = 0.95,
) -> BoundTerms:
    r"""Error bounds of many models from the held-out errors of a few cluster leaders.

    Models are taken in order. One that differs from an earlier leader on at most
    `radius` pool rows joins the first such leader; any other becomes a leader. With
    :math:`L` leaders among :math:`N` models, :math:`l(j)` the leader of model
    :math:`j`, :math:`c_l` its errors and :math:`s_{jl}` the pool rows on which both
    differ,

    .. math:: err(f_j) \le B(c_{l(j)}, n, \gamma\delta/L) + u_j, \qquad
              u_j = B\Big(s_{j\,l(j)}, m, \frac{2(1-\gamma)\delta}{N(N-1)}\Big),

    with :math:`u_j = 0` for leaders.

    Parameters
    ----------
    n_errors
        Errors of each model on the held-out rows. Integers, shape (N,).
    n_samples
        Held-out rows, n >= 1; no model was trained on them.
    disagreements
        Pool rows on which two models differ. Integers, shape (N, N), symmetric.
    n_unlabeled
        Pool rows, m >= 1.
    delta
        Probability with which any of the bounds may fail, in (0, 1).
    radius
        Rows on which members may differ from their leader, >= 0, fixed in advance.
    label_share
        Part of delta for the held-out rows, in (0, 1).

    Raises
    ------
    TypeError, ValueError
        Where counts are no integers; not those of N models, or above their rows.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the bounds of all N models hold
    at once. Proof: given the models and the pool, the leaders are fixed and the
    held-out labels are fresh, so a union bound over the L leaders is enough. The
    leaders are a function of the pool, so the limits of the disagreements hold by a
    union bound over all pairs. The rest is the triangle inequality.
    Assumes: A1 to A6; no model was trained on a held-out row. It is **not** valid for
    folds, where a model was trained on rows that others are tested on.
    Source: the union bound over a cover. **Warning**: it hardly ever gives a smaller
    bound. 225 SVMs form 139, 113 and 78 clusters at a radius of .005, .01 and .02 of
    the pool. At .01 that lowers ln(1/share) by ln 2, which is half a percentage point
    of bound at 500 held-out rows, and every other member's bound grows by its
    disagreement. :func:`holdout_bound` at delta / N is mostly smaller.

    Examples
    --------
    >>> found = clustered_holdout(
    ...     [30, 31, 80], 500, [[0, 3, 90], [3, 0, 91], [90, 91, 0]], 10_000,
    ...     delta=0.05, radius=5)
    >>> found.label_term.round(4).tolist(), found.disagreement_term.round(4).tolist()
    ([0.0848, 0.0848, 0.1955], [0.0, 0.0013, 0.0])
    """
    errors, differ = (
        check_counts(n_errors, "n_errors"),
        check_counts(disagreements, "disagreements"),
    )
    n_models = len(errors)
    if differ.shape != (n_models, n_models) or np.diagonal(differ).any():
        raise ValueError(
            f"`disagreements` must be of all pairs of {n_models} models, with 0 on the "
            f"diagonal, got shape {differ.shape}."
        )
    held_out = check_integer(n_samples, "n_samples", at_least=max(1, errors.max()))
    share = check_probability(delta, "delta")
    gamma = check_probability(label_share, "label_share")
    pool = check_integer(n_unlabeled, "n_unlabeled", at_least=max(1, differ.max()))
    leaders = _leaders(differ, check_integer(radius, "radius", at_least=0))
    n_leaders = len(np.unique(leaders))
    label_term = upper_limits(errors[leaders], held_out, gamma * share / n_leaders)
    n_pairs = max(n_models * (n_models - 1) / 2, 1)
    own = np.arange(n_models)
    near = upper_limits(differ[own, leaders], pool, (1.0 - gamma) * share / n_pairs)
    disagreement_term = np.where(leaders == own, 0.0, near)
    return BoundTerms(label_term + disagreement_term, label_term, disagreement_term)


def _leaders(differ: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    leaders = np.arange(len(differ))
    leads = np.zeros(len(differ), dtype=bool)
    for number in range(len(differ)):
        near = np.flatnonzero(leads & (differ[number] <= radius))
        if len(near):
            leaders[number] = near[0]
        else:
            leads[number] = True
    return leaders
