"""What users do wrong: tables of calls, errors and words that must occur."""

import itertools
import re
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, NuSVC

import dsel
from dsel.search import predict_pool
from tests.contract import runs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

X, Y, POOL = runs.digits(60)
POOL = POOL[:100]
GRID = {"C": [1.0, 8.0]}
FIFTH = np.arange(64) == 5
THIRD = np.arange(64) == 2
FOLDS = list(StratifiedKFold(2).split(X, Y))
SPREAD = {"C": loguniform(0.1, 9)}
COLOURS = pd.DataFrame({"size": X[:, 2], "colour": "red"})
SEARCH = dsel.SemiSupervisedSearchCV
PIPELINE = make_pipeline(StandardScaler(), SVC())


class Forgetful(ClassifierMixin, BaseEstimator):
    """Takes a parameter that its clones do not have."""

    def set_params(self, **params):
        self.depth = params.pop("depth", 1)
        return super().set_params(**params)

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Sampler(BaseEstimator):
    """Makes rows, as SMOTE does."""

    def fit_resample(self, X, y):
        return X, y

    def fit(self, X, y):
        return self


class WithoutTags:
    """Has all methods of an estimator, and inherits none."""

    _estimator_type = "classifier"
    fit = predict = set_params = get_params = vars


def frame(rows, letter):
    return pd.DataFrame(rows).add_prefix(letter)


class Scores(LogisticRegression):
    """Predicts scores in the place of labels."""

    def predict(self, X):
        return np.full(len(X), 0.25)


class Texts(LogisticRegression):
    """Predicts texts where labels are numbers."""

    def predict(self, X):
        return super().predict(X).astype(str)


def twice(make):
    """Return a table with a column name twice."""
    return make([X[:, 0], X[:, 1]], ["a", "a"])


def as_frame(columns, names):
    return pd.DataFrame(np.column_stack(columns), columns=names)


def plan(estimator=None, grid=GRID, X=X, y=Y, pool=POOL, **options):
    learner = SVC() if estimator is None else estimator
    return runs.plan_search(learner, grid, X, y, pool, **options)


def is_refused(call, error, words):
    """Assert that a call raises an error whose message has all the words."""
    with pytest.raises(error) as caught:
        call()
    missing = [word for word in words.split() if word not in str(caught.value)]
    assert missing == [], str(caught.value)


def each(cases):
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=case[-1]) for case in cases]
    )


