"""Tolerances of a search beside those of a 20% hold-out set.

    python -m tests.benchmarks.bench_regression [--draws 2] [--rows 300,600,2000]

On ten sets: diabetes, Friedman's three and a sparse one of scikit-learn; sums with
heavy tails, outliers and unequal variance; steps; counts.
The hold-out set is a random fifth: GridSearchCV(cv=5) chooses on the rest by the mean
squared error, the tolerance limit of the fifth is its bound, and the chosen model is
deployed. Both errors are .9 quantiles of absolute residuals on rows without a part.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_diabetes,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_sparse_uncorrelated,
)
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dsel
from dsel.bounds import tolerance_limit

SHARE, DELTA, POOL = 0.9, 0.05, 4_000
LEARNERS = {
    "ridge": (
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": [0.01, 1.0, 100.0]},
    ),
    "k-NN": (
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
        {"kneighborsregressor__n_neighbors": [3, 7, 15]},
    ),
    "boosting": (
        HistGradientBoostingRegressor(max_iter=60, random_state=0),
        {"learning_rate": [0.05, 0.15], "max_leaf_nodes": [7, 31]},
    ),
}


def linear(rng, n, noise):
    X = rng.normal(size=(n, 6))
    return X, X @ [2.0, 1.0, 1.0, 0.5, 0.0, 0.0] + noise(X)


def sets(n, seed):
    """Yield names, rows and targets of ten sets."""
    rng = np.random.default_rng(seed)
    yield "friedman1", *make_friedman1(n, noise=1.0, random_state=seed)
    yield "friedman2", *make_friedman2(n, noise=100.0, random_state=seed)
    yield "friedman3", *make_friedman3(n, noise=0.1, random_state=seed)
    yield "uncorrelated", *make_sparse_uncorrelated(n, random_state=seed)
    yield "heavy tails", *linear(rng, n, lambda X: rng.standard_t(2, len(X)))
    yield "outliers", *linear(
        rng, n, lambda X: np.where(rng.random(len(X)) < 0.05, 20, 1)
        * rng.normal(size=len(X)),
    )  # fmt: skip
    yield (
        "unequal variance",
        *linear(rng, n, lambda X: np.exp(X[:, 0]) * rng.normal(size=len(X))),
    )
    X = rng.uniform(size=(n, 4))
    yield "steps", X, np.floor(5 * X[:, 0]) + (X[:, 1] > 0.5) + rng.normal(size=n) / 4
    X = rng.normal(size=(n, 4))
    yield "counts", X, rng.poisson(np.exp(1 + 0.5 * X[:, 0] - 0.3 * X[:, 1])) * 1.0
    X, y = load_diabetes(return_X_y=True)
    order = rng.permutation(len(y))
    yield "diabetes", X[order], y[order]


def off_by(model, X, y):
    return float(np.quantile(np.abs(y - model.predict(X)), SHARE))


def compare(X, y, pool, rest, learner, grid, seed):
    """Return bound and error of the search, then of the hold-out set."""
    search = dsel.SemiSupervisedSearchCV(learner, grid, random_state=seed, n_jobs=1)
    search.fit(X, y, pool=pool)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    model = GridSearchCV(learner, grid, cv=5, scoring="neg_mean_squared_error")
    model.fit(X[train], y[train])
    residuals = np.abs(y[test] - model.predict(X[test]))
    return {
        "bound": search.certificate_.bound,
        "error": off_by(search.best_estimator_, *rest),
        "beyond": np.mean(
            np.abs(rest[1] - search.predict(rest[0])) > search.certificate_.bound
        ),
        "all_rows": search.certificates_["all_rows"].bound if pool is not None else 0,
        "holdout_bound": tolerance_limit(residuals, level=1 - SHARE, delta=DELTA),
        "holdout_error": off_by(model, *rest),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rows", default="300,600,2000")
    options = parser.parse_args()
    rows = []
    for n in map(int, options.rows.split(",")):
        for draw in range(options.draws):
            for name, X, y in sets(n + POOL + 2_000, 100 * draw + n):
                m = n
                if name == "diabetes":
                    if n > 300:
                        continue
                    m, pool, rest = 300, None, (X[300:], y[300:])
                else:
                    pool, rest = X[n : n + POOL], (X[n + POOL :], y[n + POOL :])
                for learner, (model, grid) in LEARNERS.items():
                    made = compare(X[:m], y[:m], pool, rest, model, grid, draw)
                    rows.append({"n": n, "set": name, "learner": learner, **made})
                    print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    both = np.isfinite(table.bound) & np.isfinite(table.holdout_bound)
    table["ratio"] = np.where(both, table.bound / table.holdout_bound, np.nan)
    table["errors"] = table.error / table.holdout_error

    def mean(values):
        return np.exp(np.log(values.dropna()).mean())

    print(table.groupby("n")[["ratio", "errors"]].agg(mean).round(3))
    print(table.groupby("set")[["ratio", "errors"]].agg(mean).round(3))
    print(table.groupby("learner")[["ratio", "errors"]].agg(mean).round(3))
    logs = np.log(table.errors)
    print("geometric means", table[["ratio", "errors"]].agg(mean).round(3).to_dict())
    print("standard error of the second", round(logs.std() / len(logs) ** 0.5, 4))
    print("finite", np.isfinite(table.bound).mean().round(3), "and of the hold-out set",
          np.isfinite(table.holdout_bound).mean().round(3))  # fmt: skip
    print("all rows over one fold", mean(table.all_rows / table.bound).round(3)
          if (table.all_rows > 0).all() else "")  # fmt: skip
    print("failures", int((table.beyond > 1 - SHARE).sum()), "of", len(table))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
