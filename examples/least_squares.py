"""Choose the width and the regularization of kernel least squares without refits.

The homework of Sugiyama's slides: noisy samples of a function, a Gaussian kernel model,
and cross-validation to choose its two parameters. Run it from anywhere:

    python examples/least_squares.py [picture.png]
"""

import sys

import numpy as np

from dsel.models import KernelLeastSquares
from dsel.searches import LeastSquaresSearch, select_least_squares

# 1. Sixty noisy samples of a function that a real user would not know.
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (60, 1))
y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(60)

# 2. Fifteen widths times thirty regularizations. Each width costs one decomposition;
#    leave-one-out, GCV and ten folds follow for every regularization in closed form.
search = LeastSquaresSearch(
    np.geomspace(0.05, 5, 15), np.geomspace(1e-6, 1e2, 30), cv=10, random_state=0
)
print(search.plan(X, y))

# 3. The noise-free function on a dense grid gives the true error of every candidate.
#    It is only here to be compared with: the choice is made by leave-one-out.
dense = np.linspace(-3, 3, 1000)[:, np.newaxis]
search.fit(X, y, dense, np.sinc(dense[:, 0]))
truth = search.results_["extra_loss"]

# 4. Every estimate stands in the cube; choosing by another one costs no fit.
for name in ("loo", "gcv", "kfold", "holdout"):
    choice = select_least_squares(search.results_, name)
    print(
        f"{name:8s} width {choice.params['width']:.3g}, "
        f"regularization {choice.params['regularization']:.2g}: "
        f"estimate {choice.estimate:.4f}, true error "
        f"{float(truth.sel(choice.params)):.5f}"
    )
print(f"best candidate, known to nobody: true error {float(truth.min()):.5f}")
print("Estimates contain the variance of the noise, here 0.01. None is a bound.")

# 5. A picture, where one is asked for (needs matplotlib).
if len(sys.argv) > 1:
    from matplotlib import pyplot as plt

    from dsel.plots import plot_loss_curves

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot_loss_curves(search.results_, ax=left)
    right.plot(X, y, ".", color="0.6", label="samples")
    right.plot(dense, search.predict(dense), label="chosen")
    narrow = KernelLeastSquares(0.05, 1e-4).fit(X, y).predict(dense)
    right.plot(dense, narrow, lw=0.7, label="too narrow")
    right.legend(frameon=False)
    figure.savefig(sys.argv[1])
