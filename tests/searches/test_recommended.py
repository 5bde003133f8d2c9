"""Where a search chooses its own certificate, by what is there before labels."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.svm import SVC

import dsel
from dsel.errors import GuaranteeWarning, StoreMismatchError

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [1e-3, 1e-2]}


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order[:200]], y[order[:200]], X[order[200:1200]]


def test_plan_search__takes_the_smallest_expected_bound_and_names_the_others(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", random_state=0)
    assert (plan.certificate.name, plan.criterion.name) == ("nested", "cv_error")
    assert (plan.scheme.n_folds, plan.label_share) == (3, 0.8)
    remark = plan.remarks[0]
    assert remark.startswith("certificate='auto' takes the smallest bound")
    assert remark.index("nested with 3") < remark.index("best_fold_of_leader with")
    assert "cv_bound with" in remark
    assert remark in " ".join(repr(plan).split())
    assert max(map(len, repr(plan).splitlines())) <= 88
    results = plan.run(n_jobs=1)
    assert remark in results.attrs["remarks"]
    assert dsel.select(results).certificate.certified


def test_plan_search__takes_it_before_a_label_is_used(rows):
    X, y, pool = rows
    other = np.random.default_rng(0).permutation(y)
    plans = [
        dsel.plan_search(SVC(), GRID, X, each, pool, certificate="auto")
        for each in (y, other)
    ]
    assert plans[0].remarks[0] == plans[1].remarks[0]


def test_plan_search__takes_what_needs_no_pool_where_there_is_none(rows):
    X, y, _ = rows
    plan = dsel.plan_search(SVC(), GRID, X, y, certificate="auto")
    assert plan.certificate.name == "nested_fold_model"
    assert plan.run(n_jobs=1).status.size == 6


CRITERIA = [
    ("cv_bound", "cv_bound"), ("cv_error", "best_fold_of_leader"),
    ("cv_error", "nested"), ("merged_folds", "merged_folds"),
    ("holdout_bound", "holdout_bound"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "certificate"), CRITERIA)
def test_plan__says_the_bound_that_plan_bound_expects(rows, criterion, certificate):
    named = {"criterion": criterion, "certificate": certificate, "label_share": 0.8}
    half = {"label_share": 0.5} if certificate == "cv_bound" else {}
    plan = dsel.plan_search(SVC(), GRID, *rows, cv=5, random_state=0, **named | half)
    line = next(each for each in str(plan).splitlines() if "expected bound" in each)
    bounds = dsel.plan_bound(200, 1000, 6, 0.05, 0.1, n_folds=(5,)).bound
    known = certificate.removesuffix("_of_leader")
    expected = float(bounds.sel(certificate=known, n_folds=5))
    assert float(line.split()[2]) == pytest.approx(expected, abs=0.0001)


def test_plan_search__warns_of_a_pool_of_too_few_rows(rows):
    X, y, pool = rows
    message = r"even where no models differ: the pool has too few rows \(1\)"
    with pytest.warns(GuaranteeWarning, match=message):
        dsel.plan_search(SVC(), GRID, X, y, pool[:1], cv=3, certificate="best_fold")


def test_plan_search__warns_where_no_label_can_make_the_bound_useful(rows):
    X, y, pool = rows
    message = r"cv_bound cannot be below 0\.\d+, even where no error is counted"
    with pytest.warns(GuaranteeWarning, match=message) as caught:
        plan = dsel.plan_search(
            SVC(), GRID, X[:60], y[:60], pool, criterion="cv_bound", random_state=0
        )
    assert caught[0].filename == __file__
    assert "CAREFUL: cv_bound cannot be below" in str(plan)
    least = float(re.search(r"below (0\.\d+)", str(plan))[1])
    never_wrong = DummyClassifier(strategy="constant", constant=y[0])
    same = np.append(y[:59] * 0 + y[0], y[0] + 1)
    with pytest.warns(GuaranteeWarning, match="cannot be below"):
        plan = dsel.plan_search(
            None, [never_wrong] * 6, X[:60], same, pool, criterion="cv_bound",
            random_state=0,
        )  # fmt: skip
    results = plan.run(n_jobs=1)
    assert least <= float(results.dsel.bound().min()) < least + 0.1


def test_plan_search__does_not_warn_of_estimates(rows):
    X, y, _ = rows
    assert "CAREFUL" not in str(dsel.plan_search(SVC(), GRID, X[:60], y[:60]))


def test_plan_search__keeps_the_folds_that_are_named(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=4)
    assert plan.scheme.n_folds == 4
    two = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=2)
    assert two.certificate.name == "best_fold_of_leader"  # no pairs of two folds


def test_plan_search__without_a_wish_is_auto(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows)
    wished = dsel.plan_search(SVC(), GRID, *rows, certificate="auto")
    assert plan.certificate.name == wished.certificate.name == "nested"
    assert plan.remarks == wished.remarks
    without_pool = dsel.plan_search(SVC(), GRID, *rows[:2])
    assert without_pool.certificate.name == "cv_error"


@pytest.mark.parametrize(
    "options",
    [
        {"reserve": 0.01},
        {"prior": np.full(6, 1 / 6)},
        {"reading": dsel.PoolReading(stop_within=0.05)},
        {"cv": KFold(3)},
    ],
    ids=str,
)
def test_plan_search__is_not_auto_where_options_ask_for_another_one(rows, options):
    plan = dsel.plan_search(SVC(), GRID, *rows, **options)
    assert (plan.certificate.name, plan.label_share) == ("cv_bound", 0.5)


def test_plan_search__ranks_by_error_where_the_certificate_is_about_its_leader(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, certificate="best_fold_of_leader")
    assert plan.criterion.name == "cv_error"


def test_plan_search__takes_the_plain_search_of_one_candidate(rows):
    plan = dsel.plan_search(SVC(), {"C": [1.0]}, *rows)
    assert plan.certificate.name == "best_fold_of_leader"


def test_plan_search__makes_no_nested_search_of_many_folds(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, cv=10)
    assert plan.certificate.name == "best_fold_of_leader"
    assert len(plan.work.splits) == 11


def test_plan_search__refuses_wishes_beside_auto(rows):
    with pytest.raises(ValueError, match="leave `criterion` out"):
        dsel.plan_search(SVC(), GRID, *rows, certificate="auto", criterion="cv_bound")
    with pytest.raises(ValueError, match="number of random folds"):
        dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=KFold(3))


def test_run__says_where_more_candidates_would_take_other_folds(rows, tmp_path):
    few = dsel.plan_search(SVC(), {"C": [1.0]}, *rows, random_state=0)
    many = dsel.plan_search(SVC(), GRID, *rows, random_state=0)
    assert few.certificate.name != many.certificate.name
    few.run(n_jobs=1, out=tmp_path / "run")
    with pytest.raises(StoreMismatchError, match="candidates decide"):
        many.run(n_jobs=1, out=tmp_path / "run")


def test_auto__tells_which_folds_another_grid_with_the_same_out_needs(rows, tmp_path):
    plan = dsel.plan_search(SVC(), GRID, *rows, random_state=0)
    plan.run(out=tmp_path)
    folds = plan.scheme.n_folds
    [remark] = [each for each in plan.remarks if "another grid with the same" in each]
    assert remark.endswith(f"certificate={plan.certificate.name!r} and cv={folds}")
    named = {"certificate": plan.certificate.name, "random_state": 0}
    other = dsel.plan_search(SVC(), GRID, *rows, cv=folds + 1, **named)
    with pytest.raises(StoreMismatchError, match=f"{folds} folds.*, .*{folds + 1} f"):
        other.run(out=tmp_path)
    wider = {**GRID, "C": [0.1, 1.0, 10.0, 100.0]}
    found = dsel.plan_search(SVC(), wider, *rows, cv=folds, **named).run(out=tmp_path)
    assert found.sizes["C"] == 4
