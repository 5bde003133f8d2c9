import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.svm import SVC

from dsel.experiments import madani2004, run_experiment
from dsel.experiments.madani2004 import tables
from dsel.experiments.madani2004.experiment import random_order
from dsel.experiments.madani2004.machines import (
    halves_of,
    inner_products,
    machine_counts,
)
from dsel.experiments.madani2004.sets import load_problem, one_hot, text_features
from dsel.experiments.tables import draw_figures
from dsel.kernels.functions import Polynomial
from dsel.results import evidence
from dsel.searches import covalidate


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [("votes", 435), ("chess", 3196), ("adult", 32561), ("optics", 1797)],
)
def test_load_problem__has_the_rows_of_the_paper(name, n_rows, data_dir):
    problem = load_problem(name, folder=data_dir)

    assert problem.X.shape[0] == n_rows
    assert problem.X.min() >= 0
    assert set(problem.y) == {0, 1}
    assert not np.isnan(problem.X).any()


def test_one_hot__missing_values_have_no_column():
    found = one_hot(np.array([[0.0], [2.0], [np.nan]]))

    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [0, 0]])


def test_text_features__are_normalised_counts_of_up_to_three_stems():
    found = text_features(["red running the blues", "Red runs"])

    # 3 stems, of which 2 are in both, 2 pairs and a triple; stop words leave no gap.
    assert found.shape == (2, 6)
    assert (found > 0).sum(axis=1).ravel().tolist() == [[6, 3]]
    np.testing.assert_allclose(found.multiply(found).sum(axis=1), 1.0)


def test_run__without_a_stemmer_documents_are_refused_before_work(
    data_dir, monkeypatch
):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    estimation = madani2004.ESTIMATION

    estimation.check_files(estimation.scale(sets=("votes",)), folder=data_dir)
    with pytest.raises(ModuleNotFoundError, match=r"earn.*pip install 'dsel\[papers"):
        run_experiment(estimation, estimation.scale(sets=("earn",)), folder=data_dir)


@pytest.mark.slow
def test_estimation__gives_every_estimate(data_dir):
    results = run_experiment(madani2004.ESTIMATION, "small", folder=data_dir)

    assert dict(results.sizes) == {
        "data_set": 1, "repetition": 3, "sampling": 2, "n_labeled": 2,
    }  # fmt: skip
    for name in ("dis_error", "two_fold_cv", "true_error", "half_true_error"):
        assert ((results[name] >= 0) & (results[name] <= 1)).all()
    # Leave-one-out is that of scikit-learn on the same rows.
    problem = load_problem("votes", folder=data_dir)
    rows = random_order(problem, 50, 0)
    svc = SVC(kernel="linear", C=10.0)
    right = cross_val_score(svc, problem.X[rows], problem.y[rows], cv=LeaveOneOut())
    found = results.loo_error.sel(sampling="random", n_labeled=50)[0, 0]
    assert found == pytest.approx(1 - right.mean())


def test_figures__of_the_estimates(data_dir):
    pytest.importorskip("matplotlib").use("agg")
    scale = replace(
        madani2004.ESTIMATION.scales["small"], repetitions=1, halvings=2, sizes=(20, 25)
    )
    results = run_experiment(madani2004.ESTIMATION, scale, folder=data_dir)
    drawn = [each.name for each, _ in draw_figures(madani2004.ESTIMATION, results)]
    assert drawn == ["figure-1-votes", "figure-2"]


def test_selection__chooses_a_degree_by_every_criterion(data_dir):
    results = run_experiment(madani2004.SELECTION, "small", folder=data_dir)
    errors = tables.chosen_errors(results)

    for name in tables.CHOOSERS:
        assert (errors[name] >= errors.best - 1e-12).all()
    picked = errors.sel(sampling="active")
    assert sum(tables.win_loss_tie(picked, "max_dt_e", "two_fold_cv")) == 2
    lines = madani2004.SELECTION.compare(results)
    cells = [line for line in lines if line.source.endswith("by set and size")]
    assert len(cells) == 3 * 2
    assert {line.why.split(";")[0] for line in cells} <= {"win", "loss", "tie"}
    pytest.importorskip("matplotlib").use("agg")
    drawn = [each.name for each, _ in draw_figures(madani2004.SELECTION, results)]
    assert drawn == ["figure-3a-votes", "figure-3b"]


