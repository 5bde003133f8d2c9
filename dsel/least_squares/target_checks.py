"""The targets of least squares, checked before scikit-learn reads them."""

from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from dsel.arrays import Floats
from dsel.checks import as_array, show
from dsel.data.labeled import check_no_masks
from dsel.errors import RowError
from dsel.typing import AnyArray


def check_targets(X: Any, y: Any) -> None:
    """Raise where targets are no finite real numbers, one or more for each row of `X`.

    Two kinds are not checked here: None, which `validate_data` refuses, and a dask
    array, which is only refused if it has a mask.

    Raises TypeError for values that are no numbers, and ValueError for a number of rows
    that is not that of `X`, and for complex, masked, missing and infinite targets.
    """
    check_no_masks(y)
    if y is None or hasattr(y, "dask"):
        return
    values = as_array(y, "y")
    rows = X if hasattr(X, "shape") else as_array(X, "X")
    if not values.ndim:
        raise TypeError(f"`y` must have a target for each row of `X`, got {show(y)}.")
    if not hasattr(X, "dask") and rows.shape[:1] != values.shape[:1]:
        raise ValueError(
            f"`y` must have a target for each row of `X`, got the shapes "
            f"{values.shape} and {rows.shape}."
        )
    if values.dtype.kind == "c":  # the wording that scikit-learn's checks expect
        raise ValueError(
            f"Complex data not supported: `y` must hold numbers that are real, got "
            f"{shorten(repr(values[:3]), 60)}."
        )
    numbers = _real_numbers(values)
    if numbers is None:
        raise TypeError(
            f"`y` must hold numbers, got {shorten(repr(values[:3]), 60)}; make real "
            f"numbers of them, or for classes search with "
            f"KernelLeastSquaresClassifier()."
        )
    missing = np.argwhere(~np.isfinite(numbers))
    if len(missing):
        raise RowError(
            "`y` must hold finite numbers, but that of ",
            int(missing[0][0]),
            f" is {values[tuple(missing[0])]}; leave out rows without a target.",
        )


def _real_numbers(values: AnyArray) -> Floats | None:
    """Return targets as float64, NaN for missing ones; None if some are no numbers."""
    if values.dtype.kind != "O":
        return values.astype(np.float64) if values.dtype.kind in "biuf" else None
    # Texts of numbers would be converted, so they are refused here.
    if any(isinstance(value, str | bytes) for value in values.flat):
        return None
    try:
        return np.where(pd.isna(values), np.nan, values).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
