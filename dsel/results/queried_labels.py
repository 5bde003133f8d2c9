"""Labels of queried pool rows, passed by row number or in the order of the rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_scalar

from dsel.checks import as_array, show


def labels_by_row(labels: Any, rows: Sequence[int]) -> tuple[Any, ...]:
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
        index = pd.to_numeric(labels.index, errors="coerce")
        unknown = labels.index[~np.isin(index, rows)]
        if len(unknown):
            raise ValueError(
                f"`labels` must have the numbers of queried pool rows as its index, "
                f"such as {rows[0]}, got {_plain(unknown[0])!r}; pass "
                f"labels.to_numpy() where they are in the order of `query_rows`, and "
                f"labels of the pool that was queried."
            )
        by_row: dict[int, Any] = {}
        for row, label in zip(index.astype(int), map(_plain, labels), strict=True):
            before = by_row.get(row)
            if None not in (before, label) and before != label:
                raise ValueError(
                    f"`labels` must have one label for each pool row, got {before!r} "
                    f"and {label!r} for row {row}; leave out one of them."
                )
            by_row[row] = before if label is None else label
        return tuple(by_row.get(row) for row in rows)
    if labels is None or np.isscalar(labels) or np.shape(labels) == ():
        raise TypeError(
            f"`labels` must be a Series by pool row number or an array in the order of "
            f"`query_rows`, got {show(labels)}."
        )
    if len(labels) != len(rows):
        raise ValueError(
            f"`labels` must have a label for each of the {len(rows)} queried rows, "
            f"None where there is none, got {len(labels)}; a Series by pool row number "
            f"may leave rows out."
        )
    masked = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else None
    return tuple(
        None if masked is not None and masked[i] else _plain(label)
        for i, label in enumerate(labels)
    )


def check_label_type(labels: Sequence[object], predicted: Sequence[object]) -> None:
    """Raise TypeError unless labels and predictions are both texts, or both not."""
    known = [label for label in labels if label is not None]
    if known and isinstance(known[0], str) != isinstance(predicted[0], str):
        raise TypeError(
            f"`labels` must be of the type that the models predict, such as "
            f"{predicted[0]!r}, got {known[0]!r}; convert one of them."
        )


def _plain(label: object) -> Any:
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
