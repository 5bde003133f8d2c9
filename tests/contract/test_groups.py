"""Rows in groups: whole groups in folds, one row of each counted, one bound."""

import datetime as dt
import json
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dsel
from dsel.report import write_report

pytestmark = pytest.mark.contract

N_GROUPS, SIZE = 40, 4
GRID = {"n_neighbors": [1, 5]}
NEAREST = KNeighborsClassifier()
LOGISTIC = LogisticRegression()
ROW = "a random row of a new group"


def draw(n_groups=N_GROUPS, size=SIZE, seed=0):
    """Rows, labels and keys; rows of one group are much alike."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.repeat(np.arange(n_groups), size))
    centers = rng.normal(size=(n_groups, 3))
    X = centers[keys] + 0.3 * rng.normal(size=(len(keys), 3))
    y = np.where(centers[keys, 0] + 0.3 * rng.normal(size=len(keys)) > 0, "yes", "no")
    return X, y, keys


X, Y, KEYS = draw()
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(customer=KEYS)


def plan(estimator=NEAREST, grid=None, X=X, y=Y, pool=None, **options):
    options = {"groups": KEYS, "random_state": 0, **options}
    return dsel.plan_search(estimator, grid or GRID, X, y, pool, **options)


def bound(**options):
    return plan(**options).run().certificate.bound


class PoolReader(ClassifierMixin, BaseEstimator):
    """Wants a part of the pool."""

    def __init__(self, n=1):
        self.n = n

    def fit(self, X, y, pool=None):
        return self


class Watcher(ClassifierMixin, BaseEstimator):
    """Keeps the rows that it was fitted to."""

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), np.array(X)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_folds__are_of_whole_groups_and_one_row_of_each_is_counted():
    made = plan(None, [Watcher()]).run()
    counted = made.results["fold_rows"].values
    assert counted.tolist() == [8] * 5
    seen = made.model.seen_
    inside = [(row == seen).all(axis=1).any() for row in X]
    shares = pd.Series(inside).groupby(KEYS).mean()
    assert sorted(shares.unique()) == [0.0, 1.0]
    assert (shares == 0.0).sum() == 8


def test_bound__is_that_of_as_many_independent_rows_and_says_what_it_is_about():
    made = plan().run()
    errors, rows = (made.results[name] for name in ("outer_errors", "fold_rows"))
    shares = 0.05 * np.array([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16])
    limits = stats.beta.ppf(1 - shares, errors + 1, rows - errors)
    assert made.certificate.certified
    assert made.certificate.bound == pytest.approx(limits.min())
    assert ROW in made.certificate.headline()
    assert made.certificate.n_groups == N_GROUPS
    assert list(made.certificates) == ["one_fold"]
    [a1] = [each for each in made.certificate.assumptions if each.name == "A1"]
    assert "groups are independent draws" in str(a1)
    assert ROW in dsel.select(made).certificate.headline()
    assert "40 groups, one row of each" in str(plan())


def test_result__names_the_column_of_the_groups():
    made = plan(X=FRAME, groups="customer")
    assert "40 groups by 'customer', one row of each" in " ".join(str(made).split())
    says = "Assumes groups by 'customer' are independent draws from one population"
    assert says in " ".join(str(made.run()).split())


def test_inner_searches__read_all_rows():
    made = plan(prune=False).run()
    assert made.results["fold_answers"].values.sum() == 2 * 4 * len(X)


def test_groups_of_one_row__are_the_ordinary_case():
    rows = np.arange(len(X))
    apart = plan(groups=rows).run()
    plain = plan(groups=None).run()
    assert apart.certificate.bound == plain.certificate.bound
    assert apart.choice.params == plain.choice.params
    assert apart.choice.remarks == plain.choice.remarks
    assert apart.certificate.certified


@pytest.mark.parametrize(
    "keys",
    [
        KEYS.tolist(),
        KEYS.astype(float),
        pd.Series(KEYS),
        pd.Series(KEYS, dtype="Int64"),
        pl.Series(KEYS),
        pa.array(KEYS),
        [f"{key:03}" for key in KEYS],
        np.array([f"{key:03}" for key in KEYS]),
        pd.Series([f"{key:03}" for key in KEYS], dtype="category"),
        [(key // 10, f"{key % 10}") for key in KEYS],
        pd.Series([(key // 10, key % 10) for key in KEYS]),
        pd.Timestamp("2026-01-01") + pd.to_timedelta(KEYS, "D"),
        [dt.date(2026, 1, 1) + dt.timedelta(int(key)) for key in KEYS],
        [uuid.UUID(int=int(key)) for key in KEYS],
        KEYS[:, np.newaxis],
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_keys__of_any_type_give_the_same_groups(keys):
    assert bound(groups=keys) == bound()


@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas]
)
def test_column_of_groups__is_no_feature(library):
    table = library(FRAME)
    search = dsel.SemiSupervisedSearchCV(NEAREST, GRID, random_state=0)
    search.fit(table, Y, groups="customer")
    assert search.certificate_.bound == bound()
    assert search.n_features_in_ == 3
    without = library(FRAME[["a", "b", "c"]])
    answers = search.predict(without)
    assert answers.tolist() == search.predict(table).tolist()
    assert search.score(table, Y) == np.mean(answers == Y)
    assert plan(X=table, groups="customer").run().certificate.bound == bound()


def test_column_of_groups__may_have_a_number_for_a_name():
    table = pd.DataFrame(np.column_stack([X, KEYS]))
    search = dsel.SemiSupervisedSearchCV(NEAREST, GRID, random_state=0)
    assert search.fit(table, Y, groups=3).certificate_.bound == bound()
    assert search.predict(table).tolist() == search.predict(table[[0, 1, 2]]).tolist()


def test_groups_of_sparse_rows__may_be_a_list():
    rows = sparse.csr_matrix(X)
    assert bound(X=rows, groups=KEYS.tolist()) == bound(X=rows)


def test_folds_of_groups__do_not_depend_on_the_order_of_rows():
    order = np.random.default_rng(1).permutation(len(X))
    for fold in range(5):
        one = groups_left_out(X, Y, KEYS, fold)
        assert one == groups_left_out(X[order], Y[order], KEYS[order], fold)
        assert len(one) == 8


def groups_left_out(X, y, keys, fold):
    """Return the groups of the rows that the model without a fold has not seen."""
    model = plan(None, [Watcher()], X=X, y=y, groups=keys).model(0, fold=fold)
    seen = {row.tobytes() for row in model.seen_}
    return {key for row, key in zip(X, keys, strict=True) if row.tobytes() not in seen}


GROUPED = [
    ({"groups": KEYS[:-1]}, ValueError, "`groups` one key 160 159"),
    ({"groups": ["a", "customer"]}, ValueError, "`groups` 160 2 keys tuple"),
    ({"groups": ["a", "customer"], "X": FRAME}, ValueError, "`groups` one zip( X['a']"),
    ({"groups": ("customer",), "X": FRAME}, ValueError, "`groups` groups='customer'"),
    ({"estimator": CalibratedClassifierCV(NEAREST, cv=GroupKFold(3)),
      "grid": {"method": ["sigmoid"]}}, ValueError,
     "`groups` cv=GroupKFold Calibrated enable_metadata_routing=True"),
    ({"estimator": make_pipeline(RFECV(LOGISTIC, cv=GroupKFold(3)), NEAREST),
      "grid": {"kneighborsclassifier__n_neighbors": [1]}}, ValueError,
     "`groups` rfecv__cv=GroupKFold Pipeline 'rfecv__cv'"),
    ({"groups": FRAME[["a", "customer"]]}, ValueError, "`groups` (160, 2) tuple"),
    ({"groups": "client", "X": FRAME}, ValueError, "`groups` 'client' column customer"),
    ({"groups": "customer"}, ValueError, "`groups` 'customer' ndarray names"),
    ({"groups": "customer", "X": FRAME[["customer"]]}, ValueError, "`X` columns 0"),
    ({"groups": 7}, TypeError, "`groups` name column 7"),
    ({"groups": np.where(KEYS == 3, np.nan, KEYS)}, ValueError, "`groups` row nan own"),
    ({"groups": [None, *KEYS[1:]]}, ValueError, "`groups` row 0 None own"),
    ({"groups": [(1, None), *[(1, 2)] * 159]}, ValueError, "`groups` row 0 None"),
    ({"groups": pd.Series([pd.NaT, *[pd.Timestamp(0)] * 159])}, ValueError,
     "`groups` row 0 NaT"),
    ({"groups": ["", *map(str, KEYS[1:])]}, ValueError, "`groups` '' missing"),
    ({"groups": ["nan", *map(str, KEYS[1:])]}, ValueError, "`groups` 'nan' missing"),
    ({"groups": np.ma.array(KEYS, mask=KEYS == 1)}, ValueError, "`groups` masked row"),
    ({"groups": ["a", *KEYS[1:]]}, TypeError, "`groups` one type 'a' texts"),
    ({"groups": [[1]] * 80 + [[2, 3]] * 80}, TypeError, "`groups`"),
    ({"groups": [{1}] * 160}, TypeError, "`groups` numbers texts set"),
    ({"groups": (n for n in range(160))}, TypeError, "`groups` generator"),
    ({"groups": KEYS % 4}, ValueError, "`groups` 5 cv=5 4 fewer"),
    ({"groups": KEYS % 3, "cv": 2}, ValueError, "`groups` 4 cv=2 3"),
    ({"groups": np.zeros(160), "certificate": "holdout"}, ValueError, "`groups` cv=5"),
    ({"deploy": "all_rows", "pool": X}, ValueError, "`deploy` `groups` one_fold pool"),
    ({"n_queries": 5, "pool": X}, ValueError, "`n_queries` `groups` leave"),
    ({"certificate": "cv_bound", "pool": X}, ValueError, "'cv_bound' `groups` nested"),
    ({"certificate": "best_fold", "pool": X}, ValueError, "'best_fold' `groups`"),
    ({"criterion": "loo_error"}, ValueError, "`groups` 'loo_error' leave"),
    ({"criterion": "max_dt_e", "pool": X}, ValueError, "`groups` 'max_dt_e' leave"),
    ({"estimator": PoolReader(), "grid": {"n": [1]}, "pool": X}, ValueError,
     "`groups` `pool` GroupKFold(5)"),
    ({"certificate": "nested", "cv": GroupKFold(3)}, ValueError,
     "`certificate` GroupKFold `cv` number `groups`"),
    ({"certificate": "nested", "groups": None, "fit_params": {"groups": KEYS}},
     ValueError, "`groups` `fit_params` itself"),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(c, id=c[-1]) for c in GROUPED])
def test_groups__are_refused_in_one_line(case):
    options, error, words = case
    with pytest.raises(error) as caught:
        plan(**options)
    missing = [word for word in words.split() if word not in str(caught.value)]
    assert missing == [], str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [None, "holdout", "cv_bound"])
def test_splitter__gives_estimates_and_says_how_to_get_a_bound(name):
    with pytest.warns(dsel.errors.GuaranteeWarning, match="no bound: the folds"):
        made = plan(cv=GroupKFold(5), certificate=name, pool=X)
    certificate = made.run().certificate
    assert made.search.pool is not None
    assert not certificate.certified
    assert certificate.n_groups == 0
    assert "pass a number of folds as `cv`, and `groups`" in str(certificate)


def test_groups_of_fit_params__give_estimates_only():
    search = GridSearchCV(NEAREST, GRID, cv=GroupKFold(3))
    made = plan(None, [search], groups=None, fit_params={"groups": KEYS}).run()
    assert not made.certificate.certified
    assert "pass a number of folds as `cv`, and `groups`" in str(made.certificate)


def test_model_whose_folds_need_groups__is_refused_with_the_way_to_pass_them():
    search = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [3]}, cv=GroupKFold(3)
    )
    with pytest.raises(
        RuntimeError, match=r"be None; pass `groups`, the group of each"
    ):
        dsel.certify(search, X, Y, random_state=0)
    dsel.certify(search, X, Y, groups=KEYS, random_state=0)


def test_pool__is_not_read_and_a_caveat_says_why():
    made = plan(pool=X).run()
    assert list(made.certificates) == ["one_fold"]
    assert made.certificate.bound == bound()
    text = " ".join(str(made.choice).split())
    assert "`pool` is not read: its rows are taken to come in groups, too" in text


def test_group_of_half_the_rows__is_a_caveat():
    keys = np.where(np.arange(160) < 80, "acme", [f"c{n}" for n in range(160)])
    made = plan(groups=keys).run()
    assert made.certificate.certified
    assert "group 'acme' has 80 of 160 labeled rows" in str(made.choice)
    assert "labeled rows: models" not in str(plan().run().choice)


def test_keys_in_another_order_than_rows__are_a_caveat():
    keys = pd.Series(KEYS, index=FRAME.index[::-1])
    assert "groups.loc[X.index]" in str(plan(X=FRAME, groups=keys))


def test_holdout__counts_one_row_of_each_group_of_the_fold():
    made = plan(certificate="holdout").run()
    assert made.certificate.certified
    assert ROW in made.certificate.headline()
    assert made.results["fold_rows"].values.tolist() == [8]
    errors = made.results["fold_errors"].values.min()
    expected = stats.beta.ppf(1 - 0.05 / 2, errors + 1, 8 - errors)
    assert made.certificate.bound == pytest.approx(expected)


def test_estimate_by_number__keeps_groups_together_and_reads_all_rows():
    made = plan(criterion="cv_error").run()
    assert not made.certificate.certified
    assert not any(each.is_violated for each in made.certificate.assumptions)
    assert made.results["fold_rows"].values.sum() == len(X)


@pytest.mark.parametrize(
    "loss",
    ["error", dsel.losses.recall("yes"), dsel.losses.precision("yes"),
     dsel.losses.balanced(),
     dsel.losses.cost({("yes", "no"): 5, ("no", "yes"): 1})],
    ids=str,
)  # fmt: skip
def test_every_loss__is_bounded_by_drawn_rows(loss):
    many, labels, keys = draw(n_groups=200, size=2, seed=1)
    made = plan(X=many, y=labels, groups=keys, loss=loss, report=True).run()
    assert made.certificate.certified
    assert 0 < made.certificate.unclipped < made.certificate.largest
    assert ROW in made.certificate.headline()
    report = made.certified_report()
    assert sum(report.rows) == 200
    assert ROW in str(report)


def test_counts__do_not_depend_on_workers_or_resuming(tmp_path):
    forest = RandomForestClassifier(5, random_state=0)
    grid = {"max_depth": [1, 3], "min_samples_leaf": [1, 5]}
    once = plan(forest, grid).run(n_jobs=1)
    again = plan(forest, grid).run(n_jobs=2, out=tmp_path / "place")
    read = plan(forest, grid).run(out=tmp_path / "place")
    for other in (again, read):
        assert other.certificate == once.certificate
        assert other.choice.params == once.choice.params
        np.testing.assert_array_equal(
            other.results["outer_errors"], once.results["outer_errors"]
        )


def test_store__tells_plans_of_other_groups_apart(tmp_path):
    plan().run(out=tmp_path / "place")
    with pytest.raises(dsel.errors.StoreMismatchError):
        plan(groups=(KEYS + 1) % N_GROUPS).run(out=tmp_path / "place")
    with pytest.raises(dsel.errors.StoreMismatchError):
        plan(groups=None).run(out=tmp_path / "place")


class Recording(GroupKFold):
    """Adds to a list how many groups the rows have that it is given."""

    def split(self, X, y=None, groups=None):
        assert len(groups) == len(X)
        pairs = list(super().split(X, y, groups))
        for train, test in pairs:
            assert not {*groups[train]} & {*groups[test]}
        return iter(pairs)


def inner_search():
    return GridSearchCV(NEAREST, GRID, cv=Recording(3))


@pytest.mark.parametrize(
    "model",
    [
        inner_search(),
        make_pipeline(StandardScaler(), inner_search()),
        GridSearchCV(NEAREST, GRID, cv=3),
        dsel.SemiSupervisedSearchCV(NEAREST, GRID, random_state=0),
        lambda X, y, groups: inner_search().fit(X, y, groups=groups),
        lambda X, y: NEAREST.fit(X, y),
    ],
    ids=["search", "pipeline", "rows", "dsel", "function", "plain"],
)
def test_inner_search__gets_the_groups_of_its_rows(model):
    made = dsel.certify(model, X, Y, groups=KEYS, random_state=0, n_jobs=1)
    assert made.certificate.certified
    assert ROW in made.certificate.headline()
    assert made.results["fold_rows"].values.tolist() == [8] * 5


def test_inner_search__gets_groups_by_metadata_routing():
    with config_context(enable_metadata_routing=True):
        for model in (
            inner_search(), make_pipeline(StandardScaler(), inner_search()),
            CalibratedClassifierCV(LOGISTIC, cv=Recording(3)),
        ):  # fmt: skip
            made = dsel.certify(model, X, Y, groups=KEYS, random_state=0, n_jobs=1)
            assert made.certificate.certified


def test_certify__takes_the_column_of_a_frame():
    found = dsel.certify(NEAREST, FRAME, Y, groups="customer", random_state=0)
    expected = dsel.certify(NEAREST, X, Y, groups=KEYS, random_state=0)
    assert found.certificate.bound == expected.certificate.bound
    assert found.model.n_features_in_ == 3


def test_prefit__counts_one_row_of_each_group():
    fitted = KNeighborsClassifier().fit(*draw(seed=5)[:2])
    made = dsel.certify(fitted, X, Y, cv="prefit", groups=KEYS)
    assert made == dsel.certify(fitted, X, Y, cv="prefit", groups=KEYS, random_state=0)
    assert "(this model on one row of each group, no guarantee)" in str(made)
    assert made.certified
    assert ROW in made.headline()
    assert "if the model has not seen these 40 groups), model" in made.headline()
    assert "these groups and those" in str(made)
    errors = round(made.estimate * N_GROUPS)
    expected = stats.beta.ppf(0.95, errors + 1, N_GROUPS - errors)
    assert made.bound == pytest.approx(expected)
    for library in (pd.DataFrame, pl.from_pandas, pa.Table.from_pandas):
        table = library(FRAME)
        options = {"groups": "customer", "cv": "prefit"}
        with warnings.catch_warnings(action="ignore"):  # of names of columns
            assert dsel.certify(fitted, table, Y, **options).bound == made.bound
    # Nothing is drawn where no row has a group, so a seed changes nothing.
    alone = dsel.certify(fitted, X, Y, cv="prefit")
    assert alone == dsel.certify(fitted, X, Y, cv="prefit", random_state=1)


def test_unlike_sizes__give_the_mean_over_groups():
    # Nine of ten groups have one row and are wrong, the others have nine and are right.
    sizes = np.where(np.arange(400) % 10, 1, 9)
    keys = np.repeat(np.arange(400), sizes)
    labels = np.repeat(np.where(np.arange(400) % 10, "no", "yes"), sizes)
    rows = np.zeros((len(keys), 1))
    made = dsel.certify(
        lambda X, y: DummyClassifier(strategy="constant", constant="yes").fit(X, y),
        rows, labels, groups=keys, random_state=0,
    )  # fmt: skip
    assert np.mean(labels == "no") == pytest.approx(0.5)
    assert made.certificate.estimate == pytest.approx(0.9)
    assert made.certificate.bound > 0.9


@pytest.mark.cluster
def test_cluster__gives_the_same_counts(tmp_path):
    once = plan(prune=False).run(n_jobs=1)
    with dsel.cluster.connect(workers=2) as client:
        found = plan(prune=False).run(client)
    assert found.certificate == once.certificate
    np.testing.assert_array_equal(
        found.results["fold_errors"], once.results["fold_errors"]
    )


def test_report_by__counts_drawn_rows():
    site = np.where(np.arange(160) % 2, "A", "B")
    rows = pd.DataFrame({"a": X[:, 0], "site": site})
    encoder = make_column_transformer((OneHotEncoder(), ["site"]))
    made = plan(
        make_pipeline(encoder, NEAREST), {"kneighborsclassifier__n_neighbors": [1, 3]},
        X=rows, report_by="site",
    ).run()  # fmt: skip
    report = made.report_by_value()
    assert sum(report.rows) == N_GROUPS
    assert ROW in report.headline()


def test_copies_within_a_group__are_no_caveat():
    twice = np.repeat(np.arange(len(X)), 2)
    told = str(plan(X=X[twice], y=Y[twice], groups=KEYS[twice]))
    assert "equal rows of other folds" not in told
    apart = str(plan(X=X[twice], y=Y[twice], groups=np.arange(len(twice))))
    assert "equal rows of other folds" in apart


def test_equal_rows_with_other_targets__are_other_records_where_groups_differ():
    rows, targets = np.repeat(X[:50], 4, axis=0).round(1), np.arange(200.0)
    groups = np.arange(200)
    told = str(plan(Ridge(), {"alpha": [1.0]}, X=rows, y=targets, groups=groups))
    assert "equal rows of other folds" not in told
    same = str(plan(Ridge(), {"alpha": [1.0]}, X=rows, y=groups // 4, groups=groups))
    assert "equal rows of other folds" in same


def test_caveats_of_a_loss__are_about_the_drawn_rows():
    rare = np.where(KEYS < 8, "yes", "no")
    told = str(plan(y=rare, loss=dsel.losses.recall("yes")))
    assert "class 'yes' has 8 labeled rows" in told


def numbers(n_groups=200, seed=0):
    """Rows whose target is a number, and keys of groups of 1 to 4 rows."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.repeat(np.arange(n_groups), np.arange(n_groups) % 4 + 1))
    centers = rng.normal(size=(n_groups, 3))
    X = centers[keys] + 0.5 * rng.normal(size=(len(keys), 3))
    return X, centers[keys, 0] + 0.3 * rng.normal(size=n_groups)[keys], keys


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": dsel.losses.error_quantile(0.8)},
        {"loss": dsel.losses.beyond(0.5)},
        {"report": True, "delta": 0.2},
    ],
    ids=str,
)
def test_regression__bounds_a_random_row_of_a_new_group(options):
    rows, targets, keys = numbers()
    made = plan(
        Ridge(), {"alpha": [0.1, 1.0]}, X=rows, y=targets, groups=keys, pool=rows,
        **options,
    ).run()  # fmt: skip
    assert made.certificate.certified
    assert list(made.certificates) == ["one_fold"]
    assert 0 < made.certificate.bound < made.certificate.largest
    assert ROW in made.certificate.headline()
    assert made.results["fold_rows"].values.tolist() == [40] * 5
    if "report" in options:
        assert ROW in str(made.certified_report())


