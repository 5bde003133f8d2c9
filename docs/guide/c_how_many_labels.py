"""
How many labels do I need?
==========================

``plan_bound`` answers before the first label is bought. It needs a guess of the error
of a good model. A pilot search on the rows that you have shows it.
"""

# %%
# Bound over labels
# -----------------
# A hundred candidates, ``delta = 0.05``, 100,000 pool rows. ``one_fold`` and
# ``all_rows`` are the two numbers of a nested search.

import numpy as np
from matplotlib import pyplot as plt

import dsel

labels = np.unique(np.geomspace(100, 50_000, 13).round(-1).astype(int))
styles = {"one_fold": "-", "all_rows": "--", "cv_bound": ":"}
words = {
    "one_fold": "one_fold: model trained on 80% of the labels",
    "all_rows": "all_rows: model trained on all labels",
    "cv_bound": "cv_bound: all candidates at once",
}
figure, axes = plt.subplots(1, 3, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, error in zip(axes, (0.02, 0.05, 0.1), strict=True):
    plans = [
        dsel.plan_bound(int(n), 100_000, n_candidates=100, error=error) for n in labels
    ]
    for name, style in styles.items():
        bounds = [float(p.bound.sel(certificate=name, n_folds=5)) for p in plans]
        ax.plot(labels, 100 * np.minimum(bounds, 1), style, label=words[name])
    ax.axhline(100 * error, color="0.5", lw=0.8, label="the error that is expected")
    ax.set(xscale="log", ylim=(0, 60), xlabel="labeled rows")
    ax.set_title(f"error {error:.0%}")
figure.suptitle(
    "The bound comes near the error as labels grow\n"
    "Bounds to expect on average, five folds, 100,000 pool rows"
)
axes[0].set_ylabel("bound on the error, %")
handles, texts = ax.get_legend_handles_labels()
figure.legend(handles, texts, loc="outside lower center", ncols=2)
plt.show()

# %%
# Two parts do not go away with more labels: the error itself, and for the model of all
# labels how often it differs from the models of the folds.
#
# Labels for a wanted bound
# -------------------------
# ``wanted=`` searches. -1 says that no number of labels is enough.

plan = dsel.plan_bound(
    500, 100_000, n_candidates=100, error=0.05, wanted=0.10, cv=(3, 5, 10)
)
plan.labels_needed.to_pandas()

# %%
# Pool rows for a wanted bound
# ----------------------------
# The pool is needed only for the disagreement term, and about a hundred thousand rows
# are enough: more rows hardly change the bound.

for m in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
    terms = dsel.plan_bound(2_000, m, n_candidates=100, error=0.05).sel(
        certificate="all_rows", n_folds=5
    )
    print(
        f"{m:12,} pool rows: bound {float(terms.bound):.4f}, "
        f"of it from the pool {float(terms.disagreement_term):.4f}"
    )

# %%
# The same from a shell: ``dsel plan-bound --help``.
