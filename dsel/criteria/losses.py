"""Estimates of the squared error of least squares: five formulas, one rule for ties.

To add one: the formula, and its line in `LOSSES`. None is a bound.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.base import Evidence, Settings, Terms, first_smallest, has_failed

Floats = NDArray[np.float64]

ROUNDING = 1e-12
"""Scores this close, relative to the smallest, count as equal."""


@dataclass(frozen=True)
class LossCriterion:
    """An estimate of G + sigma^2; never a bound, and nothing is pruned by it.

    Ties go to the larger regularization, then to the larger width: the smoother model.
    """

    name: str
    """Value of `criterion=`."""
    needs: tuple[str, ...]
    """Variables of the cube that `formula` takes, in this order."""
    formula: Callable[..., Floats]
    """From the variables to one number per candidate."""
    is_guarantee: bool = False
    """No statement with a probability."""
    can_prune: bool = False
    """All regularizations of a width are known at once."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """Whether only the first fold is held out."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates; NaN where a loss is missing."""
        del settings  # an estimate needs no delta
        values = self.formula(*(evidence[name] for name in self.needs))
        estimate = np.where(has_failed(evidence), np.inf, values)
        return Terms(estimate, estimate, np.full_like(estimate, np.nan))

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
        """Return 0, which no squared error is below."""
        del settings
        return np.zeros(len(evidence[names.STATUS]))

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the smoothest of the best; see `smoothest_of_best`."""
        return smoothest_of_best(
            terms.estimate, evidence[names.REGULARIZATION], evidence[names.WIDTH]
        )


def smoothest_of_best(
    estimates: Floats, regularizations: Floats, widths: Floats
) -> int:
    """Return the number of the smallest estimate; ties: larger lam, then larger c.

    Parameters
    ----------
    estimates
        One per candidate; NaN and inf are never chosen.
    regularizations, widths
        lam and c of each candidate.

    Raises
    ------
    AllFitsFailedError
        Where no estimate is finite.
    """
    best = estimates[first_smallest(estimates)]
    ties = np.flatnonzero(estimates <= best * (1.0 + ROUNDING))
    order = np.lexsort((-widths[ties], -regularizations[ties]))
    return int(ties[order[0]])


def leave_one_out_error(
    loo_losses: ArrayLike, n_labeled: ArrayLike
) -> NDArray[np.float64]:
    r"""Mean squared residual of the models trained without one row, on that row.

    .. math:: \frac{1}{n} \sum_j (\hat f_j(x_j) - y_j)^2
              = \frac{1}{n} \|\tilde H^{-1} H y\|^2.

    Parameters
    ----------
    loo_losses
        Sum of the squared residuals, over rows and outputs.
    n_labeled
        Rows, :math:`n`, broadcast against `loo_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Its expectation is that of G + sigma^2 for training size n - 1,
    where G is the squared error against the target function.
    Assumes: i.i.d. inputs and zero-mean noise of equal variance, independent of all.
    Source: [1]_, "Closed Form of LOOCV"; the proof is in
    `dsel.solvers.least_squares`.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> leave_one_out_error([2.0, 3.0], 10)
    array([0.2, 0.3])
    """
    return np.asarray(np.asarray(loo_losses) / n_labeled, np.float64)


def generalised_cross_validation(
    gcv_losses: ArrayLike, n_labeled: ArrayLike
) -> NDArray[np.float64]:
    r"""Leave-one-out with the mean of the diagonal of H in the place of its entries.

    .. math:: n \|H y\|^2 / (\mathrm{tr}\, H)^2.

    Parameters
    ----------
    gcv_losses
        The score times n.
    n_labeled
        Rows, :math:`n`, broadcast against `gcv_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none; it equals leave-one-out where all entries of the diagonal are
    equal, and approximates it elsewhere.
    Assumes: as leave-one-out.
    Source: [1]_.

    References
    ----------
    .. [1] G. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method
       for choosing a good ridge parameter", Technometrics 21, 1979.

    Examples
    --------
    >>> generalised_cross_validation([2.0, 3.0], 10)
    array([0.2, 0.3])
    """
    return np.asarray(np.asarray(gcv_losses) / n_labeled, np.float64)


def kfold_error(fold_losses: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.float64]:
    r"""Mean over folds of the mean squared residual on the held-out fold.

    .. math:: \frac{1}{k} \sum_j \frac{1}{|T_j|}
              \sum_{i \in T_j} (\hat f_{T_j}(x_i) - y_i)^2.

    Parameters
    ----------
    fold_losses
        Sums of squared residuals; the folds on the last axis.
    fold_rows
        Rows of each fold, :math:`|T_j|`, broadcast against `fold_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Its expectation is that of G + sigma^2 for training size n - n_j.
    Assumes: as leave-one-out.
    Source: [1]_, "k-Fold Cross-Validation"; a mean of means where sizes differ.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> kfold_error([[2.0, 3.0]], [10, 5])
    array([0.4])
    """
    return np.asarray((np.asarray(fold_losses) / fold_rows).mean(axis=-1), np.float64)


def holdout_error(fold_losses: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.float64]:
    r"""Mean squared residual on the first fold of the model trained without it.

    .. math:: \frac{1}{|T|} \sum_{i \in T} (\hat f_T(x_i) - y_i)^2.

    Parameters
    ----------
    fold_losses
        Sums of squared residuals; the folds on the last axis.
    fold_rows
        Rows of each fold.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Unbiased for G + sigma^2 of the model trained without the fold.
    Assumes: as leave-one-out; it depends heavily on which rows are held out.
    Source: [1]_, "Holdout Method", with several rows held out.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> holdout_error([[2.0, 3.0]], [10, 5])
    array([0.2])
    """
    first = np.asarray(fold_losses)[..., 0] / np.asarray(fold_rows)[0]
    return np.asarray(first, np.float64)


def extra_sample_error(extra_loss: ArrayLike) -> NDArray[np.float64]:
    r"""Mean squared residual of the full model on rows that it was not trained on.

    .. math:: (\hat f(x') - y')^2, \text{ averaged over the extra rows.}

    Parameters
    ----------
    extra_loss
        The mean squared residuals.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none with a probability; unbiased for G + sigma^2, exactly.
    Assumes: extra rows drawn like the others and independent of them. Rows used to
    choose are no longer fresh for the candidate that was chosen.
    Source: [1]_, "Extra-Sample Method".

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> extra_sample_error([0.2, 0.3])
    array([0.2, 0.3])
    """
    return np.asarray(extra_loss, np.float64)


LOSSES: Final = (
    LossCriterion("loo", (names.LOO_LOSSES, names.N_LABELED), leave_one_out_error),
    LossCriterion(
        "gcv", (names.GCV_LOSSES, names.N_LABELED), generalised_cross_validation
    ),
    LossCriterion("kfold", (names.FOLD_LOSSES, names.FOLD_ROWS), kfold_error),
    LossCriterion(
        "holdout",
        (names.FOLD_LOSSES, names.FOLD_ROWS),
        holdout_error,
        holds_out_one_fold=True,
    ),
    LossCriterion("extra_sample", (names.EXTRA_LOSS,), extra_sample_error),
)
"""All estimates of a squared error."""
