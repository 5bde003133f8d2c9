"""Pools and results in an S3-compatible object store."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.cluster import Local, connect
from tests.job import counts_of
from tests.object_store import object_store

pytest.importorskip("s3fs")
pytest.importorskip("moto")

GRID = {"C": [0.01, 1.0]}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with object_store(tmp_path_factory.mktemp("store")) as variables:
        yield variables


def _plan(pool):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    return dsel.plan_search(
        LogisticRegression(), GRID, X, y, pool, cv=3, random_state=0, prune=False
    )


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_object_store__gives_the_counts_of_memory_and_keeps_the_cube(store):
    rows = np.random.default_rng(1).normal(size=(20_000, 4)).astype(np.float32)
    dsel.write_pool(rows, "s3://dsel/pool.zarr", chunk_rows=3_000)
    expected = counts_of(_plan(rows).run())
    with connect(Local(workers=2)) as client:
        plan = _plan(dsel.open_pool("s3://dsel/pool.zarr"))
        found = counts_of(plan.run(client, out="s3://dsel/results"))
        again = counts_of(plan.run(client, out="s3://dsel/results"))
    assert found == expected
    assert again == expected
    assert counts_of(dsel.open_results("s3://dsel/results")) == expected
