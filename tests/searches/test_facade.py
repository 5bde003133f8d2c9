import asyncio
import inspect

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from scipy import sparse
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterSampler, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import dsel
import dsel.errors
from dsel.errors import AllFitsFailedError
from tests.tables import in_two_entries


def make_search(estimator=None, param_grid=None, **options):
    settings = {"cv": 3, "random_state": 0, "n_jobs": 2} | options
    return dsel.SemiSupervisedSearchCV(
        estimator or LogisticRegression(), param_grid or {"C": [0.1, 1.0]}, **settings
    )


@parametrize_with_checks([make_search()])
def test_search__keeps_the_manners_of_scikit_learn(estimator, check):
    check(estimator)


def test_search__has_the_options_and_defaults_of_plan_search():
    own = inspect.signature(dsel.SemiSupervisedSearchCV).parameters
    plans = inspect.signature(dsel.plan_search).parameters
    options = {n: p.default for n, p in plans.items() if p.kind is p.KEYWORD_ONLY}
    of_fit = {"fit_params", "pool_labels", "groups"}
    assert of_fit <= options.keys()
    expected = {n: d for n, d in options.items() if n not in of_fit}
    assert {n: own[n].default for n in expected} == expected


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


def test_search__takes_pipelines_and_text_labels(digits):
    X, y = digits
    words = np.array([f"digit {label}" for label in y])
    search = make_search(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 10.0]}, delta=0.1
    )
    search.fit(X[:500], words[:500], pool=X[500:])
    assert search.score(X[500:], words[500:]) > 0.9
    assert search.certificate_.criterion == "best_fold_of_leader"
    assert search.certificate_.certified
    assert 1 - search.score(X[500:], words[500:]) <= search.certificate_.bound


def test_search__takes_a_list_of_estimators(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        None, [KNeighborsClassifier(), LinearSVC()], cv=3, random_state=0, prune=False
    )
    search.fit(X[:300], y[:300])
    assert search.results_.estimate.sizes["candidate"] == 2
    assert isinstance(search.best_estimator_, KNeighborsClassifier)


def test_search__has_the_cv_results_of_scikit_learn(digits):
    X, y = digits[0][:200], digits[1][:200]
    search = make_search(KNeighborsClassifier(), {"n_neighbors": [1, 3, 9]}).fit(X, y)
    folds = [(split.train_rows, split.test_rows) for split in search.plan_.work.splits]
    usual = GridSearchCV(search.estimator, search.param_grid, cv=folds[:3]).fit(X, y)
    found, expected = pd.DataFrame(search.cv_results_), pd.DataFrame(usual.cv_results_)
    same = [name for name in expected if not name.endswith("_time")]
    pd.testing.assert_frame_equal(found[same], expected[same])
    assert set(expected) < set(found)
    assert (found.mean_fit_time > 0).all()
    assert search.best_index_ == usual.best_index_
    assert search.best_score_ == pytest.approx(usual.best_score_)


def test_search__has_nan_in_cv_results_where_it_stopped_early(digits):
    X, y = digits
    grids = [{"C": [1.0, 1e-6]}, {"gamma": ["auto"]}]
    search = make_search(SVC(gamma=0.001), grids, criterion="cv_bound")
    search.fit(X[:300], y[:300], X[300:])
    found = pd.DataFrame(search.cv_results_)
    assert found.status.tolist() == ["done", "pruned", "pruned"]
    assert found.mean_test_score.isna().tolist() == [False, True, True]
    assert found.rank_test_score.tolist() == [1, 2, 2]
    assert found.param_C.isna().tolist() == [False, False, True]
    assert found.cv_bound[search.best_index_] == search.certificate_.bound


def test_search__gives_weights_to_the_fits_and_counts_unweighted(digits):
    X, y = digits
    weights = np.where(y[:300] == 0, 1e-6, 1.0)
    search = make_search(param_grid={"C": [1.0]}, prune=False)
    plain = clone(search).fit(X[:300], y[:300]).results_
    weighted = search.fit(X[:300], y[:300], sample_weight=weights).results_
    assert int(weighted.fold_errors.sum()) > int(plain.fold_errors.sum())
    assert int(weighted.fold_rows.sum()) == 300


@config_context(enable_metadata_routing=True)
def test_search__routes_weights_as_estimators_request_them(digits):
    X, y = digits[0][:120], digits[1][:120] > 4
    weights = np.where(y, 1e-6, 1.0)
    model = LogisticRegression().set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, model)
    for estimator, grid in [(model, {"C": [1.0]}), (None, [pipe])]:
        search = dsel.SemiSupervisedSearchCV(
            estimator, grid, cv=3, n_jobs=2, prune=False
        )
        search.fit(X, y, sample_weight=weights)
        assert search.best_score_ < 0.6, "the classes weigh the same"
        with pytest.raises(TypeError, match=r"unexpected argument.* {'other'}"):
            search.fit(X, y, other=weights)


