"""The schema of a labeled table, by which pools and new tables are read.

The columns of a pool, or of a table to predict, have the kinds of the labeled table,
whatever their own values look like; a value of another kind is an error that names it.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import infer_dtype

from dsel.arrays import ArrayLike, Integers
from dsel.checks import MOST_COLUMNS_NAMED, listing
from dsel.data.columns import MissingColumnsError, check_columns
from dsel.data.frame_columns import (
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    Column,
    columns_of,
    texts_of,
)
from dsel.data.frames import Frame, FrameSchema
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.conversion import WrongValue, convert
from dsel.data.text_columns.gaps import GAP_WORDS, forms_of_gaps
from dsel.data.text_columns.kinds import PLAIN, Form, Kind
from dsel.data.text_columns.numbers import COMMA_NUMBER
from dsel.data.text_columns.numbers import NUMBER as PLAIN_NUMBER
from dsel.errors import NewerRecordError, RowError, ShellOptions, UndecidedError, Way
from dsel.option_values import join_names

FORMAT: Final = 2
"""Version of the file; it is raised if an older reader could misread a newer file."""
MOST_CATEGORIES: Final = 1000
"""Largest number of distinct values of a text column that are stored."""
DATES: Final = "datetime64[us]"
"""Type of columns of dates."""
_FILE_KIND: Final = "dsel table schema"


_KINDS: Final = {
    NUMBER: Kind.NUMBERS,
    TRUTH: Kind.TRUTH,
    NOTHING: Kind.GAPS,
    "date": Kind.DATES,
    "time": Kind.TIMES,
    TEXT: Kind.TEXT,
}
"""Kinds by those of columns of data frames."""
_FRAME_KINDS: Final = {
    **{kind: name for name, kind in _KINDS.items()},
    Kind.WHOLE: NUMBER,
    Kind.DATES: "time",
    Kind.ZONED_TIMES: "time in zone UTC",
}
"""Kinds of columns of data frames that texts are converted to."""


_CONVERTED: Final = (pa.types.is_boolean, pa.types.is_timestamp, pa.types.is_date)
"""Tests of the Arrow types that `convert_to_common_types` changes."""


@dataclass(frozen=True)
class ColumnSchema:
    """Name and kind of a column."""

    name: str
    kind: Kind
    form: Form = PLAIN
    categories: tuple[str, ...] | None = None
    """Sorted distinct values of a text column; None where there are too many."""
    has_gaps: bool | None = None
    """Whether a row of a text column has no value; None if that was not recorded."""
    new_share: float = 0.0
    """Fraction of the rows whose text no other row has. It estimates the fraction of
    new rows of the same population with a text that none of these rows has (Good and
    Turing)."""
    limits: tuple[float, float] | tuple[str, str] | None = None
    """Smallest and largest value of a column of numbers, or of times in ISO form."""
    n_values: int = 0
    """Rows that `limits` are of."""
    is_unique: bool = False
    """Whether whole numbers are another one in each row, as in a key."""

    @property
    def meaning(self) -> tuple[Kind, str]:
        """Kind and sign, which are the same where values mean the same to a model."""
        return self.kind, self.form.sign or ""

    @property
    def noun(self) -> str:
        """The noun for its values in messages."""
        words, sign = self.form.words, self.form.sign
        if self.kind is Kind.TRUTH and words:
            return " and ".join(map(repr, words))
        if self.form.day_first is not None:
            return f"{self.kind}, {'day' if self.form.day_first else 'month'} first"
        if sign is not None:
            return f"numbers {f'with {sign!r}' if sign else 'without a sign'}"
        return f"{self.kind}{' (YYYY-MM-DD)' if self.kind.is_time else ''}"

    def convert(
        self, values: pa.Array, decimal: str | None = None, *, is_sure: bool = False
    ) -> tuple[pa.Array | None, WrongValue | None]:
        """Return texts in the Arrow type of the kind, or the first that does not fit.

        `decimal` is the decimal mark of their table; None if the table has types, so
        that numbers have points and amounts the mark of the labeled table. `is_sure` is
        that of `conversion.convert`.
        """
        mark = decimal or self.form.decimal
        return convert(values, self.kind, mark, self.form, is_sure=is_sure)


@dataclass(frozen=True, repr=False)
class TableSchema:
    """Kinds of the columns of a table, and classes of its labels.

    `dsel select` keeps its JSON with the results (`save_schema` and `load_schema` of
    `dsel.results.run_tables`); `read_table` of `dsel.data.tables` takes it as `like`,
    and converts other tables by it.

    Examples
    --------
    >>> schema = TableSchema((ColumnSchema("age", Kind.WHOLE),), target="label")
    >>> TableSchema.from_json(schema.to_json()) == schema
    True
    """

    columns: tuple[ColumnSchema, ...]
    """The features, in their order."""
    target: str | None = None
    """Column of the labels, which other tables need not have."""
    classes: tuple[Any, ...] | None = None
    """Labels in sorted order: texts, whole numbers or truth values."""
    ids: tuple[str, ...] = ()
    """Columns that no model uses and predictions keep, read as text."""
    dropped: tuple[str, ...] = ()
    """Columns that are left out."""
    gap_words: tuple[str, ...] = GAP_WORDS
    """Words for a gap in text files, in addition to the empty cell."""
    is_typed: bool = False
    """Whether the table's format has types; there "" is a value, not a gap."""
    target_form: Form = PLAIN
    """Form of a target that is a column of amounts."""
    separator: str | None = None
    """Separator of the text file, where it was named."""
    encoding: str | None = None
    """Encoding of the text file, where it was named."""

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target {self.target}"
        return f"<TableSchema: {listing(self.names, 10)}{target}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(column.name for column in self.columns)

    def with_ids_in(self, names: Iterable[str]) -> "TableSchema":
        """Return the schema with those of its ids that are among the names."""
        there = {*names}
        return replace(self, ids=tuple(name for name in self.ids if name in there))

    @property
    def extra_gap_words(self) -> tuple[str, ...]:
        """Words for a gap that were named for this table alone."""
        # A gap word that all tables have was named by the user where it occurs twice:
        # only then it is a gap among texts, too.
        return tuple((Counter(self.gap_words) - Counter(GAP_WORDS)).elements())

    def to_json(self) -> str:
        """Return the schema as JSON with its kind and version."""
        content = asdict(self) | {"kind": _FILE_KIND, "version": FORMAT}
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "TableSchema":
        """Return the schema from the text of `to_json`; ValueError for other texts."""
        try:
            content = json.loads(text)
            kind, version = content.pop("kind"), content.pop("version")
            if kind != _FILE_KIND:
                raise ValueError
            if version not in (1, FORMAT):
                raise NewerRecordError(
                    f"the schema was written in version {version} of its format, and "
                    f"this dsel reads version {FORMAT}; install the dsel that wrote "
                    f"it, or run `dsel select` again to write it."
                )
            columns = tuple(
                ColumnSchema(
                    column["name"],
                    Kind(column["kind"]),
                    # dsel 0.2 has these two keys in the record of the column.
                    _read_form(column["form"] if version == FORMAT else column),
                    _tuple(column["categories"]),
                    column["has_gaps"],
                    column.get("new_share", 0.0),
                    # Records before 0.3 do not have the others.
                    _tuple(column.get("limits")),
                    column.get("n_values", 0),
                    column.get("is_unique", False),
                )
                for column in content.pop("columns")
            )
            lists = ("classes", "ids", "dropped", "gap_words")
            content |= {name: _tuple(content[name]) for name in lists}
            if version == FORMAT:
                content["target_form"] = _read_form(content["target_form"])
            return cls(columns, **content)
        except NewerRecordError:
            raise  # its message names the version
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "the schema is damaged; run `dsel select` again to write it."
            ) from error

    @property
    def amount_marks(self) -> dict[str, str]:
        """Decimal marks of the columns of amounts in the labeled table, by name."""
        return {c.name: c.form.decimal for c in self.columns if c.form.is_amount}

    def refuse_plain_numbers(self, names: Iterable[str], where: str) -> None:
        """Raise ValueError where columns of numbers have a sign in the labeled table.

        0.18 may be 18%, and 900 an amount in another currency.
        """
        signs = {c.name: c.form.sign for c in self.columns if c.form.sign}
        for name in names:
            if name in signs:
                raise UndecidedError(
                    f"column {name!r} holds numbers with {signs[name]!r} in the "
                    f"labeled table, and plain numbers in {where}; write them as "
                    f"texts with {signs[name]!r}, or both without it.",
                    [("--drop", join_names([name]))],
                )

    @property
    def used_names(self) -> tuple[str, ...]:
        """Names of features, ids and, if there is one, the target."""
        target = () if self.target is None else (self.target,)
        return (*self.names, *self.ids, *target)

    def check_columns(
        self,
        names: Iterable[str],
        where: str,
        ids: Mapping[str, str] | None = None,
    ) -> None:
        """Raise ValueError that names all features and ids which a table lacks.

        `ids` have the argument that names them; by default they are the schema's.
        """
        names, wanted = [*names], (*self.names, *(self.ids if ids is None else ids))
        there, way = {*names}, ""
        labels: ShellOptions = ()
        missing = [
            name for name in self.names if name not in there and name not in (ids or ())
        ]
        # The schema of a search has a target; the schema of a table has one once it is
        # named.
        if ids is None and self.target is None and len(missing) == 1:
            [name] = missing
            way = f" If {name!r} holds the labels, write --target {shlex.quote(name)}."
            labels = [("--target", name)]
        # Where only ids are missing, the target may be meant by one of them.
        used = [n for n in self.used_names if missing or n != self.target]
        whose = " of the labeled table" if missing else ""
        try:
            check_columns(
                names,
                wanted,
                where,
                whose,
                way,
                used=[*wanted, *used],
                named=ids or {},
            )
        except MissingColumnsError as error:
            raise error.with_way(labels) from None

    def convert_texts(
        self,
        table: pa.Table | pa.RecordBatch,
        *,
        decimal: str | None = None,
        first_row: int = 0,
        where: str,
    ) -> pd.DataFrame:
        """Convert the text columns of a text file to the kinds of the schema.

        Raises ValueError that names the first wrong value of every wrong column.
        """
        converted, wrong = {}, []
        for column in self.columns:
            values = table.column(column.name)
            if isinstance(values, pa.ChunkedArray):
                values = values.combine_chunks()
            typed, bad = column.convert(values, decimal)
            if typed is None:
                wrong.append((column, bad))
            else:
                converted[column.name] = to_pandas(typed, column.kind)
        refuse_wrong_values(wrong, where, first_row)
        converted |= {name: table.column(name).to_pandas() for name in self.ids}
        # All columns are added at once: adding them one by one would copy the frame
        # each time.
        return pd.DataFrame(converted, copy=False)


