"""Labeled rows, checked, with labels as class codes; and the pool that matches them."""

import datetime as dt
import decimal
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from numbers import Integral, Real
from operator import or_
from textwrap import shorten
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from dask.base import tokenize
from numpy.typing import NDArray
from pandas.api.types import infer_dtype
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from dsel.arrays import (
    Bools,
    Features,
    Floats,
    Integers,
    check_dimensions,
    check_rows,
    fill_masked_values,
    find_mask,
)
from dsel.checks import as_array, listing, show, similar_labels
from dsel.data.frame_columns import NOTHING, NUMBER, TRUTH, are_texts_of_numbers
from dsel.data.frames import (
    Frame,
    FrameSchema,
    check_finite,
    check_names,
    check_number_type,
    check_numeric,
    copy_rows,
    frame_like,
    frame_of,
    has_named_columns,
    merge_entries,
    native,
    take_rows,
    with_column_names,
)
from dsel.data.identity import content_hash
from dsel.data.pool import Pool
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.errors import NewFile, RowError, UndecidedError
from dsel.names import NO_CLASS
from dsel.rounded_texts import count_of
from dsel.typing import AnyArray, LabelsLike, RowsLike

NO_CLASSES: Final = (
    bytes,
    complex,
    dt.date,
    dt.time,
    dt.timedelta,
    decimal.Decimal,
    pd.Period,
    pd.Interval,
)
"""Types of labels that scikit-learn treats as measurements, or refuses."""
ROWS_AT_ONCE: Final = 2**17
"""Rows of a few columns that are read once, for which a task is worth its time."""
MOST_SINGLE: Final = 50
"""Number of classes up to which fewer rows per class than 2, or 3 of numbers, do."""
MOST_WHOLE: Final = 20
"""Largest number of distinct integers that count as classes by default."""
EMPTY: Final = ("",)
MISSING: Final = ("nan", "NaN", "None", "NaT", "<NA>")
"""Texts that `astype(str)` makes from missing labels."""


