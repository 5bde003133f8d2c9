"""Rows that come in groups: customers, patients, documents.

Rows of one group are not independent, but groups are. Therefore folds consist of whole
groups, and bounds count one row of each group, drawn before the data are inspected:
these rows are independent draws of a random row of a new group.
"""

import datetime as dt
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Number
from typing import Any, Final, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype
from scipy import sparse

from dsel.arrays import (
    Bools,
    Integers,
    as_plain,
    check_distinct_columns,
    check_rows,
    fill_masked_values,
)
from dsel.checks import as_array, did_you_mean, letters_of, listing, show
from dsel.data.frames import Frame
from dsel.data.identifiers import is_name_of_identifier, notes_on_repeats
from dsel.data.identity import content_hash
from dsel.data.labeled import EMPTY, MISSING
from dsel.data.row_random import GROUP_STREAM, row_random
from dsel.data.splits import random_folds
from dsel.errors import RowError
from dsel.typing import AnyArray, GroupsLike

LARGE: Final = 0.5
"""Part of all rows above which a single group gets a caveat."""


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of each labeled row."""

    group_keys: NDArray[Any]
    """Key of each group, (n_groups,), sorted, whatever the order of rows is."""
    codes: Integers
    """Group of each row, (n_rows,), as an index into `group_keys`."""
    column: str | None = None
    """Name of the column that the keys come from, if they have one."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_keys)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def by_row(self) -> NDArray[Any]:
        """Key of each row, (n_rows,)."""
        return np.asarray(self.group_keys[self.codes])

    @property
    def token(self) -> str:
        """Hash of the assignment of rows to groups."""
        return content_hash(self.codes)

    def folds(self, n_folds: int, *, seed: int) -> Integers:
        """Return the random fold of each row, (n_rows,); groups are never divided."""
        return random_folds(self.n_groups, n_folds, seed=seed)[self.codes]

    def draw_rows(self, seed: int) -> Bools:
        """Return a mask of one random row of each group, (n_rows,).

        It depends on the seed, on the groups and on the order of rows.
        """
        order = np.lexsort((row_random(seed, GROUP_STREAM, 0, self.n_rows), self.codes))
        first = np.unique(self.codes[order], return_index=True)[1]
        is_counted = np.zeros(self.n_rows, dtype=np.bool_)
        is_counted[order[first]] = True
        return is_counted

    def caveats(self) -> list[str]:
        """Return caveats about groups that make a bound doubtful or large."""
        caveats = self.notes_on_spellings()
        sizes = np.bincount(self.codes)
        largest = int(sizes.argmax())
        if self.n_groups > 1 and sizes[largest] >= LARGE * self.n_rows:
            caveats.append(
                f"group {show(as_plain(self.group_keys[largest]))} has "
                f"{sizes[largest]:,} of {self.n_rows:,} labeled rows: models that are "
                f"trained without it have seen few rows, and in the bound it counts as "
                f"one group of {self.n_groups:,}"
            )
        return caveats

    def notes_on_spellings(self) -> list[str]:
        """Return a caveat about keys that may be one in two spellings, if any are."""
        by_letters = dict[str, str]()
        keys = [key for key in self.group_keys.tolist() if isinstance(key, str)]
        letters = pd.DataFrame({"key": list(map(letters_of, keys))}, dtype=object)
        for key, spelled in zip(keys, normalize_spelling(letters), strict=True):
            known = by_letters.setdefault(spelled, key)
            if known != key:
                return [
                    f"groups {known!r} and {key!r} differ only by case, blanks, "
                    f"Unicode forms or zeros: if they are one, its rows are in several "
                    f"folds and the bound is too small; write all keys of a group alike"
                ]
        return []


def normalize_spelling(ids: pd.DataFrame) -> pd.Series:
    """Return the ids of each row as one text, in which spellings of an id are equal.

    One program writes 007, another one 7 or 7.0: such ids may be of one record, and
    then count as equal. So do ids that differ by case, or by blanks at their ends.
    """
    whole_number, leading_zeros = r"\.0+$", r"^[+]?0+(?=.)"
    texts = [
        (ids[name].map("{:.17g}".format) if is_float_dtype(ids[name]) else ids[name])
        .astype(str)
        .str.strip()
        .str.casefold()
        .str.replace(whole_number, "", regex=True)
        .str.replace(leading_zeros, "", regex=True)
        for name in ids
    ]
    spelled = texts[0]
    for more in texts[1:]:
        spelled = spelled + "\0" + more
    return spelled


