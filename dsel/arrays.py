"""Names of array types, plain numbers, masked values, and rows in float64."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
import pandas as pd
from numpy import typing as npt
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import validation
from typing_extensions import TypeAliasType

from dsel.rounded_texts import count_of

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Shorts = NDArray[np.int16]
Bools = NDArray[np.bool_]
ArrayLike = TypeAliasType("ArrayLike", npt.ArrayLike)
"""An argument of `numpy.asarray`; signatures print this name in place of a long
union."""
DTypeLike = TypeAliasType("DTypeLike", npt.DTypeLike)
"""An argument of `numpy.dtype`."""
RandomState = TypeAliasType(
    "RandomState", int | np.random.RandomState | np.random.Generator | None
)
"""Seed or generator of random draws; None takes a seed from the system."""
ONE_TYPE: Final = ("boolean", "floating", "integer", "mixed-integer-float", "string")
"""Names of pandas for objects whose common type does not change them."""
LONGEST = 300
"""Most characters of another library's message that are shown."""


class Features(Protocol):
    """Rows that estimators take: an array, a CSR matrix or a `Frame`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, as the same type."""
        ...


class Estimator(Protocol):
    """An object that scikit-learn can clone: a classifier, a regressor, a pipeline."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters by name."""
        ...

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name."""
        ...


def as_plain(value: Any) -> Any:
    """Return a scalar of numpy as Python's own number; other values are unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def narrow_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return objects of one type as an array of this type, other values unchanged.

    ``numpy.array`` would make texts of all of them if some are: 1 and "1" would be one
    label.

    Examples
    --------
    >>> narrow_objects(np.array([1, 2], dtype=object))
    array([1, 2])
    >>> narrow_objects(np.array([1, "a"], dtype=object))
    array([1, 'a'], dtype=object)
    """
    if values.dtype != object or pd.api.types.infer_dtype(values) not in ONE_TYPE:
        return values
    return np.array(values.tolist())


def find_mask(values: Any) -> Any:
    """Return values as a masked array if some may be masked, else None.

    For a list of masked arrays `numpy.array` ignores the masks, and returns the values
    under them.
    """
    if isinstance(values, np.ma.MaskedArray):
        return values
    if not isinstance(values, list | tuple):
        return None
    if any(isinstance(row, np.ma.MaskedArray) and row.ndim for row in values) or any(
        isinstance(row, list | tuple) and any(v is np.ma.masked for v in row)
        for row in values
    ):
        rows = [find_mask(row) for row in values]
        pairs = zip(rows, values, strict=True)
        return np.ma.stack([np.ma.array(v) if r is None else r for r, v in pairs])
    mask = [value is np.ma.masked for value in values]
    if not any(mask):
        return None
    # A masked value is replaced by one of the same type; otherwise numpy would convert
    # all values to floats.
    other = next((value for value in values if value is not np.ma.masked), 0)
    pairs = zip(values, mask, strict=True)
    return np.ma.array(
        [other if is_gap else value for value, is_gap in pairs], mask=mask
    )


def fill_masked_values(rows: Any, name: str) -> Any:
    """Return rows with NaN for masked numbers; a Dask array is filled lazily.

    Raises ValueError if values of another type than float are masked, since they have
    no NaN. Rows without masks are returned unchanged.
    """
    if isinstance(getattr(rows, "_meta", None), np.ma.MaskedArray):
        fill = partial(fill_masked_values, name=name)
        meta = np.empty((0,) * rows.ndim, rows.dtype)
        return rows.map_blocks(fill, dtype=rows.dtype, meta=meta)
    masked = find_mask(rows)
    if masked is None:
        return rows
    if not np.ma.is_masked(masked):
        return np.ma.getdata(masked)
    if masked.dtype.kind != "f":
        where = ", column ".join(map(str, np.argwhere(np.ma.getmaskarray(masked))[0]))
        raise ValueError(
            f"{name} must hold no masked values but floats, which become NaN, got "
            f"{masked.dtype} masked in row {where}; pass "
            f"{name.strip('`')}.astype(float).filled(np.nan), or leave out such rows "
            f"(rows are counted from 0)."
        )
    return masked.filled(np.nan)


def check_rows(X: Any, what: str = "`X`") -> None:
    """Raise if `X` cannot be a table of rows, such as a dict or an empty list."""
    is_lazy = hasattr(X, "collect") and not hasattr(X, "shape")
    # A delayed object of Dask has any attribute, so that its shape is no tuple.
    is_other = not isinstance(getattr(X, "shape", ()), tuple) or isinstance(X, str)
    is_other |= isinstance(X, np.matrix)
    # Structured arrays have one dimension only, and an index holds labels.
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    is_other |= isinstance(X, pd.Index) or (isinstance(kind, str) and kind == "V")
    is_other |= isinstance(X, Mapping) and not sparse.issparse(X)
    if (
        is_other
        or is_lazy
        or not (
            isinstance(X, Sequence)
            or hasattr(X, "shape")
            or hasattr(X, "__array__")
            or hasattr(X, "__dataframe__")
            or hasattr(X, "compute")
        )
    ):
        way = "call its collect()" if is_lazy else "make a data frame or an array of it"
        raise TypeError(
            f"{what} must hold rows of features, got {type(X).__name__}; {way}."
        )
    check_distinct_columns(X, what)
    is_scalar = getattr(X, "shape", None) == ()
    if is_scalar or (isinstance(X, Sequence) and not len(X)):
        raise ValueError(
            f"{what} must have rows and columns, got none; pass a table of them."
        )


def check_dimensions(X: Any, n_columns: int | None = None) -> None:
    """Raise ValueError if `X` is not rows by columns, or has another number of them."""
    shape = np.shape(X)
    if len(shape) == 2 and n_columns in (None, shape[1]):
        return
    if len(shape) == 2:
        raise ValueError(
            f"`X` has {count_of(shape[1], 'column')}, but the labeled rows have "
            f"{n_columns:,}; pass the same columns in the same order."
        )
    if len(shape) > 2:
        got = f"{len(shape)} dimensions, shape {shape}; pass X.reshape(len(X), -1)"
    elif isinstance(X, pd.Series):
        got = (
            f"a Series of {shape[0]:,} values; pass X.to_frame() for one column, or "
            f"X.to_frame().T for one row, such as df.iloc[[0]]"
        )
    else:
        got = (
            f"one dimension, shape {shape}; pass X.reshape(-1, 1) for one column, or "
            f"X.reshape(1, -1) for one row"
        )
    raise ValueError(f"`X` must be a table, rows by columns, got {got}.")


def check_distinct_columns(X: Any, what: str = "`X`") -> None:
    """Raise ValueError if a data frame of any library has a column name twice."""
    is_frame = hasattr(X, "iloc") or hasattr(X, "__dataframe__")
    columns = getattr(X, "columns", None) if is_frame else None
    names = getattr(X, "column_names", columns)  # columns of Arrow have no names
    if isinstance(names, pd.Index | list) and len(names) > len({*names}):
        name = next(name for name, n in Counter(names).items() if n > 1)
        raise ValueError(
            f"{what} must have distinct names of columns, but has the column {name!r} "
            f"twice; rename one."
        )


def validate_data(
    estimator: Any, X: Any = "no_validation", y: Any = "no_validation", **options: Any
) -> Any:
    """Call scikit-learn's `validate_data` on rows whose masked numbers became NaN.

    Masked labels are refused before, like rows without a label. Messages name the
    argument and have one line. Rows with ``skip_check_array`` were checked before.
    """
    if not (X is None or np.isscalar(X) or options.get("skip_check_array")):
        check_rows(X)
    try:
        return validation.validate_data(
            estimator, fill_masked_values(X, "`X`"), y, **options
        )
    except Exception as error:
        text = str(error)
        # scikit-learn's estimator checks expect this message of several lines.
        if text.startswith("The feature names should match") and "missing" not in text:
            way = "Take them by their names: X[[*model.feature_names_in_]]"
            raise ValueError(f"{text.rstrip()}\n{way}, with your model.") from error
        if text.startswith(("The feature names should match", "`X`")):
            raise
        name = "y" if re.search(r"\by\b", text) and "X" not in text else "X"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"`{name}` was refused: {' '.join(text.split())[:LONGEST]}"
        ) from error


Fit = TypeVar("Fit", bound=Callable[..., Any])


def replaces_earlier_fit(fit: Fit) -> Fit:
    """Return a method `fit` that sets all fitted attributes at once, at its end.

    Attributes of an earlier fit that this one does not set are deleted, such as the
    classes of a search that becomes one of regressors. If it raises, those of the
    earlier fit stay, and still belong together.
    """

    @wraps(fit)
    def fit_anew(self: Any, *args: Any, **options: Any) -> Any:
        fitted = object.__new__(type(self))
        # A fit belongs to the parameters; attributes of users have no "_" at the end.
        vars(fitted).update(
            {name: value for name, value in vars(self).items() if name[-1] != "_"}
        )
        fit(fitted, *args, **options)
        for name in [name for name in vars(self) if name[-1] == "_"]:
            delattr(self, name)
        vars(self).update(vars(fitted))
        return self

    return cast(Fit, fit_anew)


def as_floats(rows: Any) -> Any:
    """Return rows in float64, dense in C order or CSR; raise if any is not finite."""
    if sparse.issparse(rows):
        rows = rows.tocsr().astype(np.float64)
        finite = np.isfinite(rows.data).all()
    else:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        finite = np.isfinite(rows).all()
    if not finite:
        raise ValueError(
            "`X` must be finite for a kernel method, got NaN or infinity; put an "
            "imputer before it in a pipeline."
        )
    return rows
