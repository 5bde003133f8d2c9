"""
The assumptions
===============

Every certificate lists what it rests on. An assumption is ``declared``, since only you
can know, or dsel has found that it is ``violated``: then the number is no guarantee,
and the reason stands first. Some of them are broken here on purpose,
and what dsel then says is printed.
"""

# %%
# What a certificate assumes
# --------------------------

import warnings

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def draw(n_rows):
    """Draw rows of two classes, one of them rarer than the other."""
    y = (rng.random(n_rows) < 0.35).astype(int)
    return rng.normal(size=(n_rows, 4)) + y[:, np.newaxis], y


X, y = draw(240)
pool, _ = draw(3_000)


def search(X=X, pool=pool, estimator=None, **options):
    """Plan a small search."""
    grid = {"C": [0.1, 1.0], "gamma": [0.1]}
    return dsel.plan_search(
        estimator or SVC(), grid, X, y, pool, random_state=0, **options
    )


outcome = search().run()
print(outcome.certificates["all_rows"].reading())

# %%
# A1: rows are independent draws from one population
# --------------------------------------------------
# Rows in groups, such as several images of one patient, are not independent, but
# patients are. Folds of whole groups give a bound for a random row of a new group. See
# :doc:`/gallery/patients`.

patients = np.arange(240) // 4
print(search(pool=None, groups=patients).run().choice)

# %%
# Broken: the folds of a splitter are no random folds of groups.

print(search(cv=GroupKFold(5), groups=patients).run().choice)

# %%
# Labeled rows may be in the pool, too. The bound allows for pool rows that equal
# labeled ones, and the certificate says so.

outcome = search(pool=np.concatenate([pool, X])).run()
print(outcome.certificates["all_rows"].reading().splitlines()[1])

# %%
# Broken: the pool comes from elsewhere. A classifier that distinguishes
# labeled rows from pool rows shows it. See :doc:`/gallery/shifted_pool`.

print(search(pool=pool + 1.0).run().choice)

# %%
# Random folds
# ------------
# Folds that dsel draws are random by construction. Others look at the labels or at the
# order of rows, and give estimates only.

print(search(cv=StratifiedKFold(5, shuffle=True, random_state=0)).run().choice)

# %%
# A3: your code sees only the rows that it is given
# -------------------------------------------------
# This is declared. A plan has a note if all labeled rows seem to have been scaled
# together before the search:

print(search(X=StandardScaler().fit_transform(X), pool=None))

# %%
# Put the scaler into the pipeline. Each fit then computes it from its own rows:

pipeline = make_pipeline(StandardScaler(), SVC())
plan = dsel.plan_search(
    pipeline, {"svc__C": [0.1, 1.0]}, X, y, pool=None, random_state=0
)
print(plan)

# %%
# A4: no model was trained or chosen with the pool rows that are counted
# ----------------------------------------------------------------------
# Only the bound of the model of all rows needs it: that of one fold reads no pool.
# A search never shows counted rows to a learner; one that wants a pool gets a part of
# it that is not counted. What was done to the rows before the search cannot be seen.
#
# A5: the plan was not picked after another's results
# ---------------------------------------------------
# Several seeds, grids or certificates of which the best is kept are a choice after the
# data. Nobody but you can know, so this is declared. Put all that you want to compare
# into one grid: with a nested search its size costs nothing.
