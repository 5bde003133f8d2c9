"""Any selection procedure is certified by running it once without each fold."""

from threading import Lock

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, HalvingRandomSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.bounds import best_fold_model, binomial_tail_inversion
from dsel.errors import AllFitsFailedError
from dsel.results import Certificate

SEARCHES = {
    "grid": GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, cv=3),
    "halving": HalvingRandomSearchCV(
        SVC(), {"C": [0.1, 1.0, 10.0]}, cv=2, n_candidates=3, random_state=0
    ),
    "features": make_pipeline(VarianceThreshold(), SelectKBest(k=20), SVC()),
}


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order[:300]], y[order[:300]], X[order[300:1500]]


def filled_by_hand(X, y):
    return make_pipeline(SimpleImputer(), SVC()).fit(X, y)


@pytest.mark.parametrize("kind", ["search", "function"])
def test_certify_selection__takes_missing_values_that_the_procedure_fills(rows, kind):
    X, y, pool = rows
    X, pool = (np.where(each == 7.0, np.nan, each) for each in (X, pool))
    filled = make_pipeline(SimpleImputer(), SVC())
    search = GridSearchCV(filled, {"svc__C": [1.0, 10.0]}, cv=3)
    procedure = search if kind == "search" else filled_by_hand
    found = dsel.certify_selection(procedure, X, y, pool, cv=3, random_state=0)
    assert found.certificate.certified
    assert found.model.predict(pool).shape == (len(pool),)


def by_hand(X, y):
    models = [SVC(C=C).fit(X[::2], y[::2]) for C in (0.1, 1.0)]
    return max(models, key=lambda model: model.score(X[1::2], y[1::2]))


SHARED = SVC()


def fitted_again(X, y):
    return SHARED.fit(X, y)  # every fold's model is then the one that was fitted last


class Recall:
    """Knows the labels of some rows by heart."""

    def __init__(self, known):
        self.known = known

    def predict(self, X):
        return np.array([self.known.get(value, 0) for value in X[:, 0]])


