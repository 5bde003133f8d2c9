"""Criteria of co-validation: random halves of the labeled rows, compared on the pool.

To add one: the formula, and its line in `CO_VALIDATION`. None is a guarantee.
"""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import error_from_disagreement
from dsel.criteria.base import Evidence
from dsel.criteria.estimates import Estimate

POOL: Final = (names.POOL_ROWS, names.N_UNLABELED)


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


def dis_error(evidence: Evidence) -> NDArray[np.float64]:
    r"""Return :math:`e_l(\hat d; C)`, the paper's disE, for the cube's classes.

    The mean over halvings goes into the formula, not out of it: the mean of
    :math:`e_l(D_r)` is larger, since :math:`e_l` is convex.

    Parameters
    ----------
    evidence
        Disagreements, pool rows and number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, (C-1)/C], one per candidate.

    Notes
    -----
    Guarantee: none; an estimate of a lower bound on the error at half the rows.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), equation (4), for C classes.
    """
    return error_from_disagreement(
        pool_disagreement(evidence), n_classes=int(evidence[names.N_CLASSES])
    )


def half_error(
    errors: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over halvings of the average of the two halves' error rates.

    .. math:: \frac{1}{2R} \sum_{r, h} \frac{c_{rh}}{n_{rh}}.

    Parameters
    ----------
    errors
        Errors of each half's model, shape ``(n_candidates, n_repeats, 2)``, or the
        last two axes in one.
    rows
        Rows that they were counted in: one number, or one a half.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.1; whether trainE there is
    that of the halves or of the full model is not said. These are the halves.

    Examples
    --------
    >>> half_error(np.array([[[1, 0], [0, 3]]]), np.array([[10, 10], [10, 10]]))
    array([0.1])
    """
    rates = errors.reshape(len(errors), -1) / np.ravel(rows)
    return np.asarray(rates.mean(axis=1))


def train_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return `half_error` on the halves' own rows, the paper's trainE."""
    return half_error(evidence[names.TRAIN_ERRORS], evidence[names.TRAIN_ROWS])


def half_true_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the mean error of the half models on labeled test rows.

    Parameters
    ----------
    evidence
        Errors of the half models on test rows, and their number.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; it is what disagreement and two-fold cross-validation estimate.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: 1/2trueE in Madani, Pennock and Flake (2004).
    """
    return half_error(evidence[names.HALF_TEST_ERRORS], evidence[names.TEST_ROWS])


def two_fold_cv(
    fold_errors: NDArray[np.int64], fold_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over halvings of the error rate when each half's model tests the other.

    .. math:: \frac1R \sum_r \frac{c_{r1} + c_{r2}}{n}.

    Parameters
    ----------
    fold_errors
        Errors on the other half, shape ``(n_candidates, n_repeats, 2)``, or the last
        two axes in one.
    fold_rows
        Rows of each half; the two of a halving sum to n.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; unbiased for the error of models of half the rows (about) where
    rows were drawn at random, too high where hard ones were picked.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.1, there 2cvE.

    Examples
    --------
    >>> two_fold_cv(np.array([[[1, 2], [0, 3]]]), np.array([[10, 10], [10, 10]]))
    array([0.15])
    """
    errors = fold_errors.reshape(len(fold_errors), -1).sum(axis=1)
    return np.asarray(errors / fold_rows.sum())


def halves_cv(evidence: Evidence) -> NDArray[np.float64]:
    """Return `two_fold_cv` of the cube's counts."""
    return two_fold_cv(evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS])


def max_dt_e(evidence: Evidence) -> NDArray[np.float64]:
    """Return max(trainE, disE).

    Disagreement alone calls a constant learner perfect; its training error tells.

    Parameters
    ----------
    evidence
        Training errors, disagreements, their rows, and the number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; with random training rows it is usually below the error at half
    the rows, for labels picked by active learning nearer to the truth than
    cross-validation.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 2.2, e-hat.
    """
    return np.maximum(train_error(evidence), dis_error(evidence))


def max_cv_dt_e(evidence: Evidence) -> NDArray[np.float64]:
    """Return max(2cvE, maxDtE).

    Parameters
    ----------
    evidence
        Errors on both halves, disagreements, their rows, and the number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.2, who report preliminary
    evidence of a slight advantage over cross-validation alone.
    """
    return np.maximum(halves_cv(evidence), max_dt_e(evidence))


_of_halves: Final = partial(Estimate, by_halves=True)

CO_VALIDATION: Final = (
    # A constant learner is perfect by it.
    _of_halves(
        "disagreement",
        pool_disagreement,
        (names.DISAGREEMENTS,),
        POOL,
        disagreement_term=pool_disagreement,
    ),
    # Clipped numbers tie, so disagreement decides there.
    _of_halves(
        "dis_error",
        dis_error,
        (names.DISAGREEMENTS,),
        (*POOL, names.N_CLASSES),
        disagreement_term=dis_error,
        tie_break=pool_disagreement,
    ),
    # Overfitting candidates win.
    _of_halves(
        "train_error",
        train_error,
        (names.TRAIN_ERRORS,),
        (names.TRAIN_ROWS,),
        label_term=train_error,
    ),
    _of_halves(
        "two_fold_cv",
        halves_cv,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=halves_cv,
    ),
    _of_halves(
        "max_dt_e",
        max_dt_e,
        (names.TRAIN_ERRORS, names.DISAGREEMENTS),
        (names.TRAIN_ROWS, *POOL, names.N_CLASSES),
        label_term=train_error,
        disagreement_term=dis_error,
        tie_break=train_error,
    ),
    _of_halves(
        "max_cv_dt_e",
        max_cv_dt_e,
        (names.TRAIN_ERRORS, names.FOLD_ERRORS, names.DISAGREEMENTS),
        (names.TRAIN_ROWS, names.FOLD_ROWS, *POOL, names.N_CLASSES),
        label_term=halves_cv,
        disagreement_term=dis_error,
        tie_break=max_dt_e,
    ),
    _of_halves(
        "half_true_error",
        half_true_error,
        (names.HALF_TEST_ERRORS,),
        (names.TEST_ROWS,),
    ),
)
"""All criteria of random halves."""
