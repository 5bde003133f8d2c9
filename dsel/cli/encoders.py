"""Scikit-learn's encoders that the columns of a table need before a built-in model."""

from typing import Any, Final

import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)

from dsel.checks import listed
from dsel.data.frames import NOTHING, NUMBER, TEXT, TRUTH, Column, columns_of
from dsel.data.pool import Pool

Steps = list[tuple[str, Any]]
MOST_VALUES: Final = 100
"""Different values of a column that are made one column each."""


def encoders(X: Any, *, is_scaled: bool) -> tuple[Steps, list[tuple[str, str]]]:
    """Return the steps that make numbers of a table, and what they do in words."""
    if sparse.issparse(X):
        steps, fact = ("scale", MaxAbsScaler()), ("numbers", "scaled by the largest")
        return ([steps], [fact]) if is_scaled else ([], [])
    # A column without values in a part of the rows must not be another number of
    # columns there.
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    numbers: Steps = [("impute", imputer)]
    if is_scaled:
        numbers.append(("scale", StandardScaler()))
    filled = f"gaps filled by the median{', scaled' * is_scaled}"
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    days = ("days", FunctionTransformer(days_since_1970))
    kinds: dict[str, tuple[Any, str, list[str]]] = {
        "numbers": (Pipeline(numbers), filled, []),
        "dates": (Pipeline([days, *numbers]), f"as days, {filled}", []),
        "values": (one_hot, "a column for each value", []),
        "left out": ("drop", "nothing but gaps", []),
    }
    for column in columns_of(X) if isinstance(X, pd.DataFrame) else ():
        kinds[_kind(column, X[column.name])][2].append(column.name)
    used = {kind: parts for kind, parts in kinds.items() if parts[2]}
    if used.keys() <= {"numbers"}:
        return numbers, [("numbers", filled)]
    facts = [(kind, f"{listed(of, 8)}: {text}") for kind, (_, text, of) in used.items()]
    _, _, left_out = used.pop("left out", (None, "", []))
    if not used:
        raise ValueError(f"no column holds a value: {listed(left_out, 8)}.")
    parts = [(kind, encoder, of) for kind, (encoder, _, of) in used.items()]
    return [("columns", ColumnTransformer(parts))], facts


def _kind(column: Column, values: pd.Series) -> str:
    """Return what is done with a column."""
    known = values.dropna()
    if column.kind == NOTHING or known.empty:
        return "left out"
    is_category = isinstance(values.dtype, pd.CategoricalDtype)
    if column.kind == NUMBER and not is_category:
        return "numbers"
    if _is_date(column) or (column.kind == TEXT and not _days(known).isna().any()):
        return "dates"
    held = f"{column.kind}, which no encoder of `dsel select` takes"
    if column.kind in (TEXT, TRUTH, NUMBER):
        n_values = known.nunique()
        if n_values <= min(MOST_VALUES, max(2, len(known) // 2)):
            return "values"
        held = f"{n_values:,} different texts in {len(known):,} rows"
    raise TypeError(
        f"column {column.name!r} holds {held}, such as {str(known.iloc[0])[:40]!r}; "
        f"leave it out of the table, or name a pipeline that encodes it by --model "
        f"MODULE:OBJECT."
    )


def _is_date(column: Column) -> bool:
    return column.kind.startswith(("date", "time")) and column.kind != "time of day"


def with_types_of(X: Any, pool: Pool) -> Any:
    """Return labeled rows with the pool's types, where their file does not tell them.

    CSV has no type for dates, and no file has one for a column of nothing but gaps.
    """
    if not isinstance(X, pd.DataFrame) or pool.frames is None:
        return X
    found: dict[Any, Any] = {}
    for column in pool.frames.columns:
        given = X.get(column.name)
        if given is None:
            continue
        if given.isna().all():
            found[column.name] = None
        elif given.dtype.kind not in "Mbuif" and _is_date(column):
            times = pd.to_datetime(given, format="ISO8601", utc=True, errors="coerce")
            if times.isna().sum() > given.isna().sum():
                continue  # not dates only, which is told where columns are compared
            zone = column.kind.removeprefix("time in zone ")
            found[column.name] = (
                times.dt.date
                if column.kind == "date"
                else times.dt.tz_convert(None if zone == "time" else zone)
            )
    return X.assign(**found)


def days_since_1970(X: Any) -> pd.DataFrame:
    """Return dates and times, or texts of them, as days; missing ones are NaN."""
    return pd.DataFrame(X).apply(_days)


def _days(column: pd.Series) -> pd.Series:
    times = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    return (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