def frame_of_texts(frame: pd.DataFrame, schema: TableSchema) -> Frame:
    """Return what `TableSchema.convert_texts` returned, with its kinds of columns.

    To find them again from the values would read all of them.
    """
    kinds = {c.name: _FRAME_KINDS.get(c.kind, TEXT) for c in schema.columns}
    columns = tuple(
        Column(str(name), kinds.get(str(name), TEXT), str(dtype))
        for name, dtype in frame.dtypes.items()
    )
    return Frame(frame, FrameSchema(frame.iloc[:0], columns))


def _read_form(record: Mapping[str, Any]) -> Form:
    sign, decimal = record.get("sign"), record.get("decimal", ".")
    return Form(_tuple(record["words"]), record["day_first"], sign, decimal)


def _tuple(values: Any) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def refuse_wrong_values(
    wrong: Sequence[tuple[ColumnSchema, WrongValue | None]], where: str, first_row: int
) -> None:
    """Raise RowError where columns have values that are not of their kind."""
    if not wrong:
        return
    known = [(column, bad) for column, bad in wrong if bad is not None]
    parts: list[str | int] = []
    for column, bad in known[:MOST_COLUMNS_NAMED]:
        start = f"column {column.name!r} of {where} has {bad.value!r} in "
        reason = ""
        if column.kind.is_number and not column.form.is_amount:
            # Numbers of other tables are none with the decimal mark of this table.
            if re.match("0[0-9]", bad.value):
                reason = " (the labeled table may have lost zeros at the beginning)"
            elif re.match(COMMA_NUMBER, bad.value):
                reason = " (numbers of this table have decimal points)"
            elif "." in bad.value and re.match(PLAIN_NUMBER, bad.value):
                reason = " (numbers of this table have decimal commas)"
        others = ""
        if bad.others:
            others = f", and {listing([*map(repr, bad.others)], 8)} in other rows"
        end = f"{others}; it holds {column.noun}{reason}. "
        parts += [start, first_row + bad.row, end]
    if len(known) > MOST_COLUMNS_NAMED:
        parts.append(f"(And {len(known) - MOST_COLUMNS_NAMED} more columns.) ")
    raise RowError(
        *parts,
        "Correct the values, or leave the cell of a gap empty, or leave the columns "
        "out by --drop.",
        ways=_ways_of_wrong_values(known),
    )


