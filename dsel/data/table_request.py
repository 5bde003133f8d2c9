"""A table that was read, and the options by which a reader reads one."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel.arrays import ArrayLike, Floats
from dsel.cards import NAME_WIDTH
from dsel.checks import list_columns, listing, nearest_name, show, similar_labels
from dsel.data.frames import NUMERIC
from dsel.data.identifiers import is_name_of_identifier, notes_on_repeats
from dsel.data.schema import TableSchema
from dsel.data.targets import notes_on_copies
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.data.text_columns.text_reasons import TextReason
from dsel.errors import Correction, UndecidedError
from dsel.option_values import CLASSIFICATION, REGRESSION, quote_names
from dsel.rounded_texts import count_of

FEWEST_ROWS: Final = 20
"""Rows from which numbers in any order count as row numbers."""


class Table(NamedTuple):
    """Rows, labels and column names of a file."""

    X: Any
    """Features: numeric array or CSR; a data frame where a column holds something
    else, or the table was read by a schema."""
    y: NDArray[Any] | None
    """Labels in the file, or its class names; None for a row without a label. None if
    the table has no labels."""
    columns: tuple[str, ...] | None = None
    """Names of the columns of `X`."""
    schema: TableSchema | None = None
    """Kinds of the columns, where they have names."""
    ids: pd.DataFrame | None = None
    """Columns that no model uses, as text."""
    notes: tuple[tuple[str, str], ...] = ()
    """Descriptions of how the file was read, as (topic, text)."""
    caveats: tuple[str, ...] = ()
    """Warnings about values that may mean something else than they seem to."""
    groups: NDArray[Any] | None = None
    """Key of each row's group, None or NaN for a row without one; None without
    groups."""
    is_regression: bool = False
    """Whether `y` holds numbers, NaN for a row without one, instead of classes."""
    why_texts: Mapping[str, TextReason] = MappingProxyType({})
    """Reasons why columns are read as text, by name, if another kind was likely."""
    left_out: pd.DataFrame | None = None
    """Columns that were left out by request; None if none was."""

    def __repr__(self) -> str:
        n_rows, n_columns = self.X.shape
        rows = [("columns", listing(self.columns, 10))] if self.columns else []
        rows += [*self.notes, *(("Warning", text) for text in self.caveats)]
        lines = [f"{topic:{NAME_WIDTH}}  {text}" for topic, text in rows]
        return "\n".join([f"<Table: {n_rows:,} rows x {n_columns} columns>", *lines])

    @property
    def repeat_caveats(self) -> list[str]:
        """Caveats about identifiers outside of the features that labeled rows share."""
        if self.groups is not None:
            return []
        known = slice(None)
        if self.y is not None and self.y.ndim == 1:
            known = ~pd.isna(self.y)
        return [
            note
            for frame in (self.ids, self.left_out)
            if frame is not None
            for name in frame
            # A column that is left out by request may be any measurement, and need not
            # be an identifier.
            if frame is self.ids or is_name_of_identifier(name)
            for note in notes_on_repeats(frame[name][known])
        ]

    @property
    def has_unique_ids(self) -> bool:
        """Whether each row with a label has an id that no other one has."""
        if self.ids is None or self.y is None:
            return False
        ids = self.ids[~pd.isna(self.y)]
        return not (ids.duplicated().any() or ids.isna().to_numpy().any())

    @property
    def labeled_groups(self) -> NDArray[Any] | None:
        """Keys of the rows that have a label; other rows may be a pool."""
        if self.groups is None or self.y is None or self.y.ndim != 1:
            return self.groups
        known: NDArray[Any] = self.groups[~pd.isna(self.y)]
        return known

    @classmethod
    def from_frame(
        cls, X: pd.DataFrame, y: NDArray[Any] | None, schema: TableSchema, **more: Any
    ) -> "Table":
        """Return the table of a labeled frame, with what is doubtful of its columns.

        `more` are other fields; to its caveats are added those about columns.
        """
        why_texts, notes = more.get("why_texts", {}), [*more.pop("caveats", ())]
        for column in schema.columns:
            if reason := why_texts.get(column.name):
                notes.append(reason.text)
            elif column.kind is Kind.TEXT and column.categories:
                notes += notes_on_spellings(X[column.name])
            if column.kind.is_number:
                values = X[column.name].to_numpy(np.float64, na_value=np.nan)
                notes += notes_on_row_numbers(column.name, values)
                notes += notes_on_placeholders(column.name, values)
                if column.kind is Kind.WHOLE:
                    notes += whole_number_notes(column.name, values)
        if y is not None and schema.target is not None:
            notes += notes_on_copies(X, y, repr(schema.target))
        if not len(X) or all(getattr(t, "kind", "O") in NUMERIC for t in X.dtypes):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        return cls(X, y, schema.names, schema, caveats=tuple(notes), **more)


def notes_on_spellings(values: pd.Series) -> list[str]:
    """Return a caveat about texts that differ by blanks or case, and may be one value.

    Examples
    --------
    >>> notes_on_spellings(pd.Series(["Basic", "basic", "plus", "Basic"], name="plan"))
    ["column 'plan' has 'Basic' (2 rows) and 'basic' (1 row), which differ by blanks or case only; write one of them everywhere if they are one value"]
    """  # noqa: E501
    n_rows = values.value_counts()
    shown = [
        " and ".join(
            f"{show(text)} ({count_of(int(n_rows[text]), 'row')})" for text in texts[:3]
        )
        for texts in similar_labels(n_rows.index)
    ]
    return [
        f"column {values.name!r} has {listing(shown, 3)}, which differ by blanks or "
        f"case only; write one of them everywhere if they are one value"
    ] * bool(shown)


class TableRequest(NamedTuple):
    """The options of reading a table."""

    target: str | None
    like: TableSchema | None
    drop: tuple[str, ...]
    ids: tuple[str, ...]
    separator: str | None
    encoding: str | None
    groups: str | None = None
    task: str | None = CLASSIFICATION
    day_first: bool | None = None
    unlabeled: tuple[str, ...] = ()
    gap_classes: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def _check_options(
        self, columns: Sequence[str], where: str, row_names: Sequence[str]
    ) -> None:
        """Raise where options name unknown columns, or contradict each other."""
        group_columns = () if self.groups is None else (self.groups,)
        for option, values in (
            ("--drop", self.drop),
            ("--id", self.ids),
            ("--groups", group_columns),
            ("--number", self.number),
            ("--text", self.text),
        ):
            known = {*columns, *row_names}
            if missing := [name for name in values if name not in known]:
                used = values
                if self.target is not None and values is not self.number:
                    used = (*values, self.target)  # which is no feature
                end = list_columns(columns, missing[0], used)
                if "" in row_names and ROW_NUMBERS.fullmatch(missing[0]):
                    end = "; its first column has no name, and no model uses it."
                raise UndecidedError(
                    f"{option} names {', '.join(map(repr, missing))}, which is no "
                    f"column of {where}{end}",
                    *_corrections(option, missing, columns, used),
                )
            if self.target in values and values is not self.number:
                raise ValueError(f"{option} names {self.target!r}, the target.")
        for option, values in (("--number", self.number), ("--text", self.text)):
            if others := {*values} & {*self.drop, *self.ids, *group_columns}:
                raise ValueError(
                    f"{option} names {min(others)!r}, which another option says is no "
                    f"feature."
                )
        if both := {*self.number} & {*self.text}:
            raise ValueError(f"--number and --text both name {min(both)!r}.")
        for name in self.number:
            if name == self.target and self.task == CLASSIFICATION:
                raise UndecidedError(
                    f"--number names {name!r}, the target, whose labels are classes; "
                    f"write --task regression for a target of numbers.",
                    [("--task", REGRESSION)],
                )

    def features(
        self, columns: Sequence[str], where: str, row_names: Sequence[str] = ()
    ) -> list[str]:
        """Return the columns that become features; raise where one is missing.

        `row_names` are columns without a name, in addition to the `columns`.
        """
        if self.like is not None:
            self._check_options(columns, where, row_names)
            self.like.check_columns([*columns, *row_names], where)
            return list(self.like.names)
        names = feature_columns(columns, self.target, where)
        self._check_options(columns, where, row_names)
        left_out = {*self.dropped, *self.ids}
        features = [name for name in names if name not in left_out]
        if not features:
            used = sorted({name for name in (self.target, *left_out) if name})
            raise ValueError(
                f"{where} must have columns in addition to "
                f"{', '.join(map(repr, used))}, got none; there is nothing to learn "
                f"from."
            )
        return features

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Columns that are read as text and are no features."""
        return self.ids if self.like is None else self.like.ids

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are left out."""
        more = () if self.groups in (None, *self.drop, *self.ids) else (self.groups,)
        return (*self.drop, *(name for name in more if name is not None))


def _corrections(
    option: str, missing: Sequence[str], columns: Sequence[str], used: Sequence[str]
) -> list[list[Correction]]:
    """Return the ways to correct an option that names columns which are not there."""
    near = {n: nearest_name(n, filter(None, columns), used) for n in missing}
    spelled = [Correction(option, n, str(c)) for n, c in near.items() if c is not None]
    # A column that only the pool has is no feature anyway.
    left_out = [Correction(option, n, None) for n in missing if option == "--drop"]
    return [spelled] * (len(spelled) == len(missing)) + [left_out]


def feature_columns(
    columns: Sequence[str], target: str | None, where: str
) -> list[str]:
    """Return the columns without the target, which must be one of them."""
    if target is not None and target not in columns:
        names = [name for name in columns if name]
        near = nearest_name(target, names) if len(names) > 1 else None
        raise UndecidedError(
            f"`target` must be a column of {where}, got {show(target)}"
            f"{list_columns(columns, target)}",
            [] if near is None else [("--target", str(near))],
        )
    return [name for name in columns if name != target]


ROW_NUMBERS: Final = re.compile(r"(?:Unnamed: .*)?")
"""Names of columns in which pandas and R write the numbers or names of rows."""


_KEPT: Final = " (kept for predictions)"


def count_row_names(columns: Sequence[str]) -> int:
    """Return how many of the first columns have the numbers or names of rows."""
    are_others = (ROW_NUMBERS.fullmatch(name) is None for name in columns)
    return next((n for n, is_other in enumerate(are_others) if is_other), len(columns))


def notes_on_row_names(names: Sequence[str]) -> list[str]:
    """Return a note about the first columns of a table, which have no name.

    Examples
    --------
    >>> notes_on_row_names(["", "Unnamed: 0"])
    ["columns 1 and 'Unnamed: 0' have the numbers or names of rows: no model uses them"]
    """
    if not names:
        return []
    shown = " and ".join(
        repr(name) if name else str(n) for n, name in enumerate(names, 1)
    )
    are = "s" if len(names) > 1 else ""
    return [
        f"column{are} {shown} ha{'ve' if are else 's'} the numbers or names of rows: "
        f"no model uses {'them' if are else 'it'}"
    ]


def rows_on_left_out(
    schema: TableSchema, row_names: Sequence[str], nameless: Iterable[int] = ()
) -> list[tuple[str, str]]:
    """Return the columns that are no features, and which of them predictions have.

    `nameless` are positions of columns without a name or value.
    """
    named = enumerate(schema.dropped, 1)  # those without a name are the first ones
    left = [name or f"column {number}, without a name" for number, name in named]
    if row_names and left and not schema.ids:
        left[0] += _KEPT
    left += [f"column {k + 1} (no name, no values)" for k in nameless]
    left += [f"{name}{_KEPT}" for name in schema.ids]
    return [("left out", listing(left, 8))] if left else []


def check_distinct_names(names: Sequence[str], path: str) -> None:
    """Raise ValueError if a table has two columns of one name."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{path!r} has the column {twice[0]!r} twice; rename one.")


