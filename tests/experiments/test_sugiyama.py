"""The homework of the slides, at small scale."""

import numpy as np
import pytest

from dsel.experiments import run_experiment, sugiyama


@pytest.fixture(scope="module")
def results():
    return run_experiment(sugiyama.EXPERIMENT, "small")


def test_run_experiment__keeps_choices_and_surfaces(results):
    assert results["chosen_error"].dims == (
        "data_set", "repetition", "n_samples", "noise", "criterion",
    )  # fmt: skip
    assert results["estimate"].dims[-2:] == ("width", "regularization")
    assert np.isfinite(results["chosen_error"]).all()
    assert set(np.unique(results["chosen_width"])) <= {0.1, 0.5, 2.0}


def test_run_experiment__no_choice_beats_the_best_candidate(results):
    best = results["chosen_error"].sel(criterion="true")
    assert (results["chosen_error"] >= best).all()


def test_run_experiment__is_fixed_by_the_seed(results):
    again = run_experiment(sugiyama.EXPERIMENT, "small")
    np.testing.assert_array_equal(again["estimate"], results["estimate"])


def test_run_experiment__true_error_is_that_of_the_fitted_model():
    plan = sugiyama.SCALES["small"]
    cube = sugiyama.search_once(plan, "sin", 20, 0.1, np.random.default_rng(5))
    X, y = sugiyama.draw("sin", 20, 0.1, np.random.default_rng(5))
    from dsel.models import KernelLeastSquares

    dense = sugiyama.dense_grid()
    model = KernelLeastSquares(0.5, 0.1).fit(X, y)
    error = np.mean((model.predict(dense) - np.sin(2 * dense[:, 0])) ** 2)
    found = float(cube["extra_loss"].sel(width=0.5, regularization=0.1))
    assert found == pytest.approx(error, rel=1e-9)


@pytest.mark.slow
def test_run_experiment__leave_one_out_estimates_g_plus_the_noise_variance():
    plan = sugiyama.Scale(
        sets=("sin",), sizes=(50,), noises=(0.3,), repetitions=400,
        widths=(0.5,), regularizations=(1.0,),
    )  # fmt: skip
    mean = (
        run_experiment(sugiyama.EXPERIMENT, plan)["estimate"]
        .squeeze()
        .mean("repetition")
    )
    truth = float(mean.sel(criterion="true"))
    # Of n - 1 rows, and 400 draws: within a few percent.
    assert float(mean.sel(criterion="loo")) - 0.09 == pytest.approx(truth, rel=0.15)


def test_summary__ratio_to_the_best_is_at_least_one(results):
    ratio = sugiyama.summary(results)["median_ratio"]
    assert (ratio >= 1).all()
    assert (ratio.sel(criterion="true") == 1).all()


def test_draw_figure__writes_a_picture(results, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    sugiyama.draw_figure(results, tmp_path / "homework.png", noise=0.1)
    assert (tmp_path / "homework.png").stat().st_size > 10_000