def test_regression__reads_the_residuals_of_drawn_rows():
    rows, targets, keys = numbers()
    made = plan(Ridge(), {"alpha": [1.0]}, X=rows, y=targets, groups=keys).run()
    assert made.results["outer_residuals"].shape == (5, 40)
    # The tolerance is how far off the deployed model is on one of its fold's rows.
    residuals = np.abs(made.model.predict(rows) - targets)
    [place] = np.flatnonzero(np.isclose(residuals, made.certificate.bound, rtol=1e-6))
    of_fold = made.results["outer_residuals"].values[made.certificate.fold]
    assert np.isclose(of_fold, residuals[place], rtol=1e-6).any()


def test_regression__takes_columns_procedures_and_fitted_models():
    rows, targets, keys = numbers()
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(customer=keys)
    search = dsel.SemiSupervisedSearchCV(Ridge(), {"alpha": [0.1, 1]}, random_state=0)
    search.fit(frame, targets, groups="customer")
    lower, upper = search.predict_interval(frame).T
    assert (upper > lower).all()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    inner = GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, cv=Recording(3))
    made = dsel.certify(inner, rows, targets, groups=keys, random_state=0, n_jobs=1)
    assert made.certificate.certified
    others, values, _ = numbers(seed=1)
    fitted = Ridge().fit(pd.DataFrame(others, columns=["a", "b", "c"]), values)
    known = dsel.certify(fitted, frame, targets, cv="prefit", groups="customer")
    assert known.certified
    assert "200 groups" in known.headline()


