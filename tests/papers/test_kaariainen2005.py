"""Divisions, choices and what is said of them; consistency, TRI and ADJ."""

import json

import common
import kaariainen2005
import numpy as np
import pytest
import xarray as xr
from common import PAPERS
from sklearn.svm import SVC

SMALL = kaariainen2005.Settings(most_rows=500, cv=5, step=7, delta=0.1)


@pytest.fixture(scope="module")
def results(data_dir):
    return common.run(
        kaariainen2005.EXPERIMENT, sets=("segment",), repetitions=2, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip


def test_measure__chooses_what_its_criterion_likes_best(results, data_dir):
    table = kaariainen2005.load_set("segment", folder=data_dir)
    X, y, pool, truth = kaariainen2005.divide(table, 1, SMALL)
    assert (len(y), len(truth)) == (450, 50)
    here = results.isel(data_set=0, repetition=1)
    grid = kaariainen2005.grid_of(SMALL)
    chosen = int(here.candidate.sel(criterion="cv_bound"))
    C, gamma = np.unravel_index(chosen, (3, 3))
    svc = SVC(C=grid["C"][C], gamma=grid["gamma"][gamma]).fit(X, y)
    error = np.mean(svc.predict(pool) != truth)
    assert here.observed_error.sel(criterion="cv_bound") == pytest.approx(error)
    bounds = here.surface.sel(number="cv_bound")
    assert bounds.isel(C=C, gamma=gamma) == bounds.min()
    found = kaariainen2005.findings(results).mean("repetition")
    assert found.same + found.better + found.worse + found.equal == 1


def test_grid_of__has_the_225_models_of_the_paper():
    for grid, largest in (("hsu-lin", 2.0**12), ("printed", 2.0**4)):
        found = kaariainen2005.grid_of(kaariainen2005.Settings(grid=grid))
        assert (len(found["C"]) * len(found["gamma"]), max(found["C"])) == (
            225,
            largest,
        )


def test_compare_and_figures__are_of_every_set(results):
    sources = {line.source for line in kaariainen2005.compare(results)}
    assert sources == {"section 4", "Figure 1"}
    pytest.importorskip("matplotlib").use("agg")
    figures = list(kaariainen2005.figures(results))
    assert [each.name for each in figures] == ["figure-1-segment", "figure-2-segment"]
    assert all(common.svg_of(each.drawing).startswith("<svg") for each in figures)


def test_agreement__is_of_ranks():
    noise = 1e-3 * np.random.default_rng(0).random((1, 10, 1, 2, 2))
    observed = np.array([0.1, 0.2, 0.4, 0.8])
    dims = ("data_set", "repetition", "number", "C", "gamma")
    for bound, rank in (
        ([0.2, 0.31, 0.52, 0.95], 1.0), ([0.9, 0.8, 0.7, 0.6], -1.0),
    ):  # fmt: skip
        values = np.reshape([observed, observed + 0.01, bound], (1, 1, 3, 2, 2)) + noise
        surface = xr.DataArray(
            values, dims=dims, coords={"number": list(kaariainen2005.NUMBERS)}
        )
        found = kaariainen2005.agreement(surface.isel(data_set=0))
        np.testing.assert_allclose(found["bound_rank"], rank)
        np.testing.assert_allclose(found["median_gap"], np.median(bound - observed))


def test_findings__count_divisions():
    dims = ("data_set", "repetition", "criterion")
    results = xr.Dataset(
        {
            "candidate": (dims, [[[1, 1], [1, 2], [1, 2], [1, 3]]]),
            "observed_error": (dims, [[[0.2, 0.2], [0.2, 0.1], [0.2, 0.4], [0, 0]]]),
        },
        coords={"criterion": list(kaariainen2005.CRITERIA)},
    )
    found = kaariainen2005.findings(results).isel(data_set=0).mean("repetition")
    for name in ("same", "better", "worse", "equal"):
        assert found[name] == 0.25


def test_consistency__bound_and_error_fall_to_the_bayes_error():
    settings = kaariainen2005.ConsistencySettings(sizes=(60, 600))
    experiment = kaariainen2005.CONSISTENCY
    results = common.run(experiment, repetitions=2, settings=settings)
    mean = results.mean("repetition").isel(data_set=0)
    assert (mean.bound.diff("n_labeled") < 0).all()
    assert (mean.true_error.diff("n_labeled") < 0).all()
    assert (results.true_error >= 0.1).all()
    assert (results.bound >= results.true_error).all()
    verdicts = {each.verdict for each in experiment.compare(results)}
    assert verdicts == {"not compared"}  # two repetitions say nothing


def answers(*differing, n=100):
    """Answers 0 of models, but for the given rows."""
    rows = np.zeros((len(differing), n), dtype=int)
    for row, places in zip(rows, differing, strict=True):
        row[list(places)] = 1
    return rows


def test_by_triangles__takes_the_last_whose_triangles_close():
    y = np.zeros(100, dtype=int)
    labeled = answers(range(20), range(10), range(4))
    # Errors .2, .1, .04: a distance of .3 on the pool is too far, .14 is not.
    far = answers(range(5), [], range(5, 35))
    assert kaariainen2005.by_triangles(labeled, far, y) == 1
    near = answers(range(5), [], range(9))
    assert kaariainen2005.by_triangles(labeled, near, y) == 2


def test_by_adjusted_errors__multiplies_by_the_largest_ratio():
    y = np.zeros(100, dtype=int)
    labeled = answers(range(20), range(10), range(4))
    # Distances on labeled rows .1, .16 and .06; errors .2, .1 and .04.
    for pool, chosen in (
        (answers(range(20), range(10), range(4)), 2),
        (answers(range(20), range(10), range(40)), 1),  # .3 / .06 times .04
        (answers(range(20), range(50), range(80)), 0),
    ):
        assert kaariainen2005.by_adjusted_errors(labeled, pool, y) == chosen


@pytest.mark.slow
def test_measure__gives_the_stored_numbers(data_dir):
    kept = json.loads((PAPERS / "reference" / "kaariainen2005.json").read_text())
    kept = kept["sets"]["segment, hsu-lin"]
    table = kaariainen2005.load_set("segment", folder=data_dir)
    found = kaariainen2005.measure(table, 0, kaariainen2005.Settings(), None)
    assert found["candidate"] == kept["candidate"][0]
    for name in ("estimate", "observed_error"):
        np.testing.assert_allclose(found[name], kept[name][0], atol=1e-6)
