"""A pool whose files are written while a search reads them gives no number."""

import os

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.co_validation import write_row_disagreement
from dsel.mcpl import SemiSupervisedLDA
from dsel.search import predict_pool

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
POOL = RNG.normal(size=(4_000, 3))
OTHER = RNG.normal(size=(4_000, 3)) + 5
NAMES = ["a", "b", "c"]
LABELED = pd.DataFrame(X, columns=NAMES)


def npy(folder, rows):
    np.save(folder / "pool.npy", rows)
    return folder / "pool.npy"


def npy_by_column(folder, rows):
    return npy(folder, np.asfortranarray(rows))


def mapped(folder, rows):
    # Another file takes its place: reading a mapped file that is short kills a process.
    np.save(folder / "new.npy", rows)
    os.replace(folder / "new.npy", folder / "pool.npy")
    return np.load(folder / "pool.npy", mmap_mode="r")


def npy_written_in_place(folder, rows):
    path = folder / "pool.npy"
    if not path.exists():
        return npy(folder, rows)
    np.lib.format.open_memmap(path, mode="r+")[:5] = rows[:5]
    os.utime(path)
    return path


def of_zarr(folder, rows):
    options = {"chunks": (500, 3), "overwrite": True}
    zarr.create_array(folder / "pool.zarr", data=rows, **options)
    return folder / "pool.zarr"


def open_array(folder, rows):
    return zarr.open_array(of_zarr(folder, rows), mode="r")


def one_chunk(folder, rows):
    path = folder / "pool.zarr"
    if not path.exists():
        return of_zarr(folder, rows)
    zarr.open_array(path, mode="r+")[:500] = rows[:500]
    return path


def parquet(folder, rows):
    pd.DataFrame(rows, columns=NAMES).to_parquet(folder / "pool.parquet")
    return folder / "pool.parquet"


def parts(folder, rows):
    (folder / "parts").mkdir(exist_ok=True)
    for number, part in enumerate(np.split(rows, 4)):
        part = pd.DataFrame(part, columns=NAMES)
        part.to_parquet(folder / "parts" / f"{number}.parquet")
    return folder / "parts"


def a_part_more(folder, rows):
    if not (folder / "parts").exists():
        return parts(folder, rows)
    more = pd.DataFrame(rows[:9], columns=NAMES)
    return more.to_parquet(folder / "parts" / "new.parquet")


def a_part_less(folder, rows):
    if not (folder / "parts").exists():
        return parts(folder, rows)
    return (folder / "parts" / "2.parquet").unlink()


KINDS = {
    "npy": (npy, "pool.npy"),
    "npy by column": (npy_by_column, "pool.npy"),
    "npy in place": (npy_written_in_place, "pool.npy"),
    "memory map": (mapped, "pool.npy"),
    "zarr": (of_zarr, "pool.zarr"),
    "zarr array": (open_array, "pool.zarr"),
    "a chunk": (one_chunk, "'c/0/0' was written"),
    "Parquet": (parquet, "pool.parquet"),
    "folder": (parts, "'0.parquet' was written"),
    "a file more": (a_part_more, "'new.parquet' was written"),
    "a file less": (a_part_less, "'2.parquet' is gone"),
}
CERTIFICATES = ("nested", "cv_bound", "best_fold")


def written_at(phase, write):
    """Return what is told of progress and writes once, when a phase has begun."""
    times = []

    def on_progress(progress):
        if getattr(progress, phase) and not times:
            times.append(write())

    return on_progress


def labeled_for(kind):
    is_table = kind in ("Parquet", "folder", "a file more", "a file less")
    return LABELED if is_table else X


