"""Kernel SVM grids against scikit-learn on two cores, both sides in one run.

    python -m tests.benchmarks.bench_svm PART... [--repeat 5] [--batches 4]

Parts: digits, pruned, satimage, scoring, threads (two threads against one); `floors` is
all of them. Ours runs on two threads of this process; scikit-learn's is
`GridSearchCV(SVC(cache_size=500), n_jobs=2)` and `SVC.predict`, timed on a sample of
its cells in batches and scaled up. The sides take turns. Printed are medians of wall
seconds with standard errors, processor seconds of all processes together, and the
limit: what solving (SMO steps, kernel rows copied) and matrix products take by
themselves, divided by two. `equal_svm.py` compares all counts.
"""

import argparse
import cProfile
import os
import pstats
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dsel
from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import Split, random_folds
from dsel.families.family import FIT_DONE, Candidate
from dsel.families.svm.family import KernelSVMFamily
from dsel.runtime.tasks import single_threaded
from tests.benchmarks.measuring import in_turn

C_VALUES = 2.0 ** np.arange(-2, 13)
GAMMAS = 2.0 ** np.arange(-10, 5)
GRID = {"C": C_VALUES, "gamma": GAMMAS}
SEED = 0
CORES = 2
DATA_DIR = os.environ.get("DSEL_DATA", "../shared/data")


def report(title, found, limits, floor):
    """Print medians, standard errors, ratios to the peer, and what limits it."""
    theirs = np.median(found["scikit-learn"], axis=0)
    for name, seconds in found.items():
        cpu, wall = np.median(seconds, axis=0)
        error = np.std(seconds[:, 1], ddof=1) / np.sqrt(len(seconds))
        times = "" if name == "scikit-learn" else (
            f", {theirs[1] / wall:.1f} times faster in wall time and "
            f"{theirs[0] / cpu:.1f} in CPU (wanted {floor})"
        )  # fmt: skip
        print(
            f"{title}, {name}: wall {wall:.2f} +- {error:.2f} s, CPU {cpu:.2f} s{times}"
        )
    for name, seconds in limits.items():
        least = float(seconds) / CORES
        print(f"{title}, limit: {name} alone take {least:.2f} s on {CORES} cores, "
              f"{theirs[1] / least:.0f} times faster", flush=True)  # fmt: skip


def alone(function, *names):
    """CPU seconds on one thread that the named functions take by themselves."""
    profile = cProfile.Profile(time.thread_time)
    with threadpool_limits(1):
        profile.runcall(function)
    stats = pstats.Stats(profile).stats
    return sum(line[2] for (_, _, name), line in stats.items() if name in names)


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def scaled(data_dir, name, n=None):
    table = np.load(f"{data_dir}/{name}.npz")
    X, y = table["X"].astype(float), table["y"]
    keep = np.random.default_rng(SEED).permutation(len(y))[:n]
    low, high = X.min(axis=0), X.max(axis=0)
    return ((X - low) / np.where(high > low, high - low, 1.0))[keep], y[keep]


def splits_of(n_rows, k):
    fold = random_folds(n_rows, k, seed=SEED)
    parts = [
        Split(
            i, f"fold-{i}", np.flatnonzero(fold != i), np.flatnonzero(fold == i),
            counts_train=False,
        )
        for i in range(k)
    ]  # fmt: skip
    rows = np.arange(n_rows)
    return [*parts, Split(k, "full", rows, rows[:0], counts_train=False)]


def fitted(X, y, grid, k, *, tol=1e-3, limit=2**32):
    """Fit a whole grid by the family; return it and its groups, C order by number."""
    estimators = [
        SVC(C=C, gamma=gamma, tol=tol) for C in grid["C"] for gamma in grid["gamma"]
    ]
    candidates = [Candidate(i, {}, svc) for i, svc in enumerate(estimators)]
    classes, codes = np.unique(y, return_inverse=True)
    family = KernelSVMFamily(classes, SEED)
    budget = ByteCache(limit)
    splits = splits_of(len(y), k)
    pieces = [
        family.fit(group, X, codes, splits, budget=budget)
        for group in family.groups(candidates)
    ]
    assert all((piece.counts.status == FIT_DONE).all() for piece in pieces)
    return family, pieces, candidates


