"""Bounds of both models by one loss, and which of the bounded models is deployed."""

from dataclasses import replace

import numpy as np
import pytest

from dsel.bounds import nested_all_rows, nested_one_fold, upper_pool_rows
from dsel.bounds.holdout import expected_holdout_bound
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence, bound_models, fold_to_deploy
from dsel.losses.protocols import DeltaDivision, FoldCounts, PlannedDelta, PoolCounts

ERRORS, ROWS = np.array([9, 4, 7, 6, 8]), np.full(5, 80)
DIFFER, N_POOL = np.array([150, 90, 120, 80, 130]), 10_000
DIVISION = DeltaDivision(0.05, 0.95)

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


def evidence(has_pool=True, duplicates=(0, 0, 0, 0, 0), n_duplicates=0):
    pool = PoolCounts(DIFFER, np.array(duplicates), N_POOL, n_duplicates)
    statistic = ERROR_RATE.statistic
    pools = {statistic: pool} if has_pool else {}
    return Evidence({statistic: FoldCounts(ERRORS, ROWS)}, pools)


def bound(evidence, fold):
    return bound_models(ERROR_RATE, evidence, DIVISION, fold)


def test_bounds__of_both_models_are_the_formulas_at_their_shares():
    fold, limit = nested_one_fold(ERRORS, ROWS, delta=0.95 * 0.05)
    _, terms = nested_all_rows(ERRORS, ROWS, DIFFER, N_POOL, delta=0.05)
    made = bound(evidence(), int(fold))
    assert made.of("one_fold") == made.one_fold_bound == limit
    assert made.of("all_rows") == made.all_rows_bound == terms.bound


def test_bound_of_all_rows__counts_no_row_that_may_be_a_labeled_record():
    duplicates = np.array([3, 0, 1, 2, 0])
    made = bound(evidence(duplicates=duplicates, n_duplicates=10), 0)
    rows = upper_pool_rows(N_POOL, 10, duplicates)
    _, terms = nested_all_rows(ERRORS, ROWS, DIFFER, rows, delta=0.05)
    assert made.all_rows_bound == terms.bound
    assert made.all_rows_bound > bound(evidence(), 0).all_rows_bound
    assert (made.label_term, made.disagreement_term) == pytest.approx(terms[1:])
    assert made.estimate == ERRORS.sum() / ROWS.sum()


def test_bounds__of_a_fold_are_of_that_fold_and_need_no_pool():
    made = [bound(evidence(has_pool=False), n).one_fold_bound for n in range(5)]
    both = bound(evidence(), 0)
    assert len(set(made)) == 5
    assert made[0] == both.one_fold_bound
    without = bound(evidence(has_pool=False), 0)
    assert np.isnan(without.all_rows_bound)


def bound_declared(evidence, planned, fold=0):
    losses = DeclaredLosses()
    return bound_models(losses.main, evidence, losses.main_division(planned), fold)


def test_planned_delta__is_that_of_one_model_unless_several_are_compared():
    planned = PlannedDelta(delta=0.06, has_pool=False)
    fold, limit = nested_one_fold(ERRORS, ROWS, delta=0.06)
    made = bound_declared(evidence(has_pool=False), planned, int(fold))
    assert made.one_fold_bound == limit
    _, third = nested_one_fold(ERRORS, ROWS, delta=0.02)
    planned = replace(planned, n_bounded=3)
    made = bound_declared(evidence(has_pool=False), planned, int(fold))
    assert made.one_fold_bound == third


@pytest.mark.parametrize("n_bounded", [1, 3])
def test_bounds__compare_with_a_hold_out_set_at_all_of_delta(n_bounded):
    planned = PlannedDelta(delta=0.01, has_pool=True, n_bounded=n_bounded)
    made = bound_declared(evidence(), planned)
    expected = expected_holdout_bound(made.estimate, 80, delta=0.01)
    assert DeclaredLosses().expected_holdout(FoldCounts(ERRORS, ROWS), 0.01) == expected


def test_bounds__of_a_hold_out_set_are_compared_with_no_other():
    folds = {ERROR_RATE.statistic: FoldCounts(ERRORS[:1], ROWS[:1])}
    planned = PlannedDelta(delta=0.05, has_pool=False)
    made = bound_declared(Evidence(folds, {}), planned)
    only_fold = folds[ERROR_RATE.statistic]
    assert np.isnan(DeclaredLosses().expected_holdout(only_fold, 0.05))
    assert made.one_fold_bound < 1


@pytest.mark.parametrize("query_share", [0.0, 0.21])
def test_shares__of_labels_pool_and_queries_are_all_of_delta(query_share):
    made = DeltaDivision(0.05, 0.78, query_share)
    assert made.label_delta == 0.78 * 0.05
    total = made.label_delta + made.pool_delta + query_share * 0.05
    assert total == pytest.approx(0.05)
    assert DeltaDivision(0.05, 1.0).pool_delta == 0.0
