"""
The main job on worker processes
================================

From a file to a certificate: the pool is a zarr array that tasks read chunk by chunk,
and two processes of this machine do the work. The address of a cluster's scheduler
would do the same elsewhere.
"""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel


def population(n_rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Draw rows of two classes that lie on two rings, one around the other."""
    rng = np.random.default_rng(seed)
    is_outer = rng.random(n_rows) < 0.5
    angle = rng.uniform(0, 2 * np.pi, n_rows)
    radius = 1 + is_outer + rng.normal(scale=0.25, size=n_rows)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X.astype(np.float32), np.where(is_outer, "outer", "inner")


def main(folder: Path) -> None:
    """Build a pool, search, and read what was found."""
    # 1. The pool is written once; afterwards only tasks read it.
    rows, _ = population(50_000, seed=1)
    pool = dsel.write_pool(rows, folder / "pool.zarr", chunk_rows=10_000)
    print(pool)

    # 2. Two worker processes. A run that is interrupted goes on from what is in `out`.
    X, y = population(1_000, seed=2)
    plan = dsel.plan_search(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1, 10]},
        X,
        y,
        pool,
        random_state=0,
    )
    with dsel.cluster.connect(workers=2) as client:
        outcome = plan.run(client, out=folder / "results")

    # 3. The choice in words, its model, and the truth, which only a simulation knows.
    print(outcome)
    fresh, truth = population(50_000, seed=3)
    print(f"It errs on {np.mean(outcome.model.predict(fresh) != truth):.3f}")


if __name__ == "__main__":  # worker processes import this file
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