def check_same_names(
    first: str,
    names: Sequence[str],
    path: str,
    its_names: Sequence[str],
    *,
    what: str = "",
) -> None:
    """Raise ValueError if a file has other columns than the first one of its folder."""
    if differing := {*names} ^ {*its_names}:
        name = min(differing)
        lacks, has = (path, first) if name in names else (first, path)
        raise ValueError(
            f"{what}{lacks!r} lacks the column {name!r} that {has!r} has; write all "
            f"files with the same columns."
        )


def notes_on_row_numbers(name: str, values: Floats) -> list[str]:
    """Return a caveat if numbers only count rows, or rise or fall from row to row.

    Steps may have any size; numbers that rise in unequal steps are whole.

    Examples
    --------
    >>> notes_on_row_numbers("nr", np.arange(200.0, 0.0, -10.0))
    ["column 'nr' holds numbers in steps of 10, as row numbers are; name it by --id nr, which keeps it in predictions, or leave it out by --drop nr"]
    >>> notes_on_row_numbers("dose", np.array([0.0, 10.0, 20.0]))
    []
    """  # noqa: E501
    if not np.isfinite(values).all():
        return []
    is_whole = bool((values == np.rint(values)).all())
    differences = np.diff(values)
    if step := step_of_row_numbers(values):
        what = f"numbers in steps of {step:.6g}, as row numbers are;"
        if step == 1 and is_whole:
            what = "running whole numbers, as row numbers are;"
    elif (
        is_whole
        and len(values) >= FEWEST_ROWS
        and ((differences > 0).all() or (differences < 0).all())
    ):
        direction = "rise" if differences[0] > 0 else "fall"
        what = (
            f"whole numbers that {direction} from row to row, as keys and times do; "
            f"unless it is a measurement,"
        )
    else:
        return []
    return [
        f"column {name!r} holds {what} name it by --id {quote_names(name)}, which "
        f"keeps it in predictions, or leave it out by --drop {quote_names(name)}"
    ]