def _ways_of_wrong_values(
    wrong: Sequence[tuple[ColumnSchema, WrongValue]],
) -> list[Way]:
    """Return the options by which wrong values are gaps, or columns text or none.

    A word may stand for a gap; a value with digits may be a code, such as 01067 and
    4711.
    """
    names = [column.name for column, _ in wrong]
    values = [value for _, bad in wrong for value in (bad.value, *bad.others)]
    are_words = all(re.search(r"\d", value) is None for value in values)
    are_amounts = any(column.form.is_amount for column, _ in wrong)
    ways: list[Way] = []
    if are_words:
        ways.append([("--gap", word) for word in dict.fromkeys(values)])
    elif not are_amounts and not any(c.kind is Kind.TRUTH for c, _ in wrong):
        ways.append([("--text", name) for name in names])
    return [*ways, [("--drop", join_names(names))]]


def find_wrong_values(
    columns: Iterable[ColumnSchema],
    texts: Callable[[str], pa.Array | None],
    rows: Sequence[int] | Integers,
    decimal: str | None = None,
) -> dict[str, tuple[ColumnSchema, WrongValue]]:
    """Return the first value of each column that is not of its kind.

    `texts` returns the values of a column, None where no text is in it; `rows` are the
    numbers of their rows in the table.
    """
    wrong = {}
    for column in columns:
        values = texts(column.name)
        _, bad = (None, None) if values is None else column.convert(values, decimal)
        if bad is not None:
            wrong[column.name] = column, bad._replace(row=int(rows[bad.row]))
    return wrong


