"""What xarray does to a Dataset, done to the whole cube of each kind of search."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from tests.contract import runs

pytestmark = pytest.mark.contract

GRID = {"C": [1.0, 2.0, 8.0, 16.0], "gamma": [2e-4, 1e-3]}


def certified(certificate, **options):
    X, y, pool = runs.digits(120)
    given = {"certificate": certificate, "cv": 3} | options
    return runs.run_search(SVC(), GRID, X, y, pool[:300], **given)


def estimated():
    X, y, _ = runs.digits(120)
    given = {"criterion": "cv_error", "cv": 3}
    return runs.plan_estimates(SVC(), GRID, X, y, **given).run().results


def failed():
    """Return a cube of which half of the candidates failed."""
    X, y, _ = runs.digits(120)
    grid = {"n_neighbors": [1, 3, 8, 9], "p": [-1, 2]}
    given = {"criterion": "cv_error", "cv": 3, "prune": False}
    plan = runs.plan_estimates(KNeighborsClassifier(), grid, X, y, **given)
    with pytest.warns(dsel.errors.FitFailedWarning):
        return plan.run().results


def least_squares():
    X, y, dense = runs.sinc_rows()
    search = runs.least_squares_search(cv=5)
    return search.fit(X, y, dense, np.sinc(dense[:, 0])).results_


CUBES = {
    "nested": lambda: runs.results_of(certified("nested")),
    "halved": lambda: runs.results_of(certified("nested", prune=True)),
    "pairs": lambda: certified("nested").outcome.pair_results,
    "cv_bound": lambda: runs.results_of(certified("cv_bound")),
    "best_fold": lambda: runs.results_of(certified("best_fold", prune=True)),
    "holdout": lambda: runs.results_of(certified("holdout")),
    "cv_error": estimated,
    "failed": failed,
    "least squares": least_squares,
    "streamed": lambda: runs.streamed_search().fit(*runs.sinc_rows()[:2]).results_,
    "co-validation": lambda: runs.covalidate(
        SVC(), GRID, *runs.digits(120)[:2], runs.digits(120)[2][:300], repeats=3
    ),
}


@cache
def cube_of(kind):
    return CUBES[kind]()


@pytest.fixture(params=CUBES)
def cube(request):
    return cube_of(request.param)


def is_done(cube):
    """Return where candidates are done; of pairs, where they were counted."""
    return cube["status"] == 0 if "status" in cube else cube["fold_errors"].notnull()


def other(cube, dim):
    """Return the cube of other candidates, of which none is in the first."""
    return cube.assign_coords({dim: cube[dim] + 0.25})


def numbers(cube):
    return cube.drop_vars("message", errors="ignore")


GROWN = {
    "data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "outer",
}  # fmt: skip
IDIOMS = {
    "where": lambda cube, dim: cube.where(is_done(cube)),
    "where_drop": lambda cube, dim: cube.where(cube[dim] > 1, drop=True),
    "where_other": lambda cube, dim: cube.where(is_done(cube), 0),
    "sel": lambda cube, dim: cube.sel({dim: [1.0, 8.0]}, method="nearest"),
    "reindex": lambda cube, dim: cube.reindex({dim: [99.0, *cube[dim].values]}),
    "align": lambda cube, dim: xr.align(cube, other(cube, dim), join="outer")[0],
    "merge": lambda cube, dim: xr.merge(
        [cube, other(cube, dim)], join="outer", compat="no_conflicts"
    ),
    "concat": lambda cube, dim: xr.concat([cube, other(cube, dim)], dim, **GROWN),
    "concat_runs": lambda cube, dim: xr.concat([cube, cube], "run", data_vars="all"),
    "combine_first": lambda cube, dim: cube.combine_first(other(cube, dim)),
    "fillna": lambda cube, dim: cube.reindex(
        {dim: [99.0, *cube[dim].values[:1]]}
    ).fillna(0),
    "max": lambda cube, dim: cube.max(),
    "max_of_grown": lambda cube, dim: cube.reindex(
        {dim: [99.0, *cube[dim].values[:1]]}
    ).max(),
    "mean": lambda cube, dim: cube.mean(dim),
    "quantile": lambda cube, dim: numbers(cube.where(is_done(cube))).quantile(0.5),
    "coarsen": lambda cube, dim: cube.coarsen({dim: 2}, boundary="trim").max(),
    "coarsen_mean": lambda cube, dim: numbers(cube).coarsen({dim: 2}).mean(),
    "rolling": lambda cube, dim: numbers(cube).rolling({dim: 2}).mean(),
    "dropna": lambda cube, dim: cube.dropna(dim, subset=[judged(cube)]),
    "groupby": lambda cube, dim: cube.groupby(dim).max(),
    "groupby_mean": lambda cube, dim: numbers(cube).groupby(dim).mean(),
    "stack": lambda cube, dim: cube.stack(two=cube[judged(cube)].dims[-2:]),
    "sortby": lambda cube, dim: cube.sortby(dim, ascending=False),
    "chunk": lambda cube, dim: cube.chunk().max().compute(),
    "to_dataframe": lambda cube, dim: cube.to_dataframe().to_xarray(),
    "from_dict": lambda cube, dim: xr.Dataset.from_dict(cube.to_dict()),
}


def judged(cube):
    return "estimate" if "estimate" in cube else "fold_errors"


def limits(values):
    known = values.values[np.isfinite(values.values)]
    return known.min(initial=0.0), known.max(initial=0.0)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_cube__takes_what_xarray_does_to_a_dataset(cube, idiom):
    dim = next(iter({"C", "width", "n_neighbors"} & {*cube.dims}))
    done = IDIOMS[idiom](cube, dim)
    assert {*numbers(cube).data_vars} <= {*done.data_vars}
    (low, high), (least, most) = (limits(each[judged(cube)]) for each in (cube, done))
    assert low <= least <= most <= high
    assert most > 0 or "message" in cube  # the estimate of a fit that failed is inf


@pytest.mark.parametrize("kind", ["zarr", "netcdf", "dsel"])
def test_cube__comes_back_from_files(cube, kind, tmp_path):
    if kind == "netcdf":
        pytest.importorskip("netCDF4")
        cube.to_netcdf(tmp_path / "cube")
        with xr.open_dataset(tmp_path / "cube") as opened:
            opened.load()
    elif kind == "zarr":
        cube.to_zarr(tmp_path / "cube", consolidated=False)
        opened = xr.open_zarr(tmp_path / "cube", consolidated=False).load()
    elif "status" in cube:
        dsel.save_results(cube, tmp_path / "cube")
        opened = dsel.open_results(tmp_path / "cube")
    else:  # pairs are kept beside the cube of their run
        return
    assert opened.drop_encoding().identical(cube)
    if "choice" in cube.attrs:
        assert dsel.select(opened) == dsel.select(cube)


def test_cube__has_no_variable_without_a_value(cube):
    assert [name for name in cube.data_vars if not cube[name].notnull().any()] == []
    assert ("message" in cube) == (cube is cube_of("failed"))


def test_cube__is_a_table_of_a_row_for_each_candidate_and_split(cube):
    counted = cube.drop_dims("criterion", errors="ignore")
    assert len(counted.to_dataframe()) == np.prod([*counted.sizes.values()])


def test_cube__says_of_sums_and_means_what_they_are():
    cube = cube_of("least squares")
    sums, n_rows = cube["fold_loss_sum"], cube["fold_rows"]
    found = cube["estimate"].sel(criterion="kfold", drop=True)
    means = (sums / n_rows).mean("fold")
    np.testing.assert_allclose(found, means.transpose(*found.dims))
    mean = cube["estimate"].sel(criterion="extra_sample", drop=True)
    assert np.array_equal(mean, cube["extra_loss_mean"])
