"""What scikit-learn asks of a search: any classifier, an estimator's manners."""

import io
import pickle
import warnings
from inspect import signature

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.feature_selection import RFE, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    KFold,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import dsel
from dsel.least_squares import LeastSquaresSearch, StreamedLeastSquaresSearch
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from tests.estimators import Drawn

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

IRIS, KINDS = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
IRIS = IRIS[ORDER] + np.random.default_rng(1).normal(scale=0.4, size=(150, 4))
X, Y, POOL = IRIS[:90], KINDS[ORDER][:90], IRIS[90:]
TWO = np.where(Y > 1, "yes", "no")
FOLDS = list(StratifiedKFold(3).split(X, TWO))
LOGISTIC, NEAREST = LogisticRegression(max_iter=500), KNeighborsClassifier()
PAIR = [("a", GaussianNB()), ("b", KNeighborsClassifier(3))]


class Stateless(TransformerMixin, BaseEstimator):
    """Has no attribute that tells that it was fitted."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.factor * X


class Wrapper(ClassifierMixin, BaseEstimator):
    """Fits another estimator, under the old name of the parameter."""

    def __init__(self, base_estimator=None):
        self.base_estimator = base_estimator

    def fit(self, X, y):
        self.fitted_ = clone(self.base_estimator).fit(X, y)
        return self  # without `classes_`

    def predict(self, X):
        return self.fitted_.predict(X)


ROUNDED = FunctionTransformer(np.round)


def steps(*steps, **grid):
    return make_pipeline(*steps), grid


LEARNERS = {
    "function": steps(FunctionTransformer(np.log1p), LOGISTIC, logisticregression__C=[
        0.1, 1.0]),
    "function, machines": steps(FunctionTransformer(np.exp), SVC(), svc__C=[0.1, 1.0]),
    "stateless": steps(Stateless(), LOGISTIC, stateless__factor=[0.1, 1.0]),
    "stateless, machines": steps(Stateless(), SVC(), svc__C=[0.1, 1.0]),
    "normalizer": steps(Normalizer(), NEAREST, kneighborsclassifier__n_neighbors=[1]),
    "of the labels": steps(ROUNDED, TargetEncoder(random_state=0), LOGISTIC,
                           logisticregression__C=[0.1, 1.0]),
    "of the labels, machines": steps(ROUNDED, TargetEncoder(random_state=0), SVC(),
                                     svc__C=[0.1, 1.0]),
    "union": steps(make_union(StandardScaler(), Stateless()), NEAREST,
                   kneighborsclassifier__n_neighbors=[1, 5]),
    "columns": steps(make_column_transformer((StandardScaler(), [0, 1]),
                     remainder="passthrough"), SVC(), svc__C=[0.1, 1.0]),
    "chosen features": steps(RFE(LOGISTIC, n_features_to_select=2), SVC(), svc__C=[1]),
    "approximated": steps(Nystroem(n_components=9, random_state=0), LOGISTIC,
                          nystroem__gamma=[0.1, 1.0]),
    "other steps": (Pipeline([("s", StandardScaler()), ("c", SVC())]), {
        "s": ["passthrough", MinMaxScaler()], "c": [SVC(), LOGISTIC]}),
    "steps' parameters": (Pipeline([("s", SelectKBest(k=2)), ("c", LOGISTIC)]), {
        "s__k": [1, 2]}),
    "own generator": (Drawn(), {"generator": [np.random.default_rng(0)]}),
    "base_estimator": (Wrapper(SVC()), {"base_estimator__C": [0.1, 1.0]}),
    "base estimators": (Wrapper(), {"base_estimator": [SVC(), NEAREST]}),
    "calibrated": (CalibratedClassifierCV(SVC(), cv=2), {"estimator__C": [0.1, 1.0]}),
    "frozen": (CalibratedClassifierCV(FrozenEstimator(GaussianNB().fit(X, TWO))), {
        "method": ["sigmoid"]}),
    "voting": (VotingClassifier(PAIR, voting="soft"), {"weights": [[1, 2], [2, 1]]}),
    "voting without": (VotingClassifier(PAIR), {"a": ["drop", LOGISTIC]}),
    "stacking": (StackingClassifier(PAIR, LOGISTIC, cv=2), {
        "final_estimator__C": [0.1, 1.0]}),
    "histograms": (HistGradientBoostingClassifier(max_iter=5, random_state=0), {
        "max_leaf_nodes": [3, 7]}),
    "bags": (BaggingClassifier(SVC(), n_estimators=3, random_state=0), {
        "estimator__C": [0.1, 1.0]}),
    "forest": (RandomForestClassifier(5, random_state=0), {"max_depth": [1, 2]}),
    "tree": (DecisionTreeClassifier(random_state=0), {"max_depth": [1, None]}),
    "one against rest": (OneVsRestClassifier(SVC()), {"estimator__C": [0.1, 1.0]}),
    "one against one": (OneVsOneClassifier(LinearSVC(random_state=0)), {
        "estimator__C": [0.1, 1.0]}),
    "threshold": (FixedThresholdClassifier(LOGISTIC, pos_label="yes"), {
        "threshold": [0.2, 0.8]}),
    "tuned threshold": (TunedThresholdClassifierCV(LOGISTIC, cv=2, thresholds=5), {
        "scoring": ["balanced_accuracy"]}),
    "layers": (MLPClassifier((3,), max_iter=200, random_state=0, solver="lbfgs"), {
        "alpha": [1e-3, 1.0]}),
    "neighbours": (NEAREST, {"n_neighbors": [1, 5], "weights": ["distance"]}),
    "other machines": (NuSVC(), {"nu": [0.1, 0.3]}),
    "probabilities": (SVC(probability=True, random_state=0), {"C": [0.1, 1.0]}),
    "own kernel": (SVC(kernel=lambda A, B: A @ B.T), {"C": [0.1, 1.0]}),
    "inner search": (GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2), {
        "estimator__gamma": [0.1, 1.0]}),
    "inner random search": (RandomizedSearchCV(
        SVC(), {"C": loguniform(0.1, 9)}, n_iter=2, cv=2, random_state=0), {
        "estimator__gamma": [0.1, 1.0]}),
}  # fmt: skip


def searched(learner, grid=None, *, weights=None, rows=X, y=TWO, pool=None, **options):
    grid = grid or {"C": [0.1, 1.0]}
    options = {"cv": 3, "random_state": 0, "prune": False, **options}
    given = {} if weights is None else {"sample_weight": weights}
    search = dsel.SemiSupervisedSearchCV(learner, grid, **options)
    return search.fit(rows, y, pool, **given)


def plain_loop(learner, grid, y, **fit_params):
    """Count errors as a loop over candidates and folds does."""
    errors = []
    for params in ParameterGrid(grid):
        for train, test in FOLDS:
            model = clone(learner).set_params(**clone(params, safe=False))
            given = {name: value[train] for name, value in fit_params.items()}
            found = model.fit(X[train], y[train], **given).predict(X[test])
            errors.append(int(np.sum(found != y[test])))
    return errors


@pytest.mark.parametrize("name", LEARNERS)
def test_plan_search__counts_what_a_plain_loop_counts(name):
    learner, grid = LEARNERS[name]
    found = searched(learner, grid, cv=FOLDS, n_jobs=1).results_.fold_errors
    assert found.values.ravel().tolist() == plain_loop(learner, grid, TWO)


@pytest.mark.parametrize("learner", [LOGISTIC, SVC()])
def test_fit_params__reach_every_fit(learner):
    weights = np.linspace(0.1, 3.0, len(X))
    search = searched(learner, cv=FOLDS, weights=weights)
    expected = plain_loop(learner, {"C": [0.1, 1.0]}, TWO, sample_weight=weights)
    assert search.results_.fold_errors.values.ravel().tolist() == expected


LABELS = {
    "text": np.array(["p", "q", "r"])[Y],
    "objects": np.array(["p", "q", "r"], dtype=object)[Y],
    "truth values": Y > 0,
    "small integers": Y.astype(np.uint8),
    "floats": Y + 0.0,
    "signs": np.where(Y > 0, 1, -1),
    "categories": pd.Series(np.array(["p", "q", "r"])[Y], dtype="category"),
    "a list": Y.tolist(),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("learner", [LOGISTIC, SVC()])
def test_fit__takes_labels_as_they_are(name, learner):
    y = LABELS[name]
    search = dsel.SemiSupervisedSearchCV(learner, {"C": [1.0]}, cv=FOLDS).fit(X, y)
    errors = plain_loop(learner, {"C": [1.0]}, np.asarray(y))
    assert search.results_.fold_errors.values.ravel().tolist() == errors
    assert search.classes_.tolist() == np.unique(np.asarray(y)).tolist()
    assert search.predict(X).dtype == search.classes_.dtype


def test_semi_supervised_learner__gets_texts_as_objects():
    learner, grid = SelfTrainingClassifier(LOGISTIC), {"threshold": [0.6, 0.9]}
    found = searched(learner, grid, cv=FOLDS).results_.fold_errors.values.ravel()
    assert found.tolist() == plain_loop(learner, grid, TWO.astype(object))


def learner_of_a_function():
    class Local(Drawn):
        """No process can import it."""

    return Local()


UNSEEDED = {
    "random search": (
        RandomizedSearchCV(SVC(), {"C": loguniform(0.1, 9)}, n_iter=2, cv=2),
        {"estimator__gamma": [0.1, 1.0]},
    ),
    "drawn folds": (
        GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=KFold(2, shuffle=True)),
        {"estimator__gamma": [0.1, 1.0]},
    ),
    "own generator": (Drawn(), {"generator": [None, np.random.default_rng()]}),
    "class in a function": (learner_of_a_function(), {"generator": [None]}),
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_fit__certifies_learners_without_a_seed(name):
    learner, grid = UNSEEDED[name]
    search = dsel.SemiSupervisedSearchCV(learner, grid, cv=3).fit(X, TWO, pool=POOL)
    assert all(each.certified for each in search.certificates_.values())
    assert set(search.predict(X)) <= {"yes", "no"}


@pytest.mark.parametrize(("cv", "certified"), [
    (3, True), (KFold(3, shuffle=True), True),
    (KFold(3), False), (StratifiedKFold(3), False), (FOLDS, False),
])  # fmt: skip
def test_cv__of_plain_random_folds_is_certified(cv, certified):
    with warnings.catch_warnings(record=True, action="always") as caught:
        search = searched(NEAREST, {"n_neighbors": [1, 3]}, cv=cv)
    made = search.certificate_
    assert made.certified == certified
    # What is no bound is not called one: no comparison with it is true.
    assert np.isfinite(made.number)
    assert made.bound == (
        made.number if certified else pytest.approx(np.nan, nan_ok=True)
    )
    texts = [
        str(w.message) for w in caught if w.category is dsel.errors.GuaranteeWarning
    ]
    text = "no bound: the folds of `cv` are not plain random; write cv=5."
    assert texts == [text] * (not certified)


@pytest.mark.parametrize("learner", [LinearSVC(), SVC(), LOGISTIC])
def test_training__on_one_class_answers_it(learner):
    no, yes = (np.flatnonzero(label == TWO) for label in ("no", "yes"))
    found = searched(learner, {"C": [1.0]}, cv=[(no, yes), (yes, no)]).results_
    assert found.fold_errors.values.ravel().tolist() == [len(yes), len(no)]


def test_groups__stay_together_in_the_folds_of_a_splitter():
    groups, cv, grid = np.arange(len(X)) // 3, GroupKFold(3), {"n_neighbors": [1, 3]}
    search = dsel.SemiSupervisedSearchCV(NEAREST, grid, cv=cv, prune=False)
    found = search.fit(X, TWO, groups=groups).results_.fold_errors
    folds = list(cv.split(X, TWO, groups))
    expected = searched(NEAREST, grid, cv=folds).results_.fold_errors
    np.testing.assert_array_equal(found, expected)


def test_search__has_the_manners_of_an_estimator():
    search = searched(LOGISTIC)
    again = clone(search)
    assert again.get_params()["estimator__max_iter"] == 500
    assert again.set_params(estimator__max_iter=400, delta=0.1).delta == 0.1
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    for name in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(again, name)(X)
        expected = getattr(search.best_estimator_, name)(X)
        np.testing.assert_array_equal(getattr(search, name)(X), expected)
        moved = pickle.loads(pickle.dumps(search))
        np.testing.assert_array_equal(getattr(moved, name)(X), expected)
    assert search.score(X, TWO) == np.mean(search.predict(X) == TWO)
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.n_features_in_ == 4
    assert not hasattr(search, "feature_names_in_")
    assert not hasattr(searched(LinearSVC()), "predict_proba")
    assert not hasattr(searched(NEAREST, {"n_neighbors": [1]}), "decision_function")


GRID = {"C": [0.1, 1.0]}
# With two folds: scikit-learn's tables have ten rows.
ESTIMATORS = [
    dsel.SemiSupervisedSearchCV(LOGISTIC, GRID, cv=2),
    dsel.SemiSupervisedSearchCV(SVC(), GRID, cv=2, certificate="holdout"),
    dsel.SemiSupervisedSearchCV(NEAREST, {"n_neighbors": [1, 3]}, cv=2),
    dsel.SemiSupervisedSearchCV(MultinomialNB(), {"alpha": [0.1, 1.0]}, cv=2),
    dsel.SemiSupervisedSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    dsel.SemiSupervisedSearchCV(
        make_pipeline(StandardScaler(), DecisionTreeRegressor()),
        {"decisiontreeregressor__max_depth": [1, 3]},
        cv=2,
    ),
    NonconformityClassifier(LOGISTIC, GRID),
    NonconformityClassifier(SVC(), GRID),
    NonconformityClassifier(MultinomialNB(), {"alpha": [0.1, 1.0]}),
    LeastSquaresSearch([0.5, 1.0], [0.1, 1.0], cv=2),
    StreamedLeastSquaresSearch([0.5, 1.0], [0.1, 1.0]),
]


for each in ESTIMATORS:
    # Random folds of ten rows may each hold one class, and a model that has seen none
    # but rows of weight 0 predicts their class.
    if "random_state" in each.get_params():
        each.set_params(random_state=0)


@parametrize_with_checks(ESTIMATORS)
def test_estimators__keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


OF_OTHERS = {
    "scoring": "loss=dsel.losses.recall",
    "refit": "see `deploy`",
    "error_score": "counts as all errors",
    "n_iter": "ParameterSampler",
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_parameters__of_other_searches_are_told_what_takes_their_place(name):
    with pytest.raises(TypeError, match=f"{name}.*{OF_OTHERS[name]}"):
        dsel.SemiSupervisedSearchCV(SVC(), GRID, **{name: None})
    search = dsel.SemiSupervisedSearchCV(SVC(), GRID)
    with pytest.raises(ValueError, match=f"{name}.*{OF_OTHERS[name]}"):
        search.set_params(**{name: None})
    with pytest.raises(TypeError, match=f"{name}.*{OF_OTHERS[name]}"):
        search.fit(X, TWO, **{name: None})
    with pytest.raises(TypeError, match="no parameter 'iid': it has certificate, cv"):
        dsel.SemiSupervisedSearchCV(SVC(), GRID, iid=True)
    kinds = {
        p.kind.name for p in signature(dsel.SemiSupervisedSearchCV).parameters.values()
    }
    assert kinds == {"POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"}


@pytest.mark.parametrize("learner", [LOGISTIC, SVC(probability=True), NEAREST])
def test_scores__have_a_column_for_each_class_of_the_search(learner):
    y = np.array(["a"] * 60 + ["b"] * 29 + ["c"])  # one fold has no "c" to train on
    grid = {"n_neighbors": [3]} if learner is NEAREST else {"C": [1.0]}
    lacks_one = []
    for seed in range(6):
        search = searched(learner, grid, y=y, cv=2, random_state=seed)
        probabilities = search.predict_proba(X)
        assert probabilities.shape == (90, 3)
        assert np.allclose(probabilities.sum(axis=1), 1.0)
        known = np.isin(search.classes_, search.best_estimator_.classes_)
        assert (probabilities[:, ~known] == 0.0).all()
        if hasattr(search, "decision_function"):
            scores = search.decision_function(X)
            np.testing.assert_array_equal(
                search.classes_[scores.argmax(axis=1)], search.predict(X)
            )
        lacks_one.append(not known.all())
    assert any(lacks_one)


def test_scores_of_pairs__are_those_of_the_model_with_as_many_pairs_as_classes():
    y = np.array(["a"] * 40 + ["b"] * 29 + ["c"] * 20 + ["d"])
    svc, n_known = SVC(decision_function_shape="ovo"), set()
    for seed in range(6):
        search = searched(svc, {"C": [1.0]}, y=y, cv=2, random_state=seed)
        model = search.best_estimator_
        np.testing.assert_array_equal(
            search.decision_function(X), model.decision_function(X)
        )
        n_known.add(len(model.classes_))
    assert 3 in n_known


@pytest.mark.parametrize("certificate", ["nested", "cv_bound", "holdout"])
def test_cv_results__has_the_seconds_of_fits(certificate):
    search = searched(SVC(), {"C": [1e-3, 0.1, 1.0, 10.0]}, certificate=certificate,
                      prune=None, pool=POOL)  # fmt: skip
    found = pd.DataFrame(search.cv_results_)
    assert (found[["mean_fit_time", "std_fit_time"]] >= 0).all(axis=None)
    assert {"mean_score_time", "std_score_time"} <= {*found.columns}
    if certificate == "nested":
        seconds = search.pair_results_.fit_seconds
        np.testing.assert_allclose(found["mean_fit_time"], seconds.mean("pair"))


@pytest.mark.parametrize(
    ("loss", "score"),
    [
        ("recall:yes", lambda loss: 1 - loss),
        ("balanced", lambda loss: 1 - loss),
        ("cost:yes>no=5,no>yes=1", lambda loss: -loss),
    ],
)
def test_cv_results__have_scores_and_ranks_of_the_loss(loss, score):
    search = searched(LOGISTIC, {"C": [1e-4, 1e-2, 0.1, 1.0]}, loss=loss, pool=POOL,
                      prune=True, cv=5)  # fmt: skip
    table = pd.DataFrame(search.cv_results_)
    losses = search.results_.fold_loss_mean.transpose("C", "fold").to_numpy()
    folds = table[[f"split{k}_test_score" for k in range(5)]]
    np.testing.assert_allclose(folds, score(losses))
    np.testing.assert_allclose(table.mean_test_score, score(table.mean_loss))
    assert table.mean_loss.notna().all()
    assert table.cv_error.notna().all()
    done = table[table.status == "done"]
    assert done.rank_test_score.rank().equals(done.mean_loss.rank(method="min"))
    assert search.best_score_ == table.mean_test_score[search.best_index_]


def test_search__is_a_learner_of_others():
    search = dsel.SemiSupervisedSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3, random_state=0)
    behind = make_pipeline(FunctionTransformer(), search)
    behind.fit(X, TWO, semisupervisedsearchcv__pool=POOL)
    alone = clone(search).fit(X, TWO, pool=POOL)
    np.testing.assert_array_equal(behind.predict(X), alone.predict(X))
    assert behind[-1].certificate_.bound == alone.certificate_.bound
    assert (cross_val_score(search, X, TWO, cv=2) > 0.5).all()
    grid = {"delta": [0.1], "estimator__gamma": [0.1, 1.0]}
    assert GridSearchCV(search, grid, cv=2).fit(X, TWO).best_score_ > 0.5


def test_search__takes_data_frames_and_knows_their_names():
    frame, pool = (pd.DataFrame(rows, columns=list("abcd")) for rows in (X, POOL))
    y = pd.Series(TWO, index=frame.index[::-1])
    with config_context(transform_output="pandas"):
        learner = make_pipeline(StandardScaler(), LOGISTIC)
        grid = {"logisticregression__C": [0.1, 1.0]}
        search = searched(learner, grid, rows=frame, y=y, pool=pool)
    assert search.feature_names_in_.tolist() == list("abcd")
    assert search.best_estimator_[-1].feature_names_in_.tolist() == list("abcd")
    bare = searched(learner, grid, pool=POOL)
    np.testing.assert_array_equal(search.predict(frame), bare.predict(X))
    table = pd.DataFrame(search.cv_results_)
    best = table.loc[search.best_index_]
    assert best["params"] == search.best_params_
    assert best["mean_test_score"] == search.best_score_
    assert best["rank_test_score"] == 1


def test_metadata__is_routed_where_it_is_asked_for():
    weights = np.linspace(0.1, 3.0, len(X))
    expected = searched(SVC(), weights=weights).results_.fold_errors
    with config_context(enable_metadata_routing=True):
        asks = SVC().set_fit_request(sample_weight=True)
        found = searched(asks, weights=weights).results_.fold_errors
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            searched(SVC(), weights=weights)
    np.testing.assert_array_equal(found, expected)


def test_grid__of_distributions_is_drawn_by_a_sampler():
    sampler = ParameterSampler({"C": loguniform(0.1, 9)}, n_iter=3, random_state=0)
    search = searched(SVC(), sampler)
    drawn = [params["C"] for params in search.cv_results_["params"]]
    assert drawn == [params["C"] for params in sampler]


SYSTEMS = {
    "search": dsel.SemiSupervisedSearchCV(LOGISTIC, GRID, cv=3, random_state=0),
    "nonconformity": NonconformityClassifier(LOGISTIC, GRID, random_state=0),
    "least squares": LeastSquaresSearch([0.5, 1.0], [0.1, 1.0], cv=3, random_state=0),
    "streamed": StreamedLeastSquaresSearch([0.5, 1.0], [0.1, 1.0], random_state=0),
    "discriminants": SemiSupervisedLDA(),
}
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.fixture(params=SYSTEMS)
def system(request):
    return clone(SYSTEMS[request.param])


def targets(system):
    return TWO if is_classifier(system) else Y.astype(float)


def test_system__is_moved_and_shown_like_any_estimator(system):
    assert type(system).__name__ in repr(system)
    assert "text/html" in system._repr_mimebundle_()
    model = system.fit(X, targets(system))
    assert "text/html" in model._repr_mimebundle_()
    held, expected = io.BytesIO(), model.predict(X)
    joblib.dump(model, held)
    held.seek(0)
    for moved in (joblib.load(held), pickle.loads(cloudpickle.dumps(model))):
        np.testing.assert_array_equal(moved.predict(X), expected)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas])
def test_system__takes_frames_of_pandas_and_polars(system, make):
    y = targets(system)
    expected = clone(system).fit(X, y).predict(X)
    model = system.fit(make(FRAME), y)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    found = model.predict(make(FRAME))
    if is_classifier(system):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(make(FRAME[["b", "a", "c", "d"]]))


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_system__stands_in_pipelines_and_behind_others(system, output):
    y = targets(system)
    behind = make_pipeline(StandardScaler(), system).set_output(transform=output)
    score = behind.fit(FRAME, y).score(FRAME, y)
    assert score > 0.5
    scores = cross_val_score(behind, FRAME, y, cv=3)
    assert np.isfinite(scores).all()
    with config_context(enable_metadata_routing=True):
        assert clone(behind).fit(FRAME, y).score(FRAME, y) == score
        assert "fit" in repr(system.get_metadata_routing())


@pytest.mark.parametrize("name", ["search", "nonconformity", "discriminants"])
def test_system__votes(name):
    voters = [("ours", clone(SYSTEMS[name])), ("other", GaussianNB())]
    assert VotingClassifier(voters).fit(X, TWO).score(X, TWO) > 0.8
    assert BaggingClassifier(voters[0][1], 2).fit(X, TWO).score(X, TWO) > 0.7


@pytest.mark.parametrize("name", ["best_score_", "results_", "n_features_in_"])
def test_system__names_its_fit_where_an_attribute_is_read_before(system, name):
    with pytest.raises(NotFittedError, match=f"`{name}`; call `fit"):
        getattr(system, name)
    assert getattr(system, name, None) is None
    system.fit(X, targets(system))
    with pytest.raises(AttributeError, match="has no attribute 'n_feature_in_'") as why:
        _ = system.n_feature_in_
    assert not isinstance(why.value, NotFittedError)
    assert "did you mean 'n_features_in_'?" in str(why.value)


def test_search__gives_probabilities_to_others():
    search = clone(SYSTEMS["search"])
    fitted = CalibratedClassifierCV(search, cv=2).fit(X, TWO)
    assert fitted.score(X, TWO) > 0.8
    frozen = CalibratedClassifierCV(FrozenEstimator(clone(search).fit(X, TWO)))
    assert frozen.fit(X, TWO).score(X, TWO) > 0.8
    soft = VotingClassifier([("a", search), ("b", GaussianNB())], voting="soft")
    assert soft.fit(X, TWO).score(X, TWO) > 0.8
    search.fit(X, TWO)
    np.testing.assert_array_equal(
        search.predict_log_proba(X), np.log(search.predict_proba(X))
    )


@pytest.mark.parametrize("name", ["search", "nonconformity"])
def test_weights__are_routed_through_a_system(name):
    weights = {"sample_weight": np.linspace(0.1, 3.0, len(X))}
    asks = clone(LOGISTIC).set_params(C=0.01)
    plain = clone(SYSTEMS[name]).set_params(estimator=asks).fit(X, TWO, **weights)
    with config_context(enable_metadata_routing=True):
        model = clone(SYSTEMS[name]).set_params(estimator=asks)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            model.fit(X, TWO, **weights)
        model.set_params(estimator=asks.set_fit_request(sample_weight=True))
        found = model.fit(X, TWO, **weights).predict(X)
        np.testing.assert_array_equal(found, plain.predict(X))
        model.set_score_request(sample_weight=False)
        assert np.isfinite(cross_val_score(model, X, TWO, cv=2, params=weights)).all()
