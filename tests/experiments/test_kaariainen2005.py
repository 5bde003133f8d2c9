import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

from dsel import names
from dsel.datasets import load_set
from dsel.experiments import kaariainen2005, run_experiment
from dsel.experiments.kaariainen2005 import SCALES, Scale, divide, plan_division
from dsel.experiments.kaariainen2005.figures import cross_section
from dsel.experiments.tables import draw_figures


def test_divide__a_tenth_loses_its_labels(data_dir):
    scale = Scale(most_rows=500)
    drawn = divide(load_set("segment", folder=data_dir), 3, scale)

    assert (len(drawn.y), len(drawn.truth)) == (450, 50)
    both = np.concatenate((drawn.X, drawn.pool))
    assert both.min() == -1
    assert both.max() == pytest.approx(1)
    again = divide(load_set("segment", folder=data_dir), 3, scale)
    np.testing.assert_array_equal(drawn.pool, again.pool)
    other = divide(load_set("segment", folder=data_dir), 4, scale)
    assert (drawn.truth != other.truth).any()


@pytest.mark.filterwarnings("ignore::dsel.errors.GuaranteeWarning")  # of few rows
@pytest.mark.parametrize("grid", ["hsu-lin", "printed"])
def test_plan_division__has_the_models_of_the_paper(grid, data_dir):
    drawn = divide(load_set("segment", folder=data_dir), 0, Scale(most_rows=300))
    plan = plan_division(drawn, Scale(grid=grid))

    assert plan.n_candidates == 225
    cs = {params["C"] for params in map(plan.axes.params, range(225))}
    assert max(cs) == 2.0 ** (12 if grid == "hsu-lin" else 4)


def test_run_experiment__finds_what_scikit_learn_would(data_dir):
    scale = SCALES["small"]
    results = run_experiment(kaariainen2005.EXPERIMENT, scale, folder=data_dir)

    assert results.candidate.dims == ("data_set", "repetition", names.CRITERION)
    assert results.surface.dims[2:] == ("number", "C", "gamma")
    drawn = divide(load_set("segment", folder=data_dir), 1, scale)
    chosen = int(results.candidate.sel(criterion="cv_bound")[0, 1])
    params = plan_division(drawn, scale).axes.params(chosen)
    svc = SVC(**params).fit(drawn.X, drawn.y)
    error = np.mean(svc.predict(drawn.pool) != drawn.truth)
    assert results.observed_error.sel(criterion="cv_bound")[0, 1] == error
    found = kaariainen2005.pattern(results)
    assert found.same + found.better + found.worse + found.equal == 1
    assert found.holds == 1
    surface = results.surface.isel(data_set=0, repetition=1).sel(params)
    assert surface.sel(number="observed_error") == error
    bound = results.estimate.sel(criterion="cv_bound")[0, 1]
    assert (
        surface.sel(number="cv_bound")
        == bound
        == results.surface.sel(number="cv_bound").isel(repetition=1).min()
    )


def surfaces(observed, bound):
    """Numbers of four candidates in ten divisions that are alike but for noise."""
    noise = 1e-3 * np.random.default_rng(0).random((1, 10, 1, 2, 2))
    values = np.reshape([observed, np.add(observed, 0.01), bound], (1, 1, 3, 2, 2))
    return xr.DataArray(
        values + noise,
        dims=("data_set", "repetition", "number", "C", "gamma"),
        coords={
            "data_set": ["made"], "number": list(kaariainen2005.SURFACES),
            "C": [1.0, 2.0], "gamma": [0.5, 1.0],
        },
    )  # fmt: skip


