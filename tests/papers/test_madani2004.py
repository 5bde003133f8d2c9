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


def test_estimation__has_every_estimate(data_dir, draw):
    results = common.run(
        madani2004.ESTIMATION, sets=("votes",), repetitions=1, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip
    no_shares = ["measured_variance", common.SECONDS]
    every = results.drop_vars(no_shares).to_dataarray()
    assert set(every["variable"].values) >= {*madani2004.LABELS, "disagreement"}
    assert ((every >= 0) & (every <= 1)).all()
    problem = madani2004.load_problem("votes", data_dir)
    rows = madani2004.orders(problem, SMALL, 0)[0]
    svc = SVC(kernel="linear", C=10.0)
    right = cross_val_score(svc, problem.X[rows], problem.y[rows], cv=LeaveOneOut())
    found = results.loo_error.sel(sampling="random", n_labeled=50)[0, 0]
    assert found == pytest.approx(1 - right.mean())
    names = draw(madani2004.estimate_figures(results))
    assert names == ["figure-1-votes", "figure-2"]


def test_estimation__holds_variances_to_section_2(data_dir):
    settings = madani2004.Settings(sizes=(25, 50), halvings=4, batch=5)
    results = common.run(
        madani2004.ESTIMATION, sets=("votes",), repetitions=10, settings=settings,
        folder=data_dir,
    )  # fmt: skip
    rows = [
        row
        for row in common.compare_rows(madani2004.ESTIMATION, results)
        if row.source in ("equation 3", "Theorem 1", "section 2.1", "equation 4")
    ]
    whats = {row.what for row in rows if row.where == "votes, 50 rows"}
    assert len(whats) == 6
    for row in rows:  # at these sizes theorems are never seen to fail
        assert row.verdict != common.DIFFERS
    assert {r.verdict for r in rows if r.source == "Theorem 1"} == {common.AGREES}
    here = results.isel(sampling=0)
    assert (here.dis_error_upper == 1 - here.dis_error).all()


def test_moments_of_pairs__are_those_of_the_distribution(rng):
    # Half of the models err on all rows, the others on none.
    wrong = np.repeat(rng.random((2, 4000, 1)) < 0.5, 50, axis=2)
    found = madani2004.moments_of_pairs(*wrong)
    assert found["shared_error"] == pytest.approx(0.25, abs=0.03)
    assert found["measured_variance"] == pytest.approx(0.25, abs=0.02)
    # Models err on each row alone: errors on 50 rows vary by .0042, on all by nothing.
    found = madani2004.moments_of_pairs(*(rng.random((2, 4000, 50)) < 0.3))
    assert found["shared_error"] == pytest.approx(0.09, abs=0.01)
    assert abs(found["measured_variance"]) < 0.0005


def test_selection__chooses_a_degree_by_every_criterion(data_dir, draw):
    results = common.run(
        madani2004.SELECTION, sets=("votes",), repetitions=2, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip
    errors = madani2004.chosen_errors(results)
    for name in madani2004.CHOOSERS:
        assert (errors[name] >= errors.best - 1e-12).all()
    picked = errors.sel(sampling="active")
    assert sum(madani2004.win_loss_tie(picked, "max_dt_e", "two_fold_cv")) == 2
    rows = madani2004.compare_choices(results)
    assert sum(row.source.endswith("by set and size") for row in rows) == 3 * 2
    names = draw(madani2004.choice_figures(results))
    assert names == ["figure-3a-votes", "figure-3b"]


def test_win_loss_tie__counts_means_over_trials():
    dims = ("data_set", "n_labeled", "repetition")
    a = [[[0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.3, 0.1, 0.2]]]
    b = [[[0.2, 0.2, 0.2], [0.2, 0.2, 0.2], [0.2, 0.2, 0.1]]]
    errors = xr.Dataset({"a": (dims, a), "b": (dims, b)})
    assert madani2004.win_loss_tie(errors, "a", "b") == (1, 1, 1)
    assert madani2004.win_loss_tie(errors, "a", "b", standard_errors=1.0) == (1, 0, 2)
    once = errors.isel(repetition=[0])
    assert madani2004.win_loss_tie(once, "a", "b") == (1, 1, 1)
