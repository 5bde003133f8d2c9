import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

from dsel import names
from dsel.datasets import load_set
from dsel.experiments import kaariainen2005, run_experiment
from dsel.experiments.kaariainen2005 import SCALES, Scale, divide, plan_division


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

    assert dict(results.sizes) == {"data_set": 1, "repetition": 2, names.CRITERION: 2}
    drawn = divide(load_set("segment", folder=data_dir), 1, scale)
    chosen = int(results.candidate.sel(criterion="cv_bound")[0, 1])
    params = plan_division(drawn, scale).axes.params(chosen)
    svc = SVC(**params).fit(drawn.X, drawn.y)
    error = np.mean(svc.predict(drawn.pool) != drawn.truth)
    assert results.observed_error.sel(criterion="cv_bound")[0, 1] == error
    found = kaariainen2005.pattern(results)
    assert found.same + found.better + found.worse + found.equal == 1
    assert found.holds == 1


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
