"""Criteria of co-validation: random halves of the labeled rows, compared on the pool.

Guarantee: none. The criteria estimate the error of models of half the labeled rows, if
these rows were drawn at random and are not in the pool. If active learning picked the
rows, cross-validation estimates are too high.
Assumes: nothing, since nothing is claimed.
Source: O. Madani, D. Pennock and G. Flake, "Co-validation: using model disagreement on
unlabeled data to validate classification algorithms", NIPS 2004.

To add a criterion, write its formula and list it in `CO_VALIDATION`. Formulas take the
counts of the cube and return one number per candidate.
"""

from functools import partial
from typing import Final

import numpy as np

from dsel import names
from dsel.arrays import Floats
from dsel.bounds import (
    error_ends_from_disagreement,
    error_from_disagreement,
    error_variance_from_disagreement,
    error_variance_from_pairs,
)
from dsel.criteria.criterion import CountsByName, Estimate

POOL_SIZES: Final = (names.POOL_ROWS, names.N_UNLABELED)
"""Variables with the number of pool rows, counted so far and in all."""


def pool_disagreement(counts: CountsByName) -> Floats:
    r"""Mean over halvings of the rate at which the two halves' models differ.

    .. math:: \hat d = \frac1R \sum_{r=1}^R \frac{s_r}{m}.

    Unbiased for the expected disagreement of models of half the labeled rows, where
    these were drawn at random: Madani, Pennock and Flake (2004), section 3.1.
    """
    # The count is divided by the size of the whole pool: rows that are not compared yet
    # count as agreement, so that the number never falls (pruning needs this).
    m = np.maximum(counts[names.N_UNLABELED], 1)
    return np.asarray((counts[names.DISAGREEMENTS] / m).mean(axis=-1))


def dis_error(counts: CountsByName) -> Floats:
    r"""Return :math:`e_l(\hat d; C)` for C classes.

    It is disE in Madani, Pennock and Flake (2004), equation (4): an estimate of a lower
    bound on the error at half the rows, in [0, (C-1)/C].
    """
    # The formula is applied to the mean disagreement: e_l is convex, so the mean of
    # e_l(D_r) would be larger.
    return error_from_disagreement(
        pool_disagreement(counts), n_classes=int(counts[names.N_CLASSES])
    )


def dis_error_upper(counts: CountsByName) -> Floats:
    r"""Return :math:`1 - e_l(\hat d)`.

    It is the upper end in equation (4) of Madani, Pennock and Flake (2004): an estimate
    of an upper bound on the error of a two-class learner at half the rows, where labels
    are a function of the row. It is at least 1/2, and 1 for more classes, for which
    disagreement gives no upper bound. It falls where models differ more, so it must not
    be used to choose a candidate.
    """
    if int(counts[names.N_CLASSES]) > 2:
        return np.ones(len(counts[names.DISAGREEMENTS]))
    return error_ends_from_disagreement(pool_disagreement(counts))[1]


def row_variance(counts: CountsByName) -> Floats:
    r"""Return :math:`\hat d / 2`, an upper bound on the variance of the error.

    It is also the mean variance of the 0/1 error of a two-class learner at a row:
    Madani, Pennock and Flake (2004), Theorem 1 and equation (3).
    """
    return error_variance_from_disagreement(pool_disagreement(counts))


def error_variance(counts: CountsByName) -> Floats:
    r"""Return an estimate of :math:`E[D^2]/2`, at least the variance of the error.

    At most ``row_variance`` in expectation, and far smaller where models differ on few
    rows.
    """
    m = np.maximum(counts[names.N_UNLABELED], 2)
    return error_variance_from_pairs(counts[names.DISAGREEMENTS], m)


def train_error(counts: CountsByName) -> Floats:
    r"""Mean over halvings of the error rates of both halves' models on their own rows.

    .. math:: \frac{1}{2R} \sum_{r, h} \frac{c_{rh}}{n_{rh}}.

    Madani, Pennock and Flake (2004) do not say whether their trainE is that of the
    halves or of the full model; this is that of the halves.
    """
    rates = counts[names.TRAIN_ERRORS] / counts[names.TRAIN_ROWS]
    return np.asarray(rates.reshape(len(rates), -1).mean(axis=1))


