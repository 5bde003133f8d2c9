"""Sets, printed numbers, margins and the bound that is none."""

import json

import common
import hardoon2009
import numpy as np
import pytest
from common import PAPERS
from hardoon2009 import SIZES

from dsel.bounds import threshold_bound
from dsel.data.splits import holdout_split, random_folds

SMALL = hardoon2009.Settings(
    scalings=("range",), C=(2.0**-1, 2.0**3, 2.0**7), gamma=(2.0**-5, 2.0**-1)
)


@pytest.fixture(scope="module")
def results(data_dir):
    return common.run(
        hardoon2009.EXPERIMENT, sets=("glass", "votes"), repetitions=2, settings=SMALL,
        folder=data_dir,
    )  # fmt: skip


def test_load_table__has_the_sizes_of_table_1_where_it_can(data_dir):
    tables = {name: hardoon2009.load_table(name, data_dir) for name in SIZES}
    found = {name: hardoon2009.size_of(table) for name, table in tables.items()}
    assert found.pop("votes") == (232, 16, 108, 124)
    assert found.pop("pima") == (768, 8, 268, 500)
    for name, sizes in found.items():
        assert sorted(sizes) == sorted(SIZES[name])
    X, y = tables["haberman"]  # no row has both labels
    sides = [{tuple(row) for row in X[y == label]} for label in (-1, 1)]
    assert not sides[0] & sides[1]


def test_compare__has_tables_1_to_3_and_the_text(results):
    lines = list(hardoon2009.compare(results))
    sources = {line.source for line in lines}
    assert sources == {"Table 1", "Table 2", "Table 3", "section 5", "Figure 2"}
    grid = {line.where: line.ours for line in lines if line.what == "values"}
    assert grid == {"gamma": 2.0, "C": 3.0}
    of_votes = {
        line.why for line in lines
        if line.where.startswith("votes") and line.source != "Table 2"
        and "seconds" not in line.what and line.what != "columns"
    }  # fmt: skip
    assert of_votes == {"other rows than the paper's"}


def test_figures__are_of_every_set_and_scaling(results, draw):
    assert draw(hardoon2009.figures(results)) == [
        "figure-2-glass-range", "figure-2-votes-range", "errors-range",
    ]  # fmt: skip
    runs = results.sel(data_set="glass", scaling="range")
    values, errors = hardoon2009.error_by_bound(runs, bound=threshold_bound)
    assert (np.diff(values) > 0).all()
    # The last point has all rows of all folds, of which each has one mean here.
    rows = runs.kept.sum("count")
    mean = (runs.error.sel(chooser="nonconformity") * rows).sum() / rows.sum()
    assert errors[-1] == pytest.approx(float(mean))


def test_ranks__are_those_of_the_splits_of_dsel():
    folds = hardoon2009.ranks(41, hardoon2009.FOLD_STREAM, 7) % 10
    np.testing.assert_array_equal(folds, random_folds(41, 10, seed=7))
    held = np.flatnonzero(hardoon2009.ranks(41, hardoon2009.HOLDOUT_STREAM, 7) < 9)
    np.testing.assert_array_equal(held, holdout_split(41, 9, seed=7).test_rows)


def test_by_largest_margin__takes_the_surest_model():
    scores = np.array([[3.0, -1.0, 0.5], [-2.0, 1.0, -0.6], [-2.5, 1.5, 0.1]])
    assert hardoon2009.by_largest_margin(scores).tolist() == [1, 1, -1]


def test_printed_error_bound__is_far_below_the_error_on_noise(rng):
    n_models, n = 110, 10_000
    # Scores and labels independent: every model errs half of the time everywhere.
    validation = np.sort(rng.normal(size=(n_models, n)), axis=1)
    test = -np.abs(rng.normal(size=(n_models, 500)))
    counts = [np.searchsorted(a, b) for a, b in zip(validation, test, strict=True)]
    reported = hardoon2009.printed_error_bound(
        np.min(counts, axis=0), n, n_models=n_models, delta=0.05
    )
    assert reported.mean() == pytest.approx(0.26, abs=0.01)  # the true error is 0.50
    least = hardoon2009.printed_error_bound([0], 50, n_models=110, delta=0.05)
    np.testing.assert_allclose(least, [3.07], atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["raw", "range"])
def test_full_run__of_glass_gives_the_stored_numbers(scaling, data_dir):
    settings = hardoon2009.Settings(scalings=(scaling,))
    results = common.run(
        hardoon2009.EXPERIMENT, sets=("glass",), settings=settings, folder=data_dir
    )
    stored = json.loads((PAPERS / "reference" / "hardoon2009.json").read_text())
    found, kept = results.error.isel(data_set=0, scaling=0), stored[scaling]["glass"]
    mean, std = found.mean("repetition"), found.std("repetition", ddof=1)
    np.testing.assert_allclose(mean[:3], kept["error"], atol=1e-4)
    np.testing.assert_allclose(std[:3], kept["std"], atol=1e-4)