class Keeper:
    """Keeps the rows of all its calls in the object."""

    def __init__(self, known, when):
        self.known = known
        self.when = when

    def __call__(self, X, y):
        self.known.update(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        return Recall(self.known if self.when == "predict" else dict(self.known))


def kept_in(where, when):
    """Return a procedure that keeps rows, and looks them up in `fit` or `predict`."""
    if where == "object":
        return Keeper({}, when)
    known = {}

    def procedure(X, y):
        return Keeper(known, when)(X, y)

    return procedure


@pytest.fixture
def noise(rng):
    return rng.normal(size=(90, 2)), rng.integers(0, 2, 90), rng.normal(size=(200, 2))


@pytest.mark.parametrize("has_pool", [True, False])
@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("where", ["closure", "object"])
def test_certify_selection__certifies_nothing_by_rows_of_earlier_calls(
    noise, where, when, has_pool
):
    X, y, pool = noise
    # One thread: what another fit keeps between two answers of a model would make that
    # a failed fit.
    options = {"pool": pool if has_pool else None, "random_state": 0, "n_jobs": 1}
    procedure = kept_in(where, when)
    # Each call has a copy of its own.
    found = dsel.certify_selection(procedure, X, y, **options)
    assert found.certificate.bound > 0.5


@pytest.mark.parametrize("kind", ["arrays", "floats"])
def test_certify_selection__sees_labeled_rows_in_the_procedure(noise, kind):
    X, y, pool = noise
    mine = X if kind == "arrays" else dict(zip(X[:, 0].tolist(), y, strict=True))

    def with_rows_of_before(X, y):
        assert len(mine)
        return SVC().fit(X, y)

    found = dsel.certify_selection(with_rows_of_before, X, y, pool, random_state=0)
    reasons = str(found.certificate.reasons)
    assert "A3 is violated: an estimator or function holds labeled rows" in reasons


class Slotted:
    """A procedure without a `__dict__`."""

    __slots__ = ("C",)

    def __init__(self):
        self.C = 1.0

    def __call__(self, X, y):
        return SVC(C=self.C).fit(X, y)


def test_certify_selection__takes_objects_with_slots(noise):
    X, y, _ = noise
    found = dsel.certify_selection(Slotted(), X, y, random_state=0)
    assert found.certificate.certified


def test_certify_selection__says_what_cannot_be_seen_of_a_procedure(noise):
    X, y, _ = noise
    lock = Lock()

    def locking(X, y):
        with lock:
            return SVC().fit(X, y)

    found = dsel.certify_selection(locking, X, y, random_state=0)
    (third,) = (each for each in found.certificate.assumptions if each.name == "A3")
    assert "it cannot be pickled (TypeError: cannot pickle" in third.reason


@pytest.mark.parametrize("name", SEARCHES)
def test_certify_selection__takes_searches_of_scikit_learn(rows, name):
    X, y, pool = rows
    found = dsel.certify_selection(SEARCHES[name], X, y, pool, random_state=0)
    assert isinstance(found.certificate, Certificate)
    assert found.certificate.certified
    assert found.certificate.fold is None
    assert type(found.model) is type(SEARCHES[name])
    # Handed over is the model of all labeled rows.
    assert (found.model.predict(X) != y).sum() == found.results.full_train_errors


def test_certify_selection__without_a_pool_hands_over_the_best_folds_model(rows):
    X, y, _ = rows
    found = dsel.certify_selection(by_hand, X, y, delta=0.1, random_state=0)
    errors = found.results.fold_errors.values[0].astype(int)
    assert found.certificate.unclipped == best_fold_model(errors, 100, delta=0.1)
    assert found.certificate.fold == errors.argmin()
    limits = binomial_tail_inversion(errors, 100, delta=0.1 / 3)
    assert found.certificate.unclipped == limits.min()
    assert isinstance(found.model, SVC)
    assert found.model.shape_fit_[0] == 100  # half of two folds' rows


def test_certify_selection__costs_one_run_a_fold_and_one_more(rows, tmp_path):
    X, y, pool = rows
    seen = tmp_path / "seen"

    def counted(X, y):
        with seen.open("a") as file:
            file.write(f"{len(y)} ")
        return by_hand(X, y)

    dsel.certify_selection(counted, X, y, pool, cv=5, random_state=0, n_jobs=1)
    assert sorted(seen.read_text().split()) == ["240"] * 5 + ["300"]
    seen.unlink()
    dsel.certify_selection(counted, X, y, cv=5, random_state=0, n_jobs=1)
    # The model that is handed over was not kept.
    assert seen.read_text().split() == ["240"] * 6


def test_certify_selection__pays_neither_for_candidates_nor_for_disagreement(rows):
    X, y, pool = rows
    grid = {"C": list(np.geomspace(0.1, 100, 20))}
    search = GridSearchCV(SVC(), grid, cv=3)
    options = {"delta": 0.05, "random_state": 0}
    full, fold = (
        dsel.certify_selection(search, X, y, pool, certificate=name, **options)
        for name in ("best_fold", "best_fold_model")
    )
    plan = dsel.plan_search(
        SVC(), grid, X, y, pool, criterion="best_fold", cv=3, prune=False, **options
    )
    searched = dsel.select(plan.run())
    assert fold.certificate.bound < full.certificate.bound < searched.bound


def test_certify_selection__goes_on_from_its_place(rows, tmp_path):
    X, y, pool = rows
    search = SEARCHES["grid"]
    options = {"random_state": 0, "out": tmp_path / "out"}
    first = dsel.certify_selection(search, X, y, pool, **options)
    again = dsel.certify_selection(search, X, y, pool, **options)
    assert again.certificate == first.certificate
    assert (again.model.predict(pool) == first.model.predict(pool)).all()


def test_certify_selection__says_where_a_procedure_is_not_reproducible(rows, tmp_path):
    X, y, _ = rows
    marked = tmp_path / "changed"

    def changing(X, y):
        model = DummyClassifier() if marked.exists() else SVC()
        return model.fit(X, y)

    options = {"random_state": 0, "out": tmp_path / "out"}
    dsel.certify_selection(changing, X, y, **options)
    marked.touch()  # counts are read from `out`, and the model is made again
    with pytest.raises(RuntimeError, match="another model when it was fitted again"):
        dsel.certify_selection(changing, X, y, **options)


@pytest.mark.parametrize(
    ("procedure", "error", "message"),
    [
        (None, TypeError, "`procedure` must be an unfitted classifier"),
        (SVC, TypeError, "`procedure` must be an unfitted classifier"),
        (lambda X, y: SVC(), AllFitsFailedError, "its SVC is not fitted"),
        (lambda X, y: None, AllFitsFailedError, "has no `predict`"),
        (fitted_again, AllFitsFailedError, "returned the same SVC again"),
        (
            lambda X, y: GridSearchCV(SVC(), {"C": [1]}, cv=500).fit(X, y),
            AllFitsFailedError,
            "n_splits=500",
        ),
    ],
    ids=["none", "class", "not fitted", "no model", "one object", "inner folds"],
)
def test_certify_selection__refuses_bad_procedures(rows, procedure, error, message):
    X, y, _ = rows
    with pytest.raises(error, match=message):
        dsel.certify_selection(procedure, X, y, random_state=0)


def test_certify_selection__counts_answers_that_are_no_label_as_errors(rows):
    X, y, _ = rows

    def another_label(X, y):
        model = DummyClassifier(strategy="constant", constant=77)
        return model.fit(np.append(X, X[:1], axis=0), np.append(y, 77))

    found = dsel.certify_selection(another_label, X, y, random_state=0)
    assert (found.results.fold_errors == 100).all()
    assert found.certificate.bound == 1.0


def test_certify_selection__needs_a_pool_for_the_model_of_all_rows(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="compares two models on unlabeled rows"):
        dsel.certify_selection(by_hand, X, y, certificate="best_fold")
    with pytest.raises(ValueError, match="`certificate` must be one of"):
        dsel.certify_selection(by_hand, X, y, certificate="cv_bound")


def test_certify_selection__sees_weights_of_all_labels(rows):
    X, y, _ = rows
    keep = (y < 2) | (np.arange(len(y)) % 3 == 0)
    X, y = X[keep], y[keep]
    weights = (len(y) / np.bincount(y))[y]
    found = dsel.certify_selection(
        SVC(), X, y, fit_params={"sample_weight": weights}, random_state=0
    )
    assert not found.certificate.certified
    assert any("A3" in reason for reason in found.certificate.reasons)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "nested"}, "no option `criterion`: `certificate` says"),
        ({"prior": [0.5]}, "no option `prior`"),
        ({"fit_params": {"sample_weight": np.ones(300)}}, "cannot be passed to a func"),
    ],
    ids=["criterion", "prior", "weights"],
)
def test_certify_selection__refuses_options_that_play_no_role(rows, options, message):
    X, y, _ = rows
    with pytest.raises(TypeError, match=message):
        dsel.certify_selection(by_hand, X, y, **options)