def step_of_row_numbers(values: Floats) -> float:
    """Return the step of numbers that only count rows, in any order; 0 of others."""
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return 0.0
    # The numbers of a table of a few rows may be all of 1 to n, in any order, by
    # chance.
    is_running = (values == np.rint(values)).all() and (np.diff(values) == 1).all()
    if n < FEWEST_ROWS and not is_running:
        return 0.0
    steps = np.diff(np.sort(values))
    step = float(np.median(steps))
    # Times such as 0.1, 0.2, 0.3 have steps that are equal but for their rounding.
    rounding = 4 * np.finfo(np.float64).eps * float(np.abs(values).max())
    is_equal = step > rounding and (np.abs(steps - step) <= rounding).all()
    return step if is_equal else 0.0


def notes_on_placeholders(name: str, values: ArrayLike) -> list[str]:
    """Return a caveat if some rows hold one number of nines far from all others.

    Such numbers stand for a missing value in many tables.

    Examples
    --------
    >>> notes_on_placeholders("visits", [3, -999, 0, 8, -999, 2])
    ["column 'visits' holds -999 in 2 of 6 rows, and 0 to 8 in the others; if -999 stands for a missing value, write --gap -999"]
    >>> notes_on_placeholders("price", [3, 999, 400, 8, 999, 650])
    []
    """  # noqa: E501
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[np.isfinite(numbers)]
    if len(known) < 2:
        return []
    for value in (known.min(), known.max()):
        others = known[known != value]
        if len(np.unique(others)) < 2 or not re.fullmatch("-?99+", f"{value:.15g}"):
            continue
        low, high = others.min(), others.max()
        is_far = max(low - value, value - high) > high - low
        if is_far and len(known) - len(others) > 1:
            return [
                f"column {name!r} holds {value:.15g} in {len(known) - len(others):,} "
                f"of {len(known):,} rows, and {low:.6g} to {high:.6g} in the others; "
                f"if {value:.15g} stands for a missing value, write --gap {value:.15g}"
            ]
    return []


def whole_number_notes(name: str, values: ArrayLike) -> list[str]:
    """Return caveats about a column of whole numbers.

    They may be dates, or too large for the floats that models get.

    `values` are its numbers; a missing one is NaN.
    """
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    if len(known) < 2:
        return []
    low, high = known.min(), known.max()
    if max(-low, high) > LARGEST_EXACT:
        return [
            f"column {name!r} holds whole numbers that are too large to be held "
            f"exactly and are rounded, such as {int(max(-low, high))}; write them as "
            f"text, or leave them out by --drop {quote_names(name)}"
        ]
    if low >= 19000101 and high <= 20991231:
        month, day = known // 100 % 100, known % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return [
                f"column {name!r} looks like dates ({int(known[0])}), and is read as "
                f"whole numbers; write YYYY-MM-DD"
            ]
    return []
