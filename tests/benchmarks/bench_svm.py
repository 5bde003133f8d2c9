"""Kernel SVM grids against scikit-learn, both sides in one run, one part a name.

    python tests/benchmarks/bench_svm.py PART [repetitions] [share]

Parts: digits, family, pruned, intelex, satimage, scoring, letter, job, rows,
growth (which writes a figure). Times are medians of CPU seconds of this process, all
its threads together, since neighbours disturb wall time; wall time is printed beside.
Peak memory is that of the process when our side is done. Both sides use one thread and
one job. With a share below 1 the peer's digits grid is measured on that share of its
gammas, evenly spread, and scaled up. `equal_svm.py` compares all counts.
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
from dsel.models.family import FIT_DONE, Candidate
from dsel.models.svm.family import KernelSVMFamily

C_VALUES = 2.0 ** np.arange(-2, 13)
GAMMAS = 2.0 ** np.arange(-10, 5)
GRID = {"C": C_VALUES, "gamma": GAMMAS}
SEED = 0
PEER_SHARE = float((sys.argv[3:] or ["1"])[0]) if __name__ == "__main__" else 1.0


class Watch:
    """CPU and wall seconds of a block, and the process's peak memory in GiB after."""

    def __enter__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error):
        self.cpu = time.process_time() - self.cpu
        self.wall = time.perf_counter() - self.wall
        self.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def repeated(function, repetitions):
    """A watch with the medians of CPU and wall time, and the last value."""
    watches = []
    for _ in range(repetitions):
        with Watch() as watch:
            value = function()
        watches.append(watch)
    for name in ("cpu", "wall"):
        median = float(np.median([getattr(each, name) for each in watches]))
        setattr(watch, name, median)
    return watch, value


def report(title, watch, theirs, wanted):
    print(f"{title}: {watch.cpu:.2f} s (wall {watch.wall:.1f} s) against "
          f"{theirs:.1f} s CPU, {theirs / watch.cpu:.1f} times faster (wanted "
          f"{wanted}); peak memory {watch.peak:.2f} GiB",
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


def fitted(X, y, grid, k, *, tol=1e-3, limit=2**32):
    """Fit a whole grid by the family; return it and its groups, C order by number."""
    estimators = [
        SVC(C=C, gamma=gamma, tol=tol) for C in grid["C"] for gamma in grid["gamma"]
    ]
    candidates = [Candidate(i, {}, svc) for i, svc in enumerate(estimators)]
    classes, codes = np.unique(y, return_inverse=True)
    family = KernelSVMFamily(classes, SEED)
    budget = ByteCache(limit)
    trainings = trainings_of(len(y), k)
    pieces = [
        family.fit(group, X, codes, trainings, budget=budget)
        for group in family.groups(candidates)
    ]
    assert all((piece.counts.status == FIT_DONE).all() for piece in pieces)
    return family, pieces, candidates


def warm_up():
    """Compile, or load what was compiled, before anything is timed."""
    X, y = digits()
    family, pieces, _ = fitted(X[:200], y[:200], {"C": [1.0, 2.0], "gamma": [0.1]}, 2)
    family.join(pieces).predict(X[:70], [np.array(2)])
    X, y = np.repeat(X[:300], 4, axis=0), np.repeat(y[:300] % 2, 4)
    fitted(X, y, {"C": [1.0], "gamma": [1.0]}, 2)


def peer_grid(X, y, grid, k, svc):
    """Search as scikit-learn does; return the errors on each fold."""
    fold = random_folds(len(y), k, seed=SEED)
    search = GridSearchCV(svc, grid, cv=PredefinedSplit(fold), n_jobs=1)
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
def digits_peer(peer=SVC):
    X, y = digits()
    step = round(1 / PEER_SHARE)
    some = np.arange(len(GAMMAS))[step // 2 :: step]
    with Watch() as watch:
        errors = peer_grid(X, y, {"C": C_VALUES, "gamma": GAMMAS[some]}, 10, peer())
    return watch.cpu * len(GAMMAS) / len(some), errors, some


def part_digits(_, repetitions):
    watch, results = repeated(lambda: search_digits(prune=False), repetitions)
    theirs, errors, some = digits_peer()
    report("digits, exhaustive", watch, theirs, 15)
    print(" ", differing(results.fold_errors.values[:, some], errors))


def part_family(_, repetitions):
    X, y = digits()
    watch, _ = repeated(lambda: fitted(X, y, GRID, 10), repetitions)
    report("digits, the family's fits alone", watch, digits_peer()[0], 15)


def part_pruned(_, repetitions):
    watch, results = repeated(lambda: search_digits(prune=True), repetitions)
    report("digits, pruned for cv_error", watch, digits_peer()[0], 25)
    whole = dsel.select(search_digits(prune=False))
    assert dsel.select(results).params == whole.params


def part_intelex(_, repetitions):
    try:
        from daal4py import daalinit
        from sklearnex import svm as patched
    except ImportError:
        print("scikit-learn-intelex is not installed: skipped")
        return
    daalinit(1)  # threads
    watch, results = repeated(lambda: search_digits(prune=False), repetitions)
    theirs, errors, some = digits_peer(patched.SVC)
    report("digits against scikit-learn-intelex", watch, theirs, 8)
    print(" ", differing(results.fold_errors.values[:, some], errors))


def part_satimage(data_dir, repetitions):
    X, y = scaled(data_dir, "satimage")
    ours, (_, pieces, candidates) = repeated(lambda: fitted(X, y, GRID, 5), repetitions)
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
    report("satimage", ours, seconds * scale, 10)
    print(f"  {np.count_nonzero(gaps)} of {len(gaps)} fold cells differ, "
          f"by {max(gaps)} at most")  # fmt: skip


def counts_of(pieces):
    """Errors on test rows, (n_candidates, n_trainings)."""
    rows = {}
    for piece in pieces:
        rows.update(zip(piece.candidates, piece.counts.test_errors, strict=True))
    return np.stack([rows[number] for number in sorted(rows)])


def score(title, fits, k, pool, repetitions, wanted, *, sample):
    """Score a pool for a grid, against SVC.predict on some models and rows."""
    family, pieces, _ = fits
    joined = family.join(pieces)
    drawn = np.random.default_rng(SEED).integers(0, k, len(pool))
    blocks = [slice(s, s + 10_000) for s in range(0, len(pool), 10_000)]
    watch, codes = repeated(
        lambda: [joined.predict(pool[b], [np.array(k), drawn[b]]) for b in blocks],
        repetitions,
    )
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
    report(title, watch, theirs, wanted)
    print(f"  {wrong} of {looked_at} codes differ from SVC.predict of the same models")
    return codes


def digits_pool(n_rows):
    X, _ = digits()
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.1, (n_rows, X.shape[1]))
    return np.clip(X[rng.integers(0, len(X), n_rows)] + noise, 0, 1)


def part_scoring(_, repetitions):
    fits = fitted(*digits(), GRID, 10)
    pool = digits_pool(100_000)
    score("scoring digits", fits, 10, pool, repetitions, 30, sample=12)


def part_letter(data_dir, repetitions):
    X, y = scaled(data_dir, "letter")
    pool = np.repeat(X[18_000:], 5, axis=0)
    pool += np.random.default_rng(2).normal(0, 0.02, pool.shape)
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [2.0, 8.0, 32.0]}
    fits = fitted(X[:18_000], y[:18_000], grid, 3, limit=2**33)
    score("scoring letter", fits, 3, pool, repetitions, 20, sample=6)