def two_fold_cv(counts: CountsByName) -> Floats:
    r"""Mean over halvings of the error rate when each half's model tests the other.

    .. math:: \frac1R \sum_r \frac{c_{r1} + c_{r2}}{n}.

    It is 2cvE in Madani, Pennock and Flake (2004). Nearly unbiased for the error of
    models of half the rows where rows were drawn at random, too high where hard ones
    were picked.
    """
    errors = counts[names.FOLD_ERRORS]
    n_tested = counts[names.FOLD_ROWS].sum()
    return np.asarray(errors.reshape(len(errors), -1).sum(axis=1) / n_tested)


def max_dt_e(counts: CountsByName) -> Floats:
    """Return the larger of the training error and the lower end by disagreement.

    It is maxDtE in Madani, Pennock and Flake (2004), section 2.2. A constant learner
    never disagrees, so its training error is needed as well. With random rows it is
    usually below the error at half the rows; with picked rows nearer to the truth than
    cross-validation.
    """
    return np.maximum(train_error(counts), dis_error(counts))


def max_cv_dt_e(counts: CountsByName) -> Floats:
    """Return the larger of the two-fold error and `max_dt_e`.

    Madani, Pennock and Flake (2004), section 3.2, propose it where rows are random.
    """
    return np.maximum(two_fold_cv(counts), max_dt_e(counts))


_of_halves: Final = partial(Estimate, by_halves=True)

CO_VALIDATION: Final = (
    # The disagreement of a constant learner is 0, however often it errs.
    _of_halves(
        "disagreement",
        pool_disagreement,
        (names.DISAGREEMENTS,),
        POOL_SIZES,
        disagreement_term=pool_disagreement,
        description="disagreement of models of halves",
    ),
    # The estimate is clipped at (C-1)/C, where candidates tie; disagreement decides.
    _of_halves(
        "dis_error",
        dis_error,
        (names.DISAGREEMENTS,),
        (*POOL_SIZES, names.N_CLASSES),
        disagreement_term=dis_error,
        tie_break=pool_disagreement,
        description="error by disagreement",
    ),
    _of_halves(
        "dis_error_upper",
        dis_error_upper,
        (names.DISAGREEMENTS,),
        (*POOL_SIZES, names.N_CLASSES),
        can_prune=False,
        disagreement_term=dis_error_upper,
        tie_break=pool_disagreement,
        description="upper end of the error by disagreement",
    ),
    # The next two are small for a stable learner, however often it errs.
    _of_halves(
        "row_variance",
        row_variance,
        (names.DISAGREEMENTS,),
        POOL_SIZES,
        disagreement_term=row_variance,
        description="variance by row",
    ),
    _of_halves(
        "error_variance",
        error_variance,
        (names.DISAGREEMENTS,),
        POOL_SIZES,
        disagreement_term=error_variance,
        tie_break=pool_disagreement,
        description="variance of the error",
    ),
    # Overfitted candidates win by training error, which is here for comparison.
    _of_halves(
        "train_error",
        train_error,
        (names.TRAIN_ERRORS,),
        (names.TRAIN_ROWS,),
        label_term=train_error,
        description="training error",
    ),
    _of_halves(
        "two_fold_cv",
        two_fold_cv,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=two_fold_cv,
        description="two-fold error",
    ),
    _of_halves(
        "max_dt_e",
        max_dt_e,
        (names.TRAIN_ERRORS, names.DISAGREEMENTS),
        (names.TRAIN_ROWS, *POOL_SIZES, names.N_CLASSES),
        label_term=train_error,
        disagreement_term=dis_error,
        tie_break=train_error,
        description="larger of training error and error by disagreement",
    ),
    _of_halves(
        "max_cv_dt_e",
        max_cv_dt_e,
        (names.TRAIN_ERRORS, names.FOLD_ERRORS, names.DISAGREEMENTS),
        (names.TRAIN_ROWS, names.FOLD_ROWS, *POOL_SIZES, names.N_CLASSES),
        label_term=two_fold_cv,
        disagreement_term=dis_error,
        tie_break=max_dt_e,
        description=(
            "largest of two-fold error, training error and error by disagreement"
        ),
    ),
)
"""All criteria of random halves."""
