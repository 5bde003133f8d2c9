"""Texts about fits that failed: which column of the labeled rows is the cause."""

import re
from ast import literal_eval
from contextlib import suppress

import numpy as np

from dsel.data.frames import Frame
from dsel.data.labeled import LabeledRows


def name_column(text: str, labeled: LabeledRows) -> str:
    """Return the message of a fit with the column that it is about, if one is found.

    Learners see arrays, so what they raise has the value alone.
    """
    X = labeled.X
    if not isinstance(X, Frame):
        return text
    frame, name = X.given, None
    word = re.search(r"could not convert string to float: ('[^']*'|\"[^\"]*\")", text)
    if word:
        with suppress(SyntaxError, ValueError):
            value = literal_eval(word[1])
            has_value = ((n, (frame[n] == value).any()) for n in frame.columns)
            name = next((n for n, is_there in has_value if is_there), None)
    elif re.search(r"\b(NaN|infinity|missing values)\b", text):
        gaps = frame.columns[np.asarray(frame.isna().any())]
        name = next(iter(gaps), None)
    return text if name is None else f"{text.rstrip('.')} (column {name!r})"