def test_win_loss_tie__counts_means_over_trials():
    dims = ("data_set", "n_labeled", "repetition")
    errors = xr.Dataset(
        {
            "a": (dims, [[[0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.3, 0.1, 0.2]]]),
            "b": (dims, [[[0.2, 0.2, 0.2], [0.2, 0.2, 0.2], [0.2, 0.2, 0.1]]]),
        }
    )

    assert tables.win_loss_tie(errors, "a", "b") == (1, 1, 1)
    assert tables.win_loss_tie(errors, "a", "b", standard_errors=1.0) == (
        1,
        0,
        2,
    )


def test_machine_counts__are_those_of_the_families(data_dir):
    problem = load_problem("votes", folder=data_dir)
    rows = np.random.default_rng(0).permutation(435)[:41]
    others = np.setdiff1d(np.arange(435), rows)
    pool, truth = problem.X[others], problem.y[others]
    X, y = problem.X[rows], problem.y[rows]
    svc = SVC(kernel="poly", C=10.0, gamma=problem.gamma, coef0=0.0)

    found = machine_counts(
        inner_products(X, pool), y, truth, halves_of(41, 4, [5, 6]),
        [Polynomial(problem.gamma, 0.0, d) for d in (0.5, 1.0, 2.5)], C=10.0,
    )  # fmt: skip

    for seed, counts in zip((5, 6), found, strict=True):
        cube = covalidate(
            svc, {"degree": [0.5, 1.0, 2.5]}, X, y, pool, pool_labels=truth, repeats=4,
            duplicates="keep", random_state=seed,
        )  # fmt: skip
        expected = evidence(cube)
        for name in counts:
            np.testing.assert_array_equal(
                np.ravel(counts[name]), expected[name].ravel()
            )


def stored_run():
    """Return the numbers of our full run, which the next test makes again in part."""
    place = Path(__file__).parents[1] / "reference" / "madani2004.json"
    return json.loads(place.read_text())


def test_stored_run__the_lower_bound_lies_below_the_error_of_half_the_rows():
    estimation = stored_run()["estimation"]
    assert len(estimation) == 8
    for found in estimation.values():
        drawn = found["random"]
        assert (np.less(drawn["max_dt_e"], drawn["half_true_error"])).all()


def test_stored_run__disagreement_is_nearer_where_rows_are_picked():
    n_nearer = 0
    for found in stored_run()["estimation"].values():
        cells = {name: np.array(each) for name, each in found["active"].items()}
        by_dis, by_cv = (
            np.abs(cells[name] - cells["true_error"])
            for name in ("dis_error", "two_fold_cv")
        )
        assert by_dis.mean() < by_cv.mean()
        n_nearer += int((by_dis < by_cv).sum())
    assert n_nearer == 29


def test_stored_run__disagreement_leads_both_cross_validations():
    record = stored_run()["win_loss_tie"]
    for rival in ("two_fold_cv", "loo_error"):
        wins, losses, ties = record[f"max_dt_e against {rival}"]["means differ"]
        assert wins > losses
        assert wins + losses + ties == 32


@pytest.mark.slow
def test_full_run__of_votes_chooses_as_the_stored_one(data_dir):
    scale = replace(madani2004.SELECTION.scales["paper"], sets=("votes",))
    results = run_experiment(madani2004.SELECTION, scale, folder=data_dir)
    errors = tables.chosen_errors(results).sel(sampling="active", data_set="votes")
    errors = errors.mean("repetition")
    for name, stored in stored_run()["chosen_error"]["votes"].items():
        np.testing.assert_allclose(errors[name], stored, atol=1e-4)