def test_certify_selection__certifies_nothing_of_rows_in_groups(rows):
    X, y, _ = rows
    groups = np.arange(len(y)) // 10
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=GroupKFold(3))
    inside = dsel.certify_selection(
        search, X, y, fit_params={"groups": groups}, random_state=0
    )
    whole = dsel.certify_selection(
        SVC(), X, y, cv=GroupKFold(3), groups=groups, random_state=0
    )
    for found in (inside, whole):
        assert "A1 is violated: labeled rows come in groups" in str(
            found.certificate.reasons
        )
    with pytest.raises(ValueError, match="`groups` need a splitter"):
        dsel.certify_selection(SVC(), X, y, groups=groups)


def test_certify_selection__says_what_the_procedure_did_wrong(rows):
    X, y, _ = rows
    wanted = "^the only candidate failed: fold-0: NotFittedError: `procedure` must"
    with pytest.raises(AllFitsFailedError, match=wanted):
        dsel.certify_selection(lambda X, y: SVC(), X, y, random_state=0)


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_certify_selection__says_how_texts_are_given(make):
    y = np.arange(60) % 2
    texts = make([f"{'good' if label else 'bad'} {n}" for n, label in enumerate(y)])
    words = make_pipeline(TfidfVectorizer(), DecisionTreeClassifier(random_state=0))
    with pytest.raises(ValueError, match="begin the pipeline with ColumnTransformer"):
        dsel.certify_selection(words, texts, y, random_state=0)
    encoder = ColumnTransformer([("words", TfidfVectorizer(), "text")])
    procedure = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    found = dsel.certify_selection(procedure, pd.DataFrame({"text": texts}), y)
    assert (found.results.fold_errors == 0).all()
