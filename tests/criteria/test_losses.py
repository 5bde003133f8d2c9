"""Estimates of a squared error: formulas and tie rules."""

import numpy as np
import pytest

from dsel import names
from dsel.criteria import CRITERIA, LOSS_CRITERIA, get_criterion
from dsel.errors import AllFitsFailedError

LAMS = np.array([0.1, 1.0, 0.1, 1.0])
WIDTHS = np.array([0.5, 0.5, 2.0, 2.0])


def evidence_of(losses):
    return {
        names.STATUS: np.zeros(4),
        names.LOO_LOSSES: np.array(losses),
        names.N_LABELED: np.array(1),
        names.REGULARIZATION: LAMS,
        names.WIDTH: WIDTHS,
    }


def chosen_by_loo(losses):
    criterion, evidence = LOSS_CRITERIA["loo"], evidence_of(losses)
    return criterion.choose(criterion.evaluate(evidence, None), evidence)


def test_kfold__is_a_mean_of_means():
    evidence = {
        names.STATUS: np.zeros(1),
        names.FOLD_LOSSES: np.array([[6.0, 4.0]]),
        names.FOLD_ROWS: np.array([3, 4]),
    }
    terms = LOSS_CRITERIA["kfold"].evaluate(evidence, None)
    assert terms.estimate == pytest.approx([1.5])


@pytest.mark.parametrize(
    ("estimates", "chosen"),
    [
        ([1.0, 1.0, 1.0, 1.0], 3),
        ([1.0, 2.0, 1.0, 2.0], 2),
        ([1.0, 1.0, 1.0, 2.0], 1),
        ([0.5, 1.0, 1.0, 1.0], 0),
        ([np.inf, np.nan, 7.0, np.inf], 2),
        ([1.0, 1.0 + 1e-15, 2.0, 2.0], 1),
    ],
)
def test_choose__ties_go_to_larger_lam_then_larger_width(estimates, chosen):
    assert chosen_by_loo(estimates) == chosen


def test_choose__needs_one_finite_estimate():
    with pytest.raises(AllFitsFailedError, match="no candidate has a value"):
        chosen_by_loo([np.inf, np.nan, np.inf, np.inf])


@pytest.mark.parametrize("criterion", LOSS_CRITERIA.values(), ids=LOSS_CRITERIA)
def test_loss_criteria__never_choose_a_failed_candidate(criterion):
    evidence = {
        names.STATUS: np.array([0, names.STATUS_FAILED]),
        names.FOLD_LOSSES: np.array([[1.0, 2.0], [0.0, 0.0]]),
        names.FOLD_ROWS: np.array([2, 2]),
        names.LOO_LOSSES: np.array([3.0, 0.0]),
        names.GCV_LOSSES: np.array([3.0, 0.0]),
        names.EXTRA_LOSS: np.array([3.0, 0.0]),
        names.N_LABELED: np.array(4),
        names.REGULARIZATION: np.array([1.0, 1.0]),
        names.WIDTH: np.array([1.0, 2.0]),
    }
    terms = criterion.evaluate(evidence, None)
    assert np.isfinite(terms.estimate[0])
    assert terms.estimate[1] == np.inf
    assert criterion.choose(terms, evidence) == 0
    assert (criterion.lower_bound(evidence, None) <= terms.estimate).all()
    assert not criterion.is_guarantee


def test_get_criterion__says_where_loss_criteria_belong():
    with pytest.raises(ValueError, match="`criterion` 'loo' estimates the squared"):
        get_criterion("loo")


def test_loss_criteria__are_apart_from_those_of_the_main_search():
    assert not set(LOSS_CRITERIA) & set(CRITERIA)
