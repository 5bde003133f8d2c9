"""The cube of each kind of search: its contents, and what xarray and files do to it."""

import json
from functools import cache
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from tests.contract import runs

pytestmark = pytest.mark.contract

X, Y, POOL = runs.digits(120)
POOL = POOL[:300]
GRID = {"C": [1.0, 2.0, 8.0, 16.0], "gamma": [2e-4, 1e-3]}


@cache
def searched(certificate, prune=False):
    options = {"certificate": certificate, "prune": prune, "cv": 3}
    return runs.run_search(SVC(), GRID, X, Y, POOL, **options)


def failed():
    """Return a cube of which half of the candidates failed."""
    grid = {"n_neighbors": [1, 3, 8, 9], "p": [-1, 2]}
    rows = (KNeighborsClassifier(), grid, X, Y)
    with pytest.warns(dsel.errors.FitFailedWarning):
        return runs.run_search(*rows, criterion="cv_error", cv=3).results


def least_squares():
    X, y, dense = runs.sinc_rows()
    search = runs.least_squares_search(cv=5)
    return search.fit(X, y, dense, np.sinc(dense[:, 0])).results_


CUBES = {
    "nested": lambda: searched("nested").results,
    "halved": lambda: searched("nested", "halving").results,
    "pairs": lambda: searched("nested").pair_results,
    "cv_bound": lambda: searched("cv_bound").results,
    "best_fold": lambda: searched("best_fold", "exact").results,
    "holdout": lambda: searched("holdout").results,
    "cv_error": lambda: (
        runs.run_search(SVC(), GRID, X, Y, criterion="cv_error", cv=3).results
    ),
    "failed": failed,
    "least squares": least_squares,
    "streamed": lambda: runs.streamed_search().fit(*runs.sinc_rows()[:2]).results_,
    "co-validation": lambda: runs.covalidate(SVC(), GRID, X, Y, POOL, repeats=3),
}


@cache
def cube_of(kind):
    return CUBES[kind]()


@pytest.fixture(params=CUBES)
def cube(request):
    return cube_of(request.param)


# What is in it


@pytest.fixture(params=["nested", "cv_bound"])
def run(request):
    return searched(request.param)


def test_cube__has_a_dimension_for_each_parameter_and_no_others(run):
    cube, sizes = run.results, {"C": 4, "gamma": 2, "fold": 3}
    assert dict(cube.sizes) == sizes | {"criterion": cube.sizes["criterion"]}
    assert {name: cube[name].values.tolist() for name in sizes} == GRID | {
        "fold": [0, 1, 2]
    }
    assert cube["criterion"].values[0] in ("cv_error", "cv_bound")
    assert (int(cube["n_labeled"]), int(cube["n_unlabeled"])) == (120, 300)


def test_cube__counts_are_whole_numbers_by_candidate_and_fold(run):
    cube = run.results
    by_fold = ("C", "gamma", "fold")
    dims = {"fold_errors": by_fold, "fold_rows": ("fold",)}
    if "pool_rows" in cube:
        dims |= {"disagreements": by_fold, "pool_rows": by_fold}
        assert (cube["pool_rows"].sum("fold") == len(POOL)).all()
        assert (cube["disagreements"] <= cube["pool_rows"]).all()
    for name in dims:
        assert cube[name].dims == dims[name]
        assert cube[name].dtype == np.float64
        assert (cube[name] == np.rint(cube[name])).all()
    assert cube["fold_rows"].sum() == 120
    assert cube["status"].dims == ("C", "gamma")
    assert cube["status"].dtype.kind == "i"
    assert (cube["status"] == 0).all()


def test_cube__estimates_stand_by_criterion(run):
    cube = run.results
    estimates = cube["estimate"]
    assert estimates.dims == ("criterion", "C", "gamma")
    answers = cube["fold_answers"] if "fold_answers" in cube else cube["fold_rows"]
    error = (cube["fold_errors"] / answers).mean("fold")
    xr.testing.assert_allclose(estimates.sel(criterion="cv_error", drop=True), error)
    if run.pair_results is None:
        terms = cube["label_term"] + cube["disagreement_term"]
        both = [each.sel(criterion="cv_bound") for each in (terms, estimates)]
        xr.testing.assert_allclose(*both)


