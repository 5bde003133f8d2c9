"""Problems, estimates from counts, choices, and what the stored run says."""

import sys

import common
import madani2004
import numpy as np
import pytest
import xarray as xr
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.svm import SVC

SMALL = madani2004.Settings(
    sizes=(25, 50), halvings=4, degrees=(0.5, 1.0, 2.0), batch=5
)


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [("votes", 435), ("chess", 3196), ("adult", 32561), ("optics", 1797)],
)
def test_load_problem__has_the_rows_of_the_paper(name, n_rows, data_dir):
    problem = madani2004.load_problem(name, data_dir)
    assert problem.X.shape[0] == n_rows
    assert problem.X.min() >= 0
    assert set(problem.y) == {0, 1}


def test_one_hot__missing_values_have_no_column():
    found = madani2004.one_hot(np.array([[0.0], [2.0], [np.nan]]))
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [0, 0]])


def test_text_features__are_normalised_counts_of_up_to_three_stems():
    pytest.importorskip("snowballstemmer")
    found = madani2004.text_features(["red running the blues", "Red runs"])
    # 3 stems, of which 2 are in both, 2 pairs and a triple; stop words leave no gap.
    assert found.shape == (2, 6)
    assert (found > 0).sum(axis=1).ravel().tolist() == [[6, 3]]
    np.testing.assert_allclose(found.multiply(found).sum(axis=1), 1.0)


def test_run__without_a_stemmer_documents_are_refused_before_work(
    data_dir, monkeypatch
):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dsel\[papers"):
        common.run(madani2004.ESTIMATION, sets=("earn",), folder=data_dir)


def test_estimation__has_every_estimate(data_dir):
    results = common.run(
        madani2004.ESTIMATION, sets=("votes",), repetitions=1, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip
    for name in madani2004.ESTIMATES:
        assert ((results[name] >= 0) & (results[name] <= 1)).all()
    problem = madani2004.load_problem("votes", data_dir)
    rows = madani2004.orders(problem, SMALL, 0)[0]
    svc = SVC(kernel="linear", C=10.0)
    right = cross_val_score(svc, problem.X[rows], problem.y[rows], cv=LeaveOneOut())
    found = results.loo_error.sel(sampling="random", n_labeled=50)[0, 0]
    assert found == pytest.approx(1 - right.mean())
    pytest.importorskip("matplotlib").use("agg")
    figures = list(madani2004.estimate_figures(results))
    assert [each.name for each in figures] == ["figure-1-votes", "figure-2"]
    assert all(common.svg_of(each.drawing).startswith("<svg") for each in figures)


def test_selection__chooses_a_degree_by_every_criterion(data_dir):
    results = common.run(
        madani2004.SELECTION, sets=("votes",), repetitions=2, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip
    errors = madani2004.chosen_errors(results)
    for name in madani2004.CHOOSERS:
        assert (errors[name] >= errors.best - 1e-12).all()
    picked = errors.sel(sampling="active")
    assert sum(madani2004.win_loss_tie(picked, "max_dt_e", "two_fold_cv")) == 2
    lines = madani2004.compare_choices(results)
    cells = [line for line in lines if line.source.endswith("by set and size")]
    assert len(cells) == 3 * 2
    pytest.importorskip("matplotlib").use("agg")
    figures = list(madani2004.choice_figures(results))
    assert [each.name for each in figures] == ["figure-3a-votes", "figure-3b"]
    assert all(common.svg_of(each.drawing).startswith("<svg") for each in figures)


def test_estimates_of__are_the_numbers_of_covalidation(data_dir):
    problem = madani2004.load_problem("votes", data_dir)
    rows = np.random.default_rng(0).permutation(435)
    svc = SVC(kernel="poly", C=10.0, gamma=problem.gamma)
    counts = madani2004.halved(
        problem, svc, {"degree": [0.5, 1.0]}, rows[:41], rows[41:], rows[41:],
        repeats=4, seed=5, leave_one_out=True,
    )  # fmt: skip
    found = madani2004.estimates_of(counts)
    for name in map(str, counts.criterion.values):
        expected = counts.estimate.sel(criterion=name)
        np.testing.assert_allclose(found[name], expected, atol=1e-12)


def test_win_loss_tie__counts_means_over_trials():
    dims = ("data_set", "n_labeled", "repetition")
    a = [[[0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.3, 0.1, 0.2]]]
    b = [[[0.2, 0.2, 0.2], [0.2, 0.2, 0.2], [0.2, 0.2, 0.1]]]
    errors = xr.Dataset({"a": (dims, a), "b": (dims, b)})
    assert madani2004.win_loss_tie(errors, "a", "b") == (1, 1, 1)
    assert madani2004.win_loss_tie(errors, "a", "b", standard_errors=1.0) == (1, 0, 2)
