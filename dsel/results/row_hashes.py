"""Hashes of the labeled rows of a run, kept with its models: which rows they know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel.arrays import Bools, Features, as_plain
from dsel.data.duplicate_rows import find_equal, known_hashes
from dsel.data.frames import Frame, encode_rows
from dsel.data.labeled import LabeledRows
from dsel.results.place import ROW_HASHES, Place, check_has_results, seal, stamp
from dsel.typing import Options, PathLike

COLUMNS: Final = "columns"
GROUPS: Final = "groups"
"""Names of arrays in the file that are no hashes of rows."""


def hash_keys(keys: Iterable[object]) -> NDArray[np.uint64]:
    """Return a hash of each key of a group: of its text, as files have it.

    Examples
    --------
    >>> bool((hash_keys(["7", "K1"]) == hash_keys([np.int64(7), "K1"])).all())
    True
    """
    texts = np.array([str(as_plain(key)) for key in keys], object)
    hashes: NDArray[np.uint64] = pd.util.hash_array(texts, categorize=False)
    return hashes


@dataclass(frozen=True)
class RowHashes:
    """Hashes of labeled rows, by which other rows are found that equal one of them.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> RowHashes(None, known_hashes(X)).find(np.array([[3, 4], [3, 5]])).tolist()
    [True, False]
    """

    columns: tuple[str, ...] | None
    """Names of the hashed columns in their order; None without names."""
    by_type: Mapping[str, NDArray[np.uint64]]
    """The result of `known_hashes`."""
    groups: NDArray[np.uint64] | None = None
    """The result of `hash_keys` for the groups of these rows; None without groups, and
    in runs that did not store it."""

    @classmethod
    def of(
        cls, labeled: LabeledRows, group_keys: NDArray[Any] | None = None
    ) -> "RowHashes":
        """Return the hashes of labeled rows, and of the keys of their groups."""
        groups = None if group_keys is None else hash_keys(group_keys)
        return cls(labeled.columns, known_hashes(encode_rows(labeled.X)), groups)

    def find(self, X: Features, names: Sequence[str] | None = None) -> Bools:
        """Return a mask of the rows that equal one of these in all of their columns.

        `names` are those of the columns of `X`, by default those of a `Frame`. Rows
        that lack a column are not compared.
        """
        found = self._select_columns(X, names)
        if found is None:
            return np.zeros(X.shape[0], np.bool_)
        return find_equal(encode_rows(found), self.by_type)

    def count_missing(self, X: Features) -> int:
        """Return how many of these distinct rows no row of `X` equals."""
        found = self._select_columns(X, None)
        by_type = {} if found is None else known_hashes(encode_rows(found))
        name = max(by_type.keys() & self.by_type.keys(), default="")  # the widest type
        known = self.by_type.get(name, max(self.by_type.values(), key=len))
        return len(np.setdiff1d(known, by_type.get(name, ())))

    def _select_columns(self, X: Features, names: Sequence[str] | None) -> Any:
        """Return the hashed columns of rows, in their order; None if one is missing."""
        names = X.schema.names if isinstance(X, Frame) else names
        if self.columns is None or names is None:
            return X
        if not set(self.columns) <= set(names):
            return None
        if isinstance(X, Frame):
            schema = X.schema.with_columns(self.columns)
            return Frame(X.given[list(self.columns)], schema)
        return X[:, [list(names).index(name) for name in self.columns]]


def save_row_hashes(place: Place, known: RowHashes) -> None:
    """Store the hashes of labeled rows in a results folder."""
    content = BytesIO()
    names = np.array(() if known.columns is None else known.columns, str)
    arrays: dict[str, Any] = {**known.by_type, COLUMNS: names}
    if known.groups is not None:
        arrays[GROUPS] = known.groups
    np.savez(content, **arrays)
    place.write({f"{ROW_HASHES}/{stamp()}.npz": seal(content.getvalue())})


def load_row_hashes(
    place: PathLike, *, storage_options: Options | None = None
) -> RowHashes | None:
    """Return the hashes of a run's labeled rows; None if none are stored.

    The hashes of a run of an older version are not, and neither are those of
    `save_model`.
    """
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    if (body := where.read_last(ROW_HASHES)) is None:
        return None
    with np.load(BytesIO(body), allow_pickle=False) as stored:
        arrays = dict(stored)
    names = arrays.pop(COLUMNS).tolist()
    groups = arrays.pop(GROUPS, None)
    return RowHashes(tuple(names) or None, arrays, groups)