def has_no_outcome(out):
    return not (out / "outcome.json").exists()


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("kind", KINDS)
def test_run__ends_with_an_error_that_names_what_changed(kind, certificate, tmp_path):
    make, name = KINDS[kind]
    pool, out = make(tmp_path, POOL), tmp_path / "out"
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, labeled_for(kind), Y, pool, cv=3,
        certificate=certificate, random_state=0, prune=False,
    )  # fmt: skip
    write = written_at("fits_done", lambda: make(tmp_path, OTHER))
    with pytest.raises(dsel.errors.PoolChangedError, match=name):
        plan.run(out=out, on_progress=write, n_jobs=1)
    assert has_no_outcome(out)
    with pytest.raises(ValueError, match=r"written while a run read it|another plan"):
        plan.run(out=out, n_jobs=1)


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_run__compares_after_the_last_pass_too(certificate, tmp_path):
    out = tmp_path / "out"
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, X, Y, npy(tmp_path, POOL), cv=3,
        certificate=certificate, random_state=0, prune=False,
    )  # fmt: skip
    write = written_at("slices_done", lambda: npy(tmp_path, OTHER))
    with pytest.raises(dsel.errors.PoolChangedError, match=r"pool\.npy"):
        plan.run(out=out, on_progress=write, n_jobs=1)
    assert has_no_outcome(out)


class Writer(ClassifierMixin, BaseEstimator):
    """Writes a file anew when it is fitted, as a script around a search may do."""

    def __init__(self, path, depth=1):
        self.path, self.depth = path, depth

    def fit(self, X, y):
        np.save(self.path, OTHER)
        self.tree_ = DecisionTreeClassifier(max_depth=self.depth).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


@pytest.mark.cluster
def test_run__on_a_cluster_compares_in_the_driver(processes, tmp_path):
    path = npy(tmp_path, POOL)
    plan = dsel.plan_search(
        Writer(str(path)), {"depth": [1, 2]}, X, Y, path, cv=3, random_state=0
    )
    with pytest.raises(dsel.errors.PoolChangedError, match=r"pool\.npy"):
        plan.run(processes, out=tmp_path / "out")
    assert has_no_outcome(tmp_path / "out")


def test_fit__of_a_learner_that_writes_the_pool_raises(tmp_path):
    path = npy(tmp_path, POOL)
    search = dsel.SemiSupervisedSearchCV(Writer(str(path)), {"depth": [1, 2]}, cv=3)
    with pytest.raises(dsel.errors.PoolChangedError, match=r"pool\.npy"):
        search.fit(X, Y, pool=path)
    assert not hasattr(search, "best_estimator_")


def covalidate(pool, _):
    dsel.covalidate(LogisticRegression(), {"C": [1.0]}, X, Y, pool, repeats=2)


def disagreement(pool, folder):
    tree = DecisionTreeClassifier()
    write_row_disagreement(tree, X, Y, pool, folder / "rates", n_models=3)


def predictions(pool, folder):
    predict_pool(LogisticRegression().fit(X, Y), pool, folder / "labels")


def likelihood(pool, _):
    SemiSupervisedLDA().fit(X, Y, pool=pool)


def copy(pool, folder):
    dsel.write_pool(pool, folder / "copy.zarr")


