"""
How many labels do I need?
==========================

``plan_bound`` answers before the first label is bought. It needs guesses: the error of
a good model, and how often a fold's model differs from the model of all rows. A pilot
search on the rows that you have shows both.
"""

# %%
# Bound over labels
# -----------------
# A hundred candidates, ``delta = 0.05``, 100,000 pool rows, models of ten folds that
# differ from the model of all rows on 2 %. The grey line is the expected error.

import numpy as np
from matplotlib import pyplot as plt

import dsel

labels = np.unique(np.geomspace(100, 50_000, 13).round(-1).astype(int))
errors = (0.02, 0.05, 0.1)
certificates = {"cv_bound": "--", "nested": "-", "select_then_certify": ":"}
figure, axes = plt.subplots(1, 3, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, error in zip(axes, errors, strict=True):
    plans = [dsel.plan_bound(int(n), 100_000, 100, 0.05, error) for n in labels]
    for name, style in certificates.items():
        bounds = [float(p.bound.sel(certificate=name, n_folds=5)) for p in plans]
        ax.plot(labels, np.minimum(bounds, 1), style, label=name)
    ax.axhline(error, color="0.5", lw=0.8)
    ax.set(xscale="log", ylim=(0, 0.6), xlabel="labeled rows")
    ax.set_title(f"grey: error {error:g}", fontsize=10)
axes[0].set_ylabel("bound, five folds")
axes[0].legend(frameon=False)
plt.show()

# %%
# Two parts do not go away with more labels: the error itself, and the disagreement
# between the two models of the second term.
#
# Labels for a wanted bound
# -------------------------
# ``wanted_bound=`` searches. -1 says that no number of labels is enough, because error
# and disagreement alone are already as large.

plan = dsel.plan_bound(500, 100_000, 100, 0.05, 0.05, wanted_bound=0.10)
plan.labels_needed.to_pandas()

# %%
# Pool rows for a wanted bound
# ----------------------------
# The pool is needed only for the disagreement term, and about a hundred thousand rows
# are enough: more rows hardly change the bound.

pool = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
for m in pool:
    terms = dsel.plan_bound(2_000, m, 100, 0.05, 0.05).sel(
        certificate="cv_bound", n_folds=5
    )
    print(
        f"{m:12,} pool rows: bound {float(terms.bound):.4f}, "
        f"of it from the pool {float(terms.disagreement_term):.4f}"
    )

# %%
# The same from a shell: ``dsel plan-bound --help``.