def warm_up():
    """Compile, or load what was compiled, before anything is timed."""
    X, y = digits()
    family, pieces, _ = fitted(X[:200], y[:200], {"C": [1.0, 2.0], "gamma": [0.1]}, 2)
    family.join(pieces).predict(X[:70], [np.array(2)])


def peer_batches(X, y, k, n_points, n_batches):
    """A function that searches a batch of a sample of the grid as scikit-learn does.

    It returns by how much its time is to be scaled to that of the whole grid.
    """
    fold = random_folds(len(y), k, seed=SEED)
    points = np.random.default_rng(SEED).permutation(len(C_VALUES) * len(GAMMAS))
    svc = SVC(cache_size=500)

    def search(turn):
        mine = points[: n_points * n_batches][turn::n_batches]
        places = [divmod(int(point), len(GAMMAS)) for point in mine]
        grid = [{"C": [C_VALUES[c]], "gamma": [GAMMAS[g]]} for c, g in places]
        GridSearchCV(
            svc, grid, cv=PredefinedSplit(fold), n_jobs=CORES, refit=False
        ).fit(X, y)
        return len(points) / len(mine)

    return search


def start_peers():
    """Start joblib's processes before anything is timed."""
    Parallel(n_jobs=CORES)(delayed(repr)(SVC()) for _ in range(8))


def against(title, table, floor, options, *, prune, n_points):
    """Time a search of the whole grid, and the peer's."""
    X, y, k = table
    plan = dsel.plan_search(
        SVC(), GRID, X, y, criterion="cv_error", cv=k, prune=prune and "exact",
        random_state=SEED,
    )  # fmt: skip
    chosen = set()

    def run(_):
        process_cache.cache_clear()  # Gram matrices of the run before
        chosen.add(str(plan.run(n_jobs=CORES).choice.params))

    run(0)  # it loads what was compiled
    batches = options.batches
    sides = {
        "threads": (run, options.repeat),
        "scikit-learn": (peer_batches(X, y, k, n_points, batches), batches),
    }
    start_peers()
    found = in_turn(sides, max(options.repeat, batches))
    assert len(chosen) == 1, chosen
    if prune:
        limits = {"its fits": np.nansum(plan.run(n_jobs=1).results.fit_seconds)}
    else:
        names = ("solve_pairs", "settle")
        limits = {"solving and votes": alone(lambda: fitted(X, y, GRID, k), *names)}
    report(title, found, limits, floor)


def part_digits(options):
    X, y = digits()
    against("digits, exhaustive", (X, y, 10), 33, options, prune=False, n_points=15)


def part_pruned(options):
    X, y = digits()
    against("digits, pruned", (X, y, 10), 50, options, prune="exact", n_points=15)


def part_satimage(options):
    X, y = scaled(DATA_DIR, "satimage")
    against("satimage, exhaustive", (X, y, 5), 25, options, prune=False, n_points=6)


def predict_blocks(joined, pieces, k):
    """Predict rows by the full model and by their own fold's, as a search does."""
    with single_threaded():
        for rows, drawn in pieces:
            joined.predict(rows, [np.array(k), drawn])