def part_job(_, repetitions, n_pool=1_000_000):
    X, y = digits()
    pool = digits_pool(n_pool)
    plan = dsel.plan_search(
        SVC(), GRID, X, y, pool, criterion="cv_bound", delta=0.01, cv=10,
        random_state=SEED, duplicates="refuse",
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
    report("main job on digits", watch, theirs, 100)


def part_rows(data_dir, repetitions):
    X, y = scaled(data_dir, "shuttle")
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [8.0]}
    with Watch() as watch:
        _, (piece,), _ = fitted(X, y, grid, 5, limit=2**31)
    print(f"shuttle, {len(y)} rows within 2 GiB: {watch.cpu:.0f} s CPU, "
          f"{watch.wall:.0f} s wall, peak memory {watch.peak:.2f} GiB, errors "
          f"{piece.counts.test_errors.sum(axis=1).tolist()}")  # fmt: skip


def growth_of_fits(data_dir, sizes):
    X, y = scaled(data_dir, "shuttle")
    grid = {"C": [1.0, 8.0, 64.0], "gamma": [8.0]}
    for n in sizes:
        with Watch() as watch:
            fitted(X[:n], y[:n], grid, 5, limit=2**31)
        yield watch


def growth_of_scoring(sizes):
    X, y = digits()
    family, pieces, _ = fitted(X, y, {"C": [1.0, 8.0], "gamma": [0.1, 0.5]}, 10)
    joined = family.join(pieces)
    pool = digits_pool(10_000)
    which = [np.array(10), np.arange(len(pool)) % 10]
    for m in sizes:
        with Watch() as watch:
            for _ in range(m // len(pool)):
                joined.predict(pool, which)
        yield watch


def part_growth(data_dir, _, path="growth-svm.png"):
    import matplotlib.pyplot as plt

    rows = [1000, 2000, 4000, 8000, 16_000, 32_000]
    pools = [10**4, 10**5, 10**6, 10**7]
    _, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
    for ax, sizes, watches, label in zip(
        axes,
        (rows, pools),
        (growth_of_fits(data_dir, rows), growth_of_scoring(pools)),
        ("labeled rows, n (18 fits)", "pool rows, m (4 candidates)"),
        strict=True,
    ):
        seconds = []
        for size, watch in zip(sizes, watches, strict=True):
            seconds.append(watch.cpu)
            print(f"  {size:,} {label}: {watch.cpu:.2f} s CPU, peak memory "
                  f"{watch.peak:.2f} GiB", flush=True)  # fmt: skip
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        ax.loglog(sizes, seconds, "o-")
        ax.set(xlabel=label, ylabel="CPU seconds", title=f"exponent {exponent:.2f}")
        print(f"{label}: exponent {exponent:.2f}")
    plt.savefig(path, bbox_inches="tight")


def main():
    part, *rest = sys.argv[1:]
    data_dir = os.environ.get("DSEL_DATA", "../shared/data")
    repetitions = int(rest[0]) if rest else 1
    with threadpool_limits(1):
        warm_up()
        globals()[f"part_{part}"](data_dir, repetitions)


if __name__ == "__main__":
    main()
