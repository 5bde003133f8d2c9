"""The columns of data frames, with the kinds of their values."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype

from dsel.data.text_columns.gaps import trim

NUMBER: Final = "number"
TRUTH: Final = "truth value"
TEXT: Final = "text"
NOTHING: Final = "nothing but missing values"
_KINDS: Final = {
    "string": TEXT,
    "empty": NOTHING,
    "boolean": TRUTH,
    "decimal": NUMBER,
    "integer": NUMBER,
    "floating": NUMBER,
    "mixed-integer-float": NUMBER,
    "datetime64": "time",
    "datetime": "time",
    "timedelta64": "duration",
    "timedelta": "duration",
    "time": "time of day",
}
"""Kind of values by pandas' name for it; other kinds keep pandas' name."""


@dataclass(frozen=True)
class Column:
    """Name and type of a column."""

    name: str
    kind: str
    """Kind of its values, such as text; for categories the kind of each category."""
    dtype: str
    """Type as pandas prints it, with the categories."""

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers or truth values."""
        return self.kind in (NUMBER, TRUTH)

    @property
    def is_time(self) -> bool:
        """Whether it holds dates or times, and not times of a day."""
        return self.kind.startswith(("date", "time")) and self.kind != "time of day"


def has_texts(kind: str) -> bool:
    """Return whether values of this kind are texts, or texts and others."""
    return kind == TEXT or kind.startswith("mixed")


def columns_of(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Return names and types of a frame's columns."""
    columns = []
    for name, values in frame.items():
        text = values.dtype
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = pd.Series(values.cat.categories)
            text = f"{text} {values.to_list()}"
        inferred = str(infer_dtype(values, skipna=True))
        if inferred == "unknown-array":  # such as categories and lists of Arrow
            inferred = str(infer_dtype(values.to_numpy(object), skipna=True))
        zone = getattr(values.dtype, "tz", None)
        kind = f"time in zone {zone}" if zone else _KINDS.get(inferred, inferred)
        columns.append(Column(str(name), kind, str(text)))
    return tuple(columns)


def are_texts_of_numbers(values: Any) -> bool:
    """Return whether all values are texts of numbers; no value may be missing."""
    array = np.asarray(values)
    texts = array.ravel().tolist()
    if not texts or not all(isinstance(text, str | bytes) for text in texts):
        return False
    try:
        array.astype(np.float64)
    except ValueError:
        return False
    return True


def texts_of(values: pd.Series) -> pa.Array | None:
    """Return a column of texts without blanks around them; None for other types.

    JSON lines may have numbers and texts in one column, which are taken for texts.
    """
    if values.dtype.kind in "biufcmM" or isinstance(values.dtype, pd.CategoricalDtype):
        return None
    kind = columns_of(values.to_frame("values"))[0].kind
    if not has_texts(kind):
        return None
    if kind != TEXT:
        values = values.map(str, na_action="ignore")
    texts = pa.array(values, pa.string(), from_pandas=True)
    # Columns of several files are in chunks.
    return trim(texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts)