@pytest.mark.parametrize(
    "use", [covalidate, disagreement, predictions, likelihood, copy]
)
def test_pool__that_was_written_after_it_was_opened_is_not_read(use, tmp_path):
    pool = dsel.open_pool(npy(tmp_path, POOL))
    use(pool, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    npy(tmp_path, OTHER)
    with pytest.raises(dsel.errors.PoolChangedError, match=r"pool\.npy"):
        use(pool, other)


def test_open_pool__again_after_a_change_reads_what_is_there(tmp_path):
    dsel.open_pool(npy(tmp_path, POOL))
    pool = dsel.open_pool(npy(tmp_path, OTHER))
    assert pool.reduce(lambda X, _: X.sum(), np.add) == pytest.approx(OTHER.sum())


@pytest.mark.parametrize("order", ["C", "F"])
def test_open_pool__of_a_file_that_became_shorter_says_so(order, tmp_path):
    rows = np.asarray(POOL, order=order)
    read = dsel.open_pool(npy(tmp_path, rows)).to_dask_array()
    assert np.array_equal(read.compute(), POOL)
    os.truncate(tmp_path / "pool.npy", rows.nbytes // 2)
    with pytest.raises(dsel.errors.PoolChangedError, match=r"pool\.npy.* fewer than"):
        read.compute()


def test_pool__at_a_url_is_compared_by_what_the_store_tells(storage_options, tmp_path):
    place = f"s3://dsel/changed-{os.getpid()}.zarr"
    options = {"storage_options": storage_options}
    dsel.write_pool(POOL, place, **options)
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, X, Y,
        dsel.open_pool(place, **options), cv=3, random_state=0,
    )  # fmt: skip

    def write():
        zarr.open_array(place, mode="r+", **options)[:7] = 3.0

    with pytest.raises(
        dsel.errors.PoolChangedError, match=r"changed-.*'c/0/0' was written"
    ):
        plan.run(on_progress=written_at("fits_done", write), n_jobs=1)


def drawn_anew(n_rows=500):
    return np.random.default_rng().normal(size=(n_rows, 3))


def mapped_blocks(rows, of):
    blocks = da.from_array(rows, chunks=(500, 3))
    return blocks.map_blocks(of, dtype=rows.dtype)


def delayed_frames(of):
    parts = [dask.delayed(of)() for _ in range(4)]
    return dd.from_delayed(parts, meta=LABELED[:0], verify_meta=False)


def rounded_anew(rows):
    """Return rows that differ in their last digits, as sums in another order do."""
    with np.errstate(all="ignore"):
        return (rows * (1 + 1e-7 * np.random.default_rng().normal())).astype("f4")


UNSTABLE = {
    "an array": lambda: mapped_blocks(POOL, lambda x: drawn_anew(len(x))),
    "sparse rows": lambda: mapped_blocks(
        POOL, lambda x: sparse.csr_matrix(drawn_anew(len(x)))
    ),
    "data frames": lambda: delayed_frames(
        lambda: pd.DataFrame(drawn_anew(), columns=NAMES)
    ).repartition(npartitions=2),
}


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("kind", UNSTABLE)
def test_run__of_a_graph_that_gives_other_rows_each_time_raises(kind, certificate):
    is_table = kind == "data frames"
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, LABELED if is_table else X, Y,
        UNSTABLE[kind](), cv=3, certificate=certificate, random_state=0, prune=False,
    )  # fmt: skip
    with pytest.raises(dsel.errors.PoolChangedError, match="`pool` gives other rows"):
        plan.run(n_jobs=1)


class OfService:
    """A graph whose rows are those of a file, which it does not name."""

    def __init__(self, folder):
        self.file = folder / "shift.npy"
        self.shift(0.0)

    def shift(self, amount):
        np.save(self.file, amount)

    def __call__(self, rows):
        return rows + np.load(self.file)

    def __dask_tokenize__(self):
        return "the rows of a service"


def test_run__that_goes_on_compares_the_pool_with_that_of_the_first_run(tmp_path):
    service = OfService(tmp_path)

    def run(out, on_progress):
        plan = dsel.plan_search(
            LogisticRegression(), {"C": [0.1, 1.0]}, X, Y,
            mapped_blocks(POOL, service), cv=3, random_state=0, prune=False,
        )  # fmt: skip
        return plan.run(out=tmp_path / out, n_jobs=1, on_progress=on_progress)

    def interrupt(progress):
        if progress.phase == "Counting on the pool":
            raise KeyboardInterrupt

    for out in ("same", "changed"):
        with pytest.raises(KeyboardInterrupt):
            run(out, interrupt)
    assert run("same", lambda progress: None).certificate.bound < 1
    with pytest.raises(dsel.errors.PoolChangedError, match="`pool` gives other rows"):
        # The run has compared the pool's fingerprint before its first progress.
        run("changed", lambda progress: service.shift(5.0))


STABLE = {
    "da.random": lambda: da.random.default_rng().normal(size=(4_000, 3)),
    "rounding": lambda: mapped_blocks(POOL.astype("f4"), rounded_anew),
    "gaps": lambda: da.from_array(np.where(POOL > 2, np.nan, POOL), chunks=(500, 3)),
}


@pytest.mark.parametrize("kind", STABLE)
def test_run__of_a_graph_that_gives_the_same_rows_ends(kind):
    plan = dsel.plan_search(
        HistGradientBoostingClassifier(max_iter=2), {"max_depth": [1, 2]}, X, Y,
        STABLE[kind](), cv=3, random_state=0,
    )  # fmt: skip
    assert plan.run(n_jobs=1).certificate.bound < 1


@pytest.mark.cluster
def test_run__on_a_cluster_sees_other_rows(processes):
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, X, Y, UNSTABLE["an array"](), cv=3,
        random_state=0,
    )  # fmt: skip
    with pytest.raises(dsel.errors.PoolChangedError, match="`pool` gives other rows"):
        plan.run(processes)
