"""Decides whether a column of labels holds classes or numbers, and reads numbers."""

import shlex
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dsel.arrays import ArrayLike, Floats, narrow_objects
from dsel.checks import show
from dsel.data.labeled import MOST_WHOLE
from dsel.data.schema import ColumnSchema
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.text_reasons import TextReason, way_to_amounts
from dsel.errors import RowError, UndecidedError
from dsel.option_values import CLASSIFICATION, REGRESSION
from dsel.rounded_texts import floor_percent

FEWEST_ROWS_OF_CLASS: Final = 10
"""Rows of a class, on average, from which on many texts are classes without a doubt.

With fewer, most of five folds have one row of a class, or none.
"""
FEWEST_ROWS_OF_COPY: Final = 20
"""Fewest labeled rows with which a feature is hardly a copy of the target by chance."""
MOST_WRONG_OF_COPY: Final = 0.02
"""Largest number of rows whose label a copy of the target does not give, as a part of
the rows outside of the largest class."""
_ROWS_TRIED: Final = 2000


def _regression_targets(
    targets: Floats, target: str | None, task: str | None
) -> Floats | None:
    """Return a column of numbers if it is the target of a regression, else None.

    Numbers with fractions are measurements, and a few distinct integers are classes.
    Raises ValueError for many distinct integers without a `task`.
    """
    known = np.unique(targets[np.isfinite(targets)])
    has_fractions = bool((known != np.rint(known)).any())
    if task is None and not has_fractions and len(known) > MOST_WHOLE:
        raise UndecidedError(
            f"`target` {target!r} has {len(known):,} different whole numbers, which "
            f"may be classes or measurements; say which by --task classification or "
            f"--task regression.",
            [("--task", CLASSIFICATION)],
            [("--task", REGRESSION)],
        )
    return targets if has_fractions or task == REGRESSION else None


def notes_on_blanks(classes: Iterable[object]) -> list[str]:
    """Return a note if classes have blanks around them, which text tables lose.

    Raises ValueError where two classes differ by these blanks only.

    Examples
    --------
    >>> notes_on_blanks([" a ", "b"])
    ["classes have blanks around them, such as ' a '; a label without these blanks is taken for the class"]
    """  # noqa: E501
    with_blanks, by_text = [], dict[str, str]()
    for label in classes:
        if not isinstance(label, str):
            continue
        other = by_text.setdefault(label.strip(), label)
        if other != label:
            raise ValueError(
                f"labels {show(other)} and {show(label)} differ by blanks around them "
                f"only, which text tables do not keep; write one of them everywhere."
            )
        if label != label.strip():
            with_blanks.append(label)
    return [
        f"classes have blanks around them, such as {show(label)}; a label without "
        f"these blanks is taken for the class"
        for label in with_blanks[:1]
    ]


def notes_on_similar_labels(texts: Iterable[str]) -> list[str]:
    """Return caveats about labels that are one number, which may mean one class.

    Those that differ by blanks or case only are refused, see `check_spelling`.

    Examples
    --------
    >>> notes_on_similar_labels(["1", "1.0", "x"])
    ["labels '1' and '1.0' are one number, and 2 classes; write one of them everywhere if they are one class"]
    """  # noqa: E501
    by_number: dict[float, list[str]] = {}
    for text in sorted(texts):
        with suppress(ValueError):
            by_number.setdefault(float(text), []).append(text)
    return [
        f"labels {' and '.join(repr(text[:40]) for text in group[:3])} are one number, "
        f"and {len(group)} classes; write one of them everywhere if they are one class"
        for group in by_number.values()
        if len(group) > 1
    ]


