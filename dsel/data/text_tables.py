"""Tables in text files: the kinds of columns are decided over all of their values."""

import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dsel.checks import letters_of, listing
from dsel.data.missing_labels import check_gap_words, without_words
from dsel.data.schema import (
    ColumnSchema,
    TableSchema,
    number_column,
    with_limits_of,
    with_texts_of,
)
from dsel.data.table_files import PARQUET, TEXT_FILES, files_in, name_text_file
from dsel.data.table_request import (
    Table,
    TableRequest,
    check_same_names,
    notes_on_row_names,
    rows_on_left_out,
)
from dsel.data.targets import notes_on_similar_labels, numbers_of_texts
from dsel.data.text import (
    MOST_NBYTES,
    TextFile,
    TextPart,
    UnreadableRowsError,
    first_bad_byte,
    header_line,
    open_text,
)
from dsel.data.text_columns.arrow_texts import matches
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.decimal_mark import decimal_mark
from dsel.data.text_columns.gaps import GAP_WORDS, is_gap_word, trim
from dsel.data.text_columns.kinds import PLAIN, Form, Kind
from dsel.data.text_columns.numbers import integer_labels, parse_numbers
from dsel.data.text_columns.text_reasons import SUM_WORD, TextReason, text_reason
from dsel.errors import RowError
from dsel.option_values import CLASSIFICATION, quote_names
from dsel.rounded_texts import count_of
from dsel.runtime.clients import count_threads, current_worker

Part = TypeVar("Part")

MOST_LABELS: Final = 10_000
"""Largest number of different labels; more are measurements, names or texts."""
_MISSING_LABELS: Final = frozenset(
    letters_of(word)
    for word in (*GAP_WORDS, "missing", "no label", "pending", "tbd", "unlabeled")
)
"""Letters of words by which rows without a label are marked."""


