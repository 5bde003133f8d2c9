"""Ids of records, which show that equal rows are different records."""

from operator import add
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype

from dsel.data.frames import native
from dsel.data.pool import Pool
from dsel.typing import Features


class RecordIds(NamedTuple):
    """The ids of the records of a table; of several columns those of a row together."""

    names: tuple[str, ...]
    """Columns of ids; none where a row has no id, so that any row may be a record."""
    known: pd.Index

    @classmethod
    def of(cls, ids: pd.DataFrame | None) -> Self:
        """Return the ids of all rows; none where a row lacks one."""
        if ids is None or not ids.shape[1] or ids.isna().to_numpy().any():
            return cls((), pd.Index([]))
        return cls(tuple(map(str, ids.columns)), pd.Index(_spelled_alike(ids).unique()))

    def may_have(self, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Return a mask of the rows that may be of these records.

        Those of other records have an id, and it is none of these.
        """
        if not self.names or not {*self.names} <= {*rows.columns}:
            return np.ones(len(rows), np.bool_)
        ids = rows[[*self.names]]
        is_known = _spelled_alike(ids).isin(self.known) | ids.isna().any(axis=1)
        return np.array(is_known, np.bool_)

    def lack(self, pool: Pool) -> bool:
        """Return whether no row of a pool may be of these records."""
        if not self.names or not {*self.names} <= {*(pool.columns or ())}:
            return False

        def count(X: Features, row_numbers: NDArray[np.int64]) -> int:
            """Return how many rows of a block may be of these records."""
            rows = pd.DataFrame(native(X)).set_axis([*self.names], axis=1)
            return int(self.may_have(rows).sum())

        pool = pool.with_columns(self.names)
        return not pool.reduce(count, add, allow_nan=True)


def _spelled_alike(ids: pd.DataFrame) -> pd.Series:
    """Return the ids of each row as one text, in which spellings of an id are equal.

    One program writes 007, another one 7 or 7.0: such ids may be of one record, and
    then count as equal.
    """
    texts = [
        (ids[name].map("{:.17g}".format) if is_float_dtype(ids[name]) else ids[name])
        .astype(str)
        .str.strip()
        .str.casefold()
        .str.replace(r"\.0+$", "", regex=True)
        .str.replace(r"^[+]?0+(?=.)", "", regex=True)
        for name in ids
    ]
    spelled = texts[0]
    for more in texts[1:]:
        spelled = spelled + "\0" + more
    return spelled
