"""The random pool rows that a search brings along while it reads the pool."""

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel.data.blocks import read_blocks
from dsel.searches import select
from dsel.searches.engine.count_task import SpanJob, SpanRecord, SpanTally
from dsel.searches.engine.pool_sample import sample_of_stage
from dsel.searches.engine.stages import Stages, plan_stages


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(8).normal(size=(3000, 3))


@pytest.fixture(scope="module")
def labeled(rows):
    return rows[:300], (rows[:300, 0] > 0).astype(int)


def brought_along(sample, stage):
    """Read a stage span by span, as a search does."""
    for span in stage.spans:
        job = SpanJob(span.start, span.stop, ())
        tally = SpanTally((), (), sample.wanted_of(job).rows(job.start, job.stop))
        for block in read_blocks(stage.pool.sources(span), 64):
            tally.add(block, ())
        sample.add(SpanRecord(job, (), (), 0.0, tally.sample))
        assert sample.wanted_of(job) is None
    return sample.rows()


def looks_of(X, chunk_rows, kind):
    if kind == "sparse":
        return Stages(dsel.open_pool(sparse.csr_matrix(X)), seed=3)
    pool = dsel.open_pool(da.from_array(X, chunks=(chunk_rows, 3)))
    if kind == "whole":
        return Stages(pool, seed=3)
    is_shuffled = kind == "first rows"
    reading = dsel.PoolReading(stop_within=0.1, n_stages=3, is_shuffled=is_shuffled)
    return plan_stages(pool, reading, share=0.5, seed=3)


def as_array(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.mark.parametrize("kind", ["whole", "drawn rows", "first rows", "sparse"])
def test_pool_sample__is_the_same_brought_along_or_read(rows, kind):
    found = []
    for chunk_rows in (100, 1400):
        stage = looks_of(rows, chunk_rows, kind).parts[0]
        read = sample_of_stage(stage, seed=4).rows()
        along = brought_along(sample_of_stage(stage, seed=4), stage)
        assert read.shape[0] == pytest.approx(min(500, stage.pool.n_rows), rel=0.2)
        found += [as_array(read), as_array(along)]
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


def counting_pool(X, read):
    def block(rows):
        if len(rows):  # Dask tries an empty one while it plans
            read.append(len(rows))
        return rows

    rows = da.from_array(X, chunks=(500, 3))
    return rows.map_blocks(block, dtype=X.dtype, meta=np.empty((0, 3)))


def reason(results):
    return select(results).certificate.assumptions[0].reason


def test_run__counts_in_one_reading_and_in_none_when_it_is_finished(
    rows, labeled, tmp_path
):
    """Of a Dask array each run reads beside that which rows it holds by now."""
    read = []
    options = {"cv": 3, "duplicates": "keep", "random_state": 1}
    pool = counting_pool(rows, read)
    plan = dsel.plan_search(
        None, [GaussianNB()], *labeled, pool, **{"criterion": "cv_bound"} | options
    )
    first = plan.run(out=tmp_path / "run")
    assert sum(read) == len(rows) + len(rows)
    assert "random pool rows equal a labeled row" in reason(first)
    again = plan.run(out=tmp_path / "run")
    assert sum(read) == 2 * len(rows) + len(rows)
    assert reason(again) == reason(first)


def test_run__that_goes_on_from_a_journal_finds_the_same(rows, labeled, tmp_path):
    pool = da.from_array(np.tile(rows, (10, 1)), chunks=(500, 3))
    plan = dsel.plan_search(
        None,
        [GaussianNB()],
        *labeled,
        pool,
        cv=3,
        duplicates="keep",
        random_state=1,
        criterion="cv_bound",
    )
    assert len(plan.stages.parts[0].spans) > 2
    whole = plan.run(out=tmp_path / "whole")

    def stop(progress):
        if progress.spans_done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(out=tmp_path / "run", on_progress=stop, n_jobs=1)
    resumed = plan.run(out=tmp_path / "run")
    assert reason(resumed) == reason(whole)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_run__takes_values_that_no_float32_holds(rows, labeled, kind):
    pool = np.where(rows == rows[2000, 0], 1e39, rows)[1000:]
    X, y = labeled
    plan = dsel.plan_search(
        GaussianNB(),
        {"var_smoothing": [1e-9]},
        X,
        y,
        kind(pool),
        cv=2,
        random_state=0,
        criterion="cv_bound",
    )
    found = select(plan.run()).certificate.assumptions[0]
    assert "AUC" in found.reason