class TextSource(NamedTuple):
    """A text file, or a folder of them with equal columns, as one table."""

    location: str
    files: tuple[TextFile, ...]
    like: TableSchema | None = None
    """Schema by which it is converted."""
    drop: tuple[str, ...] = ()
    """Columns that are left out."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without those of row numbers."""
        return self.files[0].names

    def batches(
        self, names: Sequence[str], *, is_checked: bool = True, raw: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all files in order as text; columns of `raw` untrimmed."""
        for file in self.files:
            with name_text_file(file.path):
                batches = file.batches(names, is_checked=is_checked, raw=raw)
                yield from read_ahead(batches)

    def read(self, names: Sequence[str], *, raw: Sequence[str]) -> pa.Table:
        """Return all rows as text; raise ValueError where it is too much."""
        parts, nbytes = [], 0
        for batch in self.batches(names, raw=raw):
            nbytes += batch.nbytes
            if nbytes > MOST_NBYTES:
                raise ValueError(
                    f"{self.location!r} holds more than {MOST_NBYTES // 2**30} GiB of "
                    f"text, which is too much to be read at once; convert it by `dsel "
                    f"pool build`, or write Parquet."
                )
            parts.append(batch)
        return pa.Table.from_batches(parts)

    def rows_as_written(
        self, row_numbers: Sequence[int], names: Sequence[str]
    ) -> pd.DataFrame:
        """Return some rows as texts, just as they stand in the files, in file order."""
        wanted, first, parts = np.sort(np.asarray(row_numbers, dtype=np.int64)), 0, []
        for batch in self.batches(names, is_checked=False, raw=names):
            ends = np.searchsorted(wanted, [first, first + batch.num_rows])
            parts.append(batch.take(pa.array(wanted[slice(*ends)] - first)))
            first += batch.num_rows
        return pa.Table.from_batches(parts).to_pandas()

    def parts(
        self, like: TableSchema, decimal: str, n_rows: int
    ) -> Iterator["TextRows"]:
        """Yield the rows of all files in order, about `n_rows` for a task to convert.

        `like` is the schema by which they are converted.
        """
        # Categories and classes are not needed for it, and may be many.
        columns = (replace(column, categories=None) for column in like.columns)
        like = replace(like, columns=tuple(columns), classes=None)
        first, where = 0, repr(self.location)
        for file in self.files:
            with name_text_file(file.path):
                for part in read_ahead(file.parts([*like.names, *like.ids], n_rows)):
                    yield TextRows(part, like, decimal, where, first)
                    first += part.n_rows

    @contextmanager
    def name_lines(self) -> Iterator[None]:
        """Add the file and the line to an error about rows."""
        try:
            yield
        except RowError as error:
            raise error.in_lines(self.line_of) from error
        except UnreadableRowsError as error:
            file = next(file for file in self.files if file.path == error.path)
            with name_text_file(file.path):
                raise file.name_line(error) from error

    def complete_scans(self, scans: Mapping[str, ColumnScan], rows: pa.Table) -> None:
        """Let notes on columns name lines, and offer amounts only where they fit."""

        def quote(name: str, value: str) -> str:
            row = pc.index(rows.column(name), value).as_py()
            return f"{value!r} in {self.line_of(row)}"

        for name, scan in scans.items():
            scan.quote = partial(quote, name)
            scan.separator = self.files[0].separator
            if scan.amounts.n_by_sign:
                try:
                    decimal_mark(scans, self.files[0].separator, {name: None})
                except ValueError as error:
                    scan.obstacle = str(error)

    def line_of(self, row: int) -> str:
        """Return the line in which a row begins, for a message."""
        before = 0
        for file in self.files[:-1]:
            n_rows = sum(batch.num_rows for batch in file.batches(file.names[:1]))
            if row < before + n_rows:
                break
            before += n_rows
        else:
            file = self.files[-1]
        end = f" of {file.path!r}" if len(self.files) > 1 else ""
        return f"line {file.line_of(row - before)}{end}"

    @property
    def row_number_names(self) -> tuple[str, ...]:
        """Names of the leading columns that are left out."""
        return self.files[0].header[: self.files[0].n_row_numbers]

    def features(self, target: str | None) -> list[str]:
        """Return the columns that are read, without the target."""
        request = TableRequest(target, self.like, self.drop, (), None, None)
        return self.choose_features(request)

    def choose_features(self, request: TableRequest) -> list[str]:
        """Return the columns that become features; raise where one is missing."""
        names = [] if request.target is None else [request.target]
        if request.like is not None:
            names = list(request.like.names)
        with self.hint_at_header(names):
            return request.features(
                self.names, repr(self.location), self.row_number_names
            )

    @contextmanager
    def hint_at_header(self, names: Sequence[str]) -> Iterator[None]:
        """Add another line that has all of these names to errors about columns."""
        try:
            yield
        except ValueError as error:
            first = self.files[0]
            number = header_line(first.path, first.encoding, names) if names else None
            if number is None:
                raise
            raise ValueError(
                f"{error} If line {number} is the header, remove the lines above it."
            ) from error

    @property
    def notes(self) -> list[str]:
        """Notes about lines and columns that are left out."""
        notes = []
        for file in self.files:
            if n := len(file.comments):
                lines = "the line" if n == 1 else f"{n} lines"
                notes.append(
                    f"{lines} above the header of {file.path!r} that "
                    f"{'begins with # is' if n == 1 else 'begin with # are'} left out: "
                    f"{file.comments[0][:60]!r}"
                )
        return [*notes, *notes_on_row_names(self.row_number_names)]


@dataclass(frozen=True)
class TextRows:
    """Consecutive rows of a text table, with all that their conversion needs."""

    part: TextPart
    like: TableSchema
    decimal: str
    where: str
    """Name of the table in messages."""
    first: int
    """Number of the first row."""

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        return self.part.nbytes

    def frames(self, n_rows: int) -> Iterator[pd.DataFrame]:
        """Yield frames of about `n_rows` rows, whose indices are row numbers.

        UnreadableRowsError where a line has another number of values than the header,
        ValueError where a value is not of the kind of its column.
        """
        texts = self.part.texts()
        # The last part is not left small, since a model would take nearly as long for
        # it.
        n_frames = max(round(texts.num_rows / n_rows), 1)
        step = max(math.ceil(texts.num_rows / n_frames), 1)
        for start in range(0, texts.num_rows, step):
            rows, first = texts.slice(start, step), self.first + start
            frame = self.like.convert_texts(
                rows, decimal=self.decimal, first_row=first, where=self.where
            )
            yield frame.set_axis(pd.RangeIndex(first, first + len(frame)), axis=0)


def is_text(location: str) -> bool:
    """Return whether a location is a text file, or a folder of them."""
    return os.path.exists(location) and (
        location.lower().endswith(TEXT_FILES)
        or (not files_in(location, PARQUET) and bool(files_in(location, TEXT_FILES)))
    )


def text_source(
    location: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    like: TableSchema | None = None,
    drop: Sequence[str] = (),
    gaps: Sequence[str] = (),
) -> TextSource:
    """Open a text file, or a folder of them; only headers are read.

    An encoding is that of the files that are no UTF-8. Where none is named, or no
    separator, and the file does not show it, it is the one that was named for the table
    of the schema `like`; words for a gap that were named for it are gaps here, too.

    Raises ValueError where files have different columns.
    """
    paths = files_in(location, TEXT_FILES) or [location]
    files = []
    if like is not None:
        gaps = like.extra_gap_words
    for path in paths:
        with name_text_file(path):
            opened = _open_like(path, separator, encoding, like)
        files.append(replace(opened, gaps=tuple(gaps)))
        check_same_names(
            files[0].path,
            files[0].names,
            path,
            files[-1].names,
            what=f"{location!r} is a folder, whose {len(paths)} files are read as one "
            f"table: ",
        )
    if like is not None:
        # A column of the labeled table alone may be left out, too.
        labeled = {*like.names} - {*files[0].names}
        columns = tuple(column for column in like.columns if column.name not in drop)
        drop = [name for name in drop if name not in labeled]
        like = replace(like, columns=columns)
    return TextSource(location, tuple(files), like, tuple(drop))


def _open_like(
    path: str, separator: str | None, encoding: str | None, like: TableSchema | None
) -> TextFile:
    """Open a file, by the separator and encoding of `like` where its own fail."""
    like_encoding = None if like is None else like.encoding
    if encoding is None and like_encoding and first_bad_byte(path, "utf-8"):
        encoding = like_encoding
    try:
        return open_text(path, separator=separator, encoding=encoding)
    except ValueError:
        if separator is not None or like is None or like.separator is None:
            raise
        return open_text(path, separator=like.separator, encoding=encoding)


def read_ahead(parts: Generator[Part]) -> Iterator[Part]:
    """Yield parts in order; a thread reads the next one meanwhile."""
    with closing(parts), ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part


def scan_columns(
    batches: Iterator[pa.RecordBatch],
    report: Callable[[int, int | None], None] = lambda done, total: None,
) -> dict[str, ColumnScan]:
    """Scan the values of all columns in one pass, several columns at once.

    `report` is called with the number of rows read so far, and None, since the total
    is unknown.
    """
    scans: dict[str, ColumnScan] = {}
    running: list[Future[None]] = []
    done, n_threads = 0, 1 if current_worker() is not None else count_threads()
    with ThreadPoolExecutor(n_threads) as threads:
        for batch in batches:
            # The next batch is read while columns of this one are scanned. Each column
            # is scanned one batch at a time, since a scan depends on the order of rows.
            for future in running:
                future.result()
            running = [
                threads.submit(scans.setdefault(name, ColumnScan()).add, values)
                for name, values in zip(batch.schema.names, batch.columns, strict=True)
            ]
            done += batch.num_rows
            report(done, None)
        for future in running:
            future.result()
    return scans


def decimal_of(
    source: TextSource,
    scans: Mapping[str, ColumnScan],
    amounts: Mapping[str, str | None],
) -> str:
    """Return the decimal mark of a text table; ValueError where it has two.

    `amounts` are those of `text_columns.decimal_mark`.
    """
    with name_text_file(source.location):
        return decimal_mark(scans, source.files[0].separator, amounts)


def decimal_marks(source: TextSource, like: TableSchema) -> tuple[str, str]:
    """Return the decimal mark of a text table, and the one for files written for it.

    They differ where no number has a mark: tables separated by semicolons come from
    places with decimal commas, where a spreadsheet program turns 1.5 into a date.
    """
    numbers = [column.name for column in like.columns if column.kind.is_number]
    has_semicolons = source.files[0].separator == ";"
    if not like.amount_marks:
        if not has_semicolons:
            return ".", "."
        if not numbers:
            return ".", ","
    scans = scan_columns(source.batches(numbers))
    decimal = decimal_of(source, scans, like.amount_marks)
    has_point = any(
        scan.n_with_point
        or "." in scan.decimal_marks(";", is_amount=name in like.amount_marks)
        for name, scan in scans.items()
    )
    return decimal, "," if has_semicolons and not has_point else "."


def read_text(location: str, request: TableRequest) -> Table:
    """Read a text file, or a folder of them, into memory."""
    like = request.like
    source = text_source(
        location,
        separator=request.separator,
        encoding=request.encoding,
        like=like,
        gaps=request.gaps,
    )
    names = source.choose_features(request)
    target = None if like is not None else request.target
    other_names = [name for name in (request.groups, target) if name is not None]
    dropped = [] if like is not None else list(request.drop)
    read = list(dict.fromkeys([*names, *request.id_columns, *other_names, *dropped]))
    rows = source.read(read, raw=() if target is None else (target,))
    if target is not None:
        known = without_words(
            rows.column(target).combine_chunks(), request.unlabeled, target, location
        )
        rows = rows.set_column(rows.schema.get_field_index(target), target, known)
    cells = None if target is None else trim(rows.column(target).combine_chunks())
    scanned = rows.select(names)
    if request.task != CLASSIFICATION and target is not None:
        scanned = scanned.append_column(target, cells)
    # The target is included, since it may be the only column with fractions.
    marked = scan_columns(iter(scanned.to_batches()))
    source.complete_scans(marked, scanned)
    scans = {name: marked[name] for name in names}
    if like is None:
        _refuse_units(scans, rows, source)
    amounts = dict.fromkeys(request.number) if like is None else like.amount_marks
    decimal = decimal_of(source, marked, amounts)
    labels = _NO_LABELS
    if target is not None:
        values = rows.column(target)
        labels = _read_target(values, cells, source, request, marked, decimal)
    schema = like or _labeled_schema(source, request, scans, labels, decimal)
    with source.name_lines():
        frame = schema.convert_texts(rows, decimal=decimal, where=repr(location))
    columns_read = [cells if name == target else rows.column(name) for name in read]
    caveats = [
        *labels.caveats,
        *_notes_on_empty_rows(columns_read, location),
        *_notes_on_sums(read, columns_read, location),
        *source.notes,
        *_notes_on_header(source, like),
    ]
    keys = None
    if request.groups is not None:
        keys, group_caveats = _group_keys(rows.column(request.groups), request.groups)
        caveats += group_caveats
    more: dict[str, Any] = {
        "ids": frame[list(schema.ids)] if schema.ids else None,
        "notes": tuple(_text_rows(source, scans, schema, decimal)),
        "groups": keys,
        "left_out": rows.select(dropped).to_pandas() if dropped else None,
    }
    X = frame[names]
    if like is not None:
        return Table(X, None, schema.names, schema, caveats=tuple(caveats), **more)
    separator = source.files[0].separator
    for column in schema.columns:
        if column.kind is Kind.NUMBERS and not column.form.is_amount:
            texts = rows.column(column.name)
            caveats += _notes_on_spellings(column.name, texts, decimal, separator)
    columns = tuple(
        with_texts_of(column, X[column.name], has_gaps=scans[column.name].n_empty > 0)
        if column.kind is Kind.TEXT
        else with_limits_of(column, X[column.name])
        for column in schema.columns
    )
    return Table.from_frame(
        X,
        labels.values,
        replace(schema, columns=columns),
        caveats=caveats,
        why_texts=_why_texts(request, labels, schema, scans),
        is_regression=target is not None and labels.classes is None,
        **more,
    )


def _why_texts(
    request: TableRequest,
    labels: "_Labels",
    schema: TableSchema,
    scans: Mapping[str, ColumnScan],
) -> dict[str, TextReason]:
    """Return why columns are texts, by name, where another kind was likely."""
    reasons = {
        column.name: text_reason(scans[column.name], column.name)
        for column in schema.columns
        if column.kind is Kind.TEXT and column.name not in request.text
    }
    reasons = {str(request.target): labels.why_text} | reasons
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _labeled_schema(
    source: TextSource,
    request: TableRequest,
    scans: Mapping[str, ColumnScan],
    labels: "_Labels",
    decimal: str,
) -> TableSchema:
    """Return the schema of a labeled table, whose texts have no categories yet."""
    columns = tuple(
        _column_schema(name, scan, decimal, request) for name, scan in scans.items()
    )
    row_names = [n for n in source.row_number_names if n not in request.ids]
    return TableSchema(
        columns,
        request.target,
        labels.classes,
        request.ids,
        (*row_names, *request.dropped),
        gap_words=(*GAP_WORDS, *request.gaps),
        target_form=labels.form,
        separator=request.separator,
        encoding=request.encoding,
    )


def _notes_on_header(source: TextSource, like: TableSchema | None) -> list[str]:
    """Return a note on names that are numbers, and on a target that is not needed."""
    notes = []
    if source.names[:2] == ("0", "1"):
        notes.append(
            f"the columns are called 0 to {len(source.names) - 1}, as pandas names "
            f"them; if the first line is a row, write a header above it"
        )
    if like is not None and like.target in source.names:
        notes.append(
            f"column {like.target!r}, the target of the labeled table, is left out"
        )
    return notes


def _column_schema(
    name: str, scan: ColumnScan, decimal: str, request: TableRequest
) -> ColumnSchema:
    """Return the kind and form of a column, which the request may fix."""
    if name in request.text:
        return ColumnSchema(name, Kind.TEXT if scan.n_values else Kind.GAPS)
    if name in request.number:
        return number_column(name, scan, decimal)
    form = Form(scan.truth_pair, scan.day_first(request.day_first))
    return ColumnSchema(name, scan.kind(decimal, request.day_first), form)


def _notes_on_spellings(
    name: str, values: pa.ChunkedArray, decimal: str, separator: str
) -> list[str]:
    """Return a caveat if numbers may be others, or codes of which two become one.

    Codes are written in two ways for one number, or with one digit behind the point
    and with two of which the last is 0: 1.9 and 1.10. Money has two digits everywhere.
    Where semicolons separate, points with three digits behind them may separate
    thousands.
    """
    way = f"write --text {quote_names(name)} if they are codes or versions"
    texts = values.unique()
    texts = texts.filter(pc.invert(is_gap_word(texts))).drop_null()
    if separator == ";" and decimal == ".":
        pointed = texts.filter(pc.match_substring(texts, "."))
        if pc.all(matches(pointed, r"^-?[1-9][0-9]{0,2}\.[0-9]{3}$")).as_py():
            return [
                f"column {name!r} is read as numbers with fractions, such as "
                f"{pointed[0].as_py()!r}; if its points separate thousands, write the "
                f"table without them"
            ]
    numbers = parse_numbers(texts, decimal).to_pandas()
    twice = numbers.duplicated(keep=False) & (numbers != 0)
    if not twice.any():
        ends = {}
        for end, pattern in (("one", "[0-9]"), ("zero", "[1-9]0")):
            are_so = matches(texts, rf"^[0-9]{{1,3}}[.,]{pattern}$")
            if (first := pc.index(are_so, True).as_py()) < 0:
                return []
            ends[end] = texts[first].as_py()
        return [
            f"column {name!r} is read as numbers, of which {ends['zero']!r} ends with "
            f"0 and {ends['one']!r} has fewer digits; {way}"
        ]
    first = numbers[twice].iloc[0]
    one, other = texts.filter(pa.array(numbers == first)).to_pylist()[:2]
    return [
        f"column {name!r} is read as numbers, of which {one!r} and {other!r} are one; "
        f"{way}"
    ]


def _refuse_units(
    scans: Mapping[str, ColumnScan], rows: pa.Table, source: TextSource
) -> None:
    """Raise ValueError if the first row has units, or is another header.

    The first row then has the only values of several columns that are no numbers. They
    would be text, and the rows below a table of texts.
    """
    units = {}
    for name, scan in scans.items():
        n_numbers = max(scan.n_numbers, scan.n_whole + scan.n_commas)
        if n_numbers < 2 or n_numbers != scan.n_values - 1:
            continue
        first = trim(rows.column(name).slice(0, 1).combine_chunks())
        if first.is_valid()[0].as_py() and first[0].as_py() == scan.examples["other"]:
            units[name] = first[0].as_py()
    if len(units) > 1:
        shown = [f"{text!r} in {name!r}" for name, text in units.items()]
        raise ValueError(
            f"{source.line_of(0)} of {source.location!r} has units, or a second "
            f"header: {listing(shown, 5)}, where all other values are numbers; remove "
            f"this line."
        )


def _notes_on_empty_rows(
    columns: Sequence[pa.Array | pa.ChunkedArray], location: str
) -> list[str]:
    """Return a caveat if rows have no value at all; they may be none."""
    if not all(column.null_count for column in columns):
        return []
    is_empty = reduce(pc.and_, (column.is_null() for column in columns))
    n_rows = int(pc.sum(is_empty).as_py())
    has = "has" if n_rows == 1 else "have"
    return [
        f"{count_of(n_rows, 'row')} of {location!r} {has} no value in any column, as "
        f"spreadsheets leave them; remove them if they are no rows"
    ] * (n_rows > 0)


def _notes_on_sums(
    names: Sequence[str], columns: Sequence[pa.Array | pa.ChunkedArray], location: str
) -> list[str]:
    """Return a caveat if the last row has a word for sums, as no other row has."""
    for name, values in zip(names, columns, strict=True):
        word = trim(values.slice(len(values) - 1, 1).cast(pa.string()))[0].as_py()
        if (
            re.match(SUM_WORD, word or "")
            and pc.sum(pc.equal(values, word)).as_py() == 1
        ):
            return [
                f"the last row of {location!r} has {word!r} in column {name!r}, as no "
                f"other row; remove it if it has sums of the other ones"
            ]
    return []


def _group_keys(
    values: pa.ChunkedArray, name: str
) -> tuple[NDArray[np.object_], list[str]]:
    """Return the keys of groups, None where the cell is empty, and caveats."""
    texts = trim(values.combine_chunks())
    unique = texts.unique()
    gaps = sorted(unique.filter(is_gap_word(unique)).to_pylist())
    keys = np.array(texts.to_pylist(), dtype=object)
    if not gaps:
        return keys, []
    are = "is one group" if len(gaps) == 1 else "are groups"
    caveat = (
        f"{' and '.join(map(repr, gaps))} {are} of {name!r}; a row without a key has "
        f"an empty cell there"
    )
    return keys, [caveat]


@contextmanager
def _add_notes_to_error(
    scans: Mapping[str, ColumnScan], decimal: str, day_first: bool | None
) -> Iterator[None]:
    """Add what is doubtful of columns to an error about the target, as notes.

    Otherwise a user mends one, and meets the other in the next run.
    """
    try:
        yield
    except ValueError as error:
        reasons = [
            text_reason(scan, name)
            for name, scan in scans.items()
            if scan.kind(decimal, day_first) is Kind.TEXT
        ]
        for reason in filter(None, reasons):
            error.add_note(reason.text)
        raise


class _Labels(NamedTuple):
    """Labels or numbers of the target of a text table."""

    values: NDArray[Any] | None
    """None for a row without a label; NaN for one without a number."""
    classes: tuple[Any, ...] | None = None
    """None for numbers."""
    caveats: Sequence[str] = ()
    why_text: TextReason | None = None
    """Reason why they are texts, if another kind was likely."""
    form: Form = PLAIN


_NO_LABELS: Final = _Labels(None)


def _read_target(
    values: pa.ChunkedArray,
    cells: pa.Array,
    source: TextSource,
    request: TableRequest,
    marked: Mapping[str, ColumnScan],
    decimal: str,
) -> _Labels:
    """Return labels or numbers of a target; `cells` are its values without blanks.

    `marked` has the scans of the features, and that of a target that may be numbers.
    """
    target = str(request.target)
    scan, column = marked.get(target), ColumnSchema(target, Kind.NUMBERS)
    scans = {name: scan for name, scan in marked.items() if name != target}
    if scan is not None and target in request.number:
        column = number_column(target, scan, decimal)
    notes = _add_notes_to_error(scans, decimal, request.day_first)
    with notes, source.name_lines():
        numbers = numbers_of_texts(cells, column, scan, decimal, request.task)
    if numbers is not None:
        return _Labels(numbers, form=column.form)
    gaps = {
        word: name
        for name, scan in reversed(scans.items())
        for word in GAP_WORDS
        if scan.has_gap(word, decimal)
    }
    check_gap_words(cells, target, request.gap_classes, gaps)
    return _text_labels(values, cells, target, scan, decimal)


def _text_labels(
    values: pa.ChunkedArray,
    cells: pa.Array,
    target: str,
    scan: ColumnScan | None,
    decimal: str,
) -> _Labels:
    """Return labels, None where the cell is empty, and caveats about them.

    `scan` is None where the kind of the column does not matter.
    """
    raw = pc.value_counts(values.combine_chunks())
    as_written = raw.field(0)
    stripped = trim(as_written)
    texts = stripped.drop_null().unique().to_pylist()
    if len(texts) > MOST_LABELS:
        raise ValueError(
            f"`target` {target!r} must hold classes, got {len(texts):,} different "
            f"labels in {len(values):,} rows, such as {texts[0][:40]!r}; name the "
            f"column of the classes, or cut measurements into classes."
        )
    caveats = []
    changed = pc.and_(pc.not_equal(as_written, stripped), pc.is_valid(stripped))
    if pc.any(changed, min_count=0).as_py():
        n_rows = pc.sum(raw.field(1).filter(changed)).as_py()
        example = as_written.filter(changed)[0].as_py()
        caveats.append(
            f"{n_rows:,} labels have blanks around them, such as {example[:40]!r}, "
            f"which do not count"
        )
    caveats += notes_on_similar_labels(texts)
    if gaps := sorted(text for text in texts if letters_of(text) in _MISSING_LABELS):
        are = "is a class" if len(gaps) == 1 else "are classes"
        caveats.append(
            f"{' and '.join(map(repr, gaps))} {are}"
            f" of {target!r}; a row without a label has an empty cell there, or a word "
            f"that --unlabeled names"
        )
    why_text = None
    if scan is not None and scan.kind(decimal) is Kind.TEXT:
        why_text = text_reason(scan, target)
        caveats += [] if why_text is None else [why_text.text]
    whole = integer_labels(texts) if texts else None
    as_label = dict(zip(texts, texts if whole is None else whole, strict=True))
    labels_by_row = [as_label.get(text) for text in cells.to_pylist()]
    labels = np.array(labels_by_row)
    if None in labels_by_row:
        labels = np.empty(len(labels_by_row), dtype=object)
        labels[:] = labels_by_row
    classes = tuple(sorted(set(as_label.values())))
    return _Labels(labels, classes, caveats, why_text)


def _text_rows(
    source: TextSource,
    scans: Mapping[str, ColumnScan],
    schema: TableSchema,
    decimal: str,
) -> list[tuple[str, str]]:
    """Return what was read as what, as pairs of a title and a text."""
    file, columns = source.files[0], schema.columns
    form = [] if file.encoding.lower().startswith("utf-8") else [file.encoding.upper()]
    form += filter(None, [file.dialect(decimal).words])
    shown_rows = [("read as", ", ".join(form))] * bool(form)
    shown_rows += _rows_on_gaps(columns, scans, file.gaps)
    for is_day, order in ((True, "day first"), (False, "month first")):
        if named := [c.name for c in columns if c.form.day_first is is_day]:
            shown_rows.append(("dates", f"{order} in {listing(named, 8)}"))
    amounts = defaultdict[str, list[str]](list)
    for column in columns:
        if column.form.is_amount:
            amounts[column.noun].append(column.name)
    shown_rows += [
        ("amounts", f"{noun} in {listing(named, 8)}") for noun, named in amounts.items()
    ]
    left_out = rows_on_left_out(schema, source.row_number_names, file.nameless)
    return [*shown_rows, *left_out]


def _rows_on_gaps(
    columns: Sequence[ColumnSchema],
    scans: Mapping[str, ColumnScan],
    declared: Sequence[str],
) -> list[tuple[str, str]]:
    """Return the line about empty cells and words for gaps; none without any.

    Cells with a word that was `declared` to be one are counted as empty.
    """
    n_cells, with_gaps = Counter[str](), []
    empty = "empty cells"
    if declared:
        empty = f"cells that are empty or {' or '.join(map(repr, declared))}"
    for column in columns:
        scan = scans[column.name]
        gaps = Counter({f"{word!r}": n for word, n in scan.gap_words.items()})
        if column.kind is Kind.TEXT:  # there such words are values
            gaps.clear()
        if scan.n_empty:
            gaps[empty] = scan.n_empty
        n_cells += gaps
        if gaps:
            with_gaps.append(column.name)
    if not n_cells:
        return []
    shown = ", ".join(f"{n:,} {what}" for what, n in n_cells.most_common())
    return [("gaps", f"in {listing(with_gaps, 8)}: {shown}")]
