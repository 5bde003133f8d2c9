"""What a certificate says holds for the model that is handed over, for every pair."""

import re
from itertools import count

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

from dsel import SemiSupervisedSearchCV, plan_search, select
from dsel.criteria import CRITERIA

N_LABELED = 200
GUARANTEES = [name for name, rule in CRITERIA.items() if rule.is_guarantee]
ESTIMATES = [name for name in CRITERIA if name not in GUARANTEES]
FULL_IS_BAD = {"full": 0.9, "without": 0.1}
FOLD_IS_BAD = {"full": 0.1, "without": 0.9}
HALVES = ("disagreement", "dis_error", "train_error", "two_fold_cv", "max_dt_e")
HALVES += ("max_cv_dt_e", "half_true_error")
EITHER = (*HALVES, "loo_error", "true_error")
REFUSED_LATER = "needs (folds|random halvings)|took no part in the selection"
REFUSED_LATER += "|did not count"


class Swayed(ClassifierMixin, BaseEstimator):
    """Errs at a rate that the rows of its split decide, so that it is known.

    The first column is uniform in [0, 1], the second is the label.
    """

    def __init__(self, full=0.1, without=0.1, elsewhere=0.1, row=0.0, worse=0.0):
        self.full = full
        self.without = without
        self.elsewhere = elsewhere
        self.row = row
        self.worse = worse

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        left_out = self.row not in X[:, 0]
        rate = self.without if left_out else self.elsewhere
        self.error_ = self.worse + (self.full if len(X) == N_LABELED else rate)
        return self

    def predict(self, X):
        return np.where(X[:, 0] < self.error_, 1 - X[:, 1], X[:, 1]).astype(int)


def draw(rng, n):
    X = np.column_stack([rng.uniform(size=n), rng.integers(0, 2, n)])
    return X, X[:, 1].astype(int)


RNG = np.random.default_rng(0)
X, Y = draw(RNG, N_LABELED)
POOL, POOL_LABELS = draw(RNG, 500)
GRID = {"worse": [0.02, 0.0]}
QUICK = ("holdout_bound", "cv_bound", "true_error")
SOME_SLOW = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in CRITERIA
]


def learner(cv, **rates):
    """Return a learner that knows one row of fold 0."""
    probe = plan_search(None, [DummyClassifier()], X, Y, cv=cv, random_state=0)
    return Swayed(row=float(X[probe.work.splits[0].test_rows[0], 0]), **rates)


N_FITS = count()


class Drifting(Swayed):
    """Errs more often each time that it is fitted, whatever its rows."""

    def fit(self, X, y):
        super().fit(X, y)
        self.error_ = 0.05 * next(N_FITS)
        return self


@pytest.mark.parametrize("certificate", ["best_fold_model", "holdout_bound"])
def test_fit__refuses_to_hand_over_another_model_than_was_counted(rng, certificate):
    X, y = draw(rng, N_LABELED)
    search = SemiSupervisedSearchCV(
        Drifting(), GRID, certificate=certificate, cv=3, random_state=0
    )
    with pytest.raises(RuntimeError, match=r"another model.*on fold-.*fixed seed"):
        search.fit(X, y)


class Chance(Swayed):
    """Knows its rows by heart; each fit draws whether it errs elsewhere."""

    def __init__(self, draw=None, seed=None):
        self.draw = draw
        self.seed = seed

    def fit(self, X, y):
        self.classes_, self.known_ = np.unique(y), X[:, 0]
        self.error_ = (self.draw or np.random.default_rng(self.seed).random)()
        return self

    def predict(self, X):
        wrong = (X[:, 0] < self.error_) & ~np.isin(X[:, 0], self.known_)
        return np.where(wrong, 1 - X[:, 1], X[:, 1]).astype(int)


def one_of_two():
    return float(np.random.randint(2)) / 2  # noqa: NPY002


@pytest.mark.parametrize("draw", [None, one_of_two], ids=["own", "of all"])
@pytest.mark.parametrize("certificate", ["best_fold_model", "best_fold"])
def test_deployed__certifies_no_learner_that_draws_without_a_seed(draw, certificate):
    names = {"criterion": "cv_error", "certificate": certificate}
    plan = plan_search(None, [Chance(draw)], X, Y, POOL, cv=2, random_state=0, **names)
    choice = select(plan.run())
    with pytest.raises(RuntimeError, match=r"is of Chance\(.* fixed seed"):
        plan.deployed(choice)
    seeded = plan_search(None, [Chance(seed=3)], X, Y, POOL, random_state=0, **names)
    assert seeded.deployed(select(seeded.run())).error_ < 0.1


LATER_FITS_ERR = iter([0.0, 0.0, 0.5, 0.5])


def in_turn():
    return next(LATER_FITS_ERR)


def test_deployed__refuses_another_model_that_two_fits_agree_on():
    names = {"criterion": "cv_error", "certificate": "best_fold_model"}
    plan = plan_search(None, [Chance(in_turn)], X, Y, cv=2, random_state=0, **names)
    choice = select(plan.run(n_jobs=1))
    assert (choice.errors, choice.certificate.certified) == (0, True)
    with pytest.raises(RuntimeError, match=r"where 0 were counted.* fixed seed"):
        plan.deployed(choice)


