"""Fold errors of kernel SVM grids, cell by cell, against fits of scikit-learn's SVC.

    python -m tests.benchmarks.equal_svm OUT.jsonl [tol of ours] [tol of SVC]

All 225 x 10 cells of digits and a random 10 % of the 225 x 5 of satimage, at tol 1e-6
on both sides unless said otherwise. Every cell becomes a line of OUT.jsonl; the same
call goes on where an earlier one stopped, and ends with what differs.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from tests.benchmarks.bench_svm import (
    C_VALUES,
    GAMMAS,
    SEED,
    digits,
    fitted,
    scaled,
    splits_of,
)


def tables():
    """Name, rows, labels, folds, and cells (C, gamma, fold) to compare."""
    data_dir = os.environ.get("DSEL_DATA", "../shared/data")
    yield "digits", *digits(), 10, np.arange(225 * 10)
    some = np.random.default_rng(SEED).permutation(225 * 5)[: 225 * 5 // 10]
    yield "satimage", *scaled(data_dir, "satimage"), 5, some


def written(out):
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text().splitlines()]


def compare(out, name, table, k, cells, tols):
    """Append a line for each cell that has none, gamma by gamma."""
    X, y = table
    shape = (len(C_VALUES), len(GAMMAS), k)
    known = {tuple(line["cell"]) for line in written(out) if line["table"] == name}
    places = [tuple(map(int, np.unravel_index(cell, shape))) for cell in cells]
    for g, gamma in enumerate(GAMMAS):
        todo = [place for place in places if place[1] == g and place not in known]
        if not todo:
            continue
        grid = {"C": C_VALUES, "gamma": [gamma]}
        _, (piece,), _ = fitted(X, y, grid, k, tol=tols[0])
        for c, _, fold in sorted(todo):
            split = splits_of(len(y), k)[fold]
            rows, test = split.train_rows, split.test_rows
            svc = SVC(C=C_VALUES[c], gamma=gamma, tol=tols[1], cache_size=1000)
            theirs = int((svc.fit(X[rows], y[rows]).predict(X[test]) != y[test]).sum())
            ours = int(piece.counts.test_errors[c, fold])
            line = {"table": name, "cell": [c, g, fold], "ours": ours, "svc": theirs}
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")


def main():
    out = Path(sys.argv[1])
    tols = [float(tol) for tol in sys.argv[2:4]] or [1e-6]
    with threadpool_limits(1):
        for name, X, y, k, cells in tables():
            compare(out, name, (X, y), k, cells, (tols[0], tols[-1]))
    for name in ("digits", "satimage"):
        lines = [line for line in written(out) if line["table"] == name]
        gaps = Counter(abs(line["ours"] - line["svc"]) for line in lines)
        print(f"{name}: {gaps.pop(0, 0)} of {len(lines)} fold cells are equal, "
              f"others by rows that they are apart: {dict(gaps)}")  # fmt: skip


if __name__ == "__main__":
    main()
