"""Fold errors of kernel SVM grids, cell by cell, against fits of scikit-learn's SVC.

    python -m tests.benchmarks.equal_svm [tol of ours] [tol of SVC]

All 225 x 10 cells of digits and a random 10 % of the 225 x 5 of satimage, at tol 1e-6
on both sides unless said otherwise. Cells that differ are printed.
"""

import os
import sys
from collections import Counter

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from tests.benchmarks.bench_svm import (
    C_VALUES,
    GAMMAS,
    N_POINTS,
    SEED,
    digits,
    fitted,
    splits_of,
)


def satimage():
    table = np.load(os.path.join(os.environ["DSEL_DATA"], "satimage.npz"))
    X = table["X"].astype(float)
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)), table["y"]


def compare(name, X, y, k, n_cells, tols):
    cells = np.random.default_rng(SEED).permutation(N_POINTS * k)[:n_cells]
    c, g, fold = np.unravel_index(cells, (len(C_VALUES), len(GAMMAS), k))
    gaps, splits = Counter(), splits_of(len(y), k)
    for number in np.unique(g):
        grid = {"C": C_VALUES, "gamma": GAMMAS[[number]]}
        _, (piece,) = fitted(X, y, grid, k, tol=tols[0])
        for i, j in zip(c[g == number], fold[g == number], strict=True):
            rows, test = splits[j].train_rows, splits[j].test_rows
            svc = SVC(C=C_VALUES[i], gamma=GAMMAS[number], tol=tols[-1], cache_size=999)
            theirs = int((svc.fit(X[rows], y[rows]).predict(X[test]) != y[test]).sum())
            gap = int(piece.counts.test_errors[i, j]) - theirs
            gaps[abs(gap)] += 1
            if gap:
                print(f"{name}: {svc}, fold {j}: {theirs} errors, ours {gap:+d}")
    print(f"{name}: {gaps.pop(0, 0)} of {len(cells)} fold cells are equal, "
          f"others by rows that they are apart: {dict(gaps)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    tols = [float(tol) for tol in sys.argv[1:3]] or [1e-6]
    with threadpool_limits(1):
        compare("digits", *digits(), 10, None, tols)
        compare("satimage", *satimage(), 5, N_POINTS * 5 // 10, tols)
