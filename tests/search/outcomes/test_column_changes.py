"""Descriptions of how a column changed, of any kind of values."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dsel.data.labeled import wrap_unlabeled_rows
from dsel.search.outcomes.column_changes import column_of, describe_change

PHONES = ["phone"] * 12 + ["web"] * 48 + ["shop"] * 40
MORE_PHONES = ["phone"] * 40 + ["web"] * 34 + ["shop"] * 26
DAYS = pd.Series(pd.date_range("2021-03-01", periods=31))

DATE = "date32[pyarrow]"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (PHONES, MORE_PHONES, "share of 'phone' 12% then, 40% now"),
        (pd.Categorical(PHONES), MORE_PHONES, "share of 'phone' 12% then, 40% now"),
        (["web"] * 9 + [None], ["web"] * 5 + [None] * 5,
         "share of missing values 10% then, 50% now"),
        (["web"] * 10, ["shop"] * 10, "share of 'shop' 0% then, 100% now"),
        ([True, False], [True, True], "share of True 50% then, 100% now"),
        ([0, 0, 0, 1], [0, 0, 0, 0], "share of 0 75% then, 100% now"),
        ([900, 1104, 2000], [4900], "median 1,100 then, 4,900 now"),
        ([5.0] * 9 + [np.nan], [5.0, np.nan],
         "share of missing values 10% then, 50% now"),
        ([np.nan] * 2, [1.0] * 2, "share of 1.0 0% then, 100% now"),
        (DAYS, DAYS + pd.Timedelta("31D"), "median 2021-03-16 then, 2021-04-16 now"),
        (DAYS.astype(DATE), DAYS[20:].astype(DATE),
         "median 2021-03-16 then, 2021-03-26 now"),
        (range(1001), [*range(0, 501), *range(500, 1001)], ""),
    ],
)  # fmt: skip
def test_describe_change__names_medians_or_the_value_that_changed(before, after, text):
    assert describe_change(pd.Series(before), pd.Series(after)) == text


def test_column_of__takes_a_column_of_any_table():
    values = np.arange(6.0).reshape(3, 2)
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(c=["x", "y", "z"])
    wrapped = wrap_unlabeled_rows(frame).X
    for X in (values, sparse.csr_array(values), wrapped):
        assert column_of(X, 1).tolist() == [1.0, 3.0, 5.0]
    assert column_of(wrapped, 2).tolist() == ["x", "y", "z"]