def test_regression__says_how_many_groups_a_tolerance_needs():
    rows, targets, keys = numbers(n_groups=60)
    made = plan(Ridge(), {"alpha": [1.0]}, X=rows, y=targets, groups=keys)
    assert "60 groups are too few for a bound of how far" in str(made).replace(
        "\n    ", " "
    )
    assert "of 60 groups of labeled rows" in str(made.run().certificate)


def test_identifier_among_the_features__is_a_condition_of_the_bound(tmp_path):
    rng = np.random.default_rng(0)
    keys = rng.permutation(np.repeat(np.arange(100), 4))
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    frame["customer"] = keys
    y = np.where(frame.a + frame.b > 0, "yes", "no")
    made = dsel.certify(LOGISTIC, frame, y, random_state=0, out=tmp_path / "out")
    condition = "if rows of one customer do not belong together"
    for certificate in (
        made.certificate,
        dsel.open_outcome(tmp_path / "out").certificate,
    ):
        assert f"(95% confidence, {condition})" in certificate.headline()
    fitted = LOGISTIC.fit(frame[:200], y[:200])
    headline = dsel.certify(fitted, frame[200:], y[200:], cv="prefit").headline()
    unseen = "the model has not seen these 200 rows"
    assert f"(95% confidence, {condition} and {unseen})" in headline
    known = dsel.certify(LOGISTIC, frame, y, groups="customer", random_state=0)
    assert condition not in str(known)


