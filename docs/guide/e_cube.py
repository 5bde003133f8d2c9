"""
The results cube
================

All that a search counted is one ``xarray.Dataset``. Its dimensions are the parameters
of the grid, the folds and the criteria. Every criterion is a function of these counts,
so another one costs no fit.
"""

# %%
# A cube
# ------

import tempfile
from pathlib import Path

from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.datasets import load_digits_problem

problem = load_digits_problem(n_labeled=300)
plan = dsel.plan_search(
    KNeighborsClassifier(),
    {"n_neighbors": [1, 3, 9], "weights": ["uniform", "distance"]},
    problem.X,
    problem.y,
    problem.pool,
    certificate="cv_bound",
    cv=3,
    random_state=0,
    prune=False,
)
outcome = plan.run()
results = outcome.results
results

# %%
# Counts
# ------
# ``fold_errors`` are errors on the rows that a fold held out, ``disagreements`` pool
# rows on which the fold's model and the model of all rows differ. A count that was not
# made is NaN (and -1 on disk), so ``argmin`` or ``mean(skipna=False)`` cannot pick a
# pruned candidate. A nested search has ``outer_disagreements`` of what was chosen
# without each fold, and ``outer_duplicate_disagreements``, how many of these pool rows
# equal labeled rows; by class ``outer_answers`` and ``outer_duplicate_answers``.

print(results.fold_errors.sum("fold").to_pandas())

# %%
# Criteria
# --------
# ``estimate`` is the number of each criterion of the search, not clipped at 1 and
# smaller is better. ``label_term`` and ``disagreement_term`` are its parts.

print(results.estimate.sel(criterion="cv_bound").round(3).to_pandas())
print(results.dsel.bound("best_fold", delta=0.1).round(3).to_pandas())

# %%
# A number that is read out in this way is a guarantee only if the search had declared
# it; ``select`` says so. See :doc:`/gallery/compare_certificates`.
#
# As any Dataset
# --------------
# The error of each candidate on the held-out rows, with the numbers of neighbors as a
# full axis. ``error`` is ready, by candidate and fold: errors divided by the
# predictions behind them. These are the rows of the fold, but in a nested search
# several models predict each row (``fold_answers``), so that rows would be the
# wrong divisor.

rates = results["error"].mean("fold")
print(rates.reindex(n_neighbors=range(1, 10, 2)).round(3).to_pandas())

# %%
# Candidates whose bound is below 30%:

bounds = results.estimate.sel(criterion="cv_bound")
print(bounds.where(bounds < 0.3).to_dataframe().estimate.dropna())

# %%
# What was counted as a table with a row for each candidate and fold:

print(results.drop_dims("criterion").to_dataframe()[["fold_errors", "disagreements"]])

# %%
# What xarray does to a Dataset works on the whole cube: here all numbers are averaged
# over the candidates that are done. A variable of texts, ``message``, is there where a
# fit failed. What is selected from a changed cube is an estimate and says so.

print(results.where(results.status == 0).coarsen(n_neighbors=3).mean())

# %%
# A table with one row for each candidate, and the surface:

results.dsel.table()

# %%

results.dsel.plot()

# %%
# Runs together
# -------------
# The cubes of two runs over other values are joined by ``xr.concat`` or ``xr.merge``.
# Numbers of joined runs are estimates: what was looked at before another value was
# added has no share of ``delta`` left. What a nested search has counted last
# (``outer_...``) is about what it chose: concatenate those with ``data_vars="all"``, or
# drop these variables before a merge, and select by ``"cv_error"``.

import xarray as xr

more = dsel.plan_search(
    KNeighborsClassifier(),
    {"n_neighbors": [5, 27], "weights": ["uniform", "distance"]},
    problem.X,
    problem.y,
    problem.pool,
    certificate="cv_bound",
    cv=3,
    random_state=0,
    prune=False,
).run()
merged = xr.merge([results, more.results], join="outer", compat="no_conflicts")
print(dsel.select(merged, "cv_error"))

# %%
# Runs on other folds or rows have a dimension of their own:

by_run = xr.concat(
    [results, results], xr.DataArray(["Monday", "Tuesday"], dims="run"), data_vars="all"
)
print(by_run.estimate.sel(criterion="cv_error").mean("run").round(3).to_pandas())

# %%
# Keep and open
# -------------
# On disk it is zarr; counts are integers there. In what `save_results` was given, or in
# the ``out`` of a run, it lies in ``cube``, under the time when it was written, and
# xarray opens it there; `dsel.open_results` finds the final one and compares its
# checksums first. ``chunks={}`` makes its variables Dask arrays.

with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "results"
    dsel.save_results(results, place)
    again = dsel.open_results(place)
    print(again.identical(results), dsel.select(again) == outcome.choice)
    (cube,) = place.glob("cube/*.zarr")
    print(xr.open_zarr(cube).dsel.select() == outcome.choice)
    print(dsel.open_results(place, chunks={}).fold_errors.data)
