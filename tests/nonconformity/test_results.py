"""The cube of a nonconformity classifier: what validation rows say over the grid."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from dsel.data.splits import holdout_split
from dsel.errors import FitFailedWarning
from dsel.nonconformity import NonconformityClassifier
from dsel.results import open_model, open_results, save_model, save_results
from tests.executors import faulty_threads

GRID = {"gamma": [0.01, 1.0, 100.0], "C": [0.1, 10.0]}
QUANTILES = (10, 25, 50, 75, 90)


def table(n_classes=2):
    return make_classification(
        140, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2,
        random_state=0,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = table(request.param)
    model = NonconformityClassifier(SVC(), GRID, random_state=3).fit(X, y)
    rows = holdout_split(140, 28, seed=3).test_rows
    return model, X[rows], y[rows]


def test_results__have_the_axes_and_conventions_of_searches(fitted):
    results = fitted[0].results_
    assert results.estimate.dims == ("criterion", "C", "gamma")
    assert results.validation_errors.dims == ("C", "gamma")
    assert results.gamma.values.tolist() == [0.01, 1.0, 100.0]
    assert results.criterion.values.tolist() == [
        "validation_error", *(f"critical_epsilon_{p}%" for p in QUANTILES),
    ]  # fmt: skip
    assert results.validation_errors.attrs["units"] == "1"
    assert (int(results.n_labeled), int(results.validation_rows)) == (140, 28)
    assert results.attrs["creation_library"] == "dsel"


def test_results__count_errors_of_each_model_on_the_validation_rows(fitted):
    model, X, y = fitted
    results = model.results_
    for svm in model.models_.models():
        n_errors = (svm.predict(X) != y).sum()
        here = results.sel(C=svm.C, gamma=svm.gamma)
        assert here.validation_errors == n_errors
        assert here.estimate.sel(criterion="validation_error") == n_errors / 28


def test_results__have_quantiles_of_the_critical_epsilon_of_each_model(fitted):
    model, X, _ = fitted
    for number, params in enumerate(model.params_):
        # The second largest p-value of a label: of two labels the smaller one.
        p_values = np.sort(model.p_values(X, model=number), axis=1)[:, -2]
        printed = np.sort((p_values * 29 - 1) / 28)
        for percent in QUANTILES:
            found = model.results_.estimate.sel(
                **params, criterion=f"critical_epsilon_{percent}%"
            )
            rows = int(np.ceil(percent * 28 / 100))
            assert found == pytest.approx(printed[rows - 1], abs=1e-12)


def test_results__a_candidate_that_failed_says_why():
    X, y = table()
    model = NonconformityClassifier(
        LogisticRegression(), {"C": [1.0, 5.0, -7.0]}, random_state=0
    )
    with pytest.warns(FitFailedWarning, match="1 of 3"):
        results = model.fit(X, y).results_
    assert results.status.values.tolist() == [0, 0, 2]
    assert "-7" in str(results.message[2].item())
    assert np.isnan(results.validation_errors[2])
    assert np.isinf(results.estimate[:, 2]).all()
    assert results.dsel.table().status.tolist() == ["done", "done", "failed"]


def test_results__a_model_that_cannot_predict_takes_no_part():
    X, y = table()
    grid = {"n_neighbors": [1, 5, 130]}  # of 112 rows to learn from
    model = NonconformityClassifier(KNeighborsClassifier(), grid, random_state=0)
    with pytest.warns(FitFailedWarning, match="1 of 3 .* candidate 2: .*n_neighbors"):
        results = model.fit(X, y).results_
    assert results.status.values.tolist() == [0, 0, 2]
    assert len(model.params_) == 2
    model = NonconformityClassifier(
        KNeighborsClassifier(), {"n_neighbors": [130]}, random_state=0
    )
    with pytest.raises(ValueError, match="n_neighbors"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (None, [LogisticRegression(), SVC()]),
        (SVC(), [{"C": [1.0]}, {"kernel": ["linear"]}]),
        (SVC(), ParameterSampler({"C": [1.0, 2.0, 3.0]}, 2, random_state=0)),
    ],
)
def test_results__of_a_list_have_one_dimension(estimator, grid):
    results = NonconformityClassifier(estimator, grid, random_state=0).fit(
        *table()
    ).results_  # fmt: skip
    assert results.estimate.dims == ("criterion", "candidate")
    assert results.sizes["candidate"] == 2


def test_results__are_saved_alone_and_with_the_model(fitted, tmp_path):
    model = fitted[0]
    save_results(model.results_, tmp_path / "cube")
    assert open_results(tmp_path / "cube").identical(model.results_)
    save_model(model, tmp_path / "model")
    assert open_model(tmp_path / "model").results_.identical(model.results_)


def test_accessor__chooses_tabulates_and_draws(fitted):
    pytest.importorskip("matplotlib").use("agg")
    results = fitted[0].results_
    choice = results.dsel.select()
    fewest = results.validation_errors.values.ravel().argmin()
    assert (choice.candidate, choice.certificate.certified) == (fewest, False)
    assert str(choice) in repr(results.dsel)
    errors = results.dsel.table()["validation_error"]
    np.testing.assert_array_equal(errors, results.estimate[0].values.ravel())
    assert results.dsel.plot().get_xlabel() == "gamma"
    results.dsel.plot("critical_epsilon_50%")


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        ("critical_epsilon_50%", "must be an estimate of the error"),
        ("cv_error", "lack fold_errors"),
        ("no such", "must be one of 'validation_error'"),
    ],
)
def test_select__refuses_what_these_results_do_not_tell(fitted, criterion, words):
    with pytest.raises(ValueError, match=words):
        dsel.select(fitted[0].results_, criterion)


def test_tasks__are_named_by_candidates_and_split():
    keys = []
    client = faulty_threads(lambda task: keys.append(task.key))
    NonconformityClassifier(SVC(), GRID, random_state=0).fit(*table(), client=client)
    names = {key.rpartition("-")[0] for key in keys}
    assert names == {f"fit-gamma={gamma}-holdout" for gamma in GRID["gamma"]}
