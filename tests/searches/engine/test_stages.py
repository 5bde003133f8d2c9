"""Reading the pool only as far as needed."""

import json

import dask.array as da
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel import bounds, names
from dsel.bounds import FixedStages
from dsel.searches import select
from dsel.searches.engine.stages import Stages, at_most

GRID = {"var_smoothing": [1e-9, 0.1, 1.0, 10.0]}
N_POOL = 40_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300 + N_POOL, 3))
    y = (X.sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    return X[:300], y[:300], X[300:]


def plan(rows, pool=None, *, stop_within=0.01, n_stages=10, **options):
    X, y, all_rows = rows
    reading = dsel.PoolReading(stop_within=stop_within, n_stages=n_stages)
    given = {"cv": 3, "delta": 0.1, "random_state": 3, "reading": reading}
    pool = all_rows if pool is None else pool
    return dsel.plan_search(
        GaussianNB(), GRID, X, y, pool, **{"criterion": "cv_bound"} | given | options
    )


@pytest.fixture(scope="module")
def stopped(rows):
    return plan(rows, prune=False).run()


def test_run__stops_where_the_bound_is_near_to_what_all_rows_give(rows, stopped):
    read = stopped.pool_rows.sum("fold").values
    stages = json.loads(stopped.attrs["stage_rows"])
    assert np.isin(read, stages).all()
    assert (read < N_POOL).all()
    assert (read > stages[0]).all()
    whole = plan(rows, prune=False, stop_within=None).run()
    gain = select(stopped).bound - select(whole).bound
    assert 0 < gain < 0.02


def test_run__reports_the_bound_that_holds_at_every_look(stopped):
    choice = select(stopped)
    cell = stopped.isel(var_smoothing=choice.candidate)
    counts = (
        cell.fold_errors.values.astype(int),
        cell.fold_rows.values.astype(int),
        int(cell.disagreements.sum()),
        int(cell.pool_rows.sum()),
    )
    expected = bounds.cv_bound(*counts, delta=0.1 / 4, reading=FixedStages(10))
    assert choice.certificate.unclipped == pytest.approx(float(expected.bound))
    assert choice.certificate.certified
    spent = stopped.dsel.spent.event.tolist()
    assert spent == ["fold_limits", "random_fold_disagreement at each of 10 stages"]


def test_run__stops_for_no_other_reason_than_the_counts_so_far(rows, stopped):
    stages = Stages(rows[2], FixedStages(10), 0.01, 0.5 * 0.1 / 4)
    object.__setattr__(stages, "pool", type("Rows", (), {"n_rows": N_POOL})())
    counts = stopped.disagreements.sum("fold").values[:, np.newaxis]
    read = stopped.pool_rows.sum("fold").values[:, np.newaxis]
    assert stages.are_near(counts, read).all()


@pytest.mark.parametrize("chunks", [1_000, 7_777, N_POOL])
def test_run__does_not_depend_on_chunks(rows, stopped, chunks):
    found = plan(rows, da.from_array(rows[2], chunks=(chunks, 3)), prune=False).run()
    for name in (names.DISAGREEMENTS, names.POOL_ROWS, names.BEST_FOLD_DISAGREEMENTS):
        np.testing.assert_array_equal(found[name], stopped[name])


def test_run__does_not_depend_on_workers_nor_on_pruning(rows, stopped):
    for n_jobs in (1, 3):
        found = plan(rows).run(n_jobs=n_jobs)
        assert select(found) == select(stopped)


def test_run__goes_on_from_an_interruption_at_any_look(rows, stopped, tmp_path):
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if progress.pool_rows_done:
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            plan(rows, prune=False).run(out=tmp_path, on_progress=interrupt, n_jobs=1)
    found = plan(rows, prune=False).run(out=tmp_path)
    assert select(found) == select(stopped)
    np.testing.assert_array_equal(found.disagreements, stopped.disagreements)


def test_run__reads_on_in_the_same_place_for_no_more_delta(rows, tmp_path):
    first = plan(rows, prune=False, stop_within=0.02).run(out=tmp_path)
    second = plan(rows, prune=False, stop_within=0.008).run(out=tmp_path)
    assert (second.pool_rows.sum("fold") > first.pool_rows.sum("fold")).all()
    assert select(second).certificate.certified
    again = plan(rows, prune=False, stop_within=0.02).run(out=tmp_path)
    np.testing.assert_array_equal(again.pool_rows, first.pool_rows)


def test_run__with_any_time_limits_is_certified_too(rows):
    cube = plan(rows, n_stages=0).run()
    assert int(cube.n_stages) == 0
    assert select(cube).certificate.certified
    assert "at every row" in cube.dsel.spent.event[1]


@pytest.mark.parametrize("certificate", ["best_fold", "merged_folds", "cv_interval"])
def test_run__stops_with_every_certificate_of_a_limit(rows, certificate):
    cube = plan(rows, certificate=certificate).run()
    assert select(cube).certificate.certified
    assert cube.pool_rows.sum("fold").max() < N_POOL


def test_select__has_no_plain_bound_of_a_reading_that_could_stop(rows, stopped):
    with pytest.raises(ValueError, match="leave `stop_within` out of `reading`"):
        select(stopped.assign(fold_disagreements=stopped.fold_errors), "transductive")
    with pytest.raises(ValueError, match="`stop_within` does not go with 'trans"):
        plan(rows, criterion="transductive")
    forgotten = stopped.drop_vars(names.N_STAGES)
    del forgotten.attrs[names.STAGE_ROWS]
    with pytest.raises(dsel.errors.AllFitsFailedError, match="no candidate has"):
        select(forgotten)


def test_run__of_a_shuffled_pool_does_not_fetch_the_rest(rows):
    read = []

    def fetch(block, block_info=None):
        read.append(block_info[0]["array-location"][0])
        return block

    pool = da.from_array(rows[2], chunks=(500, 3)).map_blocks(fetch, dtype=float)
    reading = dsel.PoolReading(is_shuffled=True, stop_within=0.03)
    made = plan(rows, pool, reading=reading, duplicates="keep")
    read.clear()
    cube = made.run()
    furthest = max(stop for _, stop in read)
    assert furthest <= cube.pool_rows.sum("fold").max() + 500
    assert furthest < N_POOL / 2
    assert "random order" in select(cube).certificate.assumptions[0].reason


def test_looks__of_a_sorted_pool_are_random_parts(rows):
    pool = dsel.open_pool(np.sort(rows[2], axis=0))
    parts = Stages(pool, FixedStages(5), seed=1).parts
    assert sum(part.pool.n_rows for part in parts) == N_POOL
    means = [
        part.pool.reduce(lambda X, rows: X[:, 0].sum(), lambda a, b: a + b)
        / part.pool.n_rows
        for part in parts
    ]
    assert np.abs(means[1:]).max() < 0.2


def test_looks__are_the_same_rows_for_any_chunks(rows):
    pools = [da.from_array(rows[2], chunks=(c, 3)) for c in (999, 10_000)]
    stages = [Stages(dsel.open_pool(pool), FixedStages(5), seed=1) for pool in pools]
    np.testing.assert_array_equal(stages[0].rows, stages[1].rows)


@pytest.mark.parametrize("shuffled", [False, True])
def test_at_most__takes_about_as_many_rows(rows, shuffled):
    pool = dsel.open_pool(rows[2])
    part = at_most(pool, 5_000, shuffled=shuffled, seed=2)
    assert part.n_rows == pytest.approx(5_000, rel=0.1)
    assert at_most(pool, N_POOL, shuffled=shuffled, seed=2) is pool
    assert at_most(None, 5, shuffled=shuffled, seed=2) is None


def test_plan_search__uses_a_part_of_the_pool(rows):
    cube = plan(rows, reading=dsel.PoolReading(max_rows=5_000)).run()
    assert int(cube.n_unlabeled) == pytest.approx(5_000, rel=0.1)
    assert select(cube).certificate.certified


def test_search__takes_the_same_options(rows):
    X, y, pool = rows
    search = dsel.SemiSupervisedSearchCV(
        GaussianNB(),
        GRID,
        cv=3,
        random_state=3,
        reading=dsel.PoolReading(stop_within=0.02),
        certify_rows=0.2,
    ).fit(X, y, pool=pool)
    assert search.certificate_.certified
    assert int(search.certificate_results_.pool_rows.sum()) < N_POOL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stop_within": 0.0}, "`stop_within` must be positive"),
        ({"n_stages": -1}, "`n_stages` must be >= 0"),
        ({"max_rows": 0}, "`max_rows` must be >= 1"),
    ],
)
def test_pool_reading__refuses(change, message):
    with pytest.raises(ValueError, match=message):
        dsel.PoolReading(**change)


def test_plan__says_how_it_reads(rows):
    said = " ".join(repr(plan(rows)).split())
    assert "10 stages, until a bound is within 0.01" in said
    assert "stages" not in repr(plan(rows, stop_within=None))


def test_run__looks_do_not_fail_more_often_than_they_may():
    rng = np.random.default_rng(11)
    stages = Stages(None, FixedStages(6), 0.02, share=0.3)
    object.__setattr__(stages, "pool", type("Rows", (), {"n_rows": 20_000})())
    rows = bounds.stage_schedule(20_000, 6)
    failed = 0
    for _ in range(300):
        counts = rng.random(20_000).__lt__(0.1).cumsum()[rows - 1]
        at = stages.are_near(counts[:, np.newaxis], rows[:, np.newaxis]).argmax()
        failed += stages.reading.limits(counts[at], rows[at], 0.3) < 0.1
    assert failed <= 0.3 * 300
