"""What is looked at before a certificate is believed."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import dsel
from dsel.searches import select
from dsel.searches.assumptions import scaled_by_range, standardised
from dsel.searches.pool_checks import two_sample_test
from tests.estimators import Rememberer


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1400, 3)) * [1.0, 5.0, 0.1] + 2.0
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 2.0).astype(int)
    return X, y


def plan(X, y, pool, estimator=None, **options):
    given = {"cv": 3, "random_state": 1, "delta": 0.1}
    estimator = GaussianNB() if estimator is None else estimator
    return dsel.plan_search(None, [estimator], X, y, pool, **given | options)


def certificate(X, y, pool, *arguments, **options):
    return select(plan(X, y, pool, *arguments, **options).run()).certificate


def reason(found, name):
    return next(each for each in found.assumptions if each.name == name)


def test_certificate__stands_where_nothing_is_wrong(rows):
    X, y = rows
    found = certificate(X[:300], y[:300], X[300:])
    assert found.certified
    assert "does not tell labeled rows from pool rows" in reason(found, "A1").reason
    assert "no pool row equals a labeled row" in reason(found, "A1").reason


def test_certificate__is_refused_for_folds_of_a_splitter(rows):
    X, y = rows
    for cv in (StratifiedKFold(3), list(StratifiedKFold(3).split(X[:300], y[:300]))):
        found = certificate(X[:300], y[:300], X[300:], cv=cv)
        assert not found.certified
        assert "the folds are not plain random" in found.reasons[0]


def test_groups__choose_like_scikit_learn_and_are_never_certified(rows):
    X, y = rows[0][:300], rows[1][:300]
    groups, grid = np.arange(300) % 7, {"C": [0.01, 1.0]}
    theirs = GridSearchCV(SVC(), grid, cv=GroupKFold(3)).fit(X, y, groups=groups)
    options = {"cv": GroupKFold(3), "criterion": "cv_error", "prune": False}
    for more in ({}, {"certify_rows": 0.2, "random_state": 0}):
        ours = dsel.SemiSupervisedSearchCV(SVC(), grid, **options, **more)
        ours.fit(X, y, rows[0][300:], groups=groups)
        assert ours.best_params_ == theirs.best_params_
        assert not ours.certificate_.certified
        assert any("come in groups" in reason for reason in ours.certificate_.reasons)
    ours = dsel.SemiSupervisedSearchCV(SVC(), grid, **options)
    ours.fit(X, y, groups=groups)
    errors = (ours.results_.fold_errors / ours.results_.fold_rows).mean("fold")
    np.testing.assert_allclose(1 - errors, theirs.cv_results_["mean_test_score"])


def test_groups__need_a_splitter_and_one_entry_a_row(rows):
    X, y = rows[0][:60], rows[1][:60]
    with pytest.raises(ValueError, match=r"`groups` need a splitter.*GroupKFold\(5\)"):
        plan(X, y, None, cv=5, groups=y)
    with pytest.raises(ValueError, match=r"each of the 60 labeled rows, got shape"):
        plan(X, y, None, cv=GroupKFold(3), groups=y[:9])
    with pytest.raises(ValueError, match=r"`groups` .* but row 1 has none"):
        plan(X, y, None, cv=GroupKFold(3), groups=["a", None] * (len(y) // 2))
    with pytest.raises(ValueError, match="`groups` cannot be kept together by random"):
        plan(X, y, X, cv=3, groups=y, criterion="max_dt_e", duplicates="keep")


def test_certificate__is_refused_where_all_labeled_rows_were_scaled(rows):
    X, y = rows
    labeled = StandardScaler().fit(X[:300])
    found = certificate(labeled.transform(X[:300]), y[:300], labeled.transform(X[300:]))
    assert not found.certified
    assert "put the scaler into a pipeline" in found.reasons[0]
    scaled_inside = make_pipeline(StandardScaler(), GaussianNB())
    assert certificate(X[:300], y[:300], X[300:], scaled_inside).certified


def test_standardised__sees_rows_and_no_design(rows):
    X, _ = rows
    assert standardised(StandardScaler().fit_transform(X))
    assert standardised((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))
    assert standardised(StandardScaler().fit_transform(X).astype(np.float32))
    scaled = StandardScaler().fit_transform(np.exp(X[:, [0, 2]]))
    assert standardised(scaled.round(4))
    assert standardised(scaled.astype(np.float32).astype(float))
    assert not standardised(X)
    assert not standardised(StandardScaler().fit(X).transform(X[:300]))
    assert not standardised(np.tile([[-1.0, 1.0], [1.0, -1.0]], (50, 1)))
    assert not standardised(sparse.csr_matrix(X))


def test_scaled_by_range__is_a_doubt_only(rows):
    X, y = rows
    scaled = MinMaxScaler().fit(X[:300])
    assert scaled_by_range(scaled.transform(X[:300]))
    rounds = MinMaxScaler((-1, 1)).fit_transform(
        X * [1.0, 1e9, 1e-9] + [0.0, 1.7e9, 0.0]
    )
    assert scaled_by_range(rounds)
    assert not scaled_by_range(X)
    found = certificate(scaled.transform(X[:300]), y[:300], scaled.transform(X[300:]))
    assert found.certified
    assert "fills a range up to 1" in reason(found, "A3").reason


class Stopping(LogisticRegression):
    def fit(self, X, y, eval_set=None):
        self.eval_set_ = eval_set
        return super().fit(X, y)


@pytest.mark.parametrize("as_frame", [False, True])
def test_certificate__is_refused_where_fits_are_given_all_rows(rows, as_frame):
    X, y = rows
    made = pd.DataFrame(X, columns=[f"x{n}" for n in range(X.shape[1])])
    X = made if as_frame else X
    search = dsel.SemiSupervisedSearchCV(
        None, [Stopping()], criterion="best_fold_model", random_state=0
    )
    found = search.fit(X[:300], y[:300], eval_set=[(X[200:300], y[200:300])])
    assert not found.certificate_.certified
    assert "`eval_set` holds labeled rows" in reason(found.certificate_, "A3").reason
    found = search.fit(X[:300], y[:300], eval_set=[(X[300:], y[300:])])
    assert found.certificate_.certified


@pytest.mark.parametrize("order", ["of the file", "random"])
def test_certificate__is_refused_where_a_column_numbers_the_rows(rng, order):
    y = np.repeat([0, 1, 2], 40)  # sorted by class, as many files are
    X = pd.DataFrame({"id": np.arange(120), "noise": rng.normal(size=120)})
    kept = rng.permutation(120) if order == "random" else np.arange(120)
    search = dsel.SemiSupervisedSearchCV(
        None, [KNeighborsClassifier(1)], criterion="best_fold_model", random_state=0
    )
    found = search.fit(X.iloc[kept], y[kept]).certificate_
    assert not found.certified
    assert (
        "column 'id' numbers the labeled rows from 0 to 119"
        in reason(found, "A1").reason
    )
    assert search.fit(X[["noise"]], y).certificate_.certified
    for unit in (86_400e9, 1 / 119):  # days in nanoseconds; scaled to [0, 1]
        X["id"] = kept * unit + (1.7e18 if unit > 1 else 0.0)
        found = search.fit(X, y).certificate_
        assert "in equal steps" in reason(found, "A1").reason


@pytest.mark.parametrize("is_method", [False, True])
def test_certificate__says_that_a_part_was_fitted_before(rows, is_method):
    X, y = rows
    scaler = StandardScaler().fit(X[300:])
    part = (
        FunctionTransformer(scaler.transform) if is_method else FrozenEstimator(scaler)
    )
    estimator = make_pipeline(part, LogisticRegression())
    made = plan(X[:300], y[:300], X[300:], estimator)
    found = select(made.run()).certificate
    for name in ("A3", "A4"):
        assert reason(found, name).state == "declared"
        assert "a frozen part" in reason(found, name).reason


def test_certificate__declares_that_nothing_was_fitted_on_the_pool_before(rows):
    X, y = rows
    outside = PCA(2).fit(X)  # of labeled rows and pool: nothing in them shows it
    found = certificate(outside.transform(X[:300]), y[:300], outside.transform(X[300:]))
    assert found.certified
    assert reason(found, "A4").state == "declared"
    assert "no scaler, PCA or other step was fitted" in reason(found, "A4").reason
    assert "the pool rows that are counted (A4)" in " ".join(found.reading().split())


@pytest.mark.parametrize("factor", [1.0, 0.01])
def test_certificate__is_refused_for_weights_of_all_labels(rows, factor):
    X, y = rows[0][:300], (rows[0][:300, 0] > 2.5).astype(int)
    weights = factor * compute_sample_weight("balanced", y)
    found = certificate(X, y, rows[0][300:], fit_params={"sample_weight": weights})
    assert not found.certified
    assert "A3 is violated: `sample_weight` weighs classes by" in found.reasons[0]


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (lambda y: GaussianNB(priors=np.bincount(y) / len(y)), "priors"),
        (lambda y: BernoulliNB(class_prior=np.bincount(y) / len(y)), "class_prior"),
        (lambda y: make_pipeline(SVC(class_weight=balanced(y))), "svc__class_weight"),
    ],
)
def test_certificate__is_refused_for_parameters_of_all_labels(rows, estimator, name):
    X, y = rows[0][:300], (rows[0][:300, 0] > 2.5).astype(int)
    found = certificate(X, y, rows[0][300:], estimator(y))
    assert not found.certified
    assert f"A3 is violated: `{name}`" in found.reasons[0]


def balanced(y):
    return dict(
        enumerate(compute_class_weight("balanced", classes=np.array([0, 1]), y=y))
    )


def test_certificate__declares_other_weights_not_to_come_from_all_labels(rows):
    X, y = rows
    for weights in (np.ones(300), np.where(y[:300], 2.0, 1.0), 1.0 + X[:300, 0] ** 2):
        params = {"sample_weight": weights}
        found = certificate(X[:300], y[:300], X[300:], fit_params=params)
        assert found.certified
        assert reason(found, "A3").state == "declared"
        assert "was not computed from the labels of all" in reason(found, "A3").reason
    own = certificate(X[:300], y[:300], X[300:], SVC(class_weight="balanced"))
    assert own.certified


@pytest.mark.parametrize(
    "wrap",
    [
        lambda learner: make_pipeline(StandardScaler(), learner),
        lambda learner: VotingClassifier([("a", learner), ("b", GaussianNB())]),
        lambda learner: BaggingClassifier(learner, n_estimators=2),
        lambda learner: GridSearchCV(learner, {"errs_on_pool": [True, False]}),
    ],
)
def test_plan__refuses_a_pool_learner_inside_another_estimator(rows, wrap):
    X, y = rows
    outer = wrap(Rememberer())
    message = f"must be the Rememberer itself.* a {type(outer).__name__} around it"
    with pytest.raises(ValueError, match=message):
        plan(X[:300], y[:300], X[300:], outer)
    search = dsel.SemiSupervisedSearchCV(None, [Counting(outer)], certify_rows=0.3)
    with pytest.raises(ValueError, match="must be the Rememberer itself"):
        search.fit(X[:300], y[:300], X[300:])
    assert Counting.n_fits == 0
    plan(X[:300], y[:300], None, outer)
    plan(X[:300], y[:300], X[300:], Counting(FrozenEstimator(Rememberer())))


class OfItsOwnManner(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, X_unlabeled=None):
        raise NotImplementedError


def test_plan__tells_how_a_learner_of_unlabeled_rows_gets_the_pool(rows):
    X, y = rows
    learner = OfItsOwnManner()
    message = r"unlabeled rows as `X_unlabeled`.*wrap it in a `fit\(X, y, pool\)`"
    with pytest.raises(ValueError, match=message):
        plan(X[:300], y[:300], X[300:], learner)
    # Whoever passes these rows knows what is done with them.
    given = {"X_unlabeled": X[:5]}
    dsel.plan_search(None, [learner], X[:300], y[:300], X[300:], fit_params=given)


class Counting(ClassifierMixin, BaseEstimator):
    n_fits = 0

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):
        Counting.n_fits += 1
        self.inner_ = clone(self.inner).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)


def oversampled(y):
    """Return row numbers such that both classes have equally many."""
    rare = np.flatnonzero(y == 1)
    return np.concatenate(
        [np.arange(len(y)), np.resize(rare, (y == 0).sum() - len(rare))]
    )


@pytest.mark.parametrize("kind", ["array", "sparse", "frame", "one column"])
def test_certificate__is_refused_for_copies_of_labeled_rows(rows, kind):
    X, _ = rows
    y = (np.arange(200) % 10 == 0).astype(int)
    table = {
        "array": X,
        "sparse": sparse.csr_array(X),
        "frame": pd.DataFrame(X.round(6), columns=list("abc")).assign(d=1),
        "one column": X[:, :1],
    }[kind]
    part = table.iloc[:200] if kind == "frame" else table[:200]
    for which in (oversampled(y), np.repeat(np.arange(200), 2)):
        twice = part.iloc[which] if kind == "frame" else part[which]
        learner = DecisionTreeClassifier(random_state=0)
        plan = dsel.plan_search(None, [learner], twice, y[which], cv=3,
            criterion="best_fold_model", random_state=1)  # fmt: skip
        found = select(plan.run()).certificate
        assert not found.certified
        said = r"A1 is violated: .* rows are copies of rows of other folds, .*each once"
        assert re.search(said, found.reasons[0])


@pytest.mark.parametrize("second", [1.0, 1e9])
def test_certificate__is_refused_for_copies_whatever_the_origin(second, rng):
    X = (1.7e9 + 60 * rng.random((200, 2))) * second  # time stamps
    which = np.repeat(np.arange(200), 2)
    y = (X[:, 0] > X[:, 0].mean()).astype(int)
    found = certificate(X[which], y[which], None, criterion="best_fold_model")
    assert "labeled rows are copies of rows of other folds" in found.reasons[0]


@pytest.mark.parametrize("digits", [2, 4])
@pytest.mark.parametrize("law", ["uniform", "lognormal"])
def test_certificate__stands_where_one_column_makes_few_rows_equal(law, digits):
    laws = {"uniform": lambda rng: rng.random(500), "lognormal": lambda rng: np.exp(
        2 * rng.normal(size=500))}  # fmt: skip
    for seed in range(5):
        X = laws[law](np.random.default_rng(seed))[:, np.newaxis]
        X = np.round(X if digits == 4 else 100 * X, digits)
        y = (X[:, 0] > np.median(X)).astype(int)
        found = certificate(X, y, None, criterion="best_fold_model")
        assert found.certified
        assert "labeled rows equal a row of another fold" in reason(found, "A1").reason


@pytest.mark.parametrize("kind", ["few", "whole numbers", "other labels", "tenths"])
def test_certificate__mentions_rows_that_may_be_equal_by_chance(rows, kind):
    X, y = rows[0][:300], rows[1][:300]
    if kind == "few":
        X, y = np.append(X, X[:2], axis=0), np.append(y, y[:2])
    elif kind == "whole numbers":  # one column of ages, one of something of few values
        X = np.column_stack([np.round(20 + 10 * np.abs(X[:, 0])), X[:, 1] > 0])
    elif kind == "tenths":  # also where they are scaled
        X = np.round(X[:, :1], 1) / 3.7
    else:
        X, y = np.repeat(X, 2, axis=0), np.tile([0, 1], 300)
    found = certificate(X, y, None, criterion="best_fold_model")
    assert found.certified
    assert "labeled rows equal a row of another fold" in reason(found, "A1").reason


def test_certificate__is_refused_for_rows_in_both_tables(rows):
    X, y = rows
    with pytest.raises(ValueError, match="must not hold the labeled rows"):
        certificate(X[:300], y[:300], X)


def test_certificate__is_refused_for_a_pool_of_other_rows(rows):
    X, y = rows
    found = certificate(X[:300], y[:300], X[300:] + [0.0, 0.0, 0.1])
    assert not found.certified
    assert "A1 is violated: a classifier tells labeled rows" in found.reasons[0]
    assert "This is no guarantee" in found.reading()


def test_certificate__is_refused_for_the_head_of_a_sorted_file(rows):
    X, y = rows
    order = np.argsort(X[300:, 0])
    found = certificate(X[:300], y[:300], X[300:][order][:400])
    assert not found.certified
    assert certificate(X[:300], y[:300], X[300:][order]).certified
    part = certificate(
        X[:300], y[:300], X[300:][order], reading=dsel.PoolReading(max_rows=400)
    )
    assert part.certified


def test_two_sample_test__uses_no_label_and_keeps_its_level(rng):
    found = [
        two_sample_test(
            rng.normal(size=(120, 2)), rng.normal(size=(200, 2)), seed=seed
        ).p_value
        for seed in range(30)
    ]
    assert np.mean(np.array(found) <= 0.1) <= 0.3
    assert min(found) > 0.001
    same = two_sample_test(rng.normal(size=(50, 2)), np.ones((50, 2)), seed=1)
    assert same.finds_shift
    assert same.auc > 0.9


def test_two_sample_test__takes_sparse_rows_and_missing_values(rng):
    X = rng.normal(size=(300, 4))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    assert not two_sample_test(holes[:150], holes[150:], seed=1).finds_shift
    first, second = sparse.csr_matrix(X[:150]), sparse.csr_matrix(X[150:])
    assert not two_sample_test(first, second, seed=1).finds_shift


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e50])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_two_sample_test__does_not_depend_on_units(scale, offset, form):
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[150:, 0] += 2.0
    X = (X + offset) * scale
    found = two_sample_test(form(X[:150]), form(X[150:]), seed=1)
    assert found.finds_shift
    same = two_sample_test(form(X[:150:2]), form(X[1:150:2]), seed=1)
    assert not same.finds_shift


def test_plan__warns_of_folds_of_few_rows(rows):
    X, y = rows
    said = " ".join(repr(plan(X[:190], y[:190], X[300:], cv=10)).split())
    assert "a fold has 19 rows" in said
    assert "a fold has" not in repr(plan(X[:200], y[:200], X[300:], cv=10))
    assert "CAREFUL" not in repr(plan(X[:190], y[:190], None, cv=10))


def test_plan__gives_a_learner_that_wants_the_pool_another_part_of_it(rows):
    X, y = rows
    from dsel.mcpl import SemiSupervisedLDA

    made = plan(X[:300], y[:300], X[300:], SemiSupervisedLDA(ridge=1.0))
    both = made.work.fitting_pool.n_rows + made.pool.n_rows
    assert both == len(X) - 300
    assert "a part of the pool that is not counted" in made.assumptions[3].reason
    assert made.assumptions[3].state == "declared"
