"""What holds of regions and threshold bounds, simulated where the truth is known.

Beside the claims of Hardoon, Hussain and Shawe-Taylor (2009): how often prediction
regions miss the true label, for a model that was fixed and for the one that each row
chose, and how often the threshold bound fails for some model and margin.
"""

import numpy as np
import xarray as xr
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from dsel.bounds import threshold_bound
from dsel.data.row_random import seed_from
from dsel.experiments.comparison import mean_of
from dsel.nonconformity import NonconformityClassifier

EPSILONS = (0.05, 0.1, 0.2)
GRID = {"C": [0.1, 10.0], "gamma": [0.01, 0.1, 1.0]}


def miss_rates(
    n_draws: int = 200,
    *,
    n_labeled: int = 150,
    n_validation: int = 50,
    n_test: int = 100,
    random_state: int = 0,
) -> xr.Dataset:
    """Count how often the region leaves out the true label.

    Parameters
    ----------
    n_draws
        Tables drawn, each with training, validation and test rows of its own.
    n_labeled, n_validation, n_test
        Rows of each: labeled ones, those of them held out, and test rows.
    random_state
        Seed of the tables.

    Returns
    -------
    xarray.Dataset
        ``miss_rate`` and its ``standard_error`` (draws are independent, test rows of
        a draw are not) over epsilon, ``model`` (``fixed`` is the first of the grid)
        and ``region``. At most epsilon is promised for fixed and smoothed alone.
    """
    shape = (n_draws, len(EPSILONS), 2, 2)
    missed = np.empty(shape)
    for draw in range(n_draws):
        X, y = make_classification(
            n_labeled + n_test, 5, n_informative=4, n_redundant=0, flip_y=0.3,
            random_state=random_state + draw,
        )  # fmt: skip
        model = NonconformityClassifier(
            SVC(), GRID, validation_size=n_validation, random_state=draw
        ).fit(X[:n_labeled], y[:n_labeled])
        rows, own = X[n_labeled:], (np.arange(n_test), y[n_labeled:])
        for at in np.ndindex(shape[1:]):
            region = model.predict_set(
                rows,
                EPSILONS[at[0]],
                model=(0, None)[at[1]],
                smoothing=(True, False)[at[2]],
            )
            missed[(draw, *at)] = np.mean(~region[own])
    dims = ("epsilon", "model", "region")
    mean, error = mean_of(missed)
    return xr.Dataset(
        {"miss_rate": (dims, mean), "standard_error": (dims, error)},
        coords={
            "epsilon": list(EPSILONS),
            "model": ["fixed", "chosen"],
            "region": ["smoothed", "printed"],
        },
    )


def threshold_failures(
    n_draws: int = 2000,
    *,
    n_validation: int = 50,
    n_models: int = 1,
    delta: float = 0.1,
    random_state: int = 0,
) -> float:
    """Count the validation parts for which `threshold_bound` fails somewhere.

    The scores of every model are uniform, so F_k(t) = t: a bound fails where it is
    below the next score for some count, which is the least favourable threshold.

    Parameters
    ----------
    n_draws
        Validation parts drawn.
    n_validation, n_models
        Rows of each, and models, independent of one another.
    delta
        Promised share of failures.
    random_state
        Seed of the scores.

    Returns
    -------
    float
        Share of draws in which the bound fails.
    """
    rng = np.random.default_rng(seed_from(random_state))
    scores = np.sort(rng.random((n_draws, n_models, n_validation)), axis=-1)
    counts = np.arange(n_validation)
    limits = threshold_bound(counts, n_validation, n_models=n_models, delta=delta)
    return float(np.mean((scores > limits).any(axis=(1, 2))))