PLANS = [
    ({"delta": 1.0}, ValueError, "`delta` above 0 at most 0.5, got 1.0"),
    ({"delta": 5}, ValueError, "`delta` above 0 at most 0.5, got 5.0"),
    ({"certificate": "cv_bound", "report": True}, ValueError,
     "`report` is 'nested' leave it out"),
    ({"certificate": "cv_bound", "loss": "recall:1"}, ValueError,
     "`loss` recall is 'nested' leave it out"),
    ({"certificate": "cv_bound", "loss": "recall:1", "report": True}, ValueError,
     "`loss` and `report` are 'nested' leave them out"),
    ({"delta": [0.05]}, TypeError, "`delta` number [0.05]"),
    ({"delta": np.nan}, ValueError, "`delta` above nan 0.05"),
    ({"delta": 0.95}, ValueError, "`delta` 0.95 mean 0.05"),
    ({"delta": 1e-300}, ValueError, "`delta` 1e-100 1e-300 0.05"),
    ({"cv": 1}, ValueError, "`cv` 2 1"),
    ({"cv": 61}, ValueError, "`cv` 61 60"),
    ({"cv": 30}, ValueError, "`cv` 4 30 60 fewer"),
    ({"cv": "five"}, TypeError, "`cv` folds 'five'"),
    ({"cv": KFold(5, shuffle=True, random_state=3)}, ValueError,
     "`cv` random_state=3 `random_state` cv=5, random_state=3"),
    ({"cv": GroupKFold}, TypeError, "`cv` KFold(5) GroupKFold"),
    ({"cv": {}}, TypeError, "`cv` list {}"),
    ({"cv": [5], "certificate": None}, ValueError, "`cv` pairs split 0"),
    ({"cv": 2.5}, TypeError, "`cv` integer 2.5"),
    ({"cv": GroupKFold(3), "certificate": "nested"}, ValueError,
     "`cv` must be a number of folds GroupKFold"),
    ({"cv": 30, "groups": Y}, ValueError, "`groups` 30 cv=30 10 fewer"),
    ({"X": np.where(FIFTH, 1e160, X)}, ValueError, "squared lengths rbf scale"),
    ({"X": np.where(FIFTH, np.nan, X)}, ValueError, "`X` finite row column NaN"),
    ({"X": X[0]}, ValueError, "`X` table"),
    ({"X": X[:0], "y": Y[:0]}, ValueError, "`X` row"),
    ({"X": None}, TypeError, "`X` None array frame"),
    ({"X": "a.csv"}, TypeError, "`X` 'a.csv' array"),
    ({"y": Y[:-1]}, ValueError, "`y` label `X` 59 60"),
    ({"y": np.zeros(60)}, ValueError, "`y` two classes"),
    ({"y": np.linspace(0, 1, 60)}, ValueError, "`y` classes"),
    ({"y": np.arange(60)}, ValueError, "`y` 60 different"),
    ({"y": np.where(Y == 3, np.nan, Y)}, ValueError, "`y` nan"),
    ({"y": 5}, TypeError, "`y` label `X` 5"),
    ({"y": np.c_[Y, Y]}, ValueError, "1d (60, 2)"),
    ({"pool": POOL[:, :5]}, ValueError, "`pool` 5 `X` 64"),
    ({"X": frame(X, "a"), "pool": frame(POOL, "b")}, ValueError, "`pool` 'a0' `X`"),
    ({"pool": POOL[:0]}, ValueError, "`pool` rows None"),
    ({"pool": POOL[:10], "max_pool_rows": 1, "random_state": 0}, ValueError,
     "`max_pool_rows` 10 1 chance larger"),
    ({"pool": "/nowhere/p.zarr"}, FileNotFoundError, "`pool` /nowhere/p.zarr"),
    ({"pool": None, "certificate": "cv_bound"}, ValueError, "'cv_bound' `pool` None"),
    ({"pool": None, "certificate": "best_fold"}, ValueError, "'best_fold' `pool` None"),
    ({"pool": None, "deploy": "all_rows"}, ValueError, "`deploy` `pool` None"),
    ({"certificate": "nest"}, ValueError, "`certificate` 'nest'"),
    ({"certificate": ["nested"]}, ValueError, "`certificate` 'cv_bound' ['nested']"),
    ({"deploy": "all_rows", "certificate": "holdout"}, ValueError,
     "`deploy` 'all_rows' 'nested' 'holdout' leave out"),
    ({"deploy": "one_fold", "cv": GroupKFold(3), "certificate": None}, ValueError,
     "`deploy` 'one_fold' estimate"),
    ({"deploy": "all_rows", "certificate": "cv_bound"}, ValueError, "`deploy` nested"),
    ({"deploy": "both"}, ValueError, "`deploy` 'both'"),
    ({"certificate": "cv_bound", "prune": "halving"}, ValueError, "`prune` nested"),
    ({"prune": 5}, ValueError, "`prune` halving exact 5"),
    ({"prune": np.arange(2)}, ValueError, "`prune` halving array"),
    ({"criterion": "cv_bound", "certificate": None}, ValueError, "certificate='cv_b"),
    ({"max_pool_rows": 1e3}, TypeError, "`max_pool_rows` 1000.0"),
    ({"fit_params": [1]}, TypeError, "`fit_params` dict [1]"),
    ({"fit_params": {1: 2}}, TypeError, "`fit_params` {1"),
    ({"fit_params": {"sample_weight": ["a"] * 60}}, TypeError, "`sample_weight` 'a'"),
    ({"fit_params": {"sample_weight": [1.0]}}, ValueError, "`sample_weight` 60 (1,)"),
    ({"grid": {"c": [1]}}, ValueError, "'c' SVC C gamma"),
    ({"grid": {}}, ValueError, "parameter"),
    ({"grid": {"C": []}}, ValueError, "'C' values"),
    ({"grid": {"C": 1.0}}, TypeError, "'C' list [1.0]"),
    ({"grid": {"kernel": "rbf"}}, TypeError, "['rbf']"),
    ({"grid": SPREAD}, TypeError, "'C' ParameterSampler"),
    ({"grid": [SPREAD]}, TypeError, "ParameterSampler"),
    ({"grid": {"C": [SPREAD["C"]]}}, TypeError, "'C' distribution ParameterSampler"),
    ({"grid": 3}, TypeError, "dict"),
    ({"grid": {"C": pd.Series([1, 2])}}, TypeError, "'C' Series list(...)"),
    ({"grid": {"C": {1, 2}}}, TypeError, "'C' set list(...)"),
    ({"grid": {"C": (c for c in [1, 2])}}, TypeError, "'C' generator list(...)"),
    ({"estimator": make_pipeline(SVC()), "grid": {"svc": [SVC]}}, TypeError,
     "candidate `param_grid` class SVC write SVC()"),
    ({"estimator": make_pipeline(StandardScaler, SVC()), "grid": {"svc__C": [1]}},
     TypeError, "`estimator` class StandardScaler write StandardScaler()"),
    ({"X": X.astype("g")}, TypeError, "`X` 8 bytes X.astype('float64')"),
    ({"pool": POOL.astype("g")}, TypeError, "`pool` 8 bytes pool.astype('float64')"),
    ({"X": X.astype("m8[s]")}, TypeError, "`X` numeric timedelta64"),
    ({"grid": {"C": range(1, 2**62)}}, ValueError, "`param_grid` 100,000 Sampler"),
    ({"grid": itertools.repeat({"C": 1})}, ValueError, "`param_grid` 100,000"),
    ({"cv": itertools.repeat(([0], [1]))}, ValueError, "`cv` 10,000 repeat"),
    ({"report": itertools.count()}, ValueError, "`report` 100 count"),
    ({"loss": "recal:3"}, ValueError, "`loss` recall:CLASS 'recal:3' did you mean"),
    ({"loss": "recall:77"}, ValueError, "`loss` '77' class (0, 1, 2"),
    ({"loss": "recall"}, ValueError, "`loss` 'recall' write recall:9"),
    ({"loss": "recall", "y": Y > 4}, ValueError, "recall:False or recall:True"),
    ({"loss": "cost:1>2"}, ValueError, "`loss` fraud>ok=50 '1>2'"),
    ({"loss": "beyond=2"}, ValueError, "`loss` beyond numbers classes recall"),
    ({"report": [[1]]}, TypeError, "`report` label [1]"),
    ({"estimator": 3}, TypeError, "`estimator` unfitted 3"),
    ({"estimator": LogisticRegression}, TypeError, "unfitted LogisticRegression"),
    ({"estimator": KMeans()}, TypeError,
     "`estimator` classifier regressor KMeans wrong labels"),
    ({"estimator": make_pipeline(StandardScaler(), SVC()), "grid": {"svc__c": [1]}},
     ValueError, "'svc__c' SVC C gamma"),
    ({"estimator": make_pipeline(StandardScaler(), SVC()), "grid": {"svm__C": [1]}},
     ValueError, "'svm__C' Pipeline standardscaler svc"),
    ({"estimator": make_pipeline(SVC()), "grid": {"svc": [KMeans()]}}, TypeError,
     "candidate `param_grid` classifier Pipeline"),
    ({"estimator": make_pipeline(SVC()), "grid": {"svc": [SVC(), SVR()]}}, TypeError,
     "`param_grid` both Pipeline labels numbers"),
    ({"estimator": make_pipeline(StandardScaler(), SVC()), "grid":
      {"svc": [LogisticRegression()], "svc__gamma": [1]}}, ValueError,
     "'svc__gamma' LogisticRegression C max_iter"),
    ({"estimator": Forgetful(), "grid": {"depth": [1, 2]}}, ValueError,
     "'depth' Forgetful clone get_params"),
    ({"grid": {"C": [1.0], "class_weight": [(n for n in range(3))]}}, TypeError,
     "`param_grid` copied clone class_weight generator"),
    ({"estimator": WithoutTags()}, TypeError, "`estimator` WithoutTags BaseEstimator"),
    ({"estimator": Pipeline([]), "grid": {"memory": [None]}}, TypeError,
     "`estimator` steps Pipeline ('name', step) []"),
    ({"estimator": Pipeline([SVC()]), "grid": {"memory": [None]}}, TypeError,
     "`estimator` steps Pipeline ('name', step) [SVC()]"),
    ({"estimator": Pipeline([("a", StandardScaler()), ("a", SVC())]),
      "grid": {"a__C": [1]}}, ValueError, "`estimator` step 'a' twice rename"),
    ({"estimator": make_pipeline(make_union(Sampler()), SVC()),
      "grid": {"svc__C": [1]}}, TypeError, "'sampler' FeatureUnion imblearn.pipeline"),
    ({"estimator": make_pipeline(ColumnTransformer([("s", SVC(), [0])]), SVC()),
      "grid": {"svc__C": [1]}}, TypeError, "'s' SVC ColumnTransformer `transform`"),
    ({"estimator": make_pipeline(ColumnTransformer([("s", SVC, [0])]), SVC()),
      "grid": {"svc__C": [1]}}, TypeError, "`estimator` class SVC write SVC()"),
    ({"estimator": Pipeline([("s", "pastrough"), ("c", SVC())]),
      "grid": {"c__C": [1]}}, TypeError, "`estimator` 's' str transformer"),
    ({"estimator": SelfTrainingClassifier(LogisticRegression()),
      "grid": {"threshold": [0.6]}, "y": np.where(Y > 4, 1, -1)}, ValueError,
     "`y` -1 without a label SelfTrainingClassifier numpy.where"),
    ({"fit_params": {"sample_weigth": np.ones(60)}}, TypeError,
     "`fit` SVC `sample_weigth`; 'sample_weight'?"),
    ({"estimator": PIPELINE, "grid": {"svc__C": [1]},
      "fit_params": {"sample_weight": np.ones(60)}}, TypeError,
     "`fit` Pipeline `sample_weight`; steps `svc__sample_weight`"),
    ({"estimator": PIPELINE, "grid": {"svc__C": [1]},
      "fit_params": {"svm__sample_weight": np.ones(60)}}, TypeError,
     "`fit` Pipeline `svm__sample_weight`; steps `svc__sample_weight`"),
    ({"estimator": PIPELINE, "grid": {"svc__C": [1]},
      "fit_params": {"svc__weight": np.ones(60)}}, TypeError, "`fit` SVC `weight`"),
    ({"estimator": make_pipeline(Sampler(), SVC()), "grid": {"svc__C": [1]}}, TypeError,
     "'sampler' Sampler imblearn.pipeline.Pipeline"),
    ({"estimator": BaggingClassifier(make_pipeline(Sampler(), SVC())),
      "grid": {"n_estimators": [2]}}, TypeError, "'sampler' imblearn.pipeline"),
    ({"estimator": make_pipeline(StandardScaler(), SVC()),
      "grid": {"standardscaler": [Sampler()]}}, TypeError, "Sampler imblearn.pipeline"),
    ({"estimator": make_pipeline(SVC(), SVC()), "grid": {"svc-1__C": [1]}}, TypeError,
     "'svc-1' SVC transformer transform"),
    ({"estimator": CalibratedClassifierCV(SVC(), cv=FOLDS),
      "grid": {"ensemble": [True]}}, ValueError,
     "CalibratedClassifierCV list fewer number StratifiedKFold(5)"),
    ({"estimator": NuSVC(kernel="precomputed"), "grid": {"nu": [0.1]}}, ValueError,
     "NuSVC kernel values"),
    ({"estimator": make_pipeline(StandardScaler(), SVC()), "grid": {"svc__C": [1.0]},
      "X": COLOURS}, TypeError, "`X` 'colour' make_pipeline make_encoder(X)"),
    ({"estimator": RandomForestClassifier(), "grid": {"max_depth": [2]}, "X": COLOURS},
     TypeError, "`X` 'colour' 'red' make_pipeline make_encoder(X)"),
    *[
        ({"estimator": LogisticRegression(), "grid": {"C": [1]},
          "X": frame(X, "a").assign(when=pd.Series([value] * 60))}, TypeError,
         f"`X` 'when' {kind}")
        for value, kind in [
            (pd.Timestamp("2020"), "time"), (pd.Timedelta("1D"), "duration"),
            (pd.Period("2020"), "period"), (1j, "complex"), ([1], "mixed"),
            ({1: 2}, "mixed"),
        ]
    ],
    ({"estimator": LogisticRegression(), "grid": {"C": [1]}, "X":
      frame(X, "a").assign(when=[1.0] * 59 + ["x"])}, TypeError, "`X` 'when' mixed"),
    ({"estimator": LogisticRegression(), "grid": {"C": [1]}, "X": frame(X, "a").assign(
        a0=pd.array([None] + [True] * 59, dtype="boolean"))}, ValueError,
     "`X` finite row 0 'a0' NaN"),
    ({"estimator": LogisticRegression(), "grid": {"C": [1]}, "X":
      frame(X, "a").assign(a0=np.array([pd.NA] + [1.0] * 59, dtype=object))},
     ValueError, "`X` finite row 0 'a0' NaN"),
    ({"X": frame(X, "a").astype(pd.SparseDtype(float, np.nan))}, ValueError,
     "`X` sparse X.sparse.to_dense()"),
]  # fmt: skip


