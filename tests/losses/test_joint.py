"""Bounds of both models by one loss, and which of the bounded models is deployed."""

import numpy as np
import pytest

from dsel.bounds import nested_all_rows, nested_one_fold
from dsel.bounds.holdout import expected_holdout_bound
from dsel.losses.base import FoldCounts, PlannedDelta, PoolCounts, Shares
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence, bound_models, fold_to_deploy, limit_folds

ERRORS, ROWS = np.array([9, 4, 7, 6, 8]), np.full(5, 80)
DIFFER, N_POOL = np.array([150, 90, 120, 80, 130]), 10_000
SHARES = Shares(0.05, 0.95)

# Limits, ranks of candidates, folds without a model, and the deployed fold.
FOLDS = [
    ([0.30, 0.20, 0.40], [0, 0, 0], [], 1),
    ([0.30, 0.20, 0.21], [0, 1, 0], [], 2),
    ([0.30, 0.20, 0.2101], [0, 1, 0], [], 1),
    ([0.205, 0.20, 0.205], [0, 1, 0], [], 0),
    ([0.205, 0.20, 0.202], [0, 1, 0], [], 2),
    ([1.0, 1.0, 1.0], [2, 1, 1], [], 1),
    ([1.0, 1.0, 1.0], [0, 2, 1], [0], 2),
    ([0.1, 1.0, 0.99], [1, 0, 2], [0], 1),
    ([np.inf, np.inf, np.inf], [1, 0, 0], [], 1),
    ([0.0, 0.0, 0.1], [1, 0, 0], [], 1),
]


@pytest.mark.parametrize(("limits", "ranks", "without", "expected"), FOLDS)
def test_fold_to_deploy__has_the_best_candidate_of_those_with_a_limit_near_the_smallest(
    limits, ranks, without, expected
):
    has_model = ~np.isin(np.arange(len(limits)), without)
    found = fold_to_deploy(np.array(limits), has_model, np.array(ranks))
    assert found == expected
    smallest = np.array(limits)[has_model].min()
    assert limits[found] <= 1.05 * smallest


def evidence(has_pool=True):
    pool = PoolCounts(DIFFER, np.zeros(5, int), N_POOL, 0)
    statistic = ERROR_RATE.statistic
    pools = {statistic: pool} if has_pool else {}
    return Evidence({statistic: FoldCounts(ERRORS, ROWS)}, pools)


def bound(evidence, fold):
    limits = limit_folds(ERROR_RATE, evidence.folds, SHARES)
    return bound_models(ERROR_RATE, evidence, SHARES, limits, fold)


def test_bounds__of_both_models_are_the_formulas_at_their_shares():
    fold, limit = nested_one_fold(ERRORS, ROWS, delta=0.95 * 0.05)
    _, terms = nested_all_rows(ERRORS, ROWS, DIFFER, N_POOL, delta=0.05)
    made = bound(evidence(), int(fold))
    assert made.of("one_fold") == made.one_fold_bound == limit
    assert made.of("all_rows") == made.all_rows_bound == terms.bound
    assert (made.label_term, made.disagreement_term) == pytest.approx(terms[1:])
    assert made.estimate == ERRORS.sum() / ROWS.sum()


def test_bounds__of_a_fold_are_of_that_fold_and_need_no_pool():
    made = [bound(evidence(has_pool=False), n).one_fold_bound for n in range(5)]
    both = bound(evidence(), 0)
    assert len(set(made)) == 5
    assert made[0] == both.one_fold_bound
    without = bound(evidence(has_pool=False), 0)
    assert np.isnan(without.all_rows_bound)


def bound_declared(evidence, planned):
    losses = DeclaredLosses()
    limits = losses.limit_folds(evidence.folds, planned)
    return losses.bound(evidence, planned, limits, 0)


@pytest.mark.parametrize("n_compared", [1, 3])
def test_bounds__compare_with_a_hold_out_set_at_all_of_delta(n_compared):
    planned = PlannedDelta(delta=0.01, has_pool=True, n_compared=n_compared)
    made = bound_declared(evidence(), planned)
    expected = expected_holdout_bound(made.main.estimate, 80, delta=0.01)
    assert made.expected_holdout == expected


def test_bounds__of_a_hold_out_set_are_compared_with_no_other():
    folds = {ERROR_RATE.statistic: FoldCounts(ERRORS[:1], ROWS[:1])}
    planned = PlannedDelta(delta=0.05, has_pool=False)
    made = bound_declared(Evidence(folds, {}), planned)
    assert np.isnan(made.expected_holdout)
    assert made.main.one_fold_bound < 1


@pytest.mark.parametrize("query_share", [0.0, 0.21])
def test_shares__of_labels_pool_and_queries_are_all_of_delta(query_share):
    made = Shares(0.05, 0.78, query_share)
    assert made.label_delta == 0.78 * 0.05
    total = made.label_delta + made.pool_delta + query_share * 0.05
    assert total == pytest.approx(0.05)
    assert Shares(0.05, 1.0).pool_delta == 0.0
