"""
Fit with the pool, never worse: MCPL
====================================

Linear discriminant analysis from few labels is unstable. *Self-learning* labels the
pool with its own answers and fits again; it may become better or worse. Maximum
contrastive pessimistic likelihood (MCPL) looks for the fit whose gain over the
supervised one is largest under the *worst* labeling of the pool. A gain of zero is
always possible, so its likelihood on all rows is never below that of the supervised
fit. This is a statement about the likelihood, not about the error.
"""

# %%
# Two kinds of rows
# -----------------
# In the first, rows lie in two clusters that have nothing to do with the classes. The
# second is a real set, where the clusters are the classes.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA


def misleading(rng):
    """Draw rows whose clusters lie across the classes."""
    y = np.arange(300) % 2
    cluster = 4.0 * (rng.random(300) < 0.5) + rng.normal(scale=0.3, size=300)
    return np.column_stack([rng.normal(size=300) + 1.2 * y, cluster]), y


def cancer(rng):
    """Return the rows of scikit-learn's breast cancer set in random order."""
    X, y = load_breast_cancer(return_X_y=True)
    order = rng.permutation(len(y))
    return PCA(3).fit_transform(scale(X))[order], y[order]


def self_learning(X, y, pool):
    """Give the pool labels by the model's own answers, until they repeat."""
    model, labels = MaximumLikelihoodLDA().fit(X, y), None
    for _ in range(100):
        answers = model.predict(pool)
        if np.array_equal(answers, labels):
            break
        model, labels = OracleLDA().fit(X, y, pool, answers), answers
    return model


def mcpl(X, y, pool):
    """Make the gain as large as can be under the worst labels of the pool."""
    return SemiSupervisedLDA().fit(X, y, pool)


# %%
# Thirty draws of ten labels
# --------------------------

rivals = {"self-learning": self_learning, "MCPL": mcpl}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, draw in zip(axes, (misleading, cancer), strict=True):
    gains = {name: [] for name in rivals}
    errors = {name: [] for name in ("supervised", *rivals)}
    for seed in range(30):
        X, y = draw(np.random.default_rng(seed))
        if len(np.unique(y[:10])) < 2:
            continue
        supervised = MaximumLikelihoodLDA().fit(X[:10], y[:10])
        errors["supervised"].append(1 - supervised.score(X[10:], y[10:]))
        for name, rival in rivals.items():
            model = rival(X[:10], y[:10], X[10:])
            gain = model.log_likelihood(X, y) - supervised.log_likelihood(X, y)
            gains[name].append(gain)
            errors[name].append(1 - model.score(X[10:], y[10:]))
    print(f"{draw.__name__}: mean error of the supervised fit", end=" ")
    print(f"{np.mean(errors['supervised']):.3f}")
    for name in rivals:
        below = np.sum(np.array(gains[name]) < 0)
        worse = np.sum(np.array(errors[name]) > np.array(errors["supervised"]))
        print(
            f"  {name:13s} {np.mean(errors[name]):.3f}; of {len(gains[name])} draws "
            f"{below} with a lower likelihood, {worse} with a larger error"
        )
        ax.plot(sorted(gains[name]), "s" if name != "MCPL" else "o", ms=4, label=name)
    ax.axhline(0, color="0.5", lw=0.8, label="no gain")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.margins(y=0.1)
    ax.set_title(f"Rows: {draw.__name__}")
    ax.set_xlabel("draw of ten labels, in order of its gain")
axes[0].set_ylabel("gain in log-likelihood per row")
handles, labels = ax.get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3)
figure.suptitle(
    "MCPL never loses likelihood, self-learning may\n"
    "Gain over the supervised fit in thirty draws, on labeled rows and pool together"
)
plt.show()
