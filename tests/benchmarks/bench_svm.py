"""Kernel SVM grids against scikit-learn, both sides in one run, one part a name.

    python tests/benchmarks/bench_svm.py PART [repetitions] [share]

Parts: digits, family, pruned, intelex, satimage, scoring, letter, mixed, job, equal,
rows, growth. Times are CPU seconds of this process, all its threads together, since
neighbours disturb wall time; wall time is printed beside. Both sides use one BLAS
thread and one job. With a share below 1 the peer's digits grid is measured on that
share of its gammas, evenly spread, and scaled up.
"""

import functools
import os
import resource
import sys
import time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import dsel
from dsel.data.cache import ByteCache
from dsel.data.folds import random_folds
from dsel.data.trainings import Training
from dsel.models.base import Candidate
from dsel.models.kernel_svm import KernelSVMFamily

C_VALUES = 2.0 ** np.arange(-2, 13)
GAMMAS = 2.0 ** np.arange(-10, 5)
GRID = {"C": C_VALUES, "gamma": GAMMAS}
SEED = 0
PEER_SHARE = float((sys.argv[3:] or ["1"])[0]) if __name__ == "__main__" else 1.0


class Watch:
    """CPU and wall seconds of a block."""

    def __enter__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error):
        self.cpu = time.process_time() - self.cpu
        self.wall = time.perf_counter() - self.wall


def repeated(function, repetitions):
    """Medians of CPU and wall time, and the last value."""
    watches = []
    for _ in range(repetitions):
        with Watch() as watch:
            value = function()
        watches.append(watch)
    cpu, wall = (
        float(np.median([getattr(w, name) for w in watches]))
        for name in ("cpu", "wall")
    )
    return cpu, wall, value


def report(title, ours, theirs, wanted):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{title}: {ours:.2f} s against {theirs:.1f} s CPU, "
          f"{theirs / ours:.1f} times faster (wanted {wanted}); "
          f"peak memory {peak:.2f} GiB",
          flush=True)  # fmt: skip


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def scaled(data_dir, name, n=None):
    table = np.load(f"{data_dir}/{name}.npz")
    X, y = table["X"].astype(float), table["y"]
    keep = np.random.default_rng(SEED).permutation(len(y))[:n]
    low, high = X.min(axis=0), X.max(axis=0)
    return ((X - low) / np.where(high > low, high - low, 1.0))[keep], y[keep]


def trainings_of(n_rows, k):
    fold = random_folds(n_rows, k, seed=SEED)
    parts = [
        Training(i, f"fold-{i}", np.flatnonzero(fold != i), np.flatnonzero(fold == i))
        for i in range(k)
    ]
    rows = np.arange(n_rows)
    return [*parts, Training(k, "full", rows, rows[:0])]


def fitted(X, y, grid, k, *, tol=1e-3, limit=2**32, precision="float64"):
    """Fit a whole grid by the family; return it and its groups, C order by number."""
    estimators = [
        SVC(C=C, gamma=gamma, tol=tol) for C in grid["C"] for gamma in grid["gamma"]
    ]
    candidates = [Candidate(i, {}, svc) for i, svc in enumerate(estimators)]
    family = KernelSVMFamily(np.unique(y), SEED, precision=precision)
    budget = ByteCache(limit)
    trainings = trainings_of(len(y), k)
    pieces = [
        family.fit(group, X, y, trainings, budget=budget)
        for group in family.groups(candidates)
    ]
    return family, pieces, candidates


def warm_up():
    """Compile, or load what was compiled, before anything is timed."""
    X, y = digits()
    family, pieces, _ = fitted(X[:200], y[:200], {"C": [1.0, 2.0], "gamma": [0.1]}, 2)
    for precision in ("float64", "mixed"):
        KernelSVMFamily(family.classes, SEED, precision=precision).join(pieces).predict(
            X[:70], [np.array(2)]
        )
    X, y = np.repeat(X[:300], 4, axis=0), np.repeat(y[:300] % 2, 4)
    fitted(X, y, {"C": [1.0], "gamma": [1.0]}, 2)