@each(PLANS)
def test_plan_search__refuses(case):
    changed, error, words = case
    is_refused(lambda: plan(**changed), error, words)


RUNS = [
    ({"on_failure": "no"}, ValueError, "`on_failure` 'record' 'no'"),
    ({"n_jobs": 0}, ValueError, "`n_jobs` 0"),
    ({"n_jobs": "2"}, TypeError, "`n_jobs` integer '2'"),
    ({"n_jobs": 10**7}, ValueError, "`n_jobs` 4096 10000000 -1"),
    ({"on_progress": 5}, TypeError, "`on_progress` function 5 verb"),
    ({"verbose": "abc"}, TypeError, "`verbose` True None 'abc'"),
    ({"storage_options": 5}, TypeError, "`storage_options` dict fsspec int"),
    ({"client": "tcp://a:1"}, TypeError, "`client` Client 'tcp://a:1'"),
    ({"client": lambda _: None}, TypeError, "`client` executor returned None"),
    ({"client": dask.delayed(len)}, TypeError, "`client` executor Delayed"),
]


@each(RUNS)
def test_run__refuses(case):
    running, error, words = case
    is_refused(lambda: plan().run(**running), error, words)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"random_state": 8}, "seed is 7 there and 8 now; pass random_state=7"),
        ({"X": X + 1}, "other labeled rows"),
        ({"y": Y[::-1]}, "other labeled rows"),
        ({"pool": POOL[:50]}, "another pool"),
        ({"cv": 4}, "`cv` is 3 there and 4 now"),
        ({"grid": {"C": [1.0]}}, "other candidates (the grid)"),
        ({"estimator": SVC(tol=1e-2)}, "another estimator"),
        ({"certificate": "cv_bound"}, "certificate is nested, cv_error, delta=0.05 "
         "there and cv_bound, cv_bound, delta=0.05 now"),
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_out__of_another_plan_is_refused_and_left_as_it_was(changed, words, tmp_path):
    place, mine = tmp_path / "out", {"cv": 3}
    plan(**mine).run(out=place)
    before = sorted(place.rglob("*"))
    other = plan(**{**mine, **changed})
    end = "(;| to go on with it, or) choose another place"
    with pytest.raises(ValueError, match=re.escape(f"another plan: {words}") + end):
        other.run(out=place)
    assert sorted(place.rglob("*")) == before
    assert dsel.select(dsel.open_results(place)).params is not None


