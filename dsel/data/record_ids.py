"""Ids of records, which show that equal rows are different records."""

import shlex
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pandas as pd

from dsel.arrays import Bools, Integers
from dsel.data.frames import native
from dsel.data.groups import normalize_spelling
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.errors import Correction, UndecidedError
from dsel.option_values import join_names
from dsel.rounded_texts import count_of
from dsel.typing import Features

FEWEST_EQUAL_IDS: Final = 10
"""Fewest pool rows with ids of labeled rows for a comparison of their other columns."""


class RecordIds(NamedTuple):
    """The ids of the records of a table; of several columns those of a row together."""

    names: tuple[str, ...]
    """Columns of ids; none where a row has no id, so that any row may be a record."""
    known: pd.Index
    are_distinct: bool = True
    """Whether each row has an id of its own."""

    @classmethod
    def of(cls, ids: pd.DataFrame | None) -> Self:
        """Return the ids of all rows; none where a row lacks one."""
        if ids is None or not ids.shape[1] or ids.isna().to_numpy().any():
            return cls((), pd.Index([]))
        spelled = normalize_spelling(ids)
        known = pd.Index(spelled.unique())
        return cls(tuple(map(str, ids.columns)), known, len(known) == len(spelled))

    def may_have(self, rows: pd.DataFrame) -> Bools:
        """Return a mask of the rows that may be of these records.

        Rows of other records have an id that is none of these.
        """
        if not self.names or not {*self.names} <= {*rows.columns}:
            return np.ones(len(rows), np.bool_)
        ids = rows[[*self.names]]
        is_known = normalize_spelling(ids).isin(self.known) | ids.isna().any(axis=1)
        return np.array(is_known, np.bool_)

    def find(self, pool: Pool) -> Integers | None:
        """Return the numbers of a pool's rows of these records; None if unknown.

        The rows are unknown if some have no id, if several labeled rows share an id, or
        if there are more such pool rows than records, since an id then belongs to
        several records.
        """
        if not self.names or not {*self.names} <= {*(pool.columns or ())}:
            return None

        def find(X: Features, row_numbers: Integers) -> Integers:
            """Return the numbers of a block's rows of these records, -1 without id."""
            rows = pd.DataFrame(native(X)).set_axis([*self.names], axis=1)
            lacks_id = rows.isna().any(axis=1).to_numpy()
            return np.where(lacks_id, -1, row_numbers)[self.may_have(rows)]

        def join(first_rows: Integers, second_rows: Integers) -> Any:
            # One row more than there are records is enough.
            return np.concatenate([first_rows, second_rows])[: len(self.known) + 1]

        rows = pool.with_columns(self.names).reduce(find, join, allow_nan=True)
        is_known = self.are_distinct and len(rows) <= len(self.known)
        # One row without an id may be of any record, so nothing is known of the pool.
        if len(rows) and (not is_known or (rows < 0).any()):
            return None
        return np.asarray(rows, np.int64)


def leave_out_records(
    pool: Pool, keyed: Pool, known: Sequence[RecordIds]
) -> tuple[Pool, list[str]]:
    """Return a pool without rows of known records, and a note if there are some.

    Rows of `keyed`, which has the columns of ids, are those of `pool`. The returned
    pool is declared to hold other records; if this is unknown, `pool` itself is
    returned.
    """
    rows_of_table = [ids.find(keyed) for ids in known]
    parts = [rows for rows in rows_of_table if rows is not None]
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
    if len(parts) < len(rows_of_table) or len(rows) == pool.n_rows:
        return pool, []
    has = "has the id" if len(rows) == 1 else "have ids"
    note = (
        f"{count_of(len(rows), 'pool row')} {has} of labeled rows: left out, as the "
        f"same records"
    )
    pool = open_pool(pool, other_records=True).excluding(rows)
    return pool, [note] * (len(rows) > 0)


def check_ids(
    pool: Pool, keyed: Pool, X: pd.DataFrame, ids: pd.DataFrame | None
) -> None:
    """Raise ValueError where equal ids of a pool and labeled rows mean other records.

    Numbers of the rows of each file are no ids. Rows of `keyed` are those of `pool`,
    and `X` has the features of the labeled rows with these `ids`.
    """
    known = RecordIds.of(ids)
    rows = known.find(keyed)
    if ids is None or rows is None or len(rows) < FEWEST_EQUAL_IDS:
        return

    def read(source: Pool) -> pd.DataFrame:
        def take(block: Features, row_numbers: Integers) -> pd.DataFrame:
            frame = pd.DataFrame(native(block)).set_axis(row_numbers, axis=0)
            return frame[np.isin(row_numbers, rows)]

        frame = source.reduce(take, lambda a, b: pd.concat([a, b]), allow_nan=True)
        return frame.set_axis([*(source.columns or ())], axis=1).loc[np.sort(rows)]

    keys = pd.Index(normalize_spelling(read(keyed.with_columns(known.names))))
    labeled = X.iloc[pd.Index(normalize_spelling(ids)).get_indexer(keys)]
    pool_rows = read(pool)
    names = [name for name in X if name in pool_rows]
    is_equal = _equal_cells(labeled[names], pool_rows[names])
    # Rows of other records are equal in some columns, too.
    shifted = pool_rows[names].iloc[np.roll(np.arange(len(rows)), 1)]
    by_chance = _equal_cells(labeled[names], shifted).mean()
    n_other = int((~is_equal.all(axis=1)).sum())
    # The ids are right if at least half of the rows agree, or if cells agree more than
    # half-way from chance to all.
    if 2 * n_other <= len(rows) or 2 * is_equal.mean() > 1 + by_chance:
        return
    shown = " and ".join(map(repr, known.names))
    names_of_ids = join_names(known.names)
    raise UndecidedError(
        f"{len(rows):,} pool rows have ids of labeled rows, but {n_other:,} of them "
        f"differ in other columns: {shown} looks like the number of a row in each "
        f"file, and not like an id of a record. Leave it out by --drop "
        f"{shlex.quote(names_of_ids)}; or, if they are the same records with other "
        f"values, remove them from the pool.",
        [
            *(Correction("--id", name, None) for name in known.names),
            ("--drop", names_of_ids),
        ],
    )


def _equal_cells(first: pd.DataFrame, second: pd.DataFrame) -> Bools:
    """Return which cells of tables with the same columns are equal, or both gaps."""
    columns = [
        (first[name].to_numpy(object) == second[name].to_numpy(object))
        | (first[name].isna() & second[name].isna().to_numpy()).to_numpy()
        for name in first
    ]
    return np.array(columns, np.bool_).T
