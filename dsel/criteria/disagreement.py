"""How often two models trained on random halves differ on the pool."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing


def mean_disagreement(
    disagreements: NDArray[np.int64], pool_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over halvings of the rate at which the two halves' models differ.

    .. math:: \hat d = \frac1R \sum_{r=1}^R \frac{s_r}{m_r}.

    Parameters
    ----------
    disagreements
        Pool rows on which the two models of a halving differ, :math:`s_r`; the
        halvings on the last axis.
    pool_rows
        Pool rows compared in each halving, :math:`m_r` >= 1, broadcast.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; unbiased for the expected disagreement of models of half the
    labeled rows.
    Assumes: for that, rows drawn at random and a pool apart from them.
    Source: Madani, Pennock and Flake (2004), section 3.1.

    Examples
    --------
    >>> mean_disagreement(np.array([[10, 20], [0, 0]]), np.array([100, 100]))
    array([0.15, 0.  ])
    """
    return np.asarray((disagreements / pool_rows).mean(axis=-1))


def pool_disagreement(evidence: Evidence) -> NDArray[np.float64]:
    """Return `mean_disagreement` of the cube's counts, over the whole pool.

    A part that was not read yet counts as agreement, so the pool's size divides.
    """
    m = np.maximum(evidence[names.N_UNLABELED], 1)
    return mean_disagreement(evidence[names.DISAGREEMENTS], m)


DISAGREEMENT = Estimate(
    name="disagreement",
    counts=(names.DISAGREEMENTS,),
    sizes=(names.POOL_ROWS, names.N_UNLABELED),
    estimate=pool_disagreement,
    label_term=nothing,
    disagreement_term=pool_disagreement,
    tie_break=pool_disagreement,
)
"""Judge candidates by disagreement alone: a constant learner is perfect by it."""
