"""Encoders of scikit-learn that turn the columns of a table into numbers."""

from collections.abc import Collection
from datetime import UTC
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dsel.arrays import check_rows
from dsel.checks import listing, show
from dsel.data.columns import check_columns
from dsel.data.encoding import DATES, LEFT_OUT, NUMBERS, VALUES, find_ways
from dsel.data.frames import frame_of, has_named_columns

MICROSECONDS_A_DAY: Final = 24 * 60 * 60 * 10**6


def steps_of_numbers(*, is_scaled: bool) -> list[tuple[str, Any]]:
    """Return the steps for columns of numbers: their gaps are filled by the median."""
    # `keep_empty_features`: a column that is empty in the training rows of a fold must
    # not be dropped there, as models of all folds need the same columns.
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    scaler = [("scale", StandardScaler())] if is_scaled else []
    return [("impute", imputer), *scaler]


def encoders_by_kind(*, is_scaled: bool) -> dict[str, Any]:
    """Return the encoder of each kind of columns."""
    numbers = steps_of_numbers(is_scaled=is_scaled)
    days = ("days", FunctionTransformer(days_since_1970))
    return {
        NUMBERS: Pipeline(numbers),
        DATES: Pipeline([days, *numbers]),
        VALUES: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    }


def make_encoder(X: Any, *, categories: Collection[str] = ()) -> ColumnTransformer:
    """Return the encoder that `dsel select` puts in front of its models.

    Gaps in numbers are filled by the median, and numbers are scaled. Dates and times
    become days since 1970, and are then treated as numbers. Texts, truth values and
    categories have a column for each value; a value that no training row has is all
    zeros. Columns without any value are left out, and so are texts by whose names and
    values rows come in groups, such as those of a column ``customer_no``, unless
    ``X.astype({"customer_no": "category"})`` declares these to be categories.

    Parameters
    ----------
    X
        A data frame, (n_rows, n_columns), such as the labeled rows. Only names, kinds
        and numbers of values are read; the encoder is fitted with its pipeline, on the
        training rows of each fold.
    categories
        Names of columns that have a column for each value although they hold numbers,
        such as postal codes, or more than 100 values.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        The unfitted encoder, which finds columns by their names.

    Raises
    ------
    TypeError
        If `X` is no data frame, or a column has to be converted or left out first:
        numbers and dates that are written as texts, identifiers, and free text. The
        message has the lines that do it.
    ValueError
        If `X` lacks a column in `categories`, or no column has a value.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X = pd.DataFrame({"age": [35, None, 51, 44], "plan": ["A", "B", "A", "A"]})
    >>> encoder = make_encoder(X)
    >>> encoder.fit_transform(X).shape
    (4, 3)
    >>> model = make_pipeline(encoder, LogisticRegression())
    """
    if not has_named_columns(X):
        check_rows(X, "`X`")
        raise TypeError(
            f"`X` must be a data frame whose columns have names, got "
            f"{type(X).__name__}; pass pandas.DataFrame(X, columns=[...])."
        )
    if isinstance(categories, str):
        raise TypeError(
            f"`categories` must be a list of names, got {show(categories)}; pass "
            f"[{categories!r}]."
        )
    frame = frame_of(X)
    check_columns(frame.schema.names, [*categories], "`X`", " of `categories`")
    ways = find_ways(frame.given, categories)
    # Numbers are features here, whatever their names.
    numbers = [c.name for c in frame.schema.columns if c.is_number]
    for name in [name for name in numbers if name in ways.dropped]:
        ways.encoded.setdefault(NUMBERS, []).append(name)
        del ways.dropped[name]
    if not ways.is_ready:
        is_pandas = isinstance(X, pd.DataFrame)
        raise TypeError(
            f"`X` must hold columns that an encoder takes as they are: "
            f"{ways.advice(is_pandas=is_pandas)}."
        )
    transformers = [
        (kind, encoder, ways.encoded[kind])
        for kind, encoder in encoders_by_kind(is_scaled=True).items()
        if ways.encoded.get(kind)
    ]
    if not transformers:
        left_out = ways.encoded.get(LEFT_OUT, [])
        raise ValueError(f"no column holds a value: {listing(left_out, 8)}.")
    return ColumnTransformer(transformers)


def _without_zone(value: Any) -> Any:
    """Return a time in UTC and without a zone, which numpy does not take."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(UTC).replace(tzinfo=None)


def days_since_1970(X: Any) -> pd.DataFrame:
    """Return dates and times as days, of any year; missing ones are NaN."""
    rows = nw.from_native(X, eager_only=True, pass_through=True)
    frame = rows.to_pandas() if isinstance(rows, nw.DataFrame) else pd.DataFrame(X)
    return frame.apply(_days_of_column)


def _days_of_column(column: pd.Series) -> pd.Series:
    """Return times as days since 1970, NaN where they are missing."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    # Python objects: dates outside the range of nanoseconds.
    elif column.dtype.kind != "M":
        known = [
            None if missing else _without_zone(value)
            for value, missing in zip(column, column.isna(), strict=True)
        ]
        if any(isinstance(value, str) for value in known):
            raise TypeError(f"column {column.name!r} must hold dates, got text.")
        column = pd.Series(np.array(known, dtype="datetime64[us]"), index=column.index)
    times = column.to_numpy().astype("datetime64[us]")
    days = times.astype(np.int64) / MICROSECONDS_A_DAY
    return pd.Series(np.where(np.isnat(times), np.nan, days), index=column.index)
