"""What users do wrong: one table of calls, errors and words that must occur."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import dsel
from tests.contract import runs
from tests.contract.runs import K_NEAREST, digits, predict_pool, read_rows

pytestmark = pytest.mark.contract

X, Y, POOL = digits(60)
POOL = POOL[:100]
GRID = {"C": [1.0, 8.0]}
NO_NUMBER = np.where(np.arange(64) == 5, np.nan, X)
INFINITE = np.where(np.arange(64) == 5, np.inf, POOL)
SCALED, FOREST = make_pipeline(StandardScaler(), SVC()), RandomForestClassifier()
COLOURS = pd.DataFrame({"size": X[:, 2], "colour": "red"})


def frame(rows, letter):
    return pd.DataFrame(rows, columns=[f"{letter}{k}" for k in range(rows.shape[1])])


def plan(estimator=None, grid=GRID, X=X, y=Y, pool=POOL, **options):
    return runs.plan_search(
        SVC() if estimator is None else estimator, grid, X, y, pool, **options
    )


def is_refused(call, error, words):
    """Assert that a call raises an error whose message has all the words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as caught:
            call()
    missing = [word for word in words if word not in str(caught.value)]
    assert missing == [], str(caught.value)


PLANS = {
    "delta of 0": ({"delta": 0}, ValueError, "`delta` between 0 and 1"),
    "delta of 1": ({"delta": 1.0}, ValueError, "`delta` between 0 and 1"),
    "delta is text": ({"delta": "a"}, TypeError, "`delta` number"),
    "one fold": ({"cv": 1}, ValueError, "`cv` 2 1"),
    "more folds than rows": ({"cv": 61}, ValueError, "`cv` 61 60"),
    "cv is text": ({"cv": "five"}, TypeError, "`cv` folds 'five'"),
    "labels are missing": ({"y": Y[:-1]}, ValueError, "`y` label `X` 59 60"),
    "rows of no length": (
        {"X": np.where(np.arange(64) == 5, 1e160, X)}, ValueError,
        "squared lengths rbf scale",
    ),
    "NaN in X": ({"X": NO_NUMBER}, ValueError, "`X` finite row column nan"),
    "X is a vector": ({"X": X[0]}, ValueError, "`X` table"),
    "X is empty": ({"X": X[:0], "y": Y[:0]}, ValueError, "`X` row"),
    "one class": ({"y": np.zeros(60)}, ValueError, "`y` two classes"),
    "measurements": ({"y": np.linspace(0, 1, 60)}, ValueError, "`y` classes"),
    "a label for each row": ({"y": np.arange(60)}, ValueError, "`y` 60 different"),
    "NaN in y": ({"y": np.where(Y == 3, np.nan, Y)}, ValueError, "`y` nan"),
    "columns of the pool": ({"pool": POOL[:, :5]}, ValueError, "`pool` 5 `X` 64"),
    "names of the pool": (
        {"X": frame(X, "a"), "pool": frame(POOL, "b")},
        ValueError,
        "`pool` column 'a0' `X`",
    ),
    "empty pool": ({"pool": POOL[:0]}, ValueError, "`pool` rows None"),
    "pool of text": ({"pool": np.array([["a"] * 64])}, TypeError, "`pool` numeric"),
    "pool is nowhere": (
        {"pool": "/nowhere/pool.zarr"},
        FileNotFoundError,
        "`pool` /nowhere/pool.zarr",
    ),
    "certificate": (
        {"certificate": "nest"},
        ValueError,
        "`certificate` 'nest'",
    ),
    "certificate is a list": (
        {"certificate": ["nested"]}, ValueError, "`certificate` 'cv_bound' ['nested']",
    ),
    "no rows": ({"X": None}, TypeError, "`X` None array frame"),
    "a path for rows": ({"X": "a.csv"}, TypeError, "`X` 'a.csv' array"),
    "a number for labels": ({"y": 5}, TypeError, "`y` label `X` 5"),
    "fit_params is a list": ({"fit_params": [1]}, TypeError, "`fit_params` dict [1]"),
    "fit_params without names": ({"fit_params": {1: 2}}, TypeError, "`fit_params` {1"),
    "weights are texts": (
        {"fit_params": {"sample_weight": ["a"] * 60}}, TypeError, "`sample_weight` 'a'",
    ),
    "weights of few": (
        {"fit_params": {"sample_weight": [1.0]}}, ValueError, "`sample_weight` 60 (1,)",
    ),
    "cv is bytes": ({"cv": b"5"}, TypeError, "`cv` folds b'5'"),
    "cv is a class": ({"cv": GroupKFold}, TypeError, "`cv` KFold(5) GroupKFold"),
    "cv is a dict": ({"cv": {}}, TypeError, "`cv` list {}"),
    "cv of no pairs": (
        {"cv": [5], "certificate": None}, ValueError, "`cv` pairs split 0",
    ),
    "cv is no whole number": ({"cv": 2.5}, TypeError, "`cv` integer 2.5"),
    "nested by other folds": (
        {"cv": GroupKFold(3), "certificate": "nested"}, ValueError, "`cv` GroupKFold",
    ),
    "delta is a list": ({"delta": [0.05]}, TypeError, "`delta` number [0.05]"),
    "delta is NaN": ({"delta": np.nan}, ValueError, "`delta` between nan 0.05"),
    "delta is tiny": ({"delta": 1e-300}, ValueError, "`delta` 1e-100 1e-300 0.05"),
    "deploy of a holdout": (
        {"deploy": "all_rows", "certificate": "holdout"},
        ValueError,
        "`deploy` 'all_rows' 'nested' 'holdout' leave out",
    ),
    "deploy of an estimate": (
        {"deploy": "one_fold", "cv": GroupKFold(3), "certificate": None},
        ValueError,
        "`deploy` 'one_fold' estimate",
    ),
    "deploy is a list": ({"deploy": ["one_fold"]}, ValueError, "`deploy` ['one_fold']"),
    "deploy without a pool": (
        {"pool": None, "deploy": "all_rows"}, ValueError, "`deploy` `pool` None",
    ),
    "deploy of cv_bound": (
        {"certificate": "cv_bound", "deploy": "all_rows"}, ValueError, "`deploy` nest",
    ),
    "halving of cv_bound": (
        {"certificate": "cv_bound", "prune": "halving"}, ValueError, "`prune` nested",
    ),
    "prune is a number": ({"prune": 5}, ValueError, "`prune` halving exact 5"),
    "a bound as criterion": (
        {"criterion": "cv_bound", "certificate": None}, ValueError, "certificate='cv_b",
    ),
    "few rows in a fold": ({"cv": 30}, ValueError, "`cv` 4 30 60 fewer"),
    "prune is an array": ({"prune": np.arange(2)}, ValueError, "`prune` halving array"),
    "rows of the pool": ({"max_pool_rows": 1e3}, TypeError, "`max_pool_rows` 1000.0"),
    "parameter": ({"grid": {"c": [1]}}, ValueError, "'c' SVC C gamma"),
    "grid of nothing": ({"grid": {}}, ValueError, "parameter"),
    "parameter of no values": ({"grid": {"C": []}}, ValueError, "'C' values"),
    "grid is a number": ({"grid": 3}, TypeError, "dict"),
    "estimator is a number": ({"estimator": 3}, TypeError, "`estimator` unfitted 3"),
    "estimator is a class": (
        {"estimator": LogisticRegression},
        TypeError,
        "`estimator` unfitted LogisticRegression",
    ),
    "texts for numbers": (
        {"estimator": SCALED, "grid": {"svc__C": [1.0]}, "X": COLOURS},
        TypeError,
        "`X` 'colour' 'red' make_column_transformer OneHotEncoder",
    ),
    "texts for a forest": (
        {"estimator": FOREST, "grid": {"max_depth": [2]}, "X": COLOURS},
        TypeError,
        "`X` 'colour' 'red' make_column_transformer OneHotEncoder",
    ),
    "regressor": ({"estimator": SVR()}, TypeError, "`estimator` classifier SVR"),
    "cv_bound without a pool": (
        {"pool": None, "certificate": "cv_bound"},
        ValueError,
        "'cv_bound' `pool` None",
    ),
    "best_fold without a pool": (
        {"pool": None, "certificate": "best_fold"},
        ValueError,
        "`pool` None",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_plan_search__refuses(name):
    changed, error, words = PLANS[name]
    is_refused(lambda: plan(**changed), error, words.split())


RUNS = {
    "infinite pool": ({"pool": INFINITE}, {}, ValueError, "`pool` finite row inf"),
    "on_failure": ({}, {"on_failure": "no"}, ValueError, "`on_failure` 'record' 'no'"),
    "n_jobs": ({}, {"n_jobs": 0}, ValueError, "`n_jobs` 0"),
    "n_jobs is text": ({}, {"n_jobs": "2"}, TypeError, "`n_jobs` integer '2'"),
    "many jobs": ({}, {"n_jobs": 10**7}, ValueError, "`n_jobs` 4096 10000000 -1"),
    "on_progress": ({}, {"on_progress": 5}, TypeError, "`on_progress` function 5 verb"),
    "verbose": ({}, {"verbose": "abc"}, TypeError, "`verbose` True None 'abc'"),
    "storage_options": (
        {}, {"storage_options": 5}, TypeError, "`storage_options` dict 5 `out`",
    ),
    "client": ({}, {"client": "tcp://a:1"}, TypeError, "`client` Client 'tcp://a:1'"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_run__refuses(name):
    changed, running, error, words = RUNS[name]
    is_refused(lambda: plan(**changed).run(**running), error, words.split())


@pytest.mark.parametrize(
    "changed",
    [{"random_state": 8}, {"X": X + 1}, {"y": Y[::-1]}, {"pool": POOL[:50]}, {"cv": 4}],
    ids=lambda changed: next(iter(changed)),
)
def test_out__of_another_plan_is_refused_and_left_as_it_was(changed, tmp_path):
    place, mine = tmp_path / "out", {"certificate": "cv_bound", "cv": 3}
    plan(**mine).run(out=place)
    before = sorted(path for path in place.rglob("*"))
    other = plan(**{**mine, **changed})
    is_refused(lambda: other.run(out=place), ValueError, ["out", "another"])
    assert sorted(path for path in place.rglob("*")) == before
    assert dsel.select(dsel.open_results(place)).params is not None


def test_out__with_files_of_others_is_refused_and_left_as_it_was(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    words = ["`out`", "empty", "notes.txt"]
    is_refused(lambda: plan().run(out=tmp_path), ValueError, words)
    is_refused(lambda: plan().run(out=notes), OSError, ["notes.txt"])
    assert list(tmp_path.iterdir()) == [notes]
    assert notes.read_text() == "mine"


def test_open_results__says_that_nothing_is_there(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        call = lambda place=place: dsel.open_results(place)  # noqa: E731
        is_refused(call, FileNotFoundError, [str(place)])


def test_save_results__refuses_what_is_no_cube(tmp_path):
    words = ["`results`", "Dataset"]
    is_refused(lambda: dsel.save_results(3, tmp_path / "cube"), TypeError, words)


@pytest.fixture(scope="module")
def run():
    return runs.run_search(SVC(), GRID, X, Y, POOL, certificate="cv_bound", cv=3)


def test_select__refuses(run):
    results = runs.results_of(run)
    for arguments, error, words in [
        ((3,), TypeError, "`results` Dataset"),
        ((results, "nope"), ValueError, "`criterion` 'cv_bound' 'nope'"),
        ((results, "loo_error"), ValueError, "'loo_error' count"),
    ]:
        call = lambda arguments=arguments: dsel.select(*arguments)  # noqa: E731
        is_refused(call, error, words.split())


def write_twice(place):
    dsel.write_pool(POOL, place)
    dsel.write_pool(POOL + 1, place)


def answers(place):
    predict_pool(K_NEAREST[0].fit(X, Y), POOL, place)
    return place


OTHERS = {
    "fit is missing": (
        lambda _: dsel.SemiSupervisedSearchCV(SVC(), GRID).predict(X),
        AttributeError,  # NotFittedError is one
        "not fitted",
    ),
    "covalidate without a pool": (
        lambda _: dsel.covalidate(SVC(), GRID, X, Y, None),
        ValueError,
        "`pool` unlabeled",
    ),
    "no halving": (
        lambda _: dsel.covalidate(SVC(), GRID, X, Y, POOL, repeats=0),
        ValueError,
        "`repeats` 1",
    ),
    "covalidate has no folds": (
        lambda _: dsel.covalidate(SVC(), GRID, X, Y, POOL, cv=3),
        TypeError,
        "cv",
    ),
    "procedure": (
        lambda _: dsel.certify_selection(3, X, Y),
        TypeError,
        "`procedure` unfitted function",
    ),
    "no rows to plan for": (
        lambda _: dsel.plan_bound(0, 100, n_candidates=3, error=0.1),
        ValueError,
        "`n_labeled` 0",
    ),
    "expected error": (
        lambda _: dsel.plan_bound(100, 100, n_candidates=3, error=1.5),
        ValueError,
        "`error` 1.5",
    ),
    "planned delta": (
        lambda _: dsel.plan_bound(100, 100, n_candidates=3, error=0.1, delta=5),
        ValueError,
        "`delta` 5",
    ),
    "tie rule": (
        lambda _: runs.nonconformity_model("often").fit(X, Y),
        ValueError,
        "`ties` 'random' 'literal' 'often'",
    ),
    "size of the validation part": (
        lambda _: runs.nonconformity_model(validation_size=60).fit(X, Y),
        ValueError,
        "`validation_size` 60",
    ),
    "width": (
        lambda _: runs.LeastSquaresSearch([-1], [1]).fit(X, Y),
        ValueError,
        "`widths` positive -1",
    ),
    "criterion of least squares": (
        lambda _: runs.LeastSquaresSearch([1], [1], criterion="x").fit(X, Y),
        ValueError,
        "`criterion` 'loo' 'gcv' 'x'",
    ),
    "oracle without labels": (
        lambda _: runs.fit_lda("oracle", X, Y, POOL, None),
        ValueError,
        "`pool_labels`",
    ),
    "oracle with few labels": (
        lambda _: runs.fit_lda("oracle", X, Y, POOL, Y[:3]),
        ValueError,
        "`pool_labels` 100",
    ),
    "constant columns": (
        lambda _: runs.fit_lda("semi-supervised", X, Y, POOL, None),
        ValueError,
        "`X` singular `ridge`",
    ),
    "columns of the pool": (
        lambda _: runs.fit_lda("semi-supervised", X[:, 2:5], Y, POOL, None),
        ValueError,
        "`pool` 64 `X` 3",
    ),
    "audit of what is not": (
        lambda _: dsel.audit("nothing"),
        ValueError,
        "`settings` 'nothing'",
    ),
    "audit of no draws": (lambda _: dsel.audit(n_draws=0), ValueError, "`n_draws` 1"),
    "another pool is there": (write_twice, FileExistsError, "`path`"),
    "answers are there": (
        lambda place: predict_pool(K_NEAREST[0].fit(X, Y), POOL, answers(place)),
        FileExistsError,
        "`path` exists",
    ),
    "columns of what is predicted": (
        lambda place: predict_pool(
            KNeighborsClassifier().fit(X, Y), POOL[:, :3], place
        ),
        ValueError,
        "`pool` 3 64",
    ),
    "answers are nowhere": (
        lambda place: list(read_rows(place, "label")),
        FileNotFoundError,
        "`path`",
    ),
    "field of the answers": (
        lambda place: list(read_rows(answers(place), "colour")),
        ValueError,
        "`name` label 'colour'",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_systems__refuse(name, tmp_path):
    call, error, words = OTHERS[name]
    is_refused(lambda: call(tmp_path / "place"), error, words.split())


@pytest.mark.parametrize("kind", ["splitter", "groups"])
def test_folds__of_the_user_give_estimates_only(kind):
    options = {"cv": StratifiedKFold(2, shuffle=True, random_state=0)}
    if kind == "groups":
        options = {"cv": GroupKFold(3), "groups": np.arange(60) % 10}
    choice = dsel.select(
        runs.plan_estimates(SVC(), GRID, X, Y, criterion="cv_error", **options).run()
    )
    assert not choice.certificate.certified
    assert choice.certificate.reasons