def to_pandas(values: pa.Array, kind: Kind) -> pd.Series:
    """Return the values of a column as a pandas series."""
    if kind is Kind.GAPS:
        return pd.Series([None] * len(values), dtype=object)
    if kind.is_number:
        # Another table may have fractions in a column of whole numbers, as pools may.
        if kind is Kind.WHOLE and not values.null_count:
            with suppress(pa.ArrowInvalid):
                values = pc.cast(values, pa.int64())
        return pd.Series(values.to_numpy(zero_copy_only=False), copy=False)
    return values.to_pandas()


def number_column(name: str, scan: ColumnScan, decimal: str) -> ColumnSchema:
    """Return the schema of a column of plain numbers, or of amounts of one sign."""
    kind = scan.number_kind(decimal)
    if kind is not None or not scan.n_values:
        return ColumnSchema(name, kind or Kind.GAPS)
    form = Form(sign=scan.amount_sign, decimal=decimal)
    return ColumnSchema(name, Kind.NUMBERS, form)


def schema_of(frame: pd.DataFrame, *, target: str | None = None) -> TableSchema:
    """Return the schema of a data frame, with the kinds of its types."""
    columns = []
    for column in columns_of(frame):
        values = frame[column.name]
        kind = _KINDS.get(column.kind, Kind.OTHER)
        is_whole = values.dtype.kind in "iu" or infer_dtype(values) == "integer"
        if kind is Kind.NUMBERS and is_whole:
            kind = Kind.WHOLE
        elif column.kind.startswith("time in zone"):
            kind = Kind.ZONED_TIMES
        schema = ColumnSchema(column.name, kind)
        if kind is Kind.TEXT:
            schema = with_texts_of(schema, values, has_gaps=bool(values.hasnans))
        columns.append(with_limits_of(schema, values))
    return TableSchema(tuple(columns), target=target, is_typed=True)