def peer_grid(X, y, grid, k, tol=1e-3):
    """Search as scikit-learn does; return the errors on each fold."""
    fold = random_folds(len(y), k, seed=SEED)
    search = GridSearchCV(SVC(tol=tol), grid, cv=PredefinedSplit(fold), n_jobs=1)
    search.fit(X, y)
    rates = np.stack([search.cv_results_[f"split{i}_test_score"] for i in range(k)], -1)
    return np.rint((1 - rates) * np.bincount(fold)).astype(int)


def differing(ours, theirs):
    """Say how many cells of counts differ, and by how much at most."""
    gap = np.abs(np.asarray(ours).reshape(theirs.shape) - theirs)
    different = np.count_nonzero(gap)
    return f"{different} of {gap.size} fold cells differ, by {gap.max()} at most"


def search_digits(*, prune):
    X, y = digits()
    plan = dsel.plan_search(
        SVC(), GRID, X, y, criterion="cv_error", cv=10, prune=prune, random_state=SEED
    )
    return plan.run(n_jobs=1)


@functools.cache
def digits_peer():
    X, y = digits()
    step = round(1 / PEER_SHARE)
    some = np.arange(len(GAMMAS))[step // 2 :: step]
    with Watch() as watch:
        errors = peer_grid(X, y, {"C": C_VALUES, "gamma": GAMMAS[some]}, 10)
    return watch.cpu * len(GAMMAS) / len(some), errors, some


def part_digits(_, repetitions):
    cpu, wall, results = repeated(lambda: search_digits(prune=False), repetitions)
    theirs, errors, some = digits_peer()
    report(f"digits, exhaustive (wall {wall:.1f} s)", cpu, theirs, 15)
    print(" ", differing(results.fold_errors.values[:, some], errors))


def part_family(_, repetitions):
    X, y = digits()
    cpu, wall, _ = repeated(lambda: fitted(X, y, GRID, 10), repetitions)
    theirs, _, _ = digits_peer()
    report(f"digits, the family's fits alone (wall {wall:.1f} s)", cpu, theirs, 15)


def part_pruned(_, repetitions):
    cpu, wall, results = repeated(lambda: search_digits(prune=True), repetitions)
    theirs, _, _ = digits_peer()
    report(f"digits, pruned for cv_error (wall {wall:.1f} s)", cpu, theirs, 25)
    whole = dsel.select(search_digits(prune=False))
    assert dsel.select(results).params == whole.params


def part_intelex(_, repetitions):
    try:
        from sklearnex import svm as patched
    except ImportError:
        print("scikit-learn-intelex is not installed: skipped")
        return
    X, y = digits()
    fold = random_folds(len(y), 10, seed=SEED)
    cpu, _, _ = repeated(lambda: search_digits(prune=False), repetitions)
    search = GridSearchCV(patched.SVC(), GRID, cv=PredefinedSplit(fold), n_jobs=1)
    with Watch() as watch:
        search.fit(X, y)
    report("digits against scikit-learn-intelex", cpu, watch.cpu, 8)


def part_satimage(data_dir, repetitions):
    X, y = scaled(data_dir, "satimage")
    cpu, wall, (_, pieces, candidates) = repeated(
        lambda: fitted(X, y, GRID, 5), repetitions
    )
    trainings = trainings_of(len(y), 5)
    rng = np.random.default_rng(SEED)
    cells = rng.permutation(len(candidates) * 6)[: len(candidates) * 6 // 10]
    counted, seconds, gaps = counts_of(pieces), 0.0, []
    for cell in cells:
        number, column = divmod(int(cell), 6)
        training = trainings[column]
        svc = clone(candidates[number].estimator).set_params(cache_size=1000)
        with Watch() as watch:
            svc.fit(X[training.train_rows], y[training.train_rows])
            if len(training.test_rows):
                errors = svc.predict(X[training.test_rows]) != y[training.test_rows]
        seconds += watch.cpu
        if len(training.test_rows):
            gaps.append(abs(errors.sum() - counted[number, column]))
    scale = len(candidates) * 6 / len(cells)
    report(f"satimage (wall {wall:.1f} s)", cpu, seconds * scale, 10)
    print(f"  {np.count_nonzero(gaps)} of {len(gaps)} fold cells differ, "
          f"by {max(gaps)} at most")  # fmt: skip


def counts_of(pieces):
    """Errors on test rows, (n_candidates, n_trainings)."""
    rows = {}
    for piece in pieces:
        rows.update(zip(piece.candidates, piece.counts.test_errors, strict=True))
    return np.stack([rows[number] for number in sorted(rows)])


def score(title, table, grid, k, pool, wanted, *, precision="float64", sample=12):
    """Score a pool for a grid, against SVC.predict on some models and rows."""
    X, y = table
    family, pieces, _ = fitted(X, y, grid, k, limit=2**33, precision=precision)
    joined = family.join(pieces)
    drawn = np.random.default_rng(SEED).integers(0, k, len(pool))
    with Watch() as watch:
        codes = [
            joined.predict(pool[s : s + 10_000], [np.array(k), drawn[s : s + 10_000]])
            for s in range(0, len(pool), 10_000)
        ]
    codes = np.concatenate(codes, axis=2)
    rng = np.random.default_rng(1)
    asked = [(int(c), int(t)) for c, t in zip(
        rng.integers(0, len(joined.candidates), sample), np.arange(sample) % 2 * k,
        strict=True)]  # fmt: skip
    rows = rng.permutation(len(pool))[:1000]
    seconds, wrong, looked_at = 0.0, 0, 0
    for candidate, training in asked:
        model = joined.model(candidate, training)
        with Watch() as one:
            expected = model.predict(pool[rows])
        seconds += one.cpu
        mine = np.full(len(rows), training == k) | (drawn[rows] == training)
        found = family.classes[codes[int(training != k), candidate, rows]]
        wrong += np.count_nonzero(found[mine] != expected[mine])
        looked_at += np.count_nonzero(mine)
    # Every row is predicted by the full model and by one fold model.
    theirs = seconds / sample / len(rows) * len(pool) * 2 * len(joined.candidates)
    report(f"{title}, {precision}", watch.cpu, theirs, wanted)
    print(f"  {wrong} of {looked_at} codes differ from SVC.predict of the same models")
    return codes


def digits_pool(n_rows):
    X, _ = digits()
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.1, (n_rows, X.shape[1]))
    return np.clip(X[rng.integers(0, len(X), n_rows)] + noise, 0, 1)


def part_scoring(_, repetitions):
    score("scoring digits", digits(), GRID, 10, digits_pool(100_000), 30)


def part_letter(data_dir, repetitions):
    table = scaled(data_dir, "letter")
    labeled = tuple(part[:18_000] for part in table)
    pool = np.repeat(table[0][18_000:], 5, axis=0)
    pool += np.random.default_rng(2).normal(0, 0.02, pool.shape)
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [2.0, 8.0, 32.0]}
    plain = score("scoring letter", labeled, grid, 3, pool, 12, sample=6)
    mixed = score(
        "scoring letter", labeled, grid, 3, pool, 20, precision="mixed", sample=6
    )
    print(f"  mixed and float64 differ in {np.count_nonzero(plain != mixed)} codes")