@pytest.mark.parametrize(
    ("kind", "deltas"),
    [
        # The choice of a nested search is bounded at the whole delta.
        ("nested", None),
        ("cv_error", None),
        ("cv_bound", {"cv_bound": 0.05 / 8, "cv_error": np.nan}),
    ],
)
def test_cube__has_shares_of_delta_only_of_bounds(kind, deltas):
    cube = cube_of(kind)
    assert ("candidate_delta" in cube) == (deltas is not None)
    for criterion, share in (deltas or {}).items():
        of_candidates = cube["candidate_delta"].sel(criterion=criterion)
        np.testing.assert_array_equal(of_candidates, np.full((4, 2), share))
    # An estimate fails with no known probability.
    assert ("delta" in cube) == (deltas is not None)
    for criterion, share in (deltas or {}).items():
        delta = cube["delta"].sel(criterion=criterion).item()
        assert np.isnan(delta) if np.isnan(share) else delta == 0.05
    assert cube.attrs["delta"] == 0.05


def test_cube__pruned_candidates_keep_their_cells():
    cube = searched("cv_bound", "exact").results
    pruned = cube["status"] == 1
    assert pruned.any()
    assert cube["fold_errors"].sizes == {"C": 4, "gamma": 2, "fold": 3}
    assert cube["estimate"].sel(criterion="cv_bound").where(pruned).isnull().all()


def test_cube__says_where_it_comes_from(run):
    told = run.results.attrs
    assert (told["seed"], told["creation_library"]) == ("7", "dsel")
    assert told["version_scikit-learn"] == version("scikit-learn")
    assert json.loads(told["classes"]) == [str(label) for label in range(10)]
    names = [each["name"] for each in json.loads(told["assumptions"])]
    assert names == ["A1", "A3", "A4", "A5", "A7"]


def test_cube__names_the_families_of_all_candidates():
    grid = [KNeighborsClassifier(), SVC()]
    cube = runs.run_search(None, grid, X, Y, criterion="cv_error", cv=2).results
    assert sorted(json.loads(cube.attrs["estimators"])) == [
        "kernel SVM",
        "scikit-learn",
    ]


def test_cube__has_no_variable_without_a_value(cube):
    assert [name for name in cube.data_vars if not cube[name].notnull().any()] == []
    assert ("message" in cube) == (cube is cube_of("failed"))


def test_cube__says_of_sums_and_means_what_they_are():
    cube = cube_of("least squares")
    found = cube["estimate"].sel(criterion="kfold", drop=True)
    means = (cube["fold_loss_sum"] / cube["fold_rows"]).mean("fold")
    np.testing.assert_allclose(found, means.transpose(*found.dims))
    mean = cube["estimate"].sel(criterion="extra_sample", drop=True)
    assert np.array_equal(mean, cube["extra_loss_mean"])


# What files do to it


def by_netcdf(cube, place):
    pytest.importorskip("netCDF4")
    cube.to_netcdf(place)
    with xr.open_dataset(place) as opened:
        return opened.load()


def by_zarr(cube, place):
    cube.to_zarr(place, consolidated=False)
    return xr.open_zarr(place, consolidated=False).load()


def by_dsel(cube, place):
    dsel.save_results(cube.assign_attrs(seed="8"), place)  # this is replaced
    dsel.save_results(cube, place)
    [written] = (place / "cube").glob("*.zarr")
    read = xr.open_zarr(written, consolidated=False).load()
    opened = dsel.open_results(place).load()
    assert read.equals(opened)
    return opened


@pytest.mark.parametrize("way", [by_zarr, by_netcdf, by_dsel])
def test_cube__comes_back_from_files(cube, way, tmp_path):
    if way is by_dsel and "status" not in cube:
        return  # pairs are kept beside the cube of their run
    opened = way(cube, tmp_path / "cube")
    assert opened.drop_encoding().identical(cube)
    dtypes = [{name: c[name].dtype for name in c.variables} for c in (opened, cube)]
    assert way is not by_dsel or dtypes[0] == dtypes[1]
    if "choice" in cube.attrs:
        assert dsel.select(opened) == dsel.select(cube)


def test_open_results__after_a_run_is_what_the_run_returned(tmp_path):
    run = runs.run_search(*runs.TREES, X, Y, POOL, cv=3, out=tmp_path / "out")
    assert dsel.open_results(tmp_path / "out").load().equals(run.results)