def notes_on_copies(
    X: pd.DataFrame, y: ArrayLike, target: str, *, has_options: bool = True
) -> list[str]:
    """Return a caveat for each feature that alone says what the target is.

    It is the target in other words or units, or was perhaps recorded after it. With
    `has_options` the way out is an option of the shell.

    Examples
    --------
    >>> y = np.array(["no", "yes"] * 10)
    >>> notes_on_copies(pd.DataFrame({"code": [0, 1] * 10, "age": range(20)}), y, "sick")
    ["column 'code' alone gives sick in all labeled rows; leave it out by --drop code, unless it is known of new rows before their label is"]
    """  # noqa: E501
    labels = pd.Series(y)
    known = labels.notna().to_numpy()
    labels = narrow_objects(labels[known].to_numpy())
    if len(labels) < FEWEST_ROWS_OF_COPY:
        return []
    step = max(len(labels) // _ROWS_TRIED, 1)
    purities = {
        name: purity
        for name in X
        # A few rows suffice to exclude most columns.
        if _purity(X[name][known].iloc[::step], labels[::step])
        and (purity := _purity(X[name][known], labels))
    }
    notes = []
    for name, purity in purities.items():
        rows = "all" if purity == 1 else f"{floor_percent(purity)} of the"
        option = f" by --drop {shlex.quote(str(name))}" if has_options else ""
        notes.append(
            f"column {name!r} alone gives {target} in {rows} labeled rows; leave it "
            f"out{option}, unless it is known of new rows before their label is"
        )
    return notes


def _purity(values: pd.Series, labels: NDArray[np.generic]) -> float:
    """Return the part of rows whose label follows from the column; 0.0 if too few do.

    A label follows from a value that most rows of this label have; numbers follow by a
    line. Where many values differ, labels follow from them by chance.
    """
    try:
        codes, texts = pd.factorize(values, use_na_sentinel=False)
    except TypeError:  # of lists, which the plan refuses
        return 0.0
    label_codes, classes = pd.factorize(labels)
    n, n_rows = len(classes), len(labels)
    if n < 2:
        return 0.0
    if 5 * max(len(texts), n) <= n_rows:
        pairs, n_rows_of = np.unique(
            codes.astype(np.int64) * n + label_codes, return_counts=True
        )
        n_right = int(pd.Series(n_rows_of).groupby(pairs // n).max().sum())
        n_others = n_rows - int(np.bincount(label_codes).max())
        is_given = n_rows - n_right <= MOST_WRONG_OF_COPY * n_others
        is_chance = n_others < FEWEST_ROWS_OF_CLASS
        return n_right / n_rows if is_given and not is_chance else 0.0
    if len(texts) != n or {values.dtype.kind, labels.dtype.kind} - {*"iuf"}:
        return 0.0
    correlation = np.corrcoef(values.to_numpy(np.float64), labels.astype(np.float64))
    return float(abs(correlation[0, 1]) > 1 - 1e-9)


def numbers_of_texts(
    values: pa.Array,
    column: ColumnSchema,
    scan: ColumnScan | None,
    decimal: str,
    task: str | None,
) -> Floats | None:
    """Return the targets of a regression of a text file; None where they are classes.

    Cells are trimmed; an empty one, of a row without a target, is NaN. Amounts are
    numbers. `scan` is None for a classification only.
    """
    if scan is None or task == CLASSIFICATION:
        return None
    if task is None and not scan.kind(decimal).is_number and not column.form.is_amount:
        return None
    typed, bad = column.convert(values, decimal)
    if typed is None:
        assert bad is not None  # values that cannot be converted have a bad one
        way = "" if column.form.is_amount else way_to_amounts(scan, column.name).text
        raise RowError(
            f"`target` {column.name!r} must hold {column.noun} for a regression, got "
            f"{show(bad.value)} in ",
            bad.row,
            f"{way}; correct it, or write --task classification.",
        )
    targets = np.array(typed.to_numpy(zero_copy_only=False), np.float64)
    return _regression_targets(targets, column.name, task)


def _check_text_classes(
    known: NDArray[np.str_], target: str | None, reason: TextReason | None
) -> None:
    """Raise ValueError for many texts of few rows each, as identifiers are."""
    n_rows, n_values = len(known), len(np.unique(known))
    if n_values > MOST_WHOLE and n_rows < FEWEST_ROWS_OF_CLASS * n_values:
        many = (
            f"`target` {target!r} has {n_values:,} different texts in {n_rows:,} rows"
        )
        text = (
            f"{many}, which may be identifiers; name another column as the target, or "
            f"say that they are classes by --task classification."
        )
        if reason is not None:
            why = f"{reason.text[:1].upper()}{reason.text[1:]}"
            text = f"{many}. {why}. If they are classes, write --task classification."
        raise UndecidedError(
            text,
            () if reason is None else reason.options,
            [("--task", CLASSIFICATION)],
        )


def numbers_of_labels(
    labels: NDArray[np.generic],
    target: str | None,
    task: str | None,
    reason: TextReason | None = None,
) -> Floats | None:
    """Return the targets of a regression from a typed column; None for classes.

    `reason` says why texts are not read as another kind that they look like.
    """
    if task == CLASSIFICATION or labels.ndim != 1:
        return None
    missing = pd.isna(labels)
    known = narrow_objects(labels[~missing])
    if known.dtype.kind not in "iuf":
        if task == REGRESSION:
            raise ValueError(
                f"`target` {target!r} must hold numbers for a regression, got "
                f"{show(known.tolist()[0] if len(known) else None)}; write --task "
                f"classification."
            )
        if task is None and known.dtype.kind == "U":
            _check_text_classes(known, target, reason)
        return None
    targets = np.full(len(labels), np.nan)
    targets[~missing] = known
    return _regression_targets(targets, target, task)