def part_mixed(_, repetitions):
    pool = digits_pool(20_000)
    plain = score("scoring digits", digits(), GRID, 10, pool, 30)
    mixed = score("scoring digits", digits(), GRID, 10, pool, 30, precision="mixed")
    print(f"  mixed and float64 differ in {np.count_nonzero(plain != mixed)} codes")


def part_job(_, repetitions, n_pool=1_000_000):
    X, y = digits()
    pool = digits_pool(n_pool)
    plan = dsel.plan_search(
        SVC(), GRID, X, y, pool, criterion="cv_bound", delta=0.01, cv=10,
        random_state=SEED, shared_rows="refuse",
    )  # fmt: skip
    with Watch() as watch:
        results = plan.run(n_jobs=1)
    print(" ", dsel.select(results), f"wall {watch.wall:.1f} s")
    theirs_fits, _, _ = digits_peer()
    rows = pool[:500]
    seconds = []
    for C in C_VALUES[::5]:
        for gamma in GAMMAS[::3]:
            svc = SVC(C=C, gamma=gamma).fit(X, y)
            with Watch() as one:
                svc.predict(rows)
            seconds.append(one.cpu / len(rows))
    theirs = theirs_fits + np.mean(seconds) * 2 * len(C_VALUES) * len(GAMMAS) * n_pool
    report("main job on digits", watch.cpu, theirs, 100)


