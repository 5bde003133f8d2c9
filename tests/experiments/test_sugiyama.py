"""The homework of the slides, at small scale."""

import numpy as np
import pytest

from dsel.experiments import run_experiment, sugiyama
from dsel.experiments.tables import draw_figures
from dsel.least_squares import select_least_squares


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
    from dsel.least_squares import KernelLeastSquares

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


def test_figures__show_curves_choices_and_spreads_at_every_noise(results):
    pytest.importorskip("matplotlib").use("agg")
    drawn = draw_figures(sugiyama.EXPERIMENT, results)
    kinds = [each.name for each, _ in drawn]
    assert kinds == ["homework-noise-0.1", "choices-noise-0.1", "spread-noise-0.1"]
    assert all(svg.startswith("<svg") for _, svg in drawn)


def test_holdout_estimates__average_to_k_fold():
    plan = sugiyama.SCALES["small"]
    cube = sugiyama.search_once(plan, "sin", 20, 0.1, np.random.default_rng(5))
    mean = sugiyama.holdout_estimates(cube).mean("fold")
    np.testing.assert_allclose(mean, cube.estimate.sel(criterion="kfold"))
    first = sugiyama.holdout_estimates(cube).sel(fold=0)
    np.testing.assert_allclose(first, cube.estimate.sel(criterion="holdout"))
    for fold in (0, 4):
        choice = select_least_squares(cube, "holdout", fold=fold)
        alone = sugiyama.holdout_estimates(cube).sel(fold=fold)
        assert choice.estimate == pytest.approx(float(alone.min()))
    with pytest.raises(ValueError, match="`fold` is for criterion='holdout'"):
        select_least_squares(cube, "loo", fold=1)
    with pytest.raises(ValueError, match="`fold` must be"):
        select_least_squares(cube, "holdout", fold=10)


def test_compare__holds_every_estimate_to_the_truth(results):
    lines = sugiyama.EXPERIMENT.compare(results)
    assert {line.source for line in lines} == {
        "closed form of LOOCV", "slide 83", "slide 84", "slide 85",
    }  # fmt: skip
    assert {line.why for line in lines} == {"too few to say: 3 of at least 10"}
    # Refits whose basis functions stay give the closed form, to rounding.
    assert float(results.closed_form_gap.max()) < 1e-12