class GroupedRows(NamedTuple):
    """Rows without a column of groups, and the key of the group of each row."""

    rows: Any
    keys: Any
    """The keys as they were passed, or the column; None without groups."""
    column: str | int | None
    """Name of the column that the keys were taken from; None if they were passed."""


def take_groups(X: Any, groups: Any) -> GroupedRows:
    """Take the keys of groups; a column that `groups` names is removed from the rows.

    Raises ValueError where there is no such column.
    """
    if hasattr(X, "to_dask_array") and hasattr(X, "compute"):
        X = X.compute()
    if isinstance(X, pd.DataFrame):
        columns: list[Any] | None = list(X.columns)
    else:
        check_distinct_columns(X)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        columns = frame.columns if isinstance(frame, nw.DataFrame) else None
    # Names of pandas columns may be numbers; other scalars are not names.
    is_name = isinstance(groups, str) or (
        isinstance(groups, Integral) and groups in (columns or ())
    )
    if not is_name:
        _check_no_names(columns, groups)
        return GroupedRows(X, groups, None)
    check_rows(X)
    if columns is None:
        raise ValueError(
            f"`groups` {groups!r} names a column, but `X` ({type(X).__name__}) has "
            f"none with names; pass the keys of the rows, or a data frame as `X`."
        )
    if groups not in columns:
        raise ValueError(
            f"`groups` {groups!r} is no column of `X`, which has "
            f"{listing(list(map(str, columns)), 20)}; name one of these, or pass the "
            f"keys of the rows{did_you_mean(groups, columns)}"
        )
    frame = X if isinstance(X, pd.DataFrame) else nw.from_native(X, eager_only=True)
    return GroupedRows(without_column(X, groups), frame[groups], groups)


def _check_no_names(columns: list[Any] | None, groups: Any) -> None:
    """Raise ValueError where keys are the names of some columns of a data frame."""
    is_list = isinstance(groups, list | tuple) and bool(groups)
    if not is_list or columns is None or len(groups) > len(columns):
        return
    if all(isinstance(name, str) and name in columns for name in groups):
        way = f"write groups={groups[0]!r}"
        if len(groups) > 1:
            parts = ", ".join(f"X[{name!r}]" for name in groups)
            way = f"make one key of them, groups=list(zip({parts}))"
        raise ValueError(
            f"`groups` must be the name of one column, or hold the keys of all rows, "
            f"got {show(list(groups))}; {way}."
        )


def without_column(X: Any, name: str | int) -> Any:
    """Return a data frame without a column, or unchanged if it has no such column.

    New rows to predict may or may not have the column of the groups.
    """
    if isinstance(X, pd.DataFrame):
        return X.drop(columns=[name], errors="ignore")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or name not in frame.columns:
        return X
    return frame.drop(str(name)).to_native()


def read_row_groups(groups: GroupsLike, n_rows: int) -> RowGroups:
    """Check the keys of rows, which must be of one type, and number the groups.

    Raises TypeError or ValueError that names `groups`.
    """
    group_keys = _as_keys(groups)
    if group_keys.shape != (n_rows,):
        what = (
            f"{len(group_keys):,} keys"
            if group_keys.ndim == 1
            else f"the shape {group_keys.shape}"
        )
        raise ValueError(
            f"`groups` must hold one key for each of the {n_rows:,} labeled rows, got "
            f"{what}; of several columns make one key, such as a tuple of their values."
        )
    is_missing = pd.isna(group_keys)
    if group_keys.dtype.kind == "O":
        for row, key in enumerate(group_keys.tolist()):
            if isinstance(key, tuple):
                is_missing[row] = any(pd.isna(part) is True for part in key)
    if is_missing.any():
        row = int(np.argmax(is_missing))
        raise RowError(
            "`groups` must hold a key for every labeled row, but that of ",
            row,
            f" is missing ({group_keys[row]}); give such a row a group of its own, or "
            f"leave it out.",
        )
    _check_types(group_keys)
    is_categorical = isinstance(getattr(groups, "dtype", None), pd.CategoricalDtype)
    codes, distinct = pd.factorize(group_keys)
    try:
        values = distinct.tolist()
        order = np.array(sorted(range(len(values)), key=values.__getitem__))
    except TypeError as error:  # tuples of several types
        raise _error_of_several_types(distinct[0], distinct[-1]) from error
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    column = getattr(groups, "name", None)  # of a Series
    row_groups = RowGroups(
        np.asarray(distinct)[order],
        rank[codes],
        column if isinstance(column, str) else None,
    )
    marks = EMPTY if is_categorical else (*EMPTY, *MISSING)
    for key in row_groups.group_keys.tolist():
        if isinstance(key, str) and key.strip() in marks:
            raise ValueError(
                f"`groups` holds {show(key)}, as a missing key is written; give such "
                f"rows groups of their own, or leave them out. If it is a group, "
                f"rename it."
            )
    return row_groups