def settings(criterion, certificate, **changed):
    common = {"delta": 0.3, "random_state": 0}
    return common | {"criterion": criterion, "certificate": certificate} | changed


def cannot_be_counted(*pair):
    """Tell whether one reads halves and the other folds, or what no search counts, or
    one is nested and the other ranks in another way."""
    nested = {name for name in pair if name.startswith("nested")}
    if nested and len({*pair} - {"cv_error"}) > 1:
        return True
    halves = any(name in HALVES for name in pair)
    folds = any(name not in EITHER for name in pair)
    apart = {"select_then_certify"}
    return (halves and folds) or not apart.isdisjoint(pair)


def is_about(certificate, model):
    """Tell whether the number bounds the model's error, or is not certified."""
    if not CRITERIA[certificate.criterion].is_guarantee:
        return not certificate.certified
    return not certificate.certified or error_of(model) <= certificate.unclipped


def error_of(model):
    """Return a model's error; models that vote err on nested intervals."""
    return np.median([each.error_ for each in getattr(model, "models", [model])])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "certificates", [GUARANTEES, pytest.param(ESTIMATES, marks=pytest.mark.slow)]
)
def test_fit__certifies_the_model_that_it_hands_over(criterion, certificates):
    swayed = learner(cv=3, **FULL_IS_BAD)
    for certificate in certificates:
        if cannot_be_counted(criterion, certificate):
            continue
        options = settings(criterion, certificate, cv=3, n_jobs=1)
        search = SemiSupervisedSearchCV(swayed, GRID, **options)
        search.fit(X, Y, pool=POOL, pool_labels=POOL_LABELS)
        assert is_about(search.certificate_, search.best_estimator_), certificate


@pytest.mark.parametrize("criterion", SOME_SLOW)
def test_run__certifies_the_model_of_the_choice(criterion):
    swayed = learner(cv=10, **FOLD_IS_BAD)
    for certificate in GUARANTEES:
        if cannot_be_counted(criterion, certificate):
            continue
        options = settings(criterion, certificate, cv=10, pool_labels=POOL_LABELS)
        plan = plan_search(swayed, GRID, X, Y, POOL, **options)
        choice = select(plan.run(n_jobs=1))
        model = plan.deployed(choice)
        assert is_about(choice.certificate, model), certificate


@pytest.fixture(scope="module", params=["averaged_disagreement", "max_cv_dt_e"])
def finished(request):
    """Return a plan and its cube, with all that can be counted and a reserve."""
    also = {"averaged_disagreement": "best_fold_interval"}
    options = settings(request.param, also.get(request.param), prune=False, cv=10)
    given = {"pool_labels": POOL_LABELS, "delta": 0.01, "reserve": 0.98}
    swayed = learner(cv=10, **FOLD_IS_BAD)
    plan = plan_search(swayed, GRID, X, Y, POOL, **options | given)
    return plan, plan.run(n_jobs=1)


def answer(results, criterion, certificate):
    try:
        return select(results, criterion, certificate=certificate, delta=0.3)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_select__certifies_the_model_of_the_choice_or_refuses(finished, criterion):
    plan, results = finished
    for certificate in GUARANTEES:
        paid = results.dsel.add_certificate(certificate, delta=0.3)
        choice = answer(paid, criterion, certificate)
        if isinstance(choice, str):
            assert re.search(REFUSED_LATER, choice), certificate
            continue
        model = plan.model(choice.candidate, choice.fold)
        assert is_about(choice.certificate, model), certificate
        assert not np.isnan(choice.bound) or not choice.certificate.certified


def test_select__says_why_the_chosen_has_no_number_and_what_to_do():
    # Fold 0 alone chooses the first candidate, all folds the second one.
    grid = {"without": [0.0, 0.2], "elsewhere": [0.2, 0.0]}
    grid = [{name: [values[n]] for name, values in grid.items()} for n in (0, 1)]
    options = settings("holdout_bound", "best_fold_of_leader", cv=10)
    plan = plan_search(learner(cv=10), grid, X, Y, POOL, **options)
    certificate = select(plan.run(n_jobs=1)).certificate
    assert not certificate.certified
    assert np.isnan(certificate.bound)
    assert "choose by criterion='cv_error'" in certificate.reasons[0]
    assert "100" not in certificate.reading()


def test_choice__names_the_model_where_it_is_not_that_of_all_rows():
    options = settings("cv_bound", "holdout_bound", cv=3)
    plan = plan_search(learner(cv=3, **FULL_IS_BAD), GRID, X, Y, POOL, **options)
    choice = select(plan.run(n_jobs=1))
    assert "model trained without fold 0" in repr(choice)
    reading = choice.certificate.reading().replace("\n", " ")
    assert (
        "the chosen candidate's model that was trained without fold 0 errs" in reading
    )
    assert plan.model(choice.candidate, choice.fold).error_ == pytest.approx(0.1)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_plan_search__refuses_what_cannot_be_counted_together(criterion):
    refused = "must read the same splits|took no part in the selection"
    refused += "|choose by the cross-validation error"
    for certificate in CRITERIA:
        if not cannot_be_counted(criterion, certificate):
            continue
        options = settings(criterion, certificate, pool_labels=POOL_LABELS)
        with pytest.raises(ValueError, match=refused):
            plan_search(Swayed(), GRID, X, Y, POOL, **options)