def with_texts_of(
    column: ColumnSchema, values: pd.Series, *, has_gaps: bool
) -> ColumnSchema:
    """Return the schema of a text column with what is known of its texts."""
    counts = values.value_counts()
    counts = counts[counts > 0]  # a category may be in no row
    few = len(counts) <= MOST_CATEGORIES
    return replace(
        column,
        categories=tuple(sorted(map(str, counts.index))) if few else None,
        has_gaps=has_gaps,
        new_share=int((counts == 1).sum()) / max(1, len(values)),
    )


def with_limits_of(column: ColumnSchema, values: pd.Series) -> ColumnSchema:
    """Return the schema of a column of numbers or times with its limits."""
    if column.kind.is_time and values.dtype.kind == "M":
        if (known := values.dropna()).empty:
            return column
        limits = known.min().isoformat(), known.max().isoformat()
        return replace(column, limits=limits, n_values=len(known))
    if not (column.kind.is_number and values.dtype.kind in "iuf"):
        return column
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return column
    return replace(
        column,
        limits=(float(numbers.min()), float(numbers.max())),
        n_values=len(numbers),
        is_unique=column.kind is Kind.WHOLE and len({*numbers.tolist()}) == len(values),
    )


def with_categories(schema: TableSchema, other: TableSchema) -> TableSchema:
    """Return the schema with what another one knows of the values of columns."""
    known = {column.name: column for column in other.columns}
    columns = []
    for column in schema.columns:
        of = known.get(column.name, column)
        columns.append(
            replace(
                column,
                categories=of.categories,
                has_gaps=of.has_gaps,
                new_share=of.new_share,
                limits=of.limits,
                n_values=of.n_values,
                is_unique=of.is_unique,
            )
        )
    return replace(schema, columns=tuple(columns))


def with_classes(schema: TableSchema, y: ArrayLike) -> TableSchema:
    """Return the schema with the classes of these labels; gaps are ignored."""
    labels = pd.Series(y).dropna().unique()
    return replace(schema, classes=tuple(np.sort(labels).tolist()))


def gap_numbers(words: Iterable[str]) -> list[float]:
    """Return the words for a gap that are numbers, such as -999."""
    return [float(word) for word in words if re.match(PLAIN_NUMBER, word)]


