"""Every model of a search can be asked for afterwards, and is the one that counted."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from dsel.mcpl import SemiSupervisedLDA
from tests.estimators import FAMILIES


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order] / 16.0, np.array(list("abcd"))[y[order]]


@pytest.mark.parametrize("name", FAMILIES)
def test_model__errs_on_its_fold_as_often_as_the_cube_says(digits, name):
    X, y = digits
    plan = dsel.plan_search(
        *FAMILIES[name], X[:150], y[:150], X[150:], cv=3, prune=False, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    cube = plan.run(n_jobs=2).fold_errors.values.reshape(plan.n_candidates, 3)
    for candidate in range(plan.n_candidates):
        for fold in range(3):
            rows = plan.work.splits[fold].test_rows
            model = plan.model(candidate, fold=fold)
            errors = np.count_nonzero(model.predict(X[rows]) != y[rows])
            assert errors == cube[candidate, fold]


def test_model__is_the_searchs_own_to_the_bit(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        *FAMILIES["kernel svm"], cv=3, random_state=0, n_jobs=2
    ).fit(X[:150], y[:150], X[150:])
    again, best = search.model(), search.best_estimator_
    for name in ("support_", "dual_coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(best, name))
    other = search.model(candidate=0, fold=1)
    assert other.get_params()["C"] == 0.5
    assert len(set(other.support_)) < 150


def test_model__of_tiny_features_does_not_wait_for_libsvm(digits):
    X, y = digits
    unit = 2.0**-70
    plan = dsel.plan_search(
        SVC(kernel="linear"), {"C": [unit**-2]}, unit * X[:90], y[:90], cv=3,
        random_state=0,
    )  # fmt: skip
    model = plan.model(0)
    assert model.C == model.get_params()["C"] == unit**-2
    assert np.mean(model.predict(unit * X[90:190]) == y[90:190]) > 0.9


def test_model__gives_halves_of_co_validation(digits):
    X, y = digits
    plan = dsel.searches.plan_covalidation(
        SVC(), {"C": [1.0]}, X[:60], y[:60], X[60:], repeats=2
    )
    counted = plan.run(n_jobs=1).fold_errors.values.ravel()
    for half in range(4):
        rows = plan.work.splits[half].test_rows
        wrong = plan.model(0, fold=half).predict(X[rows]) != y[rows]
        assert np.count_nonzero(wrong) == counted[half]


@pytest.mark.parametrize("grid", [{"C": [0.5, 2.0]}, [{"C": [0.5]}, {"C": [2.0]}]])
def test_select__names_the_parameters_of_one_picked_candidate(digits, grid):
    X, y = digits
    named = {"criterion": "best_fold_model", "cv": 3, "random_state": 0}
    plan = dsel.plan_search(SVC(), grid, X[:90], y[:90], prune=False, **named)
    results = plan.run(n_jobs=1)
    (dim,) = results.status.dims
    picked = results.isel({dim: 1})
    assert dsel.select(picked).params == {"C": 2.0}
    assert picked.dsel.table()["C"].tolist() == [2.0]
    with pytest.raises(ValueError, match="of all results of this plan in their order"):
        plan.deployed(dsel.select(picked))
    choice = dsel.select(results.isel({dim: 0}))
    assert plan.deployed(choice).get_params()["C"] == 0.5


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"candidate": 6}, r"`candidate` must be in \[0, 5\], got 6"),
        ({"candidate": -1}, r"`candidate` must be in \[0, 5\], got -1"),
        ({"candidate": 0, "fold": 3}, r"`fold` must be in \[0, 2\], got 3"),
    ],
)
def test_model__refuses_what_the_search_has_not(digits, asked, message):
    X, y = digits
    plan = dsel.plan_search(*FAMILIES["kernel svm"], X[:90], y[:90], cv=3)
    with pytest.raises(ValueError, match=message):
        plan.model(**asked)


def test_model__needs_a_fold_where_nothing_is_trained_on_all_rows(digits):
    X, y = digits
    plan = dsel.plan_search(
        SVC(), {"C": [1.0]}, X[:90], y[:90], cv=3, criterion="holdout_bound"
    )
    with pytest.raises(ValueError, match="trains nothing on all labeled rows"):
        plan.model(0)
    assert plan.model(0, fold=0).fit_status_ == 0


def test_model__says_why_a_fit_fails(digits):
    X, y = digits
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 59]}, X[:60], y[:60], cv=3
    )
    plan.model(1)
    with pytest.raises(RuntimeError, match="cannot be fitted on fold-2: ValueError"):
        plan.model(1, fold=2)


def test_search__leaves_rows_and_plan_out_of_its_pickle(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(SVC(), {"C": [1.0]}, cv=3, random_state=0)
    search.fit(X[:90], y[:90])
    loaded = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    with pytest.raises(RuntimeError, match="has no labeled rows any more"):
        loaded.model()


def test_deployed__of_a_learner_of_the_pool_is_the_model_that_was_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    search = dsel.SemiSupervisedSearchCV(
        None, [SemiSupervisedLDA()], cv=3, random_state=0, criterion="cv_bound",
        duplicates="exclude",
    ).fit(X[:40], y[:40], pool=X)  # fmt: skip
    for model in (search.plan_.deployed(search.choice_), search.model()):
        np.testing.assert_array_equal(model.coef_, search.best_estimator_.coef_)
