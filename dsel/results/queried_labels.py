"""Labels of queried pool rows, passed by row number or in the order of the rows.

Labels cost money and a result is final, so a label counts as missing only if the user
declares this: `check_usable` refuses labels that are probably incomplete, or written in
another way than the classes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.types import is_scalar

from dsel.checks import as_array, class_of_same_letters, listing, show
from dsel.data.query_rows import POOL_INDEX
from dsel.rounded_texts import count_of

FINAL: Final = (
    "this result is final: with other labels for the same rows it would not hold"
)
FEWEST_NOTED: Final = 5
"""With fewer labels no note is given on those that no model predicts."""
MOST_LABELS_SHOWN: Final = 3
"""Most labels that a message lists."""


@dataclass(frozen=True)
class LabelRules:
    """Rules for unusable labels, and the words for these in messages."""

    partial: bool = False
    """Whether rows may have no label."""
    allow_unknown: bool = False
    """Whether labels may be no class."""
    corrected: bool = False
    """Whether these labels take the place of wrong ones that were passed before."""
    labels: str = "`labels`"
    """The words of the caller for the labels."""
    partial_option: str = "partial=True"
    unknown_option: str = "allow_unknown=True"
    effect: str = "counts against whatever is proved"
    """How a row without a usable label is treated."""


class OtherSpellingError(ValueError):
    """Labels differ from classes in blanks, case or Unicode forms only."""

    def __init__(self, text: str, meant: Mapping[str, str]) -> None:
        super().__init__(text)
        self.meant = meant
        """The class that each label means."""


def check_same_labels(
    before: Sequence[object] | None, now: Sequence[object] | None, file: str = ""
) -> None:
    """Raise ValueError if other labels were passed before; `file` has the first."""
    if before == now:
        return
    pairs = list(zip(before or (), now or (), strict=True))
    n = sum(earlier != later for earlier, later in pairs)
    where, way = "they", "pass corrected=True"
    if file:
        where, way = f"those in {file!r}", "write --corrected"
    raise ValueError(
        f"other labels were given before ({n} of {len(pairs)} rows differ), and a "
        f"result is final: to choose among labels would void its limits. If {where} "
        f"were wrong, such as those of other rows, {way}; else search or compare with "
        f"another seed for new labels."
    )


def add_labels(
    passed: list[tuple[Any, ...]], labels: tuple[Any, ...], rules: LabelRules
) -> int:
    """Add labels to those that were passed for the same rows, the first ones first.

    Returns the number of rows whose labels were corrected. Raises ValueError if the
    labels are others than the last ones, and no correction.
    """
    if passed and not rules.corrected:
        check_same_labels(passed[-1], labels)
    if labels not in passed[-1:]:
        passed.append(labels)
    return sum(len({*of_row}) > 1 for of_row in zip(*passed, strict=True))


def note_on_corrections(n_corrected: int) -> list[str]:
    """Return a note if labels took the place of others."""
    if not n_corrected:
        return []
    return [
        f"other labels of {count_of(n_corrected, 'row')} were passed before, and "
        f"corrected: this holds if no result decided which labels are right"
    ]


def notes_on_neither(
    labels: Sequence[object], *predictions: Sequence[object]
) -> list[str]:
    """Return a note if most labels are the prediction of neither of two models.

    A label of None is not usable, and does not count.
    """
    rows = [row for row in zip(labels, *predictions, strict=True) if row[0] is not None]
    n_neither = sum(label not in predicted for label, *predicted in rows)
    if len(rows) < FEWEST_NOTED or 2 * n_neither <= len(rows):
        return []
    return [
        f"neither model predicts {n_neither:,} of {count_of(len(rows), 'label')}: "
        f"these may be the labels of other rows, so compare some of them with the rows "
        f"that were queried"
    ]


def labels_by_row_number(
    labels: Any, rows: pd.DataFrame | None, row_numbers: Sequence[int]
) -> Any:
    """Return labels by pool row number if they are a Series by the pool's own index.

    `rows` are the queried rows with their index, in the order of `row_numbers`; None
    if they are not known. Other labels are returned as they are.
    """
    if (
        not isinstance(labels, pd.Series)
        or labels.index.nlevels > 1
        or rows is None
        or rows.index.name != POOL_INDEX
    ):
        return labels
    own = rows.index
    if labels.index.equals(own):
        return labels.set_axis(list(row_numbers))
    if not own.is_unique:
        raise ValueError(
            f"`labels` must be an array in the order of `query_rows`, since several "
            f"queried rows have the index {own[own.duplicated()][0]!r} in the pool."
        )
    places = own.get_indexer(labels.index)
    if (places < 0).any():
        raise ValueError(
            f"`labels` must have the index of the pool at queried rows, such as "
            f"{own[0]!r}, got {_plain_label(labels.index[places < 0][0])!r}; pass "
            f"y.loc[rows.index], where `y` has the labels by the index of the pool and "
            f"`rows` are those of `query_rows`."
        )
    return labels.set_axis(np.asarray(row_numbers)[places])


def labels_by_row(labels: Any, row_numbers: Sequence[int]) -> tuple[Any, ...]:
    """Return a label for each queried row, None for a missing one.

    `labels` is a Series by pool row number, or an array in the order of the rows.
    """
    if not (
        labels is None
        or np.isscalar(labels)
        or isinstance(labels, pd.Series | pd.DataFrame | np.ma.MaskedArray)
    ):
        labels = as_array(labels, "labels", object)
    if getattr(labels, "ndim", 1) > 1:
        raise ValueError(
            f"`labels` must be one column, a Series by pool row number or an array in "
            f"the order of `query_rows`, got the shape {labels.shape}; pass "
            f"labels['label']."
        )
    if isinstance(labels, pd.Series):
        if labels.index.nlevels > 1:
            raise ValueError(
                "`labels` must have one level in its index, the numbers of queried "
                "pool rows; pass labels.to_numpy() where they are in the order of "
                "`query_rows`."
            )
        # A table that was read as text has row numbers as texts.
        index = pd.to_numeric(labels.index, errors="coerce")
        unknown = labels.index[~np.isin(index, row_numbers)]
        if len(unknown):
            raise ValueError(
                f"`labels` must have the numbers of queried pool rows as its index "
                f"(positions in the pool from 0, as pool.iloc takes), such as "
                f"{row_numbers[0]}, got {_plain_label(unknown[0])!r}; pass "
                f"labels.to_numpy() where they are in the order of `query_rows`, and "
                f"labels of the pool that was queried."
            )
        label_of_row: dict[int, Any] = {}
        for row, label in zip(
            index.astype(int), map(_plain_label, labels), strict=True
        ):
            before = label_of_row.get(row)
            # A spreadsheet may repeat a row with an empty label, which contradicts
            # nothing.
            if None not in (before, label) and before != label:
                raise ValueError(
                    f"`labels` must have one label for each pool row, got {before!r} "
                    f"and {label!r} for row {row}; leave out one of them."
                )
            label_of_row[row] = before if label is None else label
        return tuple(label_of_row.get(row) for row in row_numbers)
    if labels is None or np.isscalar(labels) or np.shape(labels) == ():
        raise TypeError(
            f"`labels` must be a Series by pool row number or an array in the order of "
            f"`query_rows`, got {show(labels)}."
        )
    if len(labels) != len(row_numbers):
        raise ValueError(
            f"`labels` must have a label for each of the {len(row_numbers)} queried "
            f"rows, None where there is none, got {len(labels)}; a Series by pool row "
            f"number may leave rows out."
        )
    masked = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else None
    return tuple(
        None if masked is not None and masked[i] else _plain_label(label)
        for i, label in enumerate(labels)
    )


def check_usable(
    labels: Sequence[Any],
    classes: Sequence[Any],
    rules: LabelRules,
    *,
    is_complete: bool = True,
) -> None:
    """Raise unless these labels are usable, or the rules accept unusable ones.

    `classes` are all classes if `is_complete`, else those that models predict.
    """
    known = [label for label in labels if label is not None]
    unknown = Counter(label for label in known if label not in classes)
    n_rows = len(labels)
    shown = listing([*map(repr, classes)], MOST_LABELS_SHOWN)
    if not known:
        missing = f"all {n_rows:,} labels are missing; fill them"
        if n_rows == 1:
            missing = "the only label is missing; fill it"
        raise ValueError(
            f"{rules.labels} must have labels of the queried rows, but "
            f"{missing} in with {shown} "
            f"(nothing was counted or stored)."
        )
    is_text = {isinstance(label, str) for label in classes}
    # Comparing texts with numbers would find no class at all, so the types come first.
    if {isinstance(label, str) for label in known}.isdisjoint(is_text):
        raise TypeError(
            f"{rules.labels} must be of the type that the models predict, such as "
            f"{classes[0]!r}, got {known[0]!r}; convert one of them."
        )
    meant = {label: class_of_same_letters(label, classes) for label in unknown}
    meant = {label: name for label, name in meant.items() if name is not None}
    for label, name in meant.items():
        raise OtherSpellingError(
            f"{rules.labels} must be written as the classes are: {label!r} is no "
            f"class; did you mean {name!r}? (nothing was counted or stored)",
            meant,
        )
    if unknown.total() == len(known) and (is_complete or not rules.allow_unknown):
        end = "" if is_complete else f", or pass {rules.unknown_option}"
        raise ValueError(
            f"{rules.labels} must be classes, such as {shown}, but none of "
            f"{count_of(len(known), 'label')} is one, such as {known[0]!r}; correct "
            f"them{end} (nothing was counted or stored)."
        )
    if unknown and is_complete and not rules.allow_unknown:
        rows = [f"{label!r} in {count_of(n, 'row')}" for label, n in unknown.items()]
        # No command has an option whose effect is final.
        raise ValueError(
            f"{rules.labels} must be classes, such as {shown}, got "
            f"{listing(rows, MOST_LABELS_SHOWN)}; correct them, or pass "
            f"{rules.unknown_option}: then each {rules.effect}, and that is final."
        )
    n_missing = n_rows - len(known)
    if n_missing and not rules.partial:
        raise ValueError(
            f"{rules.labels} must have a label for each queried row, but {n_missing} "
            f"of {n_rows} rows have none; fill them in, or pass "
            f"{rules.partial_option}: then each {rules.effect}, and that is final."
        )


def _plain_label(label: object) -> Any:
    """Return a label as Python's own value, None if it is missing."""
    if isinstance(label, np.generic):
        label = label.item()
    if not is_scalar(label):
        raise TypeError(
            f"`labels` must have one label for each queried row, got {show(label)} as "
            f"one of them; pass a one-dimensional array of labels."
        )
    if label is None or label is pd.NA or label is pd.NaT or label != label:
        return None
    return None if isinstance(label, str) and not label.strip() else label
