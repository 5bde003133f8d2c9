"""What the disagreement of two models says about their errors, without labels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import lower_limits, upper_limits


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
    counts, rows = checks.check_counts_of(
        n_disagreements, n_unlabeled, "n_disagreements", "n_unlabeled"
    )
    side = checks.check_probabilities(delta, "delta") / 2.0
    difference = upper_limits(counts, rows, side)
    return PairFacts(difference, lower_limits(counts, rows, side) / 2.0)