@config_context(enable_metadata_routing=True)
def test_search__refuses_weights_that_are_not_requested_by_all(digits):
    X, y = digits[0][:100], digits[1][:100]
    weighted = LogisticRegression().set_fit_request(sample_weight=True)
    plain = LogisticRegression().set_fit_request(sample_weight=False)
    search = dsel.SemiSupervisedSearchCV(None, [weighted, plain], cv=3)
    with pytest.raises(ValueError, match="`sample_weight` must be requested by all"):
        search.fit(X, y, sample_weight=np.ones(100))


@config_context(enable_metadata_routing=True)
def test_search__takes_its_pool_inside_of_a_cross_validation(digits):
    X, y = digits
    search = make_search(LinearSVC(dual=False), {"C": [0.001, 0.01]}, prune=False)
    search.set_fit_request(pool=True)
    found = cross_validate(
        search, X[:300], y[:300], params={"pool": X[300:]}, cv=2, return_estimator=True
    )
    assert all(each.certificate_.certified for each in found["estimator"])


def test_search__fits_with_the_configuration_of_its_caller(digits):
    X, y = digits
    names_kept = FunctionTransformer(lambda X: X[["pca0", "pca1"]])
    pipe = make_pipeline(PCA(4, random_state=0), names_kept, LinearSVC(dual=False))
    search = dsel.SemiSupervisedSearchCV(None, [pipe], cv=3, n_jobs=2)
    with config_context(transform_output="pandas"):
        search.fit(X[:300], y[:300], pool=X[300:])
        assert search.score(X[300:], y[300:]) > 0.3


def test_search__draws_candidates_of_a_sampler_by_its_own_seed(digits):
    X, y = digits
    sampler = ParameterSampler({"C": loguniform(1, 100), "gamma": [1e-3, 1e-4]}, 4)
    search = make_search(SVC(), sampler).fit(X[:200], y[:200], pool=X[200:400])
    again = clone(search).fit(X[:200], y[:200], pool=X[200:400])
    assert search.cv_results_["params"] == again.cv_results_["params"]
    assert search.results_.sizes["candidate"] == 4
    assert len(np.unique(search.results_.C)) == 4
    assert (search.results_.delta_share == 0.05 / 4).all()
    assert search.certificate_.certified


@pytest.mark.parametrize("kind", [iter, list])
def test_search__takes_candidates_one_by_one(digits, kind):
    X, y = digits
    given = [{"C": 1.0, "gamma": 1e-3}, {"C": 100.0, "gamma": 1e-3}, {"gamma": 1e-4}]
    search = make_search(SVC(), kind(given)).fit(X[:200], y[:200])
    assert search.cv_results_["params"] == given
    assert search.best_params_ in given


def test_search__has_the_methods_of_the_chosen_model(digits):
    X, y = digits
    search = make_search(LinearSVC(), {"C": [0.01]}).fit(X[:200], y[:200])
    assert search.decision_function(X[:3]).shape == (3, 10)
    assert not hasattr(search, "predict_proba")


def test_search__refuses_a_criterion_without_its_pool(digits):
    X, y = digits
    with pytest.raises(ValueError, match="needs unlabeled rows, but `pool` is None"):
        make_search(criterion="cv_bound").fit(X[:100], y[:100])


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "at least one parameter"),
        ({"C": []}, "gives 'C' no values"),
        ({"c": [1.0]}, "sets 'c', which LogisticRegression lacks"),
        ([], "is empty"),
    ],
)
def test_search__refuses_grids_that_name_nothing(digits, grid, message):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(LogisticRegression(), grid, cv=3)
    with pytest.raises(ValueError, match=message):
        search.fit(X[:50], y[:50])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"param_grid": {"C": 1.0}}, r"give 'C' a list .*, got 1.0; write"),
        ({"param_grid": {"C": "abc"}}, "give 'C' a list"),
        (
            {"param_grid": {3: [1.0]}},
            "`param_grid` must name parameters by text, got 3",
        ),
        ({"estimator": SVC}, "`estimator` must be an unfitted scikit-learn classifier"),
        ({"estimator": "svc"}, "`estimator` must be an unfitted .*, got 'svc'"),
        ({"cv": "5"}, "`cv` must be a number of folds, a .*, got '5'"),
        ({"verbose": "yes"}, "`verbose` must be an integer, got 'yes'"),
        ({"n_jobs": "2"}, "`n_jobs` must be an integer or None, got '2'"),
    ],
)
def test_search__refuses_other_kinds_by_name(digits, changed, message):
    X, y = digits
    with pytest.raises(TypeError, match=message):
        make_search(**changed).fit(X[:50], y[:50])


@pytest.mark.parametrize("n_jobs", [-1, 1])
def test_search__takes_as_many_threads_as_scikit_learn_would(digits, n_jobs):
    X, y = digits
    assert make_search(n_jobs=n_jobs).fit(X[:50], y[:50]).best_params_


