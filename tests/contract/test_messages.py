"""Wrong arguments end in one line that names the argument, before work starts."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.cluster import connect

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


def fit(X=X, y=Y, grid=None):
    grid = grid or {"max_depth": [1]}
    search = dsel.SemiSupervisedSearchCV(DecisionTreeClassifier(), grid, cv=2, n_jobs=1)
    return search.fit(X, y)


def labels(two):
    return [two[number] for number in Y]


class Lazy:
    """A lazy frame, as of polars."""

    def collect(self):
        raise AssertionError("nothing may be computed")


DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]
NUL, LONG = "\u00e9\0", "a" * 300
CASES = [
    *[("param_grid", lambda name=name: fit(grid={name: [1]}))
      for name in (1, None, ("a",), b"max_depth")],
    ("param_grid", lambda: fit(grid=[{1: [1]}, {"max_depth": [1]}])),
    *[("X", lambda X=X: fit(X=X))
      for X in ([], {}, {1: 2}, {1, 2}, object(), np.array(3.0), Lazy(), iter([[1]]))],
    *[("y", lambda two=two: fit(y=labels(two))) for two in (
        DAYS, [pd.Timestamp(each) for each in DAYS], [b"a", b"b"], [1j, 2j],
        [pd.Period("2020-01"), pd.Period("2020-02")],
        [decimal.Decimal(1), decimal.Decimal(2)],
    )],
    ("y", lambda: fit(y={1: 2})),
    ("y", lambda: fit(y=np.c_[Y, Y])),
    *[("n_jobs", lambda n=n: dsel.audit(n_jobs=n))
      for n in (np.inf, np.nan, 2.5, "3", True, 0)],
    *[("place", lambda path=path: dsel.open_results(path))
      for path in (NUL, LONG, "\ud800")],
    *[("path", lambda path=path: dsel.write_pool(X, path)) for path in (NUL, LONG)],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_wrong_argument__is_named(number):
    name, call = CASES[number]
    with pytest.raises((TypeError, ValueError), match=rf"^`{name}`") as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["class: 5", "class:", "class: [1]", "class: ..x.y"])
def test_connect__names_a_class_that_is_none(text, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="`class` must be"), connect(path):
        pass
