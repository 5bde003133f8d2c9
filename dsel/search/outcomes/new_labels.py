"""Labels of new rows, and one row of each new group where rows come in groups."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel.arrays import Bools, as_plain
from dsel.checks import as_array
from dsel.data.groups import RowGroups
from dsel.data.labeled import check_no_masks, one_column
from dsel.results.row_hashes import hash_keys
from dsel.runtime.tasks import Inputs, Output
from dsel.search.outcomes.promises import Promises
from dsel.search.outcomes.table_rows import TableRows, read_table_slice
from dsel.typing import GroupsLike, LabelsLike

SEED: Final = 0
"""Seed of the sample and the forest of the two-sample test: the same each time."""


@dataclass(frozen=True)
class NewLabels:
    """Labels of new rows: a column of the table, or an array by row number."""

    target: str | None = None
    y: NDArray[Any] | None = None
    option: str = "`y` has them, or `target`"
    """The arguments that hold the labels, the last one with the name of their column.
    The command line names them differently."""
    groups: Any = None
    """Column with the key of each row's group, or these keys; None without groups."""
    groups_option: str = "`groups`"

    @classmethod
    def of(
        cls, y: LabelsLike | None, target: str | LabelsLike | None, groups: GroupsLike
    ) -> "NewLabels":
        """Return the labels of the arguments of `monitor`, of which one has them."""
        if target is not None and y is not None:
            raise ValueError(
                "`target` names a column of labels, and `y` holds labels, too; leave "
                "one of them out."
            )
        if target is not None and not isinstance(target, str):
            target, y = None, target
        return cls(target, None if y is None else check_new_labels(y), groups=groups)

    @property
    def argument(self) -> str:
        """The argument that has them, for messages."""
        return "`y`" if self.target is None else "`target`"

    @property
    def are_there(self) -> bool:
        """Whether there are labels."""
        return self.target is not None or self.y is not None


def check_new_labels(y: Any) -> NDArray[Any]:
    """Return labels of new rows as one array; some may be missing."""
    check_no_masks(y)
    labels = as_array(one_column(y), "y", object)
    if labels.ndim != 1:
        raise ValueError(
            f"`y` must have a label for each new row, got shape {labels.shape}."
        )
    return labels


@dataclass(frozen=True)
class ReadKeys:
    """Reads keys, and the places of labels, in a slice of a table."""

    def run(
        self, new_labels: NewLabels, inputs: Inputs
    ) -> Output[tuple[NDArray[Any], Bools]]:
        """Return both arrays; each is empty where it is known without the table."""
        keys: list[Any] = []
        has_label: list[Any] = []
        for block in read_table_slice(inputs):
            frame = block.X.given
            if isinstance(new_labels.groups, str):
                keys.extend(list(frame[new_labels.groups]))
            if new_labels.target is not None:
                has_label.extend((~pd.isna(frame[new_labels.target])).tolist())
        key_array = np.empty(len(keys), object)
        key_array[:] = keys
        return Output((key_array, np.array(has_label, np.bool_)))


def draw_rows_of_groups(
    promises: Promises, table: TableRows, new_labels: NewLabels, client: Any
) -> tuple[Bools, list[str]]:
    """Draw one row with a label of each new group; return a mask of rows, and notes.

    Such rows are independent draws of a random row of a new group. Keys are compared
    as texts with those of the labeled groups, whose rows are no fresh draws.
    """
    keys = new_labels.groups
    has_label = None
    if new_labels.y is not None:
        has_label = ~pd.isna(new_labels.y)
    if isinstance(keys, str) or new_labels.target is not None:
        slices = list(table.run(new_labels, ReadKeys(), client))
        if isinstance(keys, str):
            keys = np.concatenate([slice_keys for slice_keys, _ in slices])
        if new_labels.target is not None:
            has_label = np.concatenate([slice_flags for _, slice_flags in slices])
    keys = pd.Series(keys, dtype=object)
    if has_label is None:
        has_label = np.zeros(len(keys), np.bool_)
    if len(has_label) != len(keys):
        raise ValueError(
            f"{new_labels.groups_option} must have a key for each new row, got "
            f"{len(keys):,} for {len(has_label):,} rows."
        )
    has_key = keys.notna().to_numpy()
    texts = keys.map(lambda key: str(as_plain(key)))
    known = promises.group_hashes
    is_known = np.zeros(len(keys), np.bool_)
    if known is not None:
        is_known = has_key & np.isin(hash_keys(texts), known)
    fresh = np.flatnonzero(has_label & has_key & ~is_known)
    codes, distinct = pd.factorize(texts.to_numpy()[fresh])
    is_counted = np.zeros(len(keys), np.bool_)
    if len(fresh):
        is_counted[fresh[RowGroups(np.asarray(distinct), codes).draw_rows(SEED)]] = True
    notes = list[str]()
    if len(fresh):
        of = f"{len(distinct):,} new group{'s' if len(distinct) > 1 else ''}"
        notes.append(f"one row with a label of each of {of} is counted")
    elif has_label.any():
        notes.append("no row with a label is one of a new group, so none is counted")
    if n := int(is_known.sum()):
        notes.append(f"{n:,} rows of groups that were labeled are not counted")
    if n := int((~has_key).sum()):
        notes.append(f"{n:,} rows without a key of their group are not counted")
    if known is None:
        notes.append(
            "the keys of the labeled groups are not known: a new row of such a group "
            "is no fresh draw, and would be counted as others are"
        )
    return is_counted, notes
