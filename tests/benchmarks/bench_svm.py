"""Kernel SVM grids against scikit-learn on two cores, both sides in one run.

    python -m tests.benchmarks.bench_svm [PART...] [--repeat 4]

Parts: digits, pruned, scoring, threads, which are all; and equal.

Ours runs on two threads of this process (`threads`: against one); scikit-learn's is
`GridSearchCV(SVC(cache_size=500), n_jobs=2)` and `SVC.predict`, timed on a sample of
its cells, another at each turn, and scaled up. Printed are medians of wall seconds with
standard errors, and processor seconds of all processes together.

`equal`: fold errors, cell by cell, against fits of scikit-learn's SVC at tol 1e-6 on
both sides; all 225 x 10 cells of digits and a random 10 % of the 225 x 5 of satimage.
Cells that differ are printed.
"""

import argparse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dsel
from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import fold_splits, random_folds
from dsel.families.family import Candidate
from dsel.families.svm.svm_family import KernelSVMFamily
from dsel.runtime.tasks import limit_threads
from tests.benchmarks.bench_certificates import table
from tests.benchmarks.measuring import in_turn

C_VALUES = 2.0 ** np.arange(-2, 13)
GAMMAS = 2.0 ** np.arange(-10, 5)
GRID = {"C": C_VALUES, "gamma": GAMMAS}
N_POINTS = len(C_VALUES) * len(GAMMAS)
SEED, CORES, FOLDS = 0, 2, 10


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def splits_of(n_rows, k):
    return fold_splits(random_folds(n_rows, k, seed=SEED))


def fit_groups(X, y, grid, k, *, tol=1e-3):
    """Fit a whole grid by the family; return it and its groups, C order by number."""
    candidates = [
        Candidate(i, {}, SVC(C=C, gamma=gamma, tol=tol))
        for i, (C, gamma) in enumerate((C, g) for C in grid["C"] for g in grid["gamma"])
    ]
    classes, codes = np.unique(y, return_inverse=True)
    family, cache = KernelSVMFamily(classes, SEED), ByteCache(2**32)
    splits = splits_of(len(y), k)
    pieces = [
        family.fit(group, X, codes, splits, cache=cache)
        for group in family.group_candidates(candidates)
    ]
    assert not any(piece.fit_counts.has_failed.any() for piece in pieces)
    return family, pieces


def report(title, found, scale, floor):
    """Print medians and standard errors, and ratios to the peer's, scaled up."""
    found["scikit-learn"] = found["scikit-learn"] * scale
    medians = {name: np.median(seconds, axis=0) for name, seconds in found.items()}
    for name, (cpu, wall) in medians.items():
        error = np.std(found[name][:, 1], ddof=1) / np.sqrt(len(found[name]))
        print(f"{title}, {name}: wall {wall:.2f} +- {error:.2f} s, CPU {cpu:.2f} s")
    cpu, wall = medians["scikit-learn"] / medians["threads"]
    print(f"{title}: {wall:.1f} times faster in wall time and {cpu:.1f} in CPU "
          f"(wanted {floor})", flush=True)  # fmt: skip


def make_plan(prune):
    return dsel.plan_search(
        SVC(), GRID, *digits(), criterion="cv_error", cv=FOLDS, prune=prune,
        random_state=SEED,
    )  # fmt: skip


def against(title, floor, prune, repeat, n_points=15):
    """Time a search of the whole grid, and the peer's of some of its points."""
    X, y = digits()
    plan, chosen = make_plan(prune), set()
    folds = PredefinedSplit(random_folds(len(y), FOLDS, seed=SEED))
    points = np.random.default_rng(SEED).permutation(N_POINTS)

    def ours(_):
        process_cache.cache_clear()  # Gram matrices of the run before
        chosen.add(str(plan.run(n_jobs=CORES).choice.params))

    def theirs(turn):
        places = (divmod(int(p), len(GAMMAS)) for p in points[turn::repeat][:n_points])
        grid = [{"C": [C_VALUES[c]], "gamma": [GAMMAS[g]]} for c, g in places]
        svc = SVC(cache_size=500)
        GridSearchCV(svc, grid, cv=folds, n_jobs=CORES, refit=False).fit(X, y)

    ours(0)  # it loads what was compiled
    found = in_turn({"threads": ours, "scikit-learn": theirs}, repeat)
    assert len(chosen) == 1, chosen
    report(title, found, N_POINTS / n_points, floor)


