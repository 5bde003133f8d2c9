"""
Least squares: leave-one-out without refits
===========================================

Noisy samples of a function, a Gaussian kernel model, and cross-validation to choose its
width and its regularization: the homework of Sugiyama's slides. All estimates of a
width follow from one decomposition.
"""

# %%
# Sixty noisy samples of a function that a real user would not know.

import numpy as np
from matplotlib import pyplot as plt

from dsel import plots
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    select_least_squares,
)

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (60, 1))
y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(60)

# %%
# Fifteen widths times thirty regularizations.

search = LeastSquaresSearch(
    np.geomspace(0.05, 5, 15), np.geomspace(1e-6, 1e2, 30), cv=10, random_state=0
)
print(search.plan(X, y))

# %%
# The noise-free function on a dense grid gives the true error of every candidate. It is
# here only to be compared with: the choice is made by leave-one-out.

dense = np.linspace(-3, 3, 1000)[:, np.newaxis]
search.fit(X, y, dense, np.sinc(dense[:, 0]))
truth = search.results_["extra_loss_mean"]

# %%
# Every estimate is in the cube; choosing by another one costs no fit. Estimates contain
# the variance of the noise, here 0.01. None is a bound.

for name in ("loo", "gcv", "kfold", "holdout"):
    choice = select_least_squares(search.results_, name)
    print(
        f"{name:8s} width {choice.params['width']:.3g}, "
        f"regularization {choice.params['regularization']:.2g}: "
        f"estimate {choice.estimate:.4f}, true error "
        f"{float(truth.sel(choice.params)):.5f}"
    )
print(f"best candidate, known to nobody: true error {float(truth.min()):.5f}")

# %%
# Left: estimates along the regularizations, at the chosen width. Right: the samples,
# the chosen function, and one with too small a width.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plots.plot_loss_curves(search.results_, ax=left)
right.plot(X, y, ".", color="0.6", label="samples")
width = search.best_params_["width"]
right.plot(dense, search.predict(dense), label=f"chosen, width {width:.2g}")
narrow = KernelLeastSquares(0.05, 1e-4).fit(X, y).predict(dense)
right.plot(dense, narrow, lw=0.7, label="too narrow, width 0.05")
right.set(title="A small width follows the noise", xlabel="x", ylabel="y")
right.set_ylim(top=2.0)  # leaves room for the legend
right.legend(loc="upper left")
plt.show()

# %%
# How far off can predictions be? With the penalty of kernel ridge and more samples the
# search certifies it, and still fits none of the candidates.

more = rng.uniform(-3, 3, (300, 1))
certified = LeastSquaresSearch(
    np.geomspace(0.05, 5, 15), np.geomspace(1e-6, 1e2, 30), penalty="rkhs",
    certificate="nested", random_state=0,
).fit(more, np.sinc(more[:, 0]) + 0.1 * rng.standard_normal(300))  # fmt: skip
print(certified.choice_)

# %%
# Intervals of new samples, and how many of them lie outside.

fresh = rng.uniform(-3, 3, (10_000, 1))
noisy = np.sinc(fresh[:, 0]) + 0.1 * rng.standard_normal(10_000)
low, high = certified.predict_interval(fresh).T
print(f"outside: {np.mean((noisy < low) | (noisy > high)):.1%}")

# %%
# The leave-one-out error over the whole grid. It is larger where a cell is darker.

surface = search.results_["estimate"].sel(criterion="loo")
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
widths, regularizations = (surface[name].values for name in surface.dims)
shown = ax.pcolormesh(
    regularizations, widths, np.log10(surface.values), cmap="Blues", shading="nearest"
)
ax.plot(search.best_params_["regularization"], width, "o", c="C4", label="the smallest")
ax.set(xscale="log", yscale="log", xlabel="regularization", ylabel="width")
ax.set_title(
    "Many candidates are nearly as good as the chosen one\n"
    "A cell for each candidate, from 60 labeled rows"
)
figure.legend(loc="outside lower right")
figure.colorbar(shown, label="leave-one-out error, log10")
plt.show()
