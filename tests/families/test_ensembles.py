"""Ensembles that differ in size share one fit, and predict as if each had its own."""

from functools import partial
from itertools import zip_longest
from pickletools import genops

import cloudpickle
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.data.cache import ByteCache
from dsel.data.splits import fold_splits, random_folds
from dsel.families import check_family
from dsel.families.assignment import assign_families
from dsel.families.ensembles import EnsembleFamily
from dsel.families.family import Candidate
from dsel.families.generic import ScikitLearnFamily
from dsel.results.fit_messages import FitProblem
from dsel.runtime.tasks import limit_threads

SIZES = [3, 12, 7, 1]
Forest, Extra = RandomForestClassifier, ExtraTreesClassifier
Boosting, Histograms = GradientBoostingClassifier, HistGradientBoostingClassifier
Bags = BaggingClassifier
few = partial(Histograms, min_samples_leaf=5)
SHARING = [
    Forest(),
    Forest(max_features=2, min_samples_leaf=3, criterion="entropy"),
    Forest(max_samples=0.5, class_weight="balanced_subsample"),
    Forest(bootstrap=False, max_leaf_nodes=4, ccp_alpha=0.01),
    Extra(),
    Extra(bootstrap=True, max_samples=0.7),
    RandomForestRegressor(criterion="absolute_error", max_features=2),
    ExtraTreesRegressor(),
    Boosting(),
    Boosting(subsample=0.5, max_features="sqrt"),
    Boosting(init="zero", max_depth=2),
    Boosting(init=LogisticRegression(), learning_rate=0.5),
    Boosting(max_leaf_nodes=4, ccp_alpha=0.01),
    GradientBoostingRegressor(loss="quantile", alpha=0.7, subsample=0.8),
    GradientBoostingRegressor(loss="absolute_error", init="zero"),
    few(),
    few(early_stopping=True, n_iter_no_change=2, tol=0.1),
    few(early_stopping=False, max_features=0.5, l2_regularization=1.0),
    few(max_bins=8, class_weight="balanced"),
    HistGradientBoostingRegressor(loss="quantile", quantile=0.7, min_samples_leaf=5),
    Bags(),
    Bags(max_features=0.5, bootstrap_features=True),
    Bags(bootstrap=False, max_samples=0.6),
    Bags(LogisticRegression()),
    BaggingRegressor(max_samples=0.5),
    make_pipeline(StandardScaler(), Forest()),
    make_pipeline(StandardScaler(), Boosting(subsample=0.5)),
    make_pipeline(StandardScaler(), few(early_stopping=False)),
]


def size_name(estimator):
    *_, (step, last) = getattr(estimator, "steps", [("", estimator)])
    return f"{step}{'__' if step else ''}" + (
        "max_iter" if "HistGradient" in type(last).__name__ else "n_estimators"
    )


def candidates_of(estimator, sizes=SIZES, **params):
    grid = [{size_name(estimator): size, **params} for size in sizes]
    return [
        Candidate(n, p, clone(estimator).set_params(**p)) for n, p in enumerate(grid)
    ]


