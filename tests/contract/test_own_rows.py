"""Counted are the rows as they were given, and what was given stays as it is."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import dsel

pytestmark = pytest.mark.contract

X, Y = make_classification(600, 6, n_informative=4, flip_y=0.1, random_state=0)
X, Y, POOL = X[:200], Y[:200], X[200:]
NAMES = list("abcdef")
KINDS = {
    "array": lambda rows: np.array(rows),
    "frame": lambda rows: pd.DataFrame(np.array(rows), columns=NAMES),
    "CSR": lambda rows: sparse.csr_matrix(rows),
}


def counts_of(results):
    names = ("fold_errors", "outer_errors", "outer_disagreements")
    return [results[name].values.tolist() for name in names]


def plan_of(scaler, X, pool):
    estimator = make_pipeline(scaler, LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0]}
    return dsel.plan_search(estimator, grid, X, Y, pool, random_state=0)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize(
    ("kind", "in_place", "plain"),
    [
        *(
            (kind, step(copy=False), step())
            for kind in ("array", "frame")
            for step in (StandardScaler, PCA, MaxAbsScaler)
        ),
        ("CSR", MaxAbsScaler(copy=False), MaxAbsScaler()),
    ],
)
def test_run__steps_that_work_in_place_change_neither_counts_nor_rows(
    kind, in_place, plain
):
    make = KINDS[kind]
    rows, pool = make(X), make(POOL)
    found = plan_of(in_place, rows, pool).run(n_jobs=1)
    assert counts_of(found.results) == counts_of(
        plan_of(plain, make(X), make(POOL)).run(n_jobs=1).results
    )
    np.testing.assert_array_equal(dense(rows), X)
    np.testing.assert_array_equal(dense(pool), POOL)


@pytest.mark.parametrize("kind", KINDS)
def test_plan_search__keeps_the_rows_that_it_was_given(kind):
    rows, scaler = KINDS[kind](X), MaxAbsScaler()
    plan = plan_of(scaler, rows, POOL)
    if kind == "frame":
        rows.iloc[:] = 0.0
    else:
        rows *= 0
    assert counts_of(plan.run(n_jobs=1).results) == counts_of(
        plan_of(scaler, KINDS[kind](X), POOL).run(n_jobs=1).results
    )


def test_choice__says_that_rows_and_labels_are_in_another_order():
    frame, labels = pd.DataFrame(X, columns=NAMES), pd.Series(Y)
    for given, is_told in (
        (labels, False),
        (labels.iloc[::-1], True),
        (labels.set_axis(labels.index + 1_000), False),
        (labels.to_numpy(), False),
    ):
        plan = dsel.plan_search(
            LogisticRegression(), {"C": [1.0]}, frame, given, random_state=0
        )
        first = str(plan.run(n_jobs=1).choice).splitlines()[0]
        assert first.startswith("Warning") == ("in another order" in first) == is_told
