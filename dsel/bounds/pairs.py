"""What disagreement says about two models without a single label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import lower_limits, upper_limits


class PairFacts(NamedTuple):
    """Facts about the errors of two models that hold at once."""

    difference: NDArray[np.float64]
    """Their errors differ by at most this."""
    larger_error: NDArray[np.float64]
    """The larger of their errors, and even their mean, is at least this."""


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
    n_disagreements
        Pool rows on which the two differ. Integers, any shape.
    n_unlabeled
        Pool rows compared, broadcast against `n_disagreements`.
    delta
        Probability with which either fact may fail, in ``(0, 1)``. For facts about
        every pair of N candidates divide it by ``N (N - 1) / 2``.

    Returns
    -------
    PairFacts
        `difference` and `larger_error`, in the broadcast shape.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the pool both facts hold.
    Assumes: two models fixed before independent pool rows were drawn; nothing about
    the rows that they were trained on.
    Source: the triangle inequality and Clopper and Pearson. One side alone is
    :func:`pair_error_bound`.

    Examples
    --------
    >>> facts = pair_facts(100, 1_000, delta=0.05)
    >>> [round(float(fact), 4) for fact in facts]
    [0.1203, 0.0411]
    """
    counts, rows = checks.check_counts_of(
        n_disagreements, n_unlabeled, "n_disagreements", "n_unlabeled"
    )
    side = checks.check_probabilities(delta, "delta") / 2.0
    difference = upper_limits(counts, rows, side)
    return PairFacts(difference, lower_limits(counts, rows, side) / 2.0)