def score(title, fits, k, pool, floor, options, *, n_models):
    """Time a grid's predictions of the full model and of a fold's, and the peer's.

    Each core takes every other block of ten thousand rows. The peer predicts a thousand
    rows by some of the models; every row is wanted from two models of each candidate.
    """
    family, fitted_groups, _ = fits
    joined = family.join(fitted_groups)
    drawn = np.random.default_rng(SEED).integers(0, k, len(pool))
    blocks = [slice(s, s + 10_000) for s in range(0, len(pool), 10_000)]
    pieces = [(pool[block], drawn[block]) for block in blocks]
    mine = [pieces[core::CORES] for core in range(CORES)]
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, len(joined.candidates), n_models * options.batches)
    models = [joined.model(int(c), i % 2 * k) for i, c in enumerate(numbers)]
    rows = pool[rng.permutation(len(pool))[:1000]]

    def theirs(turn):
        some = models[turn :: options.batches]
        Parallel(n_jobs=CORES)(delayed(model.predict)(rows) for model in some)
        return 2 * len(joined.candidates) / len(some) * len(pool) / len(rows)

    def on_threads(_):
        list(threads.map(predict_blocks, [joined] * CORES, mine, [k] * CORES))

    with ThreadPoolExecutor(CORES) as threads:
        start_peers()
        on_threads(0)  # it lays out the machines
        sides = {
            "threads": (on_threads, options.repeat),
            "scikit-learn": (theirs, options.batches),
        }
        found = in_turn(sides, max(options.repeat, options.batches))
    limits = {
        title: alone(lambda: predict_blocks(joined, pieces, k), *names)
        for title, names in (
            ("products and votes", ["settle"]),
            ("kernel values", ["values", "inner_products", "flush_to_peaks"]),
        )
    }
    report(title, found, limits, floor)


def digits_pool(n_rows):
    X, _ = digits()
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.1, (n_rows, X.shape[1]))
    return np.clip(X[rng.integers(0, len(X), n_rows)] + noise, 0, 1)


def part_scoring(options):
    fits = fitted(*digits(), GRID, 10)
    score("scoring digits", fits, 10, digits_pool(40_000), 200, options, n_models=12)


def part_threads(options):
    """Two threads of this process against one: fits, then scoring."""
    X, y = digits()
    plan = dsel.plan_search(
        SVC(), GRID, X, y, criterion="cv_error", cv=10, prune=False, random_state=SEED
    )
    family, groups, _ = fitted(X, y, GRID, 10)
    joined, pool = family.join(groups), digits_pool(40_000)
    drawn = np.random.default_rng(SEED).integers(0, 10, len(pool))
    pieces = [(pool[s : s + 10_000], drawn[s : s + 10_000])
              for s in range(0, len(pool), 10_000)]  # fmt: skip

    def fit(n_threads):
        process_cache.cache_clear()
        plan.run(n_jobs=n_threads)

    def predict(n_threads):
        with ThreadPoolExecutor(n_threads) as threads:
            mine = [pieces[core::n_threads] for core in range(n_threads)]
            list(threads.map(lambda part: predict_blocks(joined, part, 10), mine))

    predict(CORES)
    for title, function in (
        ("fits", fit),
        ("scoring", predict),
    ):  # fmt: skip
        sides = {n: lambda _, n=n, f=function: f(n) for n in (1, CORES)}
        found = in_turn(sides, options.repeat)
        one, both = (np.median(found[n], axis=0) for n in (1, CORES))
        print(f"{title}: one thread {one[1]:.2f} s (CPU {one[0]:.2f}), {CORES} threads "
              f"{both[1]:.2f} s (CPU {both[0]:.2f}), {one[1] / both[1]:.2f} times "
              f"as fast (wanted 1.7)", flush=True)  # fmt: skip


FLOORS = ("digits", "pruned", "satimage", "scoring", "threads")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+")
    parser.add_argument(
        "--repeat", type=int, default=5, help="runs of each of our sides"
    )
    parser.add_argument("--batches", type=int, default=4, help="samples of the peer's")
    options = parser.parse_args()
    parts = [
        name
        for part in options.parts
        for name in (FLOORS if part == "floors" else [part])
    ]
    warm_up()
    for part in parts:
        globals()[f"part_{part}"](options)


if __name__ == "__main__":
    main()