def make_scoring():
    """Return a function that predicts a pool on so many threads, and what it uses.

    Each row by the full model and by its own fold's, as a search does; each thread
    takes blocks of ten thousand rows in turn.
    """
    X, y = digits()
    family, groups = fit_groups(X, y, GRID, FOLDS)
    joined, rng = family.join(groups), np.random.default_rng(3)
    noise = rng.normal(0, 0.1, (40_000, X.shape[1]))
    pool = np.clip(X[rng.integers(0, len(X), len(noise))] + noise, 0, 1)
    drawn = np.random.default_rng(SEED).integers(0, FOLDS, len(pool))
    blocks = [slice(s, s + 10_000) for s in range(0, len(pool), 10_000)]

    def predict(mine):
        with limit_threads():
            for block in mine:
                joined.predict(pool[block], [np.array(FOLDS), drawn[block]])

    def predict_all(n_threads):
        with ThreadPoolExecutor(n_threads) as threads:
            list(threads.map(predict, [blocks[n::n_threads] for n in range(n_threads)]))

    predict_all(CORES)  # it lays out the machines
    return predict_all, joined, pool


def scoring(repeat, n_models=12):
    """Time a grid's predictions, and the peer's of a thousand rows by some models."""
    predict_all, joined, pool = make_scoring()
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, N_POINTS, n_models * repeat)
    models = [joined.model(int(c), i % 2 * FOLDS) for i, c in enumerate(numbers)]
    rows = pool[rng.permutation(len(pool))[:1000]]

    def theirs(turn):
        some = models[turn::repeat]
        Parallel(n_jobs=CORES)(delayed(model.predict)(rows) for model in some)

    sides = {"threads": lambda _: predict_all(CORES), "scikit-learn": theirs}
    scale = 2 * N_POINTS / n_models * len(pool) / len(rows)
    report("scoring digits", in_turn(sides, repeat), scale, 200)


def threads(repeat):
    """Two threads of this process against one: fits, then scoring."""
    plan, (predict_all, *_) = make_plan(False), make_scoring()

    def fit(n_threads):
        process_cache.cache_clear()
        plan.run(n_jobs=n_threads)

    for title, function in (("fits", fit), ("scoring", predict_all)):
        sides = {n: lambda _, n=n, f=function: f(n) for n in (1, CORES)}
        found = in_turn(sides, repeat)
        one, both = (np.median(found[n], axis=0) for n in (1, CORES))
        print(f"{title}: one thread {one[1]:.2f} s (CPU {one[0]:.2f}), {CORES} threads "
              f"{both[1]:.2f} s (CPU {both[0]:.2f}), {one[1] / both[1]:.2f} times "
              f"as fast (wanted 1.7)", flush=True)  # fmt: skip


def satimage():
    X, y, _ = table("satimage")
    return minmax_scale(X), y


def compare(name, X, y, k, n_cells, tol=1e-6):
    cells = np.random.default_rng(SEED).permutation(N_POINTS * k)[:n_cells]
    c, g, fold = np.unravel_index(cells, (len(C_VALUES), len(GAMMAS), k))
    gaps, splits = Counter(), splits_of(len(y), k)
    for number in np.unique(g):
        grid = {"C": C_VALUES, "gamma": GAMMAS[[number]]}
        _, (piece,) = fit_groups(X, y, grid, k, tol=tol)
        for i, j in zip(c[g == number], fold[g == number], strict=True):
            rows, test = splits[j].train_rows, splits[j].test_rows
            svc = SVC(C=C_VALUES[i], gamma=GAMMAS[number], tol=tol, cache_size=999)
            theirs = int((svc.fit(X[rows], y[rows]).predict(X[test]) != y[test]).sum())
            gap = int(piece.fit_counts.errors[i, j, 0]) - theirs
            gaps[abs(gap)] += 1
            if gap:
                print(f"{name}: {svc}, fold {j}: {theirs} errors, ours {gap:+d}")
    print(f"{name}: {gaps.pop(0, 0)} of {len(cells)} fold cells are equal, "
          f"others by rows that they are apart: {dict(gaps)}", flush=True)  # fmt: skip


def equal(_):
    with threadpool_limits(1):
        compare("digits", *digits(), 10, None)
        compare("satimage", *satimage(), 5, N_POINTS * 5 // 10)


PARTS = {
    "digits": lambda repeat: against("digits, exhaustive", 33, False, repeat),
    "pruned": lambda repeat: against("digits, pruned", 50, "exact", repeat),
    "scoring": scoring,
    "threads": threads,
    "equal": equal,
}


def warm_up():
    """Compile, or load what was compiled, and start joblib's processes."""
    X, y = digits()
    family, pieces = fit_groups(X[:200], y[:200], {"C": [1.0, 2.0], "gamma": [0.1]}, 2)
    family.join(pieces).predict(X[:70], [np.array(2)])
    Parallel(n_jobs=CORES)(delayed(repr)(SVC()) for _ in range(8))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=[*PARTS][:4])
    parser.add_argument("--repeat", type=int, default=4)
    options = parser.parse_args()
    warm_up()
    for part in options.parts:
        PARTS[part](options.repeat)


if __name__ == "__main__":
    main()