def _as_keys(groups: GroupsLike) -> NDArray[Any]:
    """Return keys as an array of any shape; each member of a list is one key."""
    if groups is None or np.isscalar(groups) or isinstance(groups, str | bytes):
        raise TypeError(
            f"`groups` must hold a key for each labeled row, or be the name of a "
            f"column of a data frame `X`, got {show(groups)}."
        )
    groups = fill_masked_values(groups, "`groups`")
    is_array = isinstance(getattr(groups, "ndim", None), int)  # a Dask bag is not
    if is_array and hasattr(groups, "dask") and hasattr(groups, "compute"):
        groups = groups.compute()
    if isinstance(groups, list | tuple) and not any(
        isinstance(key, list | np.ndarray) for key in groups
    ):
        group_keys = np.empty(
            len(groups), dtype=object
        )  # numpy would turn some into strings
        group_keys[:] = groups
        return group_keys
    if isinstance(getattr(groups, "dtype", None), pd.api.extensions.ExtensionDtype):
        groups = pd.Series(groups).astype(object).to_numpy()  # values, not categories
    array = as_array(groups, "groups")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _check_types(group_keys: AnyArray) -> None:
    """Raise TypeError where keys are of several types, or cannot be compared."""
    if group_keys.dtype.kind in "biufUSmM":
        return
    first = group_keys.tolist()[0]
    kinds = (Number, str, dt.date, type(first))
    kind = next(base for base in kinds if isinstance(first, base))
    for key in group_keys.tolist():
        # Groups are numbered in the order of their keys, which sets do not have;
        # records may have fields of several types.
        is_other = not isinstance(key, Hashable) or isinstance(key, frozenset)
        if is_other or group_keys.dtype.kind != "O":
            raise TypeError(
                f"`groups` must hold keys that are numbers, texts, dates or tuples of "
                f"these, got {show(key)} ({type(key).__name__}); make texts of them."
            )
        if not isinstance(key, kind):
            raise _error_of_several_types(first, key)


def _error_of_several_types(first_key: Any, second_key: object) -> TypeError:
    return TypeError(
        f"`groups` must hold keys of one type, got {show(first_key)} and "
        f"{show(second_key)}; make "
        f"texts of them."
    )


def notes_on_identifiers(
    X: Any, columns: Sequence[str] | None, declared: Collection[str] = ()
) -> dict[str, str]:
    """Return a caveat, by name, for each feature that seems to identify groups of rows.

    Its name is that of an identifier or of a person, and several rows share its values.
    A user has `declared` some features to be categories; so does a type of categories.
    """
    native = X.given if isinstance(X, Frame) else X
    if not columns or sparse.issparse(native):
        return {}
    rows: Any = nw.from_native(native, eager_only=True, pass_through=True)
    places = {name: place for place, name in enumerate(columns)}
    if isinstance(rows, nw.DataFrame):
        given = {str(name): place for place, name in enumerate(rows.columns)}
        if {*columns} & {*given}:  # a model may use some of them, in any order
            places = {name: given[name] for name in columns if name in given}
        types, of_categories = rows.schema.dtypes(), (nw.Categorical, nw.Enum)
        declared = {
            *declared,
            *(name for name, place in places.items() if types[place] in of_categories),
        }
    notes = {
        name: note
        for name, place in places.items()
        if name not in declared and is_name_of_identifier(name)
        for note in notes_on_repeats(
            pd.Series(np.asarray(rows[:, place]), name=name), is_feature=True
        )
    }
    like = X.schema.empty if isinstance(X, Frame) else native
    if isinstance(rows, nw.DataFrame) and not isinstance(like, pd.DataFrame):
        return {
            n: note.replace("X.astype", "X.to_pandas().astype")
            for n, note in notes.items()
        }
    return notes
