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


@pytest.mark.parametrize(("grid", "largest"), [("hsu-lin", 4096.0), ("printed", 16.0)])
def test_grid_of__has_the_225_models_of_the_paper(grid, largest):
    found = kaariainen2005.grid_of(kaariainen2005.Settings(grid=grid))
    assert (len(found["C"]) * len(found["gamma"]), max(found["C"])) == (225, largest)


def test_compare_and_figures__are_of_every_set(results, draw):
    sources = {line.source for line in kaariainen2005.compare(results)}
    assert sources == {"section 4", "Figure 1"}
    names = draw(kaariainen2005.figures(results))
    assert names == ["figure-1-segment", "figure-2-segment"]


@pytest.mark.parametrize(
    ("bound", "rank"), [([0.2, 0.31, 0.52, 0.95], 1.0), ([0.9, 0.8, 0.7, 0.6], -1.0)]
)
def test_agreement__is_of_ranks(bound, rank):
    observed = np.array([0.1, 0.2, 0.4, 0.8])
    noise = 1e-3 * np.random.default_rng(0).random((10, 1, 2, 2))
    values = np.reshape([observed, observed + 0.01, bound], (1, 3, 2, 2)) + noise
    surface = xr.DataArray(
        values,
        dims=("repetition", "number", "C", "gamma"),
        coords={"number": list(kaariainen2005.NUMBERS)},
    )
    found = kaariainen2005.agreement(xr.Dataset({"surface": surface}))
    ranks = found["rank correlation of bound and observed error"]
    np.testing.assert_allclose(ranks, rank)
    middle = found["median of bound - observed error"]
    np.testing.assert_allclose(middle, np.median(bound - observed))


def test_findings__count_divisions():
    dims = ("repetition", "criterion")
    results = xr.Dataset(
        {
            "candidate": (dims, [[1, 1], [1, 2], [1, 2], [1, 3]]),
            "observed_error": (dims, [[0.2, 0.2], [0.2, 0.1], [0.2, 0.4], [0, 0]]),
        },
        coords={"criterion": list(kaariainen2005.CRITERIA)},
    )
    found = kaariainen2005.findings(results).mean("repetition")
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
    rows = common.compare_rows(experiment, results)
    assert {row.verdict for row in rows} == {"not compared"}  # two say nothing


def answers(*differing, n=100):
    """Answers 0 of models, but for the given rows."""
    rows = np.zeros((len(differing), n), dtype=int)
    for row, places in zip(rows, differing, strict=True):
        row[list(places)] = 1
    return rows


# Errors .2, .1, .04; distances on labeled rows .1, .16 and .06.
LABELED = answers(range(20), range(10), range(4))


@pytest.mark.parametrize(
    ("choose", "pool", "chosen"),
    [
        # A distance of .3 on the pool is too far, .14 is not.
        ("by_triangles", answers(range(5), [], range(5, 35)), 1),
        ("by_triangles", answers(range(5), [], range(9)), 2),
        ("by_adjusted_errors", LABELED, 2),
        # .3 / .06 times .04 is more than .1.
        ("by_adjusted_errors", answers(range(20), range(10), range(40)), 1),
        ("by_adjusted_errors", answers(range(20), range(50), range(80)), 0),
    ],
)
def test_rivals__choose_by_distances_on_the_pool(choose, pool, chosen):
    y = np.zeros(100, dtype=int)
    assert getattr(kaariainen2005, choose)(LABELED, pool, y) == chosen


@pytest.mark.slow
def test_measure__gives_the_stored_numbers(data_dir):
    kept = json.loads((PAPERS / "reference" / "kaariainen2005.json").read_text())
    kept = kept["sets"]["segment, hsu-lin"]
    table = kaariainen2005.load_set("segment", folder=data_dir)
    found = kaariainen2005.measure(table, 0, kaariainen2005.Settings(), None)
    assert found["candidate"].values.tolist() == kept["candidate"][0]
    for name in ("estimate", "observed_error"):
        np.testing.assert_allclose(found[name], kept[name][0], atol=1e-6)