# What xarray does to it


def is_done(cube):
    """Return where candidates are done; of pairs, where they were counted."""
    return cube["status"] == 0 if "status" in cube else cube["fold_errors"].notnull()


def other(cube, dim):
    """Return the cube of other candidates, of which none is in the first."""
    return cube.assign_coords({dim: cube[dim] + 0.25})


def grown(cube, dim):
    return cube.reindex({dim: [99.0, *cube[dim].values[:1]]})


def numbers(cube):
    return cube.drop_vars("message", errors="ignore")


def judged(cube):
    return "estimate" if "estimate" in cube else "fold_errors"


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
    "fillna": lambda cube, dim: grown(cube, dim).fillna(0),
    "max": lambda cube, dim: cube.max(),
    "max_of_grown": lambda cube, dim: grown(cube, dim).max(),
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


# Runs that are joined, cubes that are turned, and what xarray opens

OTHERS = {"C": [4.0, 32.0, 64.0], "gamma": [2e-4, 1e-3]}
JOINS = {
    "merge": lambda cubes: xr.merge(cubes, join="outer", compat="no_conflicts"),
    "concat": lambda cubes: xr.concat(
        cubes, "C", data_vars="all", coords="minimal", compat="override", join="outer"
    ),
    "concat_minimal": lambda cubes: xr.concat(
        cubes, "C", data_vars="minimal", coords="minimal", compat="override",
        join="outer",
    ),
}  # fmt: skip


@cache
def of_other_candidates(certificate):
    options = {"certificate": certificate, "prune": False, "cv": 3}
    return runs.run_search(SVC(), OTHERS, X, Y, POOL, **options).results


@pytest.mark.parametrize("certificate", ["cv_bound", "holdout"])
@pytest.mark.parametrize("join", JOINS)
def test_runs__joined_along_candidates_are_one_cube_of_estimates(join, certificate):
    cubes = [searched(certificate).results, of_other_candidates(certificate)]
    joined, tables = JOINS[join](cubes), [cube.dsel.table() for cube in cubes]
    best = min(
        (table.loc[table.cv_error.idxmin()] for table in tables),
        key=lambda row: row.cv_error,
    )
    choice = dsel.select(joined, "cv_error")
    assert choice.criterion_value == best.cv_error
    assert len(joined.dsel.table()) == 14
    assert not choice.certificate.certified
    assert not dsel.select(joined).certificate.certified
    if certificate == "cv_bound":
        # All candidates share delta, so each has less than in its own run.
        apart = min(dsel.select(each, "cv_bound").criterion_value for each in cubes)
        assert dsel.select(joined, "cv_bound").criterion_value > apart


def test_runs__of_nested_searches_are_joined_by_concat():
    cubes = [searched("nested").results, of_other_candidates("nested")]
    joined = JOINS["concat"](cubes)
    estimates = [dsel.select(cube, "cv_error").criterion_value for cube in cubes]
    assert dsel.select(joined, "cv_error").criterion_value == min(estimates)
    assert not dsel.select(joined).certificate.certified
    without = [cube.drop_vars([v for v in cube if v[:6] == "outer_"]) for cube in cubes]
    for join in JOINS.values():
        assert dsel.select(join(without), "cv_error").criterion_value == min(estimates)
    by_run = xr.concat(cubes[:1] * 2, "run", data_vars="all")
    assert dsel.select(by_run.isel(run=0)) == dsel.select(cubes[0])


@pytest.mark.parametrize("certificate", ["nested", "cv_bound", "holdout"])
def test_cut_cube__shows_the_chosen_candidate_at_its_place(certificate):
    cube = searched(certificate).results
    whole = dsel.select(cube)
    chosen = {name: [whole.params[name]] for name in ("C", "gamma")}
    last_first = cube.sortby("C", ascending=False)
    one = cube.sel(chosen)
    for changed in (last_first, last_first.sortby("gamma", ascending=False), one):
        choice = dsel.select(changed)
        assert choice.params == whole.params
        row = changed.dsel.table().loc[choice.candidate, ["C", "gamma"]]
        assert row.to_dict() == whole.params
        assert not choice.certificate.certified
        title = changed.dsel.plot().get_title(loc="left")
        assert title.startswith(f"Chosen: C={whole.params['C']}")
    others = cube.drop_sel(C=chosen["C"])
    with pytest.raises(ValueError, match=r"lack the chosen candidate C=.* cut, sorted"):
        dsel.select(others)
    title = others.dsel.plot().get_title(loc="left")
    assert title.startswith("no choice: `results` lack the chosen candidate")
    assert dsel.select(others, "cv_error").params["C"] not in chosen["C"]