def test_search__refuses_weights_of_another_length(digits):
    X, y = digits
    with pytest.raises(ValueError, match="`sample_weight` must hold one weight for"):
        make_search().fit(X[:50], y[:50], sample_weight=np.ones(20))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"reserve": -1}, ValueError),
        ({"reserve": 0.96}, ValueError),
        ({"reserve": "0.1"}, TypeError),
        ({"prune": "no"}, TypeError),
        ({"reading": 0.01}, TypeError),
        ({"prior": "half"}, TypeError),
    ],
)
def test_search__names_the_option_that_is_wrong(digits, changed, error):
    X, y = digits
    with pytest.raises(error, match=f"`{next(iter(changed))}` must"):
        make_search(**changed).fit(X[:50], y[:50], pool=X[50:60])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy tells of overflow
def test_search__says_that_features_are_too_large_for_a_kernel(digits):
    X, y = digits
    with pytest.raises(dsel.errors.AllFitsFailedError, match="scale the features"):
        make_search(SVC(gamma=0.1)).fit(X[:50] * 1e160, y[:50])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy tells of overflow
def test_search__predicts_rows_that_are_too_large_for_a_kernel(digits):
    X, y = digits
    search = make_search(SVC(gamma=0.01))
    search.fit(X[:150], y[:150], pool=X[150:160] * 1e160)
    assert search.results_.n_unlabeled == 10


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_search__refuses_the_client_of_its_own_event_loop(digits):
    distributed = pytest.importorskip("distributed")
    X, y = digits

    async def search():
        options = {"asynchronous": True, "processes": False, "dashboard_address": None}
        async with distributed.Client(**options):
            make_search().fit(X[:50], y[:50])

    with pytest.raises(TypeError, match="`client` must be a synchronous"):
        asyncio.run(search())


def test_fit__raises_what_a_fit_raised_if_asked_to():
    X, y = load_digits(n_class=2, return_X_y=True)
    grid, model = {"C": [1.0, -1.0]}, LogisticRegression()
    search = dsel.SemiSupervisedSearchCV(model, grid, cv=3, random_state=0)
    with pytest.warns(dsel.errors.FitFailedWarning, match="1 of 2 candidates failed"):
        assert search.fit(X, y).best_params_ == {"C": 1.0}
    with pytest.raises(RuntimeError, match="'C' parameter"):
        clone(search).set_params(on_failure="raise").fit(X, y)


def test_fit__says_where_own_code_failed(digits):
    class Broken(LogisticRegression):
        def fit(self, X, y):
            raise KeyError("inside")

    X, y = digits
    search = dsel.SemiSupervisedSearchCV(Broken(), {"C": [1.0]}, cv=3, random_state=0)
    with pytest.raises(AllFitsFailedError, match=r"'inside' \(test_facade.py, line"):
        search.fit(X, y)
    wrong = dsel.SemiSupervisedSearchCV(LogisticRegression(), {"C": [-1.0]}, cv=3)
    with pytest.raises(AllFitsFailedError, match=r"Got -1.0 instead\.$"):
        wrong.fit(X, y)


def test_fit__takes_a_single_division(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(), {"C": [1.0]}, cv=[(range(60), range(60, 90))]
    )
    assert not search.fit(X[:90], y[:90], X[90:]).certificate_.certified


def test_fit__takes_numbers_of_numpy(digits, tmp_path):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(), {"C": [1.0]}, delta=np.float32(0.1),
        label_share=np.float32(0.5), reserve=np.float32(0.01),
    )  # fmt: skip
    search.fit(X[:90], y[:90], X[90:], out=tmp_path / "out")
    kept = dsel.select(dsel.open_results(tmp_path / "out"))
    assert kept.certificate.delta == np.float32(0.1)


def test_fit__a_remark_about_a_fit_is_no_failure(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        SVC(max_iter=3), {"C": [0.1, 1.0]}, cv=3, random_state=0, on_failure="raise"
    )
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        search.fit(X, y)
    assert "max_iter=3" in search.results_.message.values[0]


@pytest.mark.parametrize("estimator", [SVC(), KNeighborsClassifier(3)])
def test_search__sums_entries_of_one_place_in_rows_to_predict_and_pools(
    digits, estimator
):
    X, y = digits
    halves = [in_two_entries(X[start : start + 100]) for start in (100, 200)]
    pool = da.concatenate(
        [
            da.from_delayed(delayed(part), part.shape, meta=sparse.csr_matrix((0, 0)))
            for part in halves
        ]
    )
    search = dsel.SemiSupervisedSearchCV(
        None, [estimator], cv=3, random_state=0, duplicates="keep"
    )
    found = clone(search).fit(in_two_entries(X[:100]), y[:100], pool=pool)
    expected = search.fit(X[:100], y[:100], pool=sparse.csr_matrix(X[100:300]))
    predicted = expected.predict(X[300:500])
    np.testing.assert_array_equal(found.predict(in_two_entries(X[300:500])), predicted)
    assert found.results_["disagreements"].equals(expected.results_["disagreements"])