def part_equal(data_dir, repetitions):
    X, y = digits()
    _, pieces, _ = fitted(X, y, GRID, 10, tol=1e-6)
    some = np.arange(len(GAMMAS))[:: round(1 / PEER_SHARE)]
    errors = peer_grid(X, y, {"C": C_VALUES, "gamma": GAMMAS[some]}, 10, tol=1e-6)
    counted = counts_of(pieces)[:, :10].reshape(15, 15, 10)[:, some]
    print("digits at tol 1e-6:", differing(counted, errors), flush=True)
    X, y = scaled(data_dir, "satimage")
    _, pieces, candidates = fitted(X, y, GRID, 5, tol=1e-6)
    counted, trainings = counts_of(pieces), trainings_of(len(y), 5)
    cells = np.random.default_rng(SEED).permutation(len(candidates) * 5)
    gaps = []
    for cell in cells[: len(cells) // 10]:
        number, column = divmod(int(cell), 5)
        rows, test = trainings[column].train_rows, trainings[column].test_rows
        svc = clone(candidates[number].estimator).set_params(cache_size=1000)
        wrong = svc.fit(X[rows], y[rows]).predict(X[test]) != y[test]
        gaps.append(abs(wrong.sum() - counted[number, column]))
    print(f"satimage at tol 1e-6: {np.count_nonzero(gaps)} of {len(gaps)} fold cells "
          f"differ, by {max(gaps)} at most")  # fmt: skip


def part_rows(data_dir, repetitions):
    X, y = scaled(data_dir, "shuttle")
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [8.0]}
    with Watch() as watch:
        _, (piece,), _ = fitted(X, y, grid, 5, limit=2**31)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30 * 2**10
    print(f"shuttle, {len(y)} rows within 2 GiB: {watch.cpu:.0f} s CPU, "
          f"{watch.wall:.0f} s wall, peak memory {peak:.2f} GiB of the process, errors "
          f"{piece.counts.test_errors.sum(axis=1).tolist()}")  # fmt: skip


def part_growth(data_dir, repetitions):
    X, y = scaled(data_dir, "shuttle")
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [8.0]}
    sizes = np.array([1000, 2000, 4000, 8000, 16000, 32000])
    times = []
    for n in sizes:
        with Watch() as watch:
            fitted(X[:n], y[:n], grid, 5)
        times.append(watch.cpu)
        print(f"  n = {n}: {watch.cpu:.2f} s", flush=True)
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"fits grow as n^{exponent:.2f}")
    X, y = digits()
    family, pieces, _ = fitted(X, y, {"C": [1.0, 8.0], "gamma": [0.1, 0.5]}, 10)
    joined = family.join(pieces)
    sizes, times = np.array([10_000, 100_000, 1_000_000]), []
    for m in sizes:
        pool = digits_pool(min(m, 10_000))
        drawn = np.arange(len(pool)) % 10
        with Watch() as watch:
            for _ in range(m // len(pool)):
                joined.predict(pool, [np.array(10), drawn])
        times.append(watch.cpu)
        print(f"  m = {m}: {watch.cpu:.2f} s", flush=True)
    print(f"scoring grows as m^{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}")


def main():
    part, *rest = sys.argv[1:]
    data_dir = os.environ.get("DSEL_DATA", "../shared/data")
    repetitions = int(rest[0]) if rest else 1
    with threadpool_limits(1):
        warm_up()
        globals()[f"part_{part}"](data_dir, repetitions)


if __name__ == "__main__":
    main()
