"""Whether a column of labels holds classes or numbers, and reading it as numbers."""

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dsel.checks import show
from dsel.data.kinds import ColumnScan, Kind, convert

MOST_WHOLE: Final = 20
"""Different whole numbers that are taken for classes without a question."""
CLASSIFICATION: Final = "classification"
REGRESSION: Final = "regression"
TASKS: Final = (CLASSIFICATION, REGRESSION)


def is_regression_task(
    task: str | None, target: str | None, *, n_values: int, has_fractions: bool
) -> bool:
    """Return whether a column of different numbers is the target of a regression.

    Numbers with fractions are measurements, and few whole ones classes. Raises
    ValueError where nobody said what many whole numbers are.
    """
    if task is not None:
        return task == REGRESSION
    if not has_fractions and n_values > MOST_WHOLE:
        raise ValueError(
            f"`target` {target!r} has {n_values:,} different whole numbers, which may "
            f"be classes or measurements; say which by --task classification or --task "
            f"regression."
        )
    return has_fractions


def numbers_of_texts(
    values: pa.Array, target: str, decimal: str, task: str | None
) -> NDArray[np.float64] | None:
    """Return the targets of a regression of a text file; None where they are classes.

    Cells are trimmed; an empty one, of a row without a target, is NaN.
    """
    if task == CLASSIFICATION:
        return None
    scan = ColumnScan()
    scan.add(values)
    kind = scan.kind(decimal)
    if task is None and not kind.is_number:
        return None
    typed, bad = convert(values, Kind.NUMBERS, decimal)
    if typed is None:
        assert bad is not None  # else it was converted
        raise ValueError(
            f"`target` {target!r} must hold numbers for a regression, got "
            f"{show(bad.value)} in row {bad.row}; mend it, or write --task "
            f"classification."
        )
    found = np.array(typed.to_numpy(zero_copy_only=False), np.float64)
    known = np.unique(found[~np.isnan(found)])
    has_fractions = bool((known != np.rint(known)).any())
    is_one = is_regression_task(
        task, target, n_values=len(known), has_fractions=has_fractions
    )
    return found if is_one else None


def numbers_of_labels(
    labels: NDArray[np.generic], target: str | None, task: str | None
) -> NDArray[np.float64] | None:
    """Return the targets of a regression of a typed column; None of classes."""
    if task == CLASSIFICATION or labels.ndim != 1:
        return None
    missing = pd.isna(labels)
    known = np.array(labels[~missing].tolist())
    if known.dtype.kind not in "iuf":
        if task == REGRESSION:
            raise ValueError(
                f"`target` {target!r} must hold numbers for a regression, got "
                f"{show(known.tolist()[0] if len(known) else None)}; write --task "
                f"classification."
            )
        return None
    finite = known[np.isfinite(known.astype(np.float64))]
    has_fractions = bool((finite != np.rint(finite)).any())
    if not is_regression_task(
        task, target, n_values=len(np.unique(finite)), has_fractions=has_fractions
    ):
        return None
    found = np.full(len(labels), np.nan)
    found[~missing] = known
    return found