def draw_one_large_group():
    """One group of 300 rows of class 0, 100 of 3 rows that are mostly of class 1."""
    rng = np.random.default_rng(0)
    keys = np.repeat(np.arange(101), [300, *[3] * 100])
    y = np.where(keys == 0, 0, rng.random(len(keys)) < 0.9).astype(int)
    return rng.normal(size=(len(keys), 2)), y, keys


UNLIKE_X, UNLIKE_Y, UNLIKE_KEYS = draw_one_large_group()
BY_GROUPS = "by one row of each group"


def search_unlike(y=UNLIKE_Y, **options):
    model = Ridge() if y.dtype.kind == "f" else DummyClassifier(strategy="constant")
    grid = {"alpha": [1.0]} if y.dtype.kind == "f" else {"constant": [0, 1]}
    rows = {"groups": UNLIKE_KEYS, "X": UNLIKE_X, "y": y}
    return plan(model, grid, **rows, **options)


@pytest.mark.parametrize("certificate", ["nested", "holdout"])
def test_constant__is_compared_by_groups_as_the_bound_is(certificate):
    choice = search_unlike(certificate=certificate).run(n_jobs=1).choice
    assert np.mean(UNLIKE_Y == 0) > 0.5  # the largest class of all rows
    text, loss = choice.best_constant
    assert text == choice.largest_class == "1"
    mean_of_groups = 1.0 - pd.Series(UNLIKE_Y).groupby(UNLIKE_KEYS).mean().mean()
    assert loss == choice.largest_class_error == pytest.approx(mean_of_groups, abs=0.05)
    assert f"always predicting 1 ({100 * loss:.1f}%, {BY_GROUPS})" in str(choice)


