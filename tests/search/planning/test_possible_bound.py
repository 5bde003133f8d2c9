"""What the rows of a plan cannot prove is known before any fit, with what is enough."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.search.planning.plan_caveats import check_possible_bound

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
GRID = {"C": [1.0]}


def rare(n):
    return np.where(np.arange(400) < n, "fraud", "ok")


def plan(y=Y, pool=None, **options):
    model = LogisticRegression()
    return dsel.plan_search(
        model, GRID, X[: len(y)], y, pool, random_state=0, **options
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": rare(3), "loss": "recall:fraud"}, "3 labeled rows of the class 'fraud'"),
        (
            {"groups": np.arange(400) % 5},
            "`groups` have too few rows .* with 5 groups in 5",
        ),
        ({"pool": X}, "`pool` must hold new rows: all 400 of its rows equal labeled"),
        ({"pool": X[7:99].astype(np.float32)}, "all 92 of its rows equal labeled"),
    ],
)
def test_possible_bound__of_no_use_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        check_possible_bound(plan(**options).search)


def test_plan__says_about_how_many_rows_are_enough():
    with pytest.raises(ValueError, match="enough for 50%") as refused:
        check_possible_bound(plan(rare(3), loss="recall:fraud").search)
    n = int(re.search("about ([0-9]+) are enough", str(refused.value))[1])
    assert 6 <= n <= 40
    assert "no model makes an error" not in str(plan(rare(2 * n), loss="recall:fraud"))


def test_plan__notes_a_large_bound_before_the_fits_as_no_error_gives_it():
    planned = plan(Y[:20])
    [note] = planned.notes_on_few_rows
    assert note in planned.remarks
    assert "with 20 labeled rows in 5 folds the bound is" in note
    least = float(re.search("bound is ([0-9.]+)%", note)[1]) / 100
    assert 0.5 < least < 0.9
    assert planned.run(n_jobs=1).choice.bound >= least - 1e-3
    assert plan(Y[:60]).notes_on_few_rows == []
    assert plan(Y[:20], criterion="cv_error").notes_on_few_rows == []