@pytest.mark.parametrize("names", [{"C": "penalty"}, {"C": "x", "gamma": "a"}])
def test_renamed_cube__shows_the_chosen_candidate_by_its_values(names):
    cube = searched("nested").results
    whole = dsel.select(cube)
    renamed = cube.rename(names)
    for changed in (renamed, renamed.isel({names["C"]: slice(None, None, -1)})):
        row = changed.dsel.table().loc[dsel.select(changed).candidate]
        assert {n: row[names.get(n, n)] for n in whole.params} == whole.params
        ax = changed.dsel.plot()
        [mark] = [p for p in ax.patches if p.get_label().startswith("chosen")]
        column, line = (round(place + 0.5) for place in mark.get_xy())
        shown = [ax.get_xticklabels()[column], ax.get_yticklabels()[line]]
        axes = ax.get_xlabel(), ax.get_ylabel()
        texts = dict(zip(axes, (text.get_text() for text in shown), strict=True))
        for name, value in whole.params.items():
            assert float(texts[names.get(name, name)]) == pytest.approx(value, rel=1e-2)


def test_cut_cube__has_the_error_of_the_folds_that_are_left():
    cube = searched("cv_bound").results.isel(fold=[0, 1])
    rates = (cube.fold_errors / cube.fold_rows).mean("fold").values.ravel()
    np.testing.assert_allclose(cube.dsel.table().cv_error, rates)


@pytest.mark.parametrize("turn", ["fold", "gamma", "criterion", "reversed"])
@pytest.mark.parametrize("certificate", ["nested", "cv_bound", "best_fold"])
def test_select__takes_a_cube_whose_dimensions_are_in_another_order(certificate, turn):
    cube = searched(certificate).results
    dims = [*cube.dims][::-1] if turn == "reversed" else [turn, ...]
    turned = cube.transpose(*dims)
    assert dsel.select(turned) == dsel.select(cube)
    assert dsel.select(turned).certificate.certified
    assert dsel.select(turned, "cv_error") == dsel.select(cube, "cv_error")
    assert turned.dsel.table().equals(cube.dsel.table())
    xr.testing.assert_identical(
        turned.dsel.bound("cv_error"), cube.dsel.bound("cv_error")
    )


def test_bounds__take_the_counts_of_a_cube():
    cube = searched("cv_bound").results
    counts = [cube[name].values for name in ("fold_errors", "fold_rows")]
    found = dsel.bounds.binomial_tail_inversion(*counts, delta=0.05)
    whole = [each.astype(int) for each in counts]
    expected = dsel.bounds.binomial_tail_inversion(*whole, delta=0.05)
    np.testing.assert_array_equal(found, expected)
    one = cube.fold_errors.isel(C=0, gamma=0), cube.fold_rows
    assert dsel.bounds.nested_one_fold(*one, delta=0.05) == (
        dsel.bounds.nested_one_fold(*(each.astype(int) for each in one), delta=0.05)
    )
    np.testing.assert_array_equal(
        dsel.bounds.fold_shares(cube.fold_rows.count()), dsel.bounds.fold_shares(3)
    )


@pytest.mark.parametrize("certificate", ["nested", "cv_bound"])
def test_cube__that_was_kept_is_opened_by_xarray_and_lazily(certificate, tmp_path):
    cube = searched(certificate).results
    dsel.save_results(cube, tmp_path)
    lazy = dsel.open_results(tmp_path, chunks={"C": 1})
    assert lazy.fold_errors.chunksizes["C"] == (1, 1, 1, 1)
    assert lazy.fold_rows.chunks is not None
    assert dsel.select(lazy) == dsel.select(cube)
    assert dsel.open_results(tmp_path, chunks={}).compute().identical(cube)
    (kept,) = tmp_path.glob("cube/*.zarr")
    opened = xr.open_zarr(kept)
    assert opened.dsel.select() == dsel.select(cube)
    assert opened.dsel.certificates[
        "one_fold" if certificate == "nested" else "all_rows"
    ]