def test_constant__of_a_nested_search_is_that_of_the_counted_rows(tmp_path):
    made = search_unlike(report=True).run(n_jobs=1)
    # The table of all folds counts one row of each group; its rows are true classes.
    table = made.results["outer_confusion"].sum("fold")
    n_rows = table.sum("predicted_class").values[:2]
    assert n_rows.sum() == 101
    assert made.choice.constant_loss == pytest.approx(n_rows[0] / 101)
    stored = [json.loads(made.results.attrs[f"class_{n}"]) for n in ("rows", "groups")]
    assert stored == [np.bincount(UNLIKE_Y).tolist(), n_rows.tolist()]
    # A number by another criterion is compared with the same constant.
    assert dsel.select(made).largest_class == "1"
    write_report(made.results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    start = page.index("of one row of each group")
    assert page.index("<td>1</td>", start) < page.index("<td>0</td>", start)


def test_largest_class__as_baseline_is_that_of_groups_too():
    made = search_unlike(baseline="largest class").run(n_jobs=1)
    assert "always predicting 1: " in made.baseline.headline()
    assert made.baseline.largest_class == made.choice.largest_class == "1"
    assert "always predicting 0" not in str(made.choice)
    assert "always predicting 0" not in str(search_unlike(baseline="largest class"))


def test_rare_class__of_a_plan_is_one_of_few_groups():
    few = (UNLIKE_KEYS > 3).astype(int)
    assert np.mean(few == 0) > 0.5
    text = " ".join(str(search_unlike(few)).split())
    start = (
        "0, 4 rows of 101 (one row of each group): never to find it adds only 4.0% to"
    )
    assert start in text


def test_median__is_compared_by_groups_as_the_tolerance_is():
    numbers = np.where(UNLIKE_KEYS == 0, 0.0, 10.0 + UNLIKE_X[:, 0])
    assert np.mean(numbers == 0.0) == 0.5
    choice = search_unlike(numbers, loss="error_quantile=0.8").run(n_jobs=1).choice
    assert choice.median == pytest.approx(10.0, abs=0.5)
    assert choice.median_loss < 3.0  # 10 by rows: half of all are 10 away
    assert str(choice).count(BY_GROUPS) == 1


def test_part_of_the_labels__is_said_where_groups_differ_in_size():
    """The model without one large group has learned from fewer rows than groups."""
    sizes = np.array([400, 150] + [8] * 58)
    keys = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).normal(size=(len(keys), 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    search = dsel.SemiSupervisedSearchCV(NEAREST, GRID, random_state=0)
    search.fit(X, y, groups=keys)
    fold = search.choice_.certificates["one_fold"].fold
    n_rows = [len(split.train_rows) for split in search.plan_.search.scheme.fold_splits]
    part = f"80% of the groups ({n_rows[fold] / len(keys):.0%} of the labels)"
    assert str(search.choice_).partition("\n")[0].endswith(f"model trained on {part}")
    plan = " ".join(str(search.plan_).split())
    of_folds = f"{min(n_rows):,} to {max(n_rows):,} rows"
    assert f"4 of 5 folds (80% of the groups) are {of_folds}" in plan


def test_part_of_the_labels__is_never_all_of_them_for_the_model_of_a_fold():
    X = np.random.default_rng(0).normal(size=(1200, 1))
    search = dsel.SemiSupervisedSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9]}, cv=250, random_state=0
    )
    search.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert "model trained on 99.6% of the labels" in str(search.choice_)