def test_agreement__is_of_ranks():
    found = kaariainen2005.agreement(
        surfaces([0.1, 0.2, 0.4, 0.8], [0.2, 0.31, 0.52, 0.95])
    )
    np.testing.assert_allclose(found.bound_rank, 1.0)
    np.testing.assert_allclose(found.gap_rank, 1.0)
    np.testing.assert_allclose(found.smallest_gap, 0.1)
    np.testing.assert_allclose(found.median_gap, 0.115)
    np.testing.assert_allclose(found.nearer, 0.12 - 0.01)
    other = kaariainen2005.agreement(
        surfaces([0.1, 0.2, 0.4, 0.8], [0.9, 0.8, 0.7, 0.6])
    )
    np.testing.assert_allclose(other.bound_rank, -1.0)


def test_figures__are_of_every_set_and_drawn(data_dir, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    results = run_experiment(
        kaariainen2005.EXPERIMENT, SCALES["small"], folder=data_dir
    )
    found = draw_figures(kaariainen2005.EXPERIMENT, results)
    drawn = {each.name: svg for each, svg in found}
    assert list(drawn) == ["figure-1-segment", "figure-2-segment"]
    assert all(svg.startswith("<svg") for svg in drawn.values())
    surface = results.surface.isel(data_set=0, repetition=0)
    lines = cross_section(surface, "segment")
    observed = surface.sel(number="observed_error")
    assert min(lines.curves["observed error"][1]) == observed.min()


def test_consistency__bound_and_error_fall_to_the_bayes_error():
    experiment = kaariainen2005.CONSISTENCY
    scale = experiment.scale("small")
    results = run_experiment(experiment, scale)
    mean = results.mean("repetition").isel(data_set=0)
    assert (mean.bound.diff("n_labeled") < 0).all()
    assert (mean.true_error.diff("n_labeled") < 0).all()
    assert (results.true_error >= 0.1).all()
    assert (results.bound >= results.true_error).all()
    verdicts = {each.verdict for each in experiment.compare(results)}
    assert verdicts == {"not compared"}  # two repetitions say nothing


def test_run_experiment__finds_what_the_search_of_a_division_has_counted(
    data_dir, tmp_path, caplog
):
    def run():
        caplog.clear()
        found = run_experiment(
            kaariainen2005.EXPERIMENT, scale, folder=data_dir, out=tmp_path
        )
        return found, sum("fit candidates" in text for text in caplog.messages)

    scale = replace(SCALES["small"], repetitions=1)
    with caplog.at_level("INFO", logger="dsel.searches"):
        found, n_fits = run()
        shutil.rmtree(tmp_path / "journal")  # as if killed before the division ended
        again, n_again = run()
    assert (n_fits > 0, n_again) == (True, 0)
    xr.testing.assert_identical(found, again)


@pytest.mark.slow
def test_run_division__gives_the_stored_numbers(data_dir):
    place = Path(__file__).parents[1] / "reference" / "kaariainen2005.json"
    stored = json.loads(place.read_text())["sets"]["segment, hsu-lin"]
    drawn = divide(load_set("segment", folder=data_dir), 0, Scale())
    found = kaariainen2005.run_division(drawn, Scale())
    assert found["candidate"] == stored["candidate"][0]
    for name in ("estimate", "observed_error"):
        np.testing.assert_allclose(found[name], stored[name][0], atol=1e-6)


def test_pattern__counts_divisions():
    dims = ("data_set", "repetition", names.CRITERION)
    results = xr.Dataset(
        {
            "candidate": (dims, [[[1, 1], [1, 2], [1, 2], [1, 3]]]),
            "estimate": (dims, [[[0.1, 0.3], [0.1, 0.3], [0.1, 1.3], [0.1, 0.3]]]),
            "observed_error": (dims, [[[0.2, 0.2], [0.2, 0.1], [0.2, 0.4], [0, 0]]]),
            "tied": (dims, [[[1, 1], [0, 1], [0, 0], [1, 1]]]),
        },
        coords={names.CRITERION: list(kaariainen2005.CRITERIA)},
    )
    results["tied"] = results.tied.astype(bool)
    found = kaariainen2005.pattern(results).isel(data_set=0)

    for name in ("same", "better", "worse", "equal", "tied"):
        assert found[name] == 0.25
    assert found.below_one == 0.75
    assert found.holds == 1