def remove_gap_words(
    frame: pd.DataFrame, names: Iterable[str], words: Sequence[str]
) -> pd.DataFrame:
    """Return a frame of a typed format without words for a gap.

    There they are values, unless they were named. Words that are numbers become gaps of
    columns of numbers, too, which are floats then in every block of the frame.
    """
    changed, numbers = {}, gap_numbers(words)
    for name in names if words else ():
        values = frame[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        if values.dtype.kind in "iuf":
            if numbers:
                is_plain = isinstance(values.dtype, np.dtype)
                floats = values.astype(np.float64) if is_plain else values
                changed[name] = floats.mask(floats.isin(numbers))
            continue
        if (texts := texts_of(values)) is None:
            continue
        forms = pa.array(forms_of_gaps(words), texts.type)
        is_gap = pc.is_in(texts, value_set=forms).to_numpy(zero_copy_only=False)
        changed[name] = values.mask(is_gap, None)
    return frame.assign(**changed) if changed else frame


def convert_frame(
    frame: pd.DataFrame, schema: TableSchema, *, first_row: int = 0, where: str
) -> pd.DataFrame:
    """Convert a frame of a typed format to the kinds of a schema.

    Texts are converted to the kinds of the schema, as in text files; other values keep
    their type, and their columns are compared with the schema elsewhere.
    """
    converted, wrong = {}, []
    features = remove_gap_words(frame, schema.names, schema.extra_gap_words)
    features = convert_to_common_types(features[list(schema.names)])
    for column in schema.columns:
        values = features[column.name]
        if isinstance(values.dtype, pd.CategoricalDtype) and column.kind != Kind.TEXT:
            values = values.astype(values.cat.categories.dtype)
        texts = None if column.kind in (Kind.OTHER, Kind.GAPS) else texts_of(values)
        is_typed = column.kind is Kind.TEXT and schema.is_typed
        if is_missing_in_another_type(values, column.kind):
            texts, is_typed = pa.nulls(len(values), pa.string()), False
        if texts is None or is_typed:
            if values.dtype.kind in "biuf" and values.notna().any():
                schema.refuse_plain_numbers([column.name], where)
            converted[column.name] = values
            continue
        typed, bad = column.convert(texts)
        if typed is None:
            wrong.append((column, bad))
        else:
            series = to_pandas(typed, column.kind)
            converted[column.name] = series.set_axis(values.index)
    refuse_wrong_values(wrong, where, first_row)
    ids = {name: frame[name] for name in schema.ids if name in frame}
    return pd.DataFrame(converted | ids, copy=False)


def is_missing_in_another_type(values: pd.Series, kind: Kind) -> bool:
    """Return whether a column has nothing but NaN or NaT, in a type of another kind.

    Formats and libraries write such gaps for columns of any kind.
    """
    of = values.dtype.kind
    if kind.is_time and of == "M":
        has_zone = isinstance(values.dtype, pd.DatetimeTZDtype)
        return has_zone != (kind is Kind.ZONED_TIMES) and not values.notna().any()
    is_other = (
        (kind is Kind.TEXT and of in "fmM")
        or ((kind.is_number or kind is Kind.TRUTH) and of in "mM")
        or (kind.is_time and of == "f")
    )
    return is_other and not values.notna().any()


def convert_to_common_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the types that columns of text files are converted to.

    Zoned times are in UTC, dates are times, and truth values are those of numpy, or
    objects where some are missing. Columns of these kinds in pyarrow's types, which
    pandas reads back from Parquet if it wrote them, are converted, too.
    """
    changes = {}
    for name, column in frame.items():
        values = column
        if isinstance(values.dtype, pd.ArrowDtype):
            kind = values.dtype.pyarrow_dtype
            if any(is_kind(kind) for is_kind in _CONVERTED):
                changed = pa.array(values).to_pandas()
                values = changes[name] = changed.set_axis(frame.index)
        if isinstance(values.dtype, pd.DatetimeTZDtype):
            changes[name] = values.dt.tz_convert("UTC")
        elif isinstance(values.dtype, pd.BooleanDtype):
            objects = values.astype(object).where(values.notna(), None)
            changes[name] = objects if values.hasnans else values.astype(bool)
        elif values.dtype == object and infer_dtype(values, skipna=True) == "date":
            changes[name] = values.astype(DATES)
    return frame.assign(**changes) if changes else frame