def rows_of(estimator, rng, n_classes=3):
    X = rng.normal(size=(120, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=120)
    if is_regressor(estimator):
        return X, y, np.array([])
    return X, np.digitize(y, [-0.5, 0.7][: n_classes - 1]), np.arange(n_classes)


def fit(family, group, X, y):
    splits = fold_splits(random_folds(len(y), 3, seed=0))
    with limit_threads():  # as in a task: histograms keep the number of their threads
        return family.fit(group, X, y, splits, cache=ByteCache(2**28)), splits


def first_difference(*models):
    """Return the operations before and at which the pickles of two models differ."""
    pickles = map(cloudpickle.dumps, models)
    steps = [[(code.name, value) for code, value, _ in genops(p)] for p in pickles]
    pairs = list(zip_longest(*steps))
    unequal = [i for i, (one, other) in enumerate(pairs) if one != other]
    return pairs[max(0, unequal[0] - 8) : unequal[0] + 1] if unequal else "equal now"


@pytest.mark.filterwarnings("ignore:When fitting BaggingClassifier")
@pytest.mark.parametrize(
    ("seed", "weighted"), [(None, False), (5, True)], ids=["", "seed, weights"]
)
@pytest.mark.parametrize("estimator", SHARING, ids=str)
def test_fit__equals_the_fit_of_each_size_alone(estimator, seed, weighted, rng):
    X, y, classes = rows_of(estimator, rng)
    *_, (step, _) = getattr(estimator, "steps", [("", None)])
    prefix = f"{step}__" if step else ""
    fit_params = {f"{prefix}sample_weight": rng.random(len(y))} if weighted else {}
    candidates = candidates_of(estimator, **{f"{prefix}random_state": seed})
    make = {"classes": classes, "seed": 3, "fit_params": fit_params}
    shared = EnsembleFamily(**make)
    (group,) = shared.group_candidates(candidates)
    together, splits = fit(shared, group, X, y)
    new = rng.normal(size=(400, 5))
    which = [np.array(split.number) for split in splits]
    found = together.predict(new, which)
    for place, candidate in enumerate(candidates):
        alone, _ = fit(ScikitLearnFamily(**make), [candidate], X, y)
        assert not alone.fit_counts.has_failed.any()
        np.testing.assert_array_equal(found[:, place], alone.predict(new, which)[:, 0])
        np.testing.assert_array_equal(
            together.fit_counts.errors[place], alone.fit_counts.errors[0]
        )
        for split in splits:
            key = candidate.number, split.number
            models = together.model(*key), alone.model(*key)
            if hasattr(models[0], "predict_proba"):
                np.testing.assert_array_equal(*(m.predict_proba(new) for m in models))
            np.testing.assert_array_equal(*(m.predict(new) for m in models))
            if together.token(*key) != alone.token(*key):
                pytest.fail(f"{key}: {first_difference(*models)}")
            assert all(
                model.get_params()[size_name(estimator)] == SIZES[place]
                for model in models
            )


def test_check_family__takes_ensembles(rng):
    X, y, classes = rows_of(Forest(), rng)
    sizes = [Forest(n, random_state=0) for n in (2, 5)]
    check_family(
        EnsembleFamily(classes, seed=0), [*sizes, Boosting(n_estimators=2)], X, y
    )


class Own(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self


class OwnForest(Forest):
    """May fit otherwise."""


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        OwnForest(),
        Forest(oob_score=True),
        Forest(verbose=1),
        Forest(warm_start=True),
        Forest(random_state=np.random.RandomState(0)),
        Forest(n_estimators=0),
        Boosting(n_iter_no_change=3),
        GradientBoostingRegressor(loss="huber"),
        Bags(Own()),
        Bags(n_jobs=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    # Not the address of a RandomState, which differs between processes.
    ids=lambda estimator: str(estimator).partition(" at 0x")[0],
)
def test_refusal__where_a_larger_fit_need_not_contain_a_smaller_one(estimator):
    family = EnsembleFamily(np.array([0, 1]), seed=0)
    assert family.refusal(estimator) == ""
    monitored = EnsembleFamily(np.array([0, 1]), 0, {"monitor": print})
    assert monitored.refusal(Boosting()) == ""


def notes_on_fits(candidates, X):
    made = assign_families(candidates, X, classes=np.arange(3), seed=0, fit_params={})
    return [
        (type(a.family), a.fit_note, [len(g) for g in a.candidate_groups]) for a in made
    ]


def test_assign__leaves_ensembles_of_one_size_to_the_next_family(rng):
    X, _, _ = rows_of(Forest(), rng)
    one = Candidate(0, {"max_depth": 2}, Forest(max_depth=2))
    pair = [Candidate(n, {"n_estimators": n}, Forest(n)) for n in (1, 2)]
    assert notes_on_fits([one, *pair], X) == [
        (EnsembleFamily, "one ensemble for all its sizes, 1 on each split", [2]),
        (ScikitLearnFamily, "fitted one by one", [1]),
    ]
    # Ensembles without a seed that no grid has made draw by their parameters.
    listed = [Candidate(n, {}, Forest(n)) for n in (1, 2)]
    assert [kind for kind, *_ in notes_on_fits(listed, X)] == [ScikitLearnFamily]


def test_fit__of_members_that_fail_or_stop_is_made_for_each_size(rng):
    X, y, classes = rows_of(Forest(), rng, n_classes=2)
    y[:] = 0
    y[::12] = 1  # some bootstrap samples have a single class
    bags = Bags(SVC(), max_samples=12, random_state=0)
    family = EnsembleFamily(classes, seed=0)
    candidates = candidates_of(bags, [1, 2, 40])
    together, _ = fit(family, candidates, X, y)
    alone = [
        fit(family, [c], X, y)[0].fit_counts.has_failed[0].tolist() for c in candidates
    ]
    assert together.fit_counts.has_failed.tolist() == alone
    assert True in alone[2]
    assert False in alone[0]
    texts = {m.problem for m in together.fit_counts.messages.values()}
    assert texts == {FitProblem.FAILED}
    slow = candidates_of(Bags(LogisticRegression(max_iter=3), random_state=0), [1, 30])
    together, _ = fit(family, slow, X, y)
    for candidate in slow:
        alone, _ = fit(family, [candidate], X, y)
        assert alone.fit_counts.messages.items() <= together.fit_counts.messages.items()


def test_fit__of_rows_of_one_class_and_of_a_wrong_parameter(rng):
    X, y, classes = rows_of(Forest(), rng)
    family = EnsembleFamily(classes, seed=0)
    constant, _ = fit(family, candidates_of(Forest()), X, np.zeros_like(y))
    assert (constant.fit_counts.errors[..., 0] == 0).all()
    wrong, _ = fit(family, candidates_of(Forest(max_depth=-1)), X, y)
    assert wrong.fit_counts.has_failed.all()
    assert "max_depth" in wrong.fit_counts.messages[3, 1].text


def test_search__fits_the_largest_ensemble_alone_and_finds_the_same(rng, monkeypatch):
    X, y, _ = rows_of(Forest(), rng)
    fits = []
    original = Forest.fit

    def fit_counted(self, *args, **options):
        fits.append(self.n_estimators)
        return original(self, *args, **options)

    monkeypatch.setattr(Forest, "fit", fit_counted)
    grid = {"n_estimators": [2, 4, 8], "max_depth": [1, 3]}
    search = partial(
        dsel.plan_search, Forest(), X=X, y=y, pool=rng.normal(size=(300, 5)),
        certificate="cv_bound", cv=3, prune=False, random_state=0,
    )  # fmt: skip
    together = search(grid).run(n_jobs=1).results
    assert sorted(fits) == [8] * 8  # three folds and all rows, of two depths
    for size in grid["n_estimators"]:
        alone = search({**grid, "n_estimators": [size]}).run(n_jobs=1).results
        for name in ("fold_errors", "disagreements"):
            np.testing.assert_array_equal(
                together[name].sel(n_estimators=size), alone[name].isel(n_estimators=0)
            )
