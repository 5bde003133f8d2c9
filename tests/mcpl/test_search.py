"""`SemiSupervisedLDA` as a candidate of a search, which gives it a part of the pool."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from dsel.mcpl import SemiSupervisedLDA
from dsel.mcpl.gaussian import read_summary
from dsel.search.planning.plan_search import plan_search


@pytest.fixture
def rows(rng):
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + 2.0 * (y == 1)[:, None] - (y == 2)[:, None]
    pool = rng.normal(size=(800, 3)) + 2.0 * rng.integers(0, 2, (800, 1))
    return X, y, pool


GRID = {"ridge": [0.1, 1.0]}


def plan(rows, grid=GRID, **params):
    return plan_search(SemiSupervisedLDA(**params), grid, *rows, random_state=0)


def test_plan_search__models_are_those_of_the_fitting_part(rows):
    X, y, pool = rows
    made = plan(rows)
    part = made.search.context.fitting_pool
    assert part.n_rows + made.search.pool.n_rows == len(pool)
    outcome = made.run()
    model = outcome.models["all_rows"]
    expected = clone(model).fit(X, y, pool=part)
    np.testing.assert_array_equal(model.means_, expected.means_)
    assert model.contrast_lower_ == expected.contrast_lower_


@dataclass(frozen=True)
class Unreadable:
    """A pool by name, whose rows are gone."""

    token: str
    n_rows: int

    def reduce(self, *arguments, **options):
        raise AssertionError("read once more")


@pytest.mark.parametrize("start_rows", [0, 50])
def test_read_summary__all_fits_of_a_process_share_one_read(rows, start_rows):
    X, y, pool = rows
    made = plan((X, y, 1.5 * pool), start_rows=start_rows)  # of this test alone
    part = made.search.context.fitting_pool
    gone = Unreadable(part.token, part.n_rows)
    with pytest.raises(AssertionError, match="read once more"):
        read_summary(gone, n_sampled=start_rows)
    made.run(n_jobs=1)
    assert read_summary(gone, n_sampled=start_rows)[0].count == part.n_rows