@dataclass(frozen=True, eq=False, repr=False)
class LabeledRows:
    """Labeled rows, in which every class occurs, or rows with numbers as targets."""

    X: Features
    """Features, shape (n_rows, n_columns), a numeric array, CSR or a `Frame`."""
    y: NDArray[Any]
    """Class codes, (n_rows,), indices into `classes`; float64 for a regression."""
    classes: NDArray[Any]
    """Labels in sorted order, shape (n_classes,); empty for a regression."""
    columns: tuple[str, ...] | None = None
    schema: FrameSchema | None = None
    """Schema of the data frame whose columns the models know by name; else None."""

    def __repr__(self) -> str:
        target = "numbers" if self.is_regression else f"{len(self.classes)} classes"
        return f"<LabeledRows: {self.n_rows:,} x {self.n_columns}, {target}>"

    @property
    def labels(self) -> NDArray[Any]:
        """Labels as they were given, or numbers, shape (n_rows,)."""
        return labels_of(self.y, self.classes)

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return not len(self.classes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def take(self, row_numbers: slice | AnyArray) -> Any:
        """Return some rows as fitted models get them, with the names that they know."""
        rows = take_rows(self.X, row_numbers)
        if self.schema is not None and not isinstance(rows, Frame):
            rows = frame_like(rows, self.schema)
        return native(rows)

    @cached_property
    def token(self) -> str:
        """Hash of features, labels and names."""
        content = content_hash(self.X, self.y)
        return f"labeled-{tokenize(content, self.columns, self.classes.tolist())}"


def labels_of(y: AnyArray, classes: AnyArray) -> NDArray[Any]:
    """Return the labels of class codes; numbers of a regression are unchanged."""
    return classes[y] if len(classes) else y


def labeled_rows(
    X: RowsLike,
    y: LabelsLike,
    *,
    allow_nan: bool = False,
    as_frame: bool = False,
    as_numbers: bool = False,
) -> LabeledRows:
    """Check labeled rows and code their labels, which must be of one type.

    Without `as_frame` a frame of numbers becomes an array, and other frames are
    refused; sparse rows become CSR. With `as_numbers`, `y` holds numbers.
    """
    check_order(X, y)
    features, names = check_features(X, as_frame=as_frame)
    n_rows = features.shape[0]
    labels = check_numbers(y) if as_numbers else check_labels(y)
    if len(labels) != n_rows:
        raise ValueError(
            f"`y` must have a label for each row of `X`, got {len(labels)} labels "
            f"(n_samples={len(labels)}) for {n_rows} rows."
        )
    check_finite(features, "`X`", np.arange(n_rows), names, allow_nan)
    schema = features.schema if isinstance(features, Frame) else None
    if as_numbers:
        if n_rows < 2:
            raise ValueError(
                "`X` must have at least two rows, got one sample only (n_samples=1); "
                "label more rows."
            )
        return LabeledRows(copy_rows(features), labels, np.empty(0), names, schema)
    classes, codes = code_labels(labels)
    # Numbers are measurements more often than texts are.
    fewest = 3 if labels.dtype.kind in "iuf" else 2
    if len(classes) > max(MOST_SINGLE, len(labels) // fewest):
        is_number = labels.dtype.kind in "iuf"
        ways = "search regressors, cut measurements into classes, or "
        raise ValueError(
            f"`y` must hold classes, got {len(classes):,} different labels in "
            f"{len(labels):,} rows, such as {show(labels.tolist()[0])}; "
            f"{ways if is_number else ''}label more rows of each class."
        )
    # The rows are copied, because the caller may change the original while fits run.
    return LabeledRows(copy_rows(features), codes, classes, names, schema)


def check_features(
    X: Any, what: str = "`X`", *, as_frame: bool = False
) -> tuple[Any, tuple[str, ...] | None]:
    """Return features as a numeric array, CSR or `Frame`, and their names, or raise."""
    if X is None or np.isscalar(X):
        raise TypeError(
            f"{what} must hold rows of features, got {show(X)}; pass an array, a data "
            f"frame or a sparse matrix."
        )
    check_rows(X, what)
    X = fill_masked_values(with_column_names(X), what)
    if hasattr(X, "to_dask_array") and hasattr(X, "compute"):
        X = X.compute()
    frame = frame_of(X) if has_named_columns(X) else None
    names = None if frame is None else frame.schema.names
    if frame is None and isinstance(X, pd.DataFrame):
        names = tuple(map(str, X.columns))
        check_names(names, X.shape[1], f"columns of {what}")
    features = frame if as_frame and frame is not None else _numbers(X, frame)
    n_rows, n_columns = features.shape
    if not n_rows or not n_columns:
        raise ValueError(
            f"{what} must have rows and columns, got {n_rows} rows of {n_columns} "
            f"columns."
        )
    return features, names


def check_order(X: RowsLike, y: LabelsLike) -> None:
    """Raise ValueError if `X` has labels and `y` has rows: both were swapped."""
    shapes: list[Any] = [getattr(array, "shape", ()) for array in (X, y)]
    are_tuples = all(isinstance(shape, tuple) for shape in shapes)
    if are_tuples and [len(shape) for shape in shapes] == [1, 2] and shapes[1][1] > 1:
        raise ValueError(
            f"`X` must be a table, rows by columns, and `y` have one label for each "
            f"row, got shapes {shapes[0]} and {shapes[1]}; did you swap them? `X` "
            f"comes first."
        )


def wrap_unlabeled_rows(X: RowsLike, what: str = "`X_seen`") -> LabeledRows:
    """Return unlabeled rows as `LabeledRows`, to compare other rows with them."""
    features, names = check_features(X, what, as_frame=True)
    nothing = np.zeros(features.shape[0], np.int64)
    return LabeledRows(features, nothing, np.zeros(1, np.int64), names)


def _first_line(error: Exception) -> str:
    """Return the message of scikit-learn without the values that it shows below."""
    return str(error).partition("\n")[0]


def _numbers(X: Any, frame: Frame | None) -> Any:
    """Return features as a numeric array or CSR; raise where they are not numeric."""
    if frame is not None and not hasattr(X, "iloc"):
        return frame.numbers
    try:
        rows = merge_entries(
            check_array(X, accept_sparse="csr", ensure_all_finite=False, input_name="X")
        )
    except Exception as error:  # objects of user classes may raise anything
        reason = (
            f"a table of numbers, at least one row by one column, or a data frame "
            f"whose columns of text and dates the estimator encodes, as "
            f"ColumnTransformer does. {shorten(_first_line(error), 200)}"
        )
        if isinstance(X, pd.DataFrame) and "fill value" in str(error):
            reason = (
                "a data frame whose sparse columns are filled with 0, which "
                "scikit-learn takes; pass X.sparse.to_dense()."
            )
        is_list = isinstance(X, Sequence | np.ndarray | pd.Series)
        if is_list and isinstance(next(iter(X), None), str):
            reason = (
                "a table, got one text for each row; make a data frame of it, "
                "pandas.DataFrame({'text': X}), and begin the pipeline with "
                "ColumnTransformer([('words', TfidfVectorizer(), 'text')])."
            )
        elif "arrays of bytes/strings" in str(error) and are_texts_of_numbers(X):
            reason = (
                f"a table of numbers, got texts of numbers, such as "
                f"{show(np.ravel(X)[0].item())}; pass numpy.asarray(X).astype(float)."
            )
        elif "arrays of bytes/strings" in str(error):
            reason = (
                "a table of numbers, got a table of texts; make a data frame of it, "
                "pandas.DataFrame(X, columns=[...]), and begin the pipeline with an "
                "encoder of its columns of texts, such as OneHotEncoder()."
            )
        elif hasattr(X, "shape"):
            check_dimensions(X)
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"`X` must be {reason}") from error
    check_number_type(rows.dtype, "X")
    # pandas and some learners refuse numbers of another byte order than the machine's.
    return rows.astype(rows.dtype.newbyteorder("="), copy=False)


def one_column(y: LabelsLike) -> LabelsLike:
    """Return a table of one column as that column, and other labels as they are.

    Estimators warn of such labels, like those of scikit-learn; functions accept them.
    """
    shape = getattr(y, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[1] != 1:
        return y
    if isinstance(y, np.ndarray):
        return y.reshape(-1)
    table: Any = y
    if isinstance(y, pd.DataFrame):
        table = table.iloc[:, 0]
    elif isinstance(frame := nw.from_native(y, pass_through=True), nw.DataFrame):
        table = frame[:, 0].to_native()
    column: LabelsLike = table
    return column


def check_labels(y: LabelsLike) -> NDArray[Any]:
    """Return labels as a one-dimensional array of one type, or raise."""
    labels = _one_dimension(y)
    _refuse_no_classes(labels)
    is_float = labels.dtype.kind == "f"
    missing = np.flatnonzero(~np.isfinite(labels) if is_float else pd.isna(labels))
    if len(missing):
        raise RowError(
            "`y` must hold a label for every row, but ",
            int(missing[0]),
            f" is {labels[missing[0]]}; rows without a label belong in the pool.",
        )
    if labels.dtype.kind == "O":
        _check_marks(labels, y)
        kind = infer_dtype(labels)
        if kind.startswith("mixed") and kind != "mixed-integer-float":
            different = (x for x in labels if type(x) is not type(labels[0]))
            raise TypeError(
                f"`y` must hold one label for each row, and labels of one type, got "
                f"{show(labels[0])} and {show(next(different, labels[-1]))}; make "
                f"texts of them."
            )
        labels = _array_of_one_type(labels)
    try:
        with warnings.catch_warnings(action="ignore"):  # about many classes
            check_classification_targets(labels)
    except ValueError as error:
        raise ValueError(
            f"`y` must hold classes, not measurements such as {labels.tolist()[0]}; "
            f"pass a regressor, such as Ridge(), or cut them into classes "
            f"({str(error).partition('. ')[0]})."
        ) from error
    _check_marks(labels, y)
    return labels


def _one_dimension(y: LabelsLike) -> NDArray[Any]:
    """Return labels as an array, (n_rows,), that joins no two different ones."""
    _check_list(y, "labels", "a label")
    # scikit-learn would turn a nullable integer column into floats.
    array = np.asarray(y) if hasattr(y, "to_numpy") else y
    try:
        labels: NDArray[Any] = column_or_1d(as_array(array, "y"), warn=True)
    except (TypeError, ValueError) as error:
        shape = getattr(array, "shape", ())
        reason = f"{type(y).__name__}: {shorten(_first_line(error), 120).rstrip('.')}"
        if isinstance(shape, tuple) and len(shape) > 1:
            ways = "y[:, 0], or y.ravel() if it has one"
            if isinstance(y, pd.DataFrame):
                ways = f"y[{show(y.columns[0])}] or y.iloc[:, 0]"
            elif has_named_columns(y):
                ways = f"y[{show(next(iter(frame_of(y).schema.names)))}]"
            reason = (
                f"the shape {shape}, where 1d is wanted; pass one of its columns, such "
                f"as {ways}"
            )
        raise ValueError(
            f"`y` must be one column, a label for each row of `X`, got {reason}."
        ) from error
    # numpy makes one type of all objects of a list: [1, "1"] and [1, True] would be one
    # label each.
    if isinstance(y, list | tuple) and len({*map(type, y)}) > 1:
        labels = np.array(y, dtype=object)
    if labels.dtype.kind == "V":  # records of several values
        labels = labels.astype(object)
    return labels


def _array_of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as an array of one type; TypeError if two become one label.

    numpy rounds whole numbers above 2**53 next to floats, and ends texts at a zero
    byte.
    """
    narrow = np.array(labels.tolist())
    first: dict[Any, Any] = {}
    for label, kept in zip(labels.tolist(), narrow.tolist(), strict=True):
        if first.setdefault(kept, label) != label:
            raise TypeError(
                f"`y` must hold labels that numpy keeps apart, but {show(first[kept])} "
                f"and {show(label)} become {show(kept)}; rename the classes."
            )
    return narrow


def _refuse_no_classes(labels: NDArray[Any]) -> None:
    """Raise TypeError if the first label is of a type that no class has."""
    if not len(labels) or labels.dtype.kind not in "OScmM":
        return
    is_time = labels.dtype.kind in "mM"  # `tolist` would turn it into an integer
    first = pd.Series(labels[:1]).iloc[0] if is_time else labels.tolist()[0]
    if isinstance(first, NO_CLASSES):
        text = "label.decode()" if isinstance(first, bytes) else "str(label)"
        raise TypeError(
            f"`y` must hold labels that are texts, whole numbers or truth values, got "
            f"{show(first)} ({type(first).__name__}); make texts of them, such as "
            f"[{text} for label in y]."
        )


def check_numbers(y: LabelsLike) -> Floats:
    """Return the targets of a regression as float64, shape (n_rows,), or raise."""
    _check_list(y, "targets", "a number")
    if hasattr(y, "compute"):
        y = y.compute()
    array = np.asarray(y) if hasattr(y, "to_numpy") else as_array(y, "y")
    if array.ndim > 1 and array.shape[1:] != (1,) * (array.ndim - 1):
        raise ValueError(
            f"`y` must be one column, a number for each row of `X`, got shape "
            f"{array.shape}; make a search for each output."
        )
    if array.dtype.kind == "c":
        raise TypeError("`y` must hold real numbers for a regressor, got complex ones.")
    values: NDArray[Any] = column_or_1d(array, warn=True)
    if values.dtype.kind == "O":
        missing = np.flatnonzero(pd.isna(values))
        _refuse_missing(values, missing)
        kinds = (value for value in values.tolist() if not isinstance(value, Real))
        other = next((v for v in kinds if not isinstance(v, decimal.Decimal)), None)
    else:
        other = values.tolist()[0] if values.dtype.kind not in "biuf" else None
        if values.dtype.kind in "mM":
            other = pd.Series(values[:1]).iloc[0]
    if other is not None:
        raise TypeError(
            f"`y` must hold numbers for a regressor, got {show(other)} "
            f"({type(other).__name__}); make numbers of them, or search classifiers."
        )
    try:
        numbers = np.array(values, np.float64)  # a copy that the caller cannot change
    except OverflowError:
        raise ValueError(
            "`y` must hold numbers below 1e308 for a regressor, got a larger one."
        ) from None
    _refuse_missing(values, np.flatnonzero(~np.isfinite(numbers)))
    for row in np.flatnonzero(np.abs(numbers) > LARGEST_EXACT).tolist():
        target = values[row]
        if isinstance(target, Integral) and int(numbers[row]) != target:
            raise RowError(
                "`y` must hold numbers that float64 holds, but ",
                row,
                f" is {target}, which becomes {numbers[row]:.0f}; subtract a whole "
                f"number from all targets.",
            )
    return numbers


def _check_list(y: LabelsLike, what: str, item_text: str) -> None:
    """Raise where `y` cannot have a value for each row, or some are masked."""
    if y is None:
        raise ValueError(
            f"`y` must hold the {what}: `fit` requires y to be passed, but the target "
            f"y is None."
        )
    if hasattr(y, "collect") and not hasattr(y, "shape"):
        raise TypeError(
            f"`y` must hold {item_text} for each row of `X`, got {type(y).__name__}; "
            f"call its collect()."
        )
    if np.isscalar(y):
        way = ""
        if isinstance(y, str):
            way = f"; for a column of `X` pass y=X[{y!r}] and X.drop(columns={y!r})"
        text = f"`y` must hold {item_text} for each row of `X`, got {show(y)}{way}."
        raise TypeError(text)
    check_no_masks(y)


def _refuse_missing(values: AnyArray, missing: NDArray[np.intp]) -> None:
    if len(missing):
        raise RowError(
            "`y` must hold a finite number for every row, but ",
            int(missing[0]),
            f" is {show(values.tolist()[missing[0]])}; rows without a number belong "
            f"in the pool.",
        )


def _check_marks(labels: AnyArray, y: LabelsLike) -> None:
    """Raise ValueError where a label marks missing labels, such as -1 or "nan".

    numpy and pandas turn missing labels into texts such as "nan" and "None". A column
    of categories declares its classes, so there such texts are classes; readers of
    tables, which know the missing labels, pass such a column. scikit-learn's mark is
    -1, which is a class only if the one other label is a number.
    """
    if labels.dtype.kind == "O":
        distinct = {label for label in labels.tolist() if isinstance(label, str | Real)}
        # Messages show -1, not np.int64(-1).
        distinct = {np.asarray(label).item() for label in distinct}
    else:
        distinct = set(np.unique(labels).tolist())
    is_categorical = isinstance(getattr(y, "dtype", None), pd.CategoricalDtype)
    missing = EMPTY if is_categorical else (*EMPTY, *MISSING)
    texts = [label for label in distinct if isinstance(label, str)]
    marks: list[Any] = [text for text in texts if text.strip() in missing]
    if len(distinct) > 2 or not all(map(_is_number, distinct)):
        marks += [label for label in distinct if str(label).strip() in ("-1", "-1.0")]
    if not marks:
        return
    mark = min(marks, key=str)
    reason, way_out = "as a missing label is written", "rename it"
    if str(mark).strip().startswith("-1"):
        reason = "which marks rows without a label"
    elif str(mark).strip() in MISSING:
        way_out = "pass pandas.Series(y, dtype='category')"
    raise ValueError(
        f"`y` holds {show(mark)}, {reason}; leave these rows out of `X` and `y` and "
        f"pass them as `pool`. If it is a class, {way_out}."
    )


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def check_no_masks(y: Any) -> None:
    """Raise ValueError where labels or targets are masked; numpy would unmask them."""
    is_masked = isinstance(getattr(y, "_meta", None), np.ma.MaskedArray)
    masked = find_mask(y.compute() if is_masked else y)
    if masked is not None and masked.ndim and np.ma.is_masked(masked):
        row = int(np.argwhere(np.ma.getmaskarray(masked))[0][0])
        raise RowError(
            "`y` must hold a label for every row, but that of ",
            row,
            " is masked; leave out rows without a label, or pass them as `pool`.",
        )


def code_labels(labels: AnyArray) -> tuple[NDArray[Any], Integers]:
    """Return the sorted classes, at least two, and the code of each label."""
    classes, codes, n_rows = np.unique(labels, return_inverse=True, return_counts=True)
    check_spelling(
        dict(zip(classes.tolist(), n_rows.tolist(), strict=True)),
        lambda other: (f"y = pandas.Series(y).replace({other}).to_numpy()", None),
    )
    if len(classes) < 2:
        raise ValueError(
            "`y` must hold at least two classes, got one class only: "
            f"{show(classes.tolist()[0])}; label rows of another class."
        )
    return classes, codes.astype(np.int64)


def check_spelling(
    n_rows: Mapping[Any, int],
    way: Callable[[Mapping[str, str]], tuple[str, NewFile | None]],
) -> None:
    """Raise ValueError for labels that differ by blanks, case or Unicode forms only.

    `n_rows` has the rows of each label. `way` is a function of other spellings and the
    most frequent ones. It returns a text on how to replace the former by the latter,
    and perhaps a file in which this is done.
    """
    if not (alike := similar_labels(n_rows)):
        return
    other = {
        label: frequent
        for labels in alike
        for frequent in [max(labels, key=lambda label: n_rows[label])]
        for label in labels
        if label != frequent
    }
    shown, *more = (
        " and ".join(show(label) for label in labels[:3]) for labels in alike[:3]
    )
    shown += f" (also {'; '.join(more)})" if more else ""
    plain = ["".join(label.split()).casefold() for label in alike[0]]
    how = "blanks or case" if len({*plain}) == 1 else "Unicode forms, blanks or case"
    replacement, file = way(other)
    raise UndecidedError(
        f"labels {shown} differ by {how} only, and would be {len(alike[0])} classes; "
        f"if they are, give one another name, else write one of them everywhere: "
        f"{replacement}",
        *([] if file is None else [file]),
    )


def type_of_labels(labels: AnyArray) -> str:
    """Return the code of numpy for the type of labels; all numbers have one, "n"."""
    return "n" if labels.dtype.kind in "biuf" else labels.dtype.kind


def codes_of(predictions: AnyArray, classes: AnyArray) -> Integers:
    """Return the class code of each prediction.

    A prediction that equals no class gets a code below -1, which only equal predictions
    share: it is an error for every label, and differs from all other predictions.
    """
    kinds = {type_of_labels(predictions), type_of_labels(classes)}
    if len(kinds) == 1 and kinds != {"O"}:
        near = np.searchsorted(classes, predictions).clip(max=len(classes) - 1)
        codes = np.where(classes[near] == predictions, near, NO_CLASS)
    else:
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array(
            [code_of.get(label, NO_CLASS) for label in predictions.tolist()], int
        )
    unknown = np.flatnonzero(~are_classes(codes))
    for row, prediction in zip(unknown, predictions[unknown].tolist(), strict=True):
        digest = blake2b(repr(prediction).encode(), digest_size=7).digest()
        codes[row] = NO_CLASS - 1 - int.from_bytes(digest)
    return np.asarray(codes, dtype=np.int64)


def are_classes(codes: Integers) -> Bools:
    """Return whether each code is that of a class.

    Others are those that `codes_of` makes for labels that are no class, and the
    `dsel.losses.protocols.NO_PREDICTION` of a model that is missing or that raised.
    """
    return np.asarray(codes >= 0)


def match_pool(pool: Pool, labeled: LabeledRows) -> Pool:
    """Return the pool with the columns of the labeled rows; raise where they differ."""
    pool = with_columns(pool, labeled.n_columns, labeled.columns)
    X = labeled.X
    if not isinstance(X, Frame):
        check_numeric(pool.frames, pool.where)
        return pool.with_schema(None)
    wrong = []
    for place, column in enumerate(X.schema.columns):
        pool_column = replace(column, kind=NUMBER, dtype=str(pool.stored_schema.dtype))
        if pool.frames is not None:
            pool_column = pool.frames.columns[place]
        elif column.is_number:
            continue
        kinds = pool_column.kind, column.kind
        # A truth value is a number, too, and a date a time: polars' dates become times.
        is_exact = len({*kinds}) == 1 or kinds in ((TRUTH, NUMBER), ("date", "time"))
        if is_exact or NOTHING in kinds:
            continue
        # A column of missing values alone has the type of its library, such as floats.
        if pool.frames is None or has_values(pool, column.name):
            wrong.append((pool_column, column))
    if wrong:
        pool_column, column = wrong[0]
        more = [repr(other.name) for other, _ in wrong[1:]]
        # Objects stay what they are where a column is cast to objects.
        dtype = pool_column.dtype if column.dtype == "object" else column.dtype
        also = f", and so in {listing(more, 5)}" if more else ""
        way = f"convert one of them, such as by astype({{{column.name!r}: {dtype!r}}})"
        if X.given[pool_column.name].isna().all():
            way = "`X` has no value there, so leave the column out of both"
        raise TypeError(
            f"{pool.where} holds {pool_column.kind} ({pool_column.dtype}) in column "
            f"{pool_column.name!r}, where `X` holds {column.kind} "
            f"({column.dtype}){also}; {way}."
        )
    return pool.with_schema(X.schema)


def has_values(pool: Pool, name: str) -> bool:
    """Return whether a column has a value in any row; it is read once."""

    def find(X: Features, row_numbers: Integers) -> bool:
        return bool(pd.DataFrame(native(X)).notna().to_numpy().any())

    column = pool.with_columns([name], block_rows=ROWS_AT_ONCE)
    return bool(column.reduce(find, or_, allow_nan=True))


def text_on_positions(columns: Sequence[str], where: str) -> str:
    """Return the text for a model without names of columns, and rows with names."""
    return (
        f"The model was fitted to rows without names of columns, so it gets those of "
        f"{where} in their order: {listing(columns, 10)}. Fit it to a data frame for "
        f"columns to be found by their names."
    )


def names_of_columns(model: Any) -> tuple[str, ...] | None:
    """Return names of the columns that a model was fitted to; None if it has none.

    A search or an outcome also has names that are no texts, such as numbers, as texts;
    scikit-learn ignores these.
    """
    input_format = getattr(getattr(model, "outcome_", model), "input_format", None)
    if names := getattr(input_format, "columns", None):
        return tuple(names)
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def with_columns(pool: Pool, n_columns: int, names: Any) -> Pool:
    """Return the pool with the named columns, or unchanged where `X` has no names."""
    if pool.columns and names is not None:
        return pool.with_columns(names)
    if not pool.stored_schema.has_order:
        raise ValueError(
            f"{pool.where} has columns by name and in no order "
            f"({', '.join((pool.columns or ())[:5])}), but `X` has no names; pass `X` "
            f"as a data frame, or open_pool(..., columns=[...]) in the order of `X`."
        )
    if pool.n_columns != n_columns:
        raise ValueError(
            f"`pool` has {count_of(pool.n_columns, 'column')} but `X` has "
            f"{n_columns:,}; pass rows with the same columns, in the order of `X`."
        )
    return pool
