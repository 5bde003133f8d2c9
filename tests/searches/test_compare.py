import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from dsel.bounds import pair_facts
from dsel.errors import FitFailedWarning
from dsel.searches import compare_pairs, count_pairs

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 1.0]}


@pytest.fixture(scope="module")
def searched():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 2))
    y = (X.prod(axis=1) + 0.3 * rng.normal(size=1200) > 0).astype(int)
    plan = dsel.plan_search(
        SVC(), GRID, X[:200], y[:200], X[200:], cv=3, random_state=1,
        criterion="cv_bound",
    )  # fmt: skip
    return plan, plan.run(), X, y


def test_compare_pairs__counts_what_refitted_models_differ_on(searched):
    plan, results, X, y = searched
    found = compare_pairs(results, plan, [1, 3, 4], delta=0.1)
    answers = [
        clone(SVC()).set_params(**plan.axes.params(j)).fit(X[:200], y[:200])
        .predict(X[200:])
        for j in (1, 3, 4)
    ]  # fmt: skip
    expected = [[np.count_nonzero(a != b) for b in answers] for a in answers]
    np.testing.assert_array_equal(found.differing_rows, expected)
    facts = pair_facts(expected[0][2], 1000, delta=0.1 / 15)
    assert found.difference.sel(candidate=1, other=4) == facts.difference
    assert found.larger_error.sel(candidate=1, other=4) == facts.larger_error
    assert found.params.values[0] == "C=0.1, gamma=1.0"


def test_compare_pairs__holds_for_the_best_of_a_finished_cube(searched):
    plan, results, _, _ = searched
    found = results.dsel.pairs(plan, n_best=2)
    assert int(dsel.select(results).candidate) == found.candidate.values[0]
    assert found.difference.shape == (2, 2)
    assert (np.diag(found.difference) == 0).all()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [([1], "two or more different numbers below 6"), ([1, 6], "got "), ([2, 2], "two")],
)
def test_compare_pairs__refuses(searched, candidates, message):
    plan, results, _, _ = searched
    with pytest.raises(ValueError, match=message):
        compare_pairs(results, plan, candidates)


def test_compare_pairs__says_that_others_were_pruned(searched):
    plan, results, _, _ = searched
    alone = results.assign(estimate=results.estimate.where(results.C == 1.0))
    alone = alone.assign(estimate=alone.estimate.where(results.gamma == 1.0))
    with pytest.raises(ValueError, match="`candidates` must be named: only 1 of 6"):
        compare_pairs(alone, plan)


def test_compare_pairs__needs_a_pool(searched):
    _, results, X, y = searched
    alone = dsel.plan_search(SVC(), GRID, X[:200], y[:200], cv=3, random_state=1)
    with pytest.raises(ValueError, match="must have a pool"):
        compare_pairs(results, alone)


def test_compare_pairs__needs_models_of_all_rows_that_can_be_fitted(searched):
    _, _, X, y = searched
    grid = {"n_neighbors": [1, 5, 150]}
    rows = X[:200], y[:200], X[200:]
    plan = dsel.plan_search(
        KNeighborsClassifier(), grid, *rows, cv=3, random_state=1, criterion="cv_error"
    )
    with pytest.warns(FitFailedWarning):
        results = plan.run()
    with pytest.raises(ValueError, match=r"but \[2\] failed"):
        compare_pairs(results, plan, [0, 2])
    assert compare_pairs(results, plan).sizes == {"candidate": 2, "other": 2}
    plan = dsel.plan_search(SVC(), GRID, *rows, cv=3, criterion="holdout_bound")
    with pytest.raises(ValueError, match="'holdout_bound' needs none"):
        compare_pairs(plan.run(), plan)


@pytest.mark.parametrize("compared", [compare_pairs, count_pairs])
def test_compare_pairs__wants_the_candidates_of_the_plan_in_its_order(
    searched, compared, tmp_path
):
    plan, results, *_ = searched
    dsel.save_results(results, tmp_path / "cube")
    stored = dsel.open_results(tmp_path / "cube")
    assert compared(stored, plan).equals(compared(results, plan))
    for other in (
        results.transpose("gamma", "C", ...),
        results.sortby("C", ascending=False),
        results.isel(C=[1, 2]),
    ):
        with pytest.raises(ValueError, match="`results` must be all results of `plan`"):
            compared(other, plan)


def test_compare_pairs__leaves_out_pool_rows_that_the_run_excluded(searched):
    _, _, X, y = searched
    found = []
    for pool, duplicates in ((X, "exclude"), (X[200:], "refuse")):
        plan = dsel.plan_search(
            SVC(), GRID, X[:200], y[:200], pool, cv=3, random_state=1,
            criterion="cv_bound", duplicates=duplicates,
        )  # fmt: skip
        results = plan.run()
        pairs = compare_pairs(results, plan, [1, 3])
        found.append([pairs, count_pairs(results, plan).pair_disagreements])
    assert found[0][0].equals(found[1][0])
    assert found[0][0].attrs == found[1][0].attrs
    assert found[0][1].equals(found[1][1])