def test_out__with_files_of_others_is_refused_and_left_as_it_was(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    is_refused(lambda: plan().run(out=tmp_path), ValueError, "`out` empty notes.txt")
    is_refused(lambda: plan().run(out=notes), OSError, "notes.txt")
    assert list(tmp_path.iterdir()) == [notes]
    assert notes.read_text() == "mine"


def lda(kind, labels=None):
    return runs.fit_lda(kind, X, Y, POOL, labels)


def results():
    return runs.run_search(SVC(), GRID, X, Y, POOL, certificate="cv_bound").results


def needs_row_0(rows, labels):
    if not (rows == X[0]).all(axis=1).any():
        raise ValueError("row 0 is not there")
    return SVC().fit(rows, labels)


def certify_grid(**options):
    return dsel.certify(GridSearchCV(SVC(), GRID, **options), X, Y)


def predicted(rows, other):
    return SEARCH(SVC(), GRID, random_state=0).fit(rows, Y).predict(other)


OTHERS = [
    (lambda _: SEARCH(SVC(), GRID).predict(X), AttributeError, "not fitted"),
    (lambda _: SEARCH(SVC(), {}, scoring="f1"), TypeError,
     "'scoring' dsel.losses FixedThresholdClassifier"),
    (lambda _: SEARCH(SVC(), GRID).fit(X, Y, scoring="f1"), TypeError,
     "`scoring` dsel.losses FixedThresholdClassifier"),
    (lambda _: SEARCH(SVC(), {}, refit=True), TypeError, "'refit' `deploy`"),
    (lambda _: SEARCH(SVC(), {}, n_iter=3), TypeError, "'n_iter' ParameterSampler"),
    (lambda _: SEARCH(SVC(), {}, folds=3), TypeError, "'folds' cv here"),
    (lambda _: predicted(frame(X, "x"), frame(X, "z")), ValueError, "names z0"),
    (lambda _: predicted(X, X[:, :3]), ValueError, "3 64"),
    (lambda _: predicted(X, dd.from_pandas(frame(X, "x"), npartitions=2)["x0"]),
     ValueError, "`X` table Series to_frame"),
    *((lambda _, rows=rows: predicted(X, rows), TypeError,
       "`X` path 'new.csv'; predict_table('new.csv'), out='predictions.csv'")
      for rows in ("new.csv", Path("new.csv"))),
    *((lambda _, model=model: predict_pool(model, POOL, "x"), TypeError,
       f"`model` fitted `predict` outcome, got {got}")
      for model, got in ((SVC, "SVC()"), (X, "ndarray of shape"), (None, "None"))),
    (lambda _: dsel.plan_bound(500, 1000, n_candidates=3), TypeError,
     "needs `error`, error=0.1; error_quantile=0.9"),
    (lambda _: dsel.select(3), TypeError, "`results` Dataset"),
    (lambda place: dsel.write_report("run", place), TypeError,
     "`results` outcome dsel.open_outcome('run')"),
    (lambda place: dsel.write_report(certify_grid().choice, place), TypeError,
     "`results` outcome, got Choice; whole outcome"),
    (lambda _: dsel.select(results(), "no"), ValueError, "`criterion` 'cv_bound' 'no'"),
    (lambda _: dsel.select(results(), "loo_error"), ValueError, "'loo_error' count"),
    (lambda _: dsel.select(results(), delta=0.9), ValueError, "`delta` 0.9 mean 0.1"),
    (dsel.open_results, FileNotFoundError, "place"),
    (lambda place: dsel.open_results(place.parent), FileNotFoundError, "no results at"),
    (lambda place: dsel.save_results(3, place), TypeError, "`results` Dataset"),
    (lambda _: dsel.covalidate(SVC(), GRID, X, Y, None), ValueError, "`pool` unlab"),
    (lambda _: dsel.covalidate(SVC(), GRID, X, Y, POOL, repeats=0), ValueError,
     "`repeats` 1"),
    (lambda _: dsel.covalidate(SVC(), GRID, X, Y, POOL, cv=3), TypeError,
     "`cv` halved `repeats`"),
    (lambda _: dsel.plan_search(SVC(), GRID, X, Y, criterion="max_dt_e"), ValueError,
     "`pool` criterion='cv_error'"),
    (lambda _: dsel.plan_search(SVC(), GRID, X, Y, certificate="cv_bound"), ValueError,
     "`pool` certificate='nested'"),
    (lambda _: dsel.certify(SVC(), X, Y, detla=0.1), TypeError,
     "`certify` `detla` mean 'delta'?"),
    (lambda _: dsel.plan_search(SVC(), GRID, X, Y, pols=POOL), TypeError,
     "`plan_search` `pols` mean 'pool'?"),
    (lambda _: dsel.open_pool(POOL, column=["a"]), TypeError,
     "`open_pool` `column` mean 'columns'?"),
    (lambda _: dsel.SemiSupervisedSearchCV(SVC(), GRID).fit(X, Y, pools=POOL),
     TypeError, "`fit` `pools` mean 'pool'?"),
    (lambda _: dsel.SemiSupervisedSearchCV(SVC(), GRID, certficate="nested"),
     TypeError, "'certficate' mean 'certificate'?"),
    (lambda _: dsel.plan_search(SVC(), GRID, X, Y, certificate="nestd"), ValueError,
     "`certificate` 'nestd' mean 'nested'?"),
    (lambda _: dsel.plan_search(SVC(), {"Cc": [1]}, X, Y), ValueError,
     "'Cc' SVC mean 'C'?"),
    (lambda _: dsel.certify(SVC(), np.arange(442).reshape(-1, 2) % 7,
                            np.arange(221) % 90), ValueError, "`y` classes 90 221"),
    (lambda _: dsel.certify(3, X, Y), TypeError, "`model` function"),
    (lambda _: certify_grid(cv=FOLDS), ValueError, "GridSearchCV list `cv` number"),
    (lambda _: certify_grid(cv=iter(FOLDS)), ValueError, "GridSearchCV `cv` number"),
    (lambda _: certify_grid(cv=PredefinedSplit(np.arange(60) % 3)), ValueError,
     "GridSearchCV PredefinedSplit `cv` number StratifiedKFold(5)"),
    (lambda _: certify_grid(refit=False), ValueError,
     "`model` GridSearchCV(refit=False)"),
    (lambda _: dsel.certify(GridSearchCV(SVC(), {"CC": [1]}), X, Y), ValueError,
     "GridSearchCV `model` 'CC' SVC did you mean 'C'?"),
    (lambda _: dsel.certify(
        RandomizedSearchCV(PIPELINE, {"C": loguniform(0.1, 9)}), X, Y), ValueError,
     "RandomizedSearchCV `model` 'C' Pipeline did you mean 'svc__C'?"),
    (lambda _: dsel.certify(
        make_pipeline(StandardScaler(), GridSearchCV(SVC(), {"gama": [1]})), X, Y),
     ValueError, "GridSearchCV `model` 'gama' SVC did you mean 'gamma'?"),
    (lambda _: dsel.plan_search(PIPELINE, {"C": [1]}, X, Y), ValueError,
     "`param_grid` 'C' Pipeline did you mean 'svc__C'?"),
    (lambda _: dsel.certify(lambda X: SVC(), X, Y), TypeError,
     "`model` f(X, y) <lambda>(X) too many"),
    (lambda _: dsel.certify(SVC(), X[:, 0], Y), ValueError,
     "`X` shape (60,) X.reshape(-1, 1)"),
    (lambda _: dsel.certify(SVC(), X, np.c_[Y, Y]), ValueError,
     "`y` (60, 2) y[:, 0] y.ravel()"),
    (lambda _: dsel.certify(SVC(), X, pd.DataFrame({"a": Y, "b": Y})), ValueError,
     "`y` (60, 2) y['a'] or y.iloc[:, 0]"),
    (lambda _: dsel.certify(SVC(), X, pl.DataFrame({"a": Y, "b": Y})), ValueError,
     "`y` (60, 2) one of its columns, such as y['a']."),
    (lambda _: dsel.certify(SVC(), X, Y, cv=KFold(5)), TypeError,
     "`cv` must be a number of folds KFold(n_splits=5 plain random write cv=5"),
    (lambda _: dsel.certify(SVC(), X, Y, POOL[:, :5]), ValueError,
     "`pool` 5 `X` 64 pass rows same 64 columns order"),
    (lambda _: dsel.certify(SVC(), np.where(THIRD, np.nan, X), Y), ValueError,
     "`X` row 0, column NaN, missing SimpleImputer()"),
    (lambda _: dsel.certify(SVC(), np.where(THIRD, np.inf, X), Y), ValueError,
     "`X` row 0, column inf, infinite correct the value"),
    (lambda _: dsel.certify(SVC(), X[:8], [0, 1] * 4), ValueError,
     "`cv` 4 8 rows; at least 20 rows, fewer folds, cv=2"),
    (lambda _: dsel.plan_search(SVC(), {}, X, Y), ValueError,
     "`param_grid` {'C': [1, 10]} dsel.certify(estimator, X, y, pool)"),
    (lambda _: dsel.certify(lambda X, y: SVC, X, Y), ValueError, "fitted SVC class"),
    (lambda _: dsel.certify(Scores(), X, Y), ValueError,
     "`predict` Scores label 0.25 none classes"),
    (lambda _: dsel.certify(Texts(), X, Y), ValueError,
     "`predict` Texts label none classes type `y`"),
    (lambda _: dsel.compare_models(
        Scores().fit(X, Y), LogisticRegression().fit(X, Y), POOL), ValueError,
     "`old` labels 0.25 classes_[scores.argmax(axis=1)]"),
    (lambda _: SEARCH(SVC(), GRID).fit(twice(pa.Table.from_arrays), Y),
     ValueError, "`X` distinct 'a' twice"),
    (lambda _: dsel.open_pool(twice(pa.Table.from_arrays)), ValueError,
     "`pool` distinct 'a' twice"),
    (lambda _: dsel.open_pool(dd.from_pandas(twice(as_frame), npartitions=2)),
     ValueError, "`pool` distinct 'a' twice"),
    (lambda _: dsel.certify(needs_row_0, X, Y, on_failure="raise"),
     RuntimeError, "row 0 is not there"),
    (lambda _: dsel.plan_bound(0, 9, n_candidates=3, error=0.1), ValueError,
     "`n_labeled` 0"),
    (lambda _: runs.nonconformity_model("often").fit(X, Y), ValueError,
     "`ties` 'random' 'literal' 'often'"),
    (lambda _: runs.nonconformity_model(validation_size=60).fit(X, Y), ValueError,
     "`validation_size` 60"),
    (lambda _: runs.LeastSquaresSearch([1], [1], criterion="x").fit(X, Y), ValueError,
     "`criterion` 'loo' 'gcv' 'x'"),
    (lambda _: lda("oracle"), ValueError, "`pool_labels`"),
    (lambda _: lda("oracle", Y[:3]), ValueError, "`pool_labels` 100"),
    (lambda _: lda("semi-supervised"), ValueError, "`X` singular `ridge`"),
    (lambda _: dsel.audit("nothing"), ValueError, "`settings` 'nothing'"),
    (lambda _: dsel.audit(n_draws=0), ValueError, "`n_draws` 1"),
    (lambda place: predict_pool(KNeighborsClassifier().fit(X, Y), POOL[:, :3], place),
     ValueError, "`pool` 3 64"),
    (lambda _: plan(pool=np.where(FIFTH, np.inf, POOL)).run(), ValueError,
     "`pool` finite row inf"),
]  # fmt: skip


@each(OTHERS)
def test_other_calls__are_refused(case, tmp_path):
    call, error, words = case
    is_refused(lambda: call(tmp_path / "place"), error, words)


@pytest.mark.parametrize(
    "options",
    [
        {"cv": StratifiedKFold(2, shuffle=True, random_state=0)},
        {"cv": GroupKFold(3), "groups": np.arange(60) % 10},
    ],
)
def test_folds__of_the_user_give_estimates_only(options):
    certificate = plan(pool=None, **options).run().certificate
    assert not certificate.certified
    assert certificate.reasons
    assert certificate.assumptions[0].is_violated == ("groups" in options)


def test_names_that_no_file_can_have__are_refused_before_any_fit(tmp_path):
    name = "s" * 260
    pipeline = Pipeline([(name, SVC())])
    made = plan(pipeline, {f"{name}__C": [1, 2]})

    def run():
        made.run(out=tmp_path / "out", on_progress=lambda state: pytest.fail("it ran"))

    is_refused(run, ValueError, "`param_grid` 263 255 shorter names")
    assert not (tmp_path / "out").exists()


def test_xgboost__names_labels_that_it_cannot_take():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    learner = xgboost.XGBClassifier(n_estimators=2)
    words = "`y` 0 to 1 XGBClassifier 'no' LabelEncoder"
    texts = np.where(X[:, 2] > 0, "yes", "no")
    for model in (
        learner,
        make_pipeline(StandardScaler(), learner),
        GridSearchCV(make_pipeline(StandardScaler(), learner), {}),
        CalibratedClassifierCV(learner),
    ):

        def search(model=model):
            runs.plan_search(None, [model], X, texts, POOL)

        is_refused(search, ValueError, words)


def test_xgboost__names_a_class_that_folds_lack():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    y = np.array([0, 2] * (len(X) // 2))
    y[7] = 1
    learner, grid = xgboost.XGBClassifier(n_estimators=2), {"max_depth": [1, 2]}
    made = dsel.plan_search(learner, grid, X, y, cv=3, random_state=0)
    with pytest.raises(ValueError, match="class 1 has only 1 row, and"):
        made.run(n_jobs=1)
