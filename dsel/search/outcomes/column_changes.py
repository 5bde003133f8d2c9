"""Descriptions of how the values of a column differ between two tables."""

from typing import Any, Final

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype
from scipy import sparse

from dsel.arrays import Features, as_plain
from dsel.checks import show
from dsel.data.frames import Frame
from dsel.rounded_texts import short_number

LEAST_CHANGE: Final = 0.01
"""Smallest change of a share that is shown."""


def column_of(X: Features, position: int) -> "pd.Series[Any]":
    """Return one column of a table."""
    if isinstance(X, Frame):
        return X.given.iloc[:, position]
    if sparse.issparse(X):
        return pd.Series(X[:, [position]].toarray()[:, 0])
    return pd.Series(X[:, position])


def describe_change(before: "pd.Series[Any]", after: "pd.Series[Any]") -> str:
    """Return how the values of a column changed; "" where it cannot be said in short.

    Numbers and times are described by their medians, others by the value whose share
    changed most.

    Examples
    --------
    >>> describe_change(pd.Series([900.0, 1104.0, 2000.0]), pd.Series([4900.0]))
    'median 1,100 then, 4,900 now'
    >>> describe_change(pd.Series(["web", "phone"]), pd.Series(["phone"]))
    "share of 'phone' 50% then, 100% now"
    """
    then, now = _median(before), _median(after)
    if then and now and then != now:
        return f"median {then} then, {now} now"
    shares = [
        column.astype(object).value_counts(normalize=True, dropna=False)
        for column in (before, after)
    ]
    changes = shares[1].sub(shares[0], fill_value=0.0)
    # Of two values that changed alike the one that is more frequent now.
    place = int((changes.abs().round(9) + 1e-12 * changes).to_numpy().argmax())
    if abs(changes.iloc[place]) < LEAST_CHANGE:
        return ""
    value = changes.index[place]
    name = "missing values" if pd.isna(value) else show(as_plain(value))
    percents = [f"{100 * share.get(value, 0.0):.0f}%" for share in shares]
    return f"share of {name} {percents[0]} then, {percents[1]} now"


def _median(column: "pd.Series[Any]") -> str:
    """Return the rounded median of numbers or times; "" of others, or without any."""
    known = column.dropna()
    if is_datetime64_any_dtype(known) and len(known):
        return str(pd.Timestamp(known.median()).date())
    if is_bool_dtype(known) or not is_numeric_dtype(known) or known.empty:
        return ""
    return short_number(float(known.median()))
