"""
The main job on worker processes
================================

From a file to a certificate, on worker processes of this machine.

A few hundred labeled rows, a pool in zarr that no process holds whole, a grid of
support vector machines: which one, and how wrong can it be?

::

    python examples/main_job_on_workers.py
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
    # 1. The pool is written once, chunk by chunk; afterwards only tasks read it.
    pool = dsel.write_pool(population(50_000, seed=1)[0], folder / "pool.zarr")
    print(pool)

    # 2. The plan checks everything and says what it will cost; nothing has run yet.
    X, y = population(1_000, seed=2)
    plan = dsel.plan_search(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1, 10]},
        X,
        y,
        pool,
        cv=5,
        delta=0.05,
        random_state=0,
    )
    print(plan)

    # 3. Two worker processes; an address or a YAML file would do the same elsewhere.
    #    If it is interrupted, the same line goes on from what is in `out`.
    with dsel.cluster.connect(dsel.cluster.Local(workers=2)) as client:
        results = plan.run(client, out=folder / "results")

    # 4. The cube holds counts, so another bound or delta of it costs no fit.
    print(results[["fold_errors", "inner_errors", "status"]])
    print(results.dsel.bound(delta=0.01).round(3).to_pandas())

    # 5. The choice, in words; and the truth, which only a simulation knows.
    choice = dsel.select(results)
    print(choice.certificate.reading())
    model = plan.model(choice.candidate)
    fresh, truth = population(50_000, seed=3)
    print(f"{choice.params} errs on {np.mean(model.predict(fresh) != truth):.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
