"""CSV and other text tables, read as text: nothing guesses types, gaps or dates.

A file is a stream of Arrow batches whose columns are strings without surrounding
blanks. Anything that could shift or drop a value (a short line, an open quote, a wrong
encoding, a file that is being written) is an error with the number of the line.
"""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import zipfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from dsel.checks import show
from dsel.data.table_request import count_row_names
from dsel.data.text_columns.arrow_texts import IN_OTHER_QUOTES
from dsel.data.text_columns.gaps import trim
from dsel.data.text_columns.numbers import NUMBER
from dsel.errors import UndecidedError

SEPARATORS: Final = (",", ";", "\t", "|")
SHOWN: Final = {"\t": "tab", ",": "','", ";": "';'", "|": "'|'"}
COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zip", ".zst")
BLOCK_NBYTES: Final = 2**23
"""Bytes of text that are parsed at once; no line may be longer."""
NO_ROWS: Final = "it has a header, but no rows"
MOST_NBYTES: Final = 2**31
"""Largest amount of text that is read into memory."""
_READ_NBYTES: Final = 2**20
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WORD_ENDS: Final = rb"[\s,;|\"]"
_QUOTE: Final = ord('"')
_OTHER_KINDS: Final = {
    b"PK\x03\x04": "a zip archive, as .xlsx files are: save the sheet as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an .xls file: save the sheet as CSV UTF-8",
    b"\x1f\x8b": "compressed by gzip: let its name end in .gz",
    b"BZh91AY": "compressed by bzip2: let its name end in .bz2",
    b"\xfd7zXZ": "compressed by xz: let its name end in .xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: let its name end in .zst",
    b"PAR1\x15": "a Parquet file: let its name end in .parquet",
    b"ARROW1\0": "a Feather file: let its name end in .feather",
    b"%PDF": "a PDF file: save its table as CSV",
    b"<!DOCTYPE": "a web page: save the table behind it as CSV",
    b"<html": "a web page: save the table behind it as CSV",
    b"<?xml": "an XML file: save its table as CSV",
    b"[{": "JSON: write an object in each line, to a name that ends in .jsonl",
    b'{"': "JSON: let its name end in .jsonl if each line has an object",
}
"""First bytes of files that are no text tables, with what they are and the way out."""
_ZERO_BYTES: Final = (
    "it holds zero bytes; it is no text, or name its encoding by --encoding, such as "
    "utf-16-le"
)
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_MOST_LINES: Final = 100
"""Lines at the beginning of a file that are looked at before its rows are read."""


@dataclass(frozen=True)
class Dialect:
    """Separator, decimal mark and byte order mark of a text table.

    Files that dsel writes for a table have the same dialect.

    Examples
    --------
    >>> Dialect(";", ",").words, Dialect().words
    ("separated by ';', decimal commas", '')
    """

    separator: str = ","
    decimal: str = "."
    has_mark: bool = False
    """Whether it begins with a byte order mark, by which Excel recognizes UTF-8."""

    @property
    def words(self) -> str:
        """Description of everything unusual; "" for a plain CSV file."""
        words = []
        if self.separator != ",":
            words.append(f"separated by {SHOWN.get(self.separator, self.separator)}")
        if self.decimal != ".":
            words.append("decimal commas")
        return ", ".join(words)


PLAIN_DIALECT: Final = Dialect()


@dataclass(frozen=True)
class TextFile:
    r"""A text table whose header has been read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with open(f"{folder}/t.csv", "w") as file:
    ...         n = file.write("age; town\n41; Ulm\n")
    ...     file = open_text(f"{folder}/t.csv")
    ...     file.separator, [batch.to_pydict() for batch in file.batches()]
    (';', [{'age': ['41'], 'town': ['Ulm']}])
    """

    path: str
    separator: str
    encoding: str
    header: tuple[str, ...]
    """Names of all columns in the file, without surrounding blanks."""
    n_row_numbers: int
    """Leading columns without a name, which hold numbers or names of rows."""
    header_lines: int
    """Lines of the file before its first row."""
    nameless: tuple[int, ...]
    """Positions of other columns without a name, which have no value: gap columns of
    spreadsheets, or lines that end in separators."""
    comments: tuple[str, ...] = ()
    """Lines above the header that begin with # and are left out."""
    gaps: tuple[str, ...] = ()
    """Words that are read as an empty cell."""

    def dialect(self, decimal: str) -> Dialect:
        """Return the dialect of files written for this table, always in UTF-8."""
        with open_binary(self.path) as file:
            has_mark = file.read(3) == codecs.BOM_UTF8 or self.encoding != "utf-8"
        return Dialect(self.separator, decimal, has_mark)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are read."""
        return tuple(name for name in self.header[self.n_row_numbers :] if name)

    def estimate_rows(self) -> int | None:
        """Return the approximate number of rows, by first lines and size of the file.

        None for a compressed file.
        """
        if self.path.lower().endswith(COMPRESSED):
            return None
        with open_binary(self.path) as file:
            first = file.read(_READ_NBYTES)
        size = os.path.getsize(self.path)
        return int(first.count(b"\n") * size // max(len(first), 1))

    def batches(
        self,
        names: Sequence[str] | None = None,
        *,
        is_checked: bool = True,
        raw: Sequence[str] = (),
    ) -> Generator[pa.RecordBatch]:
        """Yield the rows in order, as strings; a cell without a value is null.

        The first pass over a file checks quotes and the number of values of lines;
        later passes may skip these checks. A file that changes during a pass is
        refused. Columns of `raw` keep their blanks.
        """
        wanted = self.names if names is None else tuple(names)
        layout = self._layout_of(wanted)
        n_read = len(layout.columns)
        read = [*layout.columns, *(layout.all_columns[k] for k in self.nameless)]
        n_rows = 0
        with self._open_rows(is_checked=is_checked) as stream:
            for batch in _parse_batches(stream, layout, read):
                for k, values in zip(
                    self.nameless, batch.columns[n_read:], strict=True
                ):
                    self._check_nameless(k, values, n_rows)
                arrays = [
                    batch.column(k) if name in raw else trim(batch.column(k), self.gaps)
                    for k, name in enumerate(wanted)
                ]
                if len(self.header) != 1 and is_checked:
                    self._check_headers(wanted, arrays, n_rows)
                elif len(self.header) == 1 and batch.column(0).null_count:
                    raise ValueError(
                        "it has one column and lines that are empty, which may be gaps "
                        'or nothing at all; write NA or "" for a gap, and remove other '
                        "such lines"
                    )
                n_rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(arrays, names=list(wanted))
        if not n_rows:
            raise ValueError(NO_ROWS)

    def parts(self, names: Sequence[str], n_rows: int) -> Generator["TextPart"]:
        """Yield the rows in order, in parts of about `n_rows` that tasks parse.

        This only finds where lines end. If a parser is needed for this, such as after a
        quote inside of a value, the rest of the file is parsed here. Checks are those
        of `batches`, and the rows of all parts are the same.
        """
        layout, n_read = self._layout_of(names), 0
        if len(self.header) == 1 or self.nameless:
            for batch in self.batches(names, raw=names):
                yield TextPart(self.path, batch, batch.num_rows, layout)
            return
        with self._open_rows(is_checked=True) as stream:
            for lines, n in stream.whole_records(n_rows):
                n_read += n
                yield TextPart(self.path, lines, n, layout)
            for batch in _parse_batches(stream, layout, layout.columns):
                n_read += batch.num_rows
                yield TextPart(self.path, batch, batch.num_rows, layout)
        if not n_read:
            raise ValueError(NO_ROWS)

    def _layout_of(self, names: Sequence[str]) -> "_ColumnLayout":
        # If several columns have no name, the first one has the names of the rows.
        backwards = reversed([*enumerate(self.header)])
        positions = {name: position for position, name in backwards}
        columns = tuple(f"c{positions[name]}" for name in names)
        return _ColumnLayout(
            self.separator, len(self.header), columns, tuple(names), self.gaps
        )

    @contextmanager
    def _open_rows(self, *, is_checked: bool) -> Iterator["_Utf8Stream"]:
        """Open the file behind its header; check it when all rows are read."""
        stamp = file_stamp(self.path)
        separator = self.separator if is_checked else None
        with _Utf8Stream(self.path, self.encoding, separator) as stream:
            try:
                stream.skip_lines(self.header_lines)
                yield stream
            except (pa.ArrowInvalid, UnicodeError) as error:
                raise self.name_line(error) from error
            if is_checked and stream.is_doubtful:
                self._check_lines()
        if file_stamp(self.path) != stamp:
            raise ValueError(
                "it has changed while it was read; wait until it is written"
            )

    def _check_nameless(self, position: int, values: pa.Array, first: int) -> None:
        """Raise where a column without a name has values."""
        bad = pc.index(pc.greater(pc.binary_length(trim(values)), 0), True).as_py()
        if bad >= 0:
            line = self.line_of(first + bad)
            raise ValueError(
                f"its column {position + 1} has no name, but line {line} has "
                f"{values[bad].as_py()!r} there; name the column in the header, or "
                f"remove that if it is a title"
            )

    def _check_headers(
        self, names: Sequence[str], columns: Sequence[pa.Array], first: int
    ) -> None:
        """Raise ValueError if a row has the names of all columns as its values."""
        is_header = (pc.equal(v, name) for name, v in zip(names, columns, strict=True))
        bad = pc.index(reduce(pc.and_, is_header), True).as_py()
        if bad >= 0 and len(names) > 1:
            raise ValueError(
                f"its line {self.line_of(first + bad)} is its header again, as in "
                f"files that were joined; remove this line"
            )

    def name_line(self, error: Exception) -> Exception:
        """Return an error of the parser with the number of its line."""
        text = str(error)
        if isinstance(error, UnicodeError) or "UTF8" in text:
            return decoding_error(self.path, self.encoding)
        if "straddl" in text:
            return ValueError(
                f"it has a line of more than {BLOCK_NBYTES // 2**20} MiB, or a quote "
                f"that is not closed"
            )
        try:
            self._check_lines()
        except UnicodeError:
            return decoding_error(self.path, self.encoding)
        except ValueError as found:
            return found
        return ValueError(" ".join(text.split()))

    def line_of(self, row: int) -> int:
        """Return the line in which a row begins; rows are counted from 0.

        Values may contain line ends, and empty lines are no rows, so that the file is
        read again.
        """
        return next(islice(self._records(), row, None))[0]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line in which each row begins, and the values of the row.

        Python's strict reader is slow, so it runs only after another check has failed.
        """
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with _Utf8Stream(self.path, self.encoding) as stream:
                stream.skip_lines(self.header_lines)
                text = io.TextIOWrapper(
                    io.BufferedReader(stream), encoding="utf-8", newline=""
                )
                lines = csv.reader(text, delimiter=self.separator, strict=True)
                start = self.header_lines + 1
                try:
                    for values in lines:
                        if values:
                            yield start, values
                        start = self.header_lines + lines.line_num + 1
                except csv.Error as error:
                    raise ValueError(
                        f"its line {start} has a quote that is not closed, or goes on "
                        f"behind it ({error}); quotes in a value are doubled"
                    ) from error
        finally:
            csv.field_size_limit(limit)

    def _check_lines(self) -> None:
        """Raise ValueError for the first line that does not fit the header."""
        expected = len(self.header)
        for record_number, (line, values) in enumerate(self._records()):
            if (n := len(values)) != expected:
                way = "every line must have as many as the head names"
                if n == expected + 1 and not values[-1].strip():
                    way += "; this line ends in a separator, and the header does not"
                elif not record_number and n == expected + 1:
                    way += (
                        "; if lines begin with a row name, as R writes them, name that "
                        "column, too"
                    )
                if not record_number and n > 1:
                    way += f"; if line {line} is the header, remove the lines above it"
                raise ValueError(
                    f"its line {line} has {n} value{'' if n == 1 else 's'}, but the "
                    f"header has {expected}; {way}"
                )


class _ColumnLayout(NamedTuple):
    """How the lines of a text table become columns."""

    separator: str
    n_columns: int
    """Columns of the file."""
    columns: tuple[str, ...]
    """Those to read, as the parser calls them."""
    names: tuple[str, ...]
    """The names of these."""
    gaps: tuple[str, ...]
    """Words that are read as an empty cell."""

    @property
    def all_columns(self) -> list[str]:
        """All columns of the file, as the parser calls them."""
        return [f"c{position}" for position in range(self.n_columns)]

    def options(
        self, read: Sequence[str], block_nbytes: int, *, use_threads: bool
    ) -> tuple[Any, Any, Any]:
        """Return options of Arrow's reader, which returns all values as text."""
        return (
            arrow_csv.ReadOptions(
                column_names=self.all_columns,
                block_size=block_nbytes,
                use_threads=use_threads,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=True,
                ignore_empty_lines=self.n_columns > 1,
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self.all_columns, pa.string()),
                include_columns=list(read),
                # In a file of one column an empty line is null, but "" is a value.
                strings_can_be_null=self.n_columns == 1,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )


def _parse_batches(
    stream: io.RawIOBase, layout: _ColumnLayout, read: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the parsed rows of a file, of which an empty one has none."""
    try:
        options = layout.options(read, BLOCK_NBYTES, use_threads=True)
        reader = arrow_csv.open_csv(stream, *options)
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return
        raise
    yield from reader


class UnreadableRowsError(ValueError):
    """Rows of a text table that the parser refuses in a task; it knows no line."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)  # as pickle passes them
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TextPart:
    """Consecutive rows of a text table."""

    path: str
    """The file, of which nothing is read any more."""
    content: bytes | pa.RecordBatch
    """Whole lines in UTF-8, or their values."""
    n_rows: int
    layout: _ColumnLayout

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        if isinstance(self.content, bytes):
            return len(self.content)
        return int(self.content.nbytes)

    def texts(self) -> pa.RecordBatch:
        """Return the values without surrounding blanks; a cell without one is null.

        UnreadableRowsError where a line has another number of values than the header.
        """
        rows = self.content
        if isinstance(rows, bytes):
            size, columns = max(len(rows), 1), self.layout.columns
            options = self.layout.options(columns, size, use_threads=False)
            try:
                rows = arrow_csv.read_csv(pa.BufferReader(rows), *options)
            except pa.ArrowInvalid as error:
                raise UnreadableRowsError(self.path, str(error)) from error
            if rows.num_rows != self.n_rows:
                raise UnreadableRowsError(
                    self.path, "its lines cannot be distinguished"
                )
            rows = rows.combine_chunks().to_batches()[0]
        arrays = [trim(values, self.layout.gaps) for values in rows.columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.layout.names))


def open_text(
    path: str, *, separator: str | None = None, encoding: str | None = None
) -> TextFile:
    """Read the header of a text table, and find its encoding and its separator.

    ValueError where it is empty, has no header, names a column twice, is not of the
    encoding, or may be separated in several ways; the caller adds the name of the file.
    """
    encoding = _find_encoding(path, encoding)
    with _Utf8Stream(path, encoding) as stream:
        try:
            first, n_before = stream.first_record()
            declared = re.fullmatch(r'"?sep=(.)"?', first.strip(), re.IGNORECASE)
            if declared:  # Excel's declaration of the separator
                separator = separator or declared[1]
                n_before += 1
                first, n_blank = stream.first_record()
                n_before += n_blank
            # A line that begins with # ends there, as comments may have any quotes.
            records, starts = [first], [n_before]
            while records[-1].startswith("#") and len(records) < _MOST_LINES:
                line, n_blank = stream.first_record()
                n_lines = len(_LINE_END.findall(records[-1]))
                starts.append(starts[-1] + n_lines + n_blank)
                records.append(line)
            n_comments = _count_comments(path, records, separator)
            first, n_before = records[n_comments], starts[n_comments]
            if separator is None and not any(sign in first for sign in SEPARATORS):
                more = [stream.first_record()[0] for _ in range(_MOST_LINES)]
                _check_one_column(first, [*records[n_comments + 1 :], *more])
        except UnicodeError as error:
            raise decoding_error(path, encoding) from error
    if not first.strip():
        raise ValueError("it is empty")
    separator = _find_separator(path, first, separator)
    header, n_lines = _header(first, separator)
    n_lines += n_before
    n_row_numbers = count_row_names(header)
    if n_row_numbers == len(header):
        raise ValueError("its columns have no names; name them in the first line")
    nameless = [k for k in range(n_row_numbers, len(header)) if not header[k]]
    _check_header([name for name in header[n_row_numbers:] if name])
    return TextFile(
        path,
        separator,
        encoding,
        tuple(header),
        n_row_numbers,
        n_lines,
        tuple(nameless),
        tuple(line.strip() for line in records[:n_comments]),
    )


def _count_comments(path: str, lines: Sequence[str], separator: str | None) -> int:
    """Return how many first lines, which begin with #, are no header.

    The last one is the header if it has as many values as the line below it, as numpy
    and genome browsers write it. So no line is left out that could be a header.
    """
    *comments, below = lines
    if not comments:
        return 0
    if not below.strip():  # all lines begin with #, so that the last may be the header
        return len(comments) - 1
    for line in (comments[-1], below):
        with suppress(
            ValueError
        ):  # a line that cannot be split into values is a comment
            sign = _find_separator(path, line, separator)
            n_values = [len(_header(text, sign)[0]) for text in (comments[-1], below)]
            if n_values[0] == n_values[1] and (n_values[0] > 1 or line is below):
                return len(comments) - 1
    return len(comments)


def _check_one_column(first: str, below: Sequence[str]) -> None:
    """Raise ValueError if the only column seems to be several ones.

    The header and all lines then have the same number of a sign that separates values.
    """
    lines = [line.strip() for line in (first, *below) if line.strip()]
    if len(lines) < 3:
        return
    for sign in (" ", ":", "^", "~"):
        try:
            parts = list(csv.reader(lines, delimiter=sign, skipinitialspace=True))
        except csv.Error:  # a value of more than 128 KiB
            continue
        header, *rows = parts
        n = len(header)
        # R writes the names of rows into a column that the header does not have.
        has_row_names = all(len(values) == n + 1 for values in rows)
        is_table = has_row_names or all(len(values) == n for values in rows)
        if n == 1 or not is_table:
            continue
        # "full name" may well be the header of names of two words.
        has_numbers = any(
            all(re.match(NUMBER, values[k]) for values in rows) for k in range(n)
        )
        has_quotes = lines[0].startswith('"') and lines[1].startswith('"')
        has_many = n > 2 and not has_row_names
        if not (has_many or sign != " " or has_numbers or has_quotes):
            continue
        way = f"write --sep {sign!r}"
        if any(2 * sign in line for line in lines):
            way = "write it as CSV"
        if has_row_names:
            way = (
                "lines have one value more, as R writes the names of rows, so write "
                f"it by write.csv, or name that column and {way},"
            )
        raise ValueError(
            f"it has one column, and {sign!r} separates each line, like the header "
            f"{first.strip()[:60]!r}, into {n} parts; {way} if these are its values, "
            f"and --sep , if not"
        )


def header_line(path: str, encoding: str, names: Sequence[str]) -> int | None:
    """Return the number of a line below the first that may be the header.

    It is near the beginning and has all of these names, and no numbers.
    """
    with _Utf8Stream(path, encoding) as stream:
        for line_number in range(1, _MOST_LINES + 1):
            line = stream.line()
            for sign in SEPARATORS:
                values = [value.strip().strip('"') for value in line.split(sign)]
                are_names = not any(re.match(NUMBER, value) for value in values)
                if line_number > 1 and are_names and {*names} <= {*values}:
                    return line_number
    return None


def _header(first: str, separator: str) -> tuple[list[str], int]:
    """Return the names of the columns, and the number of lines that they take."""
    text = io.StringIO(first, newline="")
    lines = csv.reader(text, delimiter=separator, strict=True)
    try:
        record = next(lines)
    except csv.Error as error:
        raise ValueError(
            f"its header has a quote that is not closed, or goes on behind it ({error})"
        ) from error
    return [name.strip() for name in record], lines.line_num


def _check_header(names: Sequence[str]) -> None:
    """Raise where the first line has no names, or one name twice."""
    if all(re.fullmatch(IN_OTHER_QUOTES, name) for name in names):
        raise ValueError(
            f"its header has the name {names[0]}, in quotes as all others, but only "
            f"double quotes enclose values; write the file with double quotes"
        )
    running = list(map(str, range(len(names))))
    # pandas writes the numbers 0, 1, ... for columns without names.
    if list(names) != running and all(re.match(NUMBER, name) for name in names):
        raise ValueError(
            f"it has no header: the first line is {','.join(names)[:60]}; write the "
            f"names of the columns into the first line"
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"its column name {twice[0]!r} is there twice; rename one")


def _find_separator(path: str, first: str, separator: str | None) -> str:
    """Return the separator that the user named, or the only one in the header."""
    if separator is not None:
        named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
        separator = named.get(separator.lower(), separator)
        if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
            raise ValueError(
                f"--sep must be one sign, such as ';' or tab, got {show(separator)}"
            )
        return separator
    outside = re.sub(r'"(?:[^"]|"")*"', "", first)
    present = [sign for sign in SEPARATORS if sign in outside]
    if ".tsv" in path.lower() and "\t" in present:
        return "\t"
    if len(present) > 1:
        signs = " and ".join(SHOWN[sign] for sign in present)
        raise ValueError(
            f"its header has {signs}, so that its separator is not clear: "
            f"{first.strip()[:60]!r}; name it by --sep"
        )
    return present[0] if present else ","


def _find_encoding(path: str, encoding: str | None) -> str:
    """Return the encoding that was named, or that the first bytes show.

    A file that is UTF-8 is read as UTF-8, whatever was named.
    """
    if encoding is not None:
        try:
            info = codecs.lookup(encoding)
            "".encode(encoding)
        except (LookupError, ValueError) as error:
            raise ValueError(
                f"--encoding {encoding!r} is not known; write utf-8, latin-1, cp1252 "
                f"or another one of Python's"
            ) from error
        # One of two tables may be UTF-8, and the other one not.
        if not _is_utf8_with_signs(path):
            return str(info.name)
    with open_binary(path) as file:
        start = file.read(16)
    for beginning, kind in _OTHER_KINDS.items():
        if bytes(start).removeprefix(codecs.BOM_UTF8).startswith(beginning):
            raise ValueError(f"it is {kind}")
    return next((name for bom, name in _BOMS if start.startswith(bom)), "utf-8")


def open_binary(path: str) -> Any:
    """Open a file for reading bytes, decompressed by the ending of its name."""
    lower = path.lower()
    if lower.endswith(".gz"):
        return gzip.open(path)
    if lower.endswith(".bz2"):
        return bz2.open(path)
    if lower.endswith(".xz"):
        return lzma.open(path)
    if lower.endswith(".zst"):
        # Closing the stream also closes its file.
        return pa.CompressedInputStream(pa.OSFile(path), "zstd")
    if lower.endswith(".zip"):
        return _ZipMember(path)
    return open(path, "rb")


class _ZipMember(io.RawIOBase):
    """The one file of a zip archive."""

    def __init__(self, path: str) -> None:
        self._archive = zipfile.ZipFile(path)
        files = [info for info in self._archive.infolist() if not info.is_dir()]
        files = [info for info in files if not info.filename.startswith("__MACOSX/")]
        if len(files) != 1:
            shown = ", ".join(info.filename for info in files[:5]) or "none"
            self._archive.close()
            raise ValueError(f"it must hold one file, got {len(files)}: {shown}")
        self._file = self._archive.open(files[0])

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            self._archive.close()
        super().close()


class _Utf8Stream(io.RawIOBase):
    """The bytes of a text file as checked UTF-8, without a byte order mark.

    Zero bytes are refused. `is_doubtful` becomes true where a quote is not at the
    beginning or end of a value: Arrow accepts such lines, and may join two of them.
    """

    def __init__(
        self, path: str, encoding: str, checked_separator: str | None = None
    ) -> None:
        self._file = open_binary(path)
        self._is_first = True
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._is_utf8 = encoding == "utf-8"
        self._is_checked = checked_separator is not None
        self._is_edge = np.zeros(256, dtype=np.bool_)
        self._is_edge[list(f'"\r\n{checked_separator or ""}'.encode())] = True
        self._buffer = b""
        self._is_open_quote = False
        self._last = ord("\n")
        self._was_quote = False  # the last byte closed a quote, or doubles one
        self.is_doubtful = False
        self._n_lines = 0

    def readable(self) -> bool:
        return True

    def _read_more(self) -> bytes:
        """Return the next bytes; none at the end."""
        while True:
            raw = bytes(self._file.read(_READ_NBYTES))
            text = raw
            # All columns are decoded here, since Arrow decodes only those it returns.
            if not self._is_utf8:
                text = self._decoder.decode(raw, final=not raw).encode("utf-8")
            elif not raw.isascii() or self._decoder.getstate()[0] or not raw:
                self._decoder.decode(raw, final=not raw)
            if self._is_first and text:
                text = text.removeprefix(codecs.BOM_UTF8)
                self._is_first = False
            if text or not raw:
                break
        if b"\0" in text:
            raise ValueError(_ZERO_BYTES)
        return text

    def readinto(self, buffer: Any) -> int:
        # Arrow makes a block of each call's bytes, and small blocks are slow.
        n_filled = 0
        while n_filled < len(buffer):
            if not self._buffer:
                self._buffer = self._read_more()
                if self._is_checked:
                    self._check_quotes(self._buffer)
                if not self._buffer:
                    break
            part = self._buffer[: len(buffer) - n_filled]
            self._buffer = self._buffer[len(part) :]
            buffer[n_filled : n_filled + len(part)] = part
            n_filled += len(part)
        return n_filled

    def whole_records(self, n_rows: int) -> Iterator[tuple[bytes, int]]:
        """Yield lines of about `n_rows` records, with the number of their records.

        It ends before the first lines that only a parser can tell apart. These, and all
        that come after them, are read from the stream next.
        """
        is_last, wanted = False, _READ_NBYTES
        while not is_last or self._buffer:
            parts, nbytes = [self._buffer], len(self._buffer)
            while nbytes < wanted and not is_last:
                more = self._read_more()
                if self._is_checked:
                    self._check_quotes(more)
                is_last = not more
                parts.append(more)
                nbytes += len(more)
            self._buffer = content = parts[0] if len(parts) == 1 else b"".join(parts)
            n, is_end = min(wanted, nbytes), is_last and wanted >= nbytes
            stop_and_count = (
                None if self.is_doubtful else _whole_records(content, n, is_end)
            )
            if stop_and_count is None:
                return
            stop, n_records = stop_and_count
            wanted = max(n_rows * stop // n_records, _READ_NBYTES)
            wanted = min(wanted, BLOCK_NBYTES)
            self._buffer = content[stop:]
            yield content[:stop], n_records

    def first_record(self) -> tuple[str, int]:
        """Return the first non-empty line, and the number of empty lines before it.

        A quoted name may continue in the next line, so lines are added until the number
        of quotes is even. A single quote inside a name may add a line too many.
        """
        lines: list[bytes] = []
        n_empty = 0
        while line := self._read_line():
            if lines or line.strip():
                lines.append(line)
            else:
                n_empty += 1
            is_comment = lines and lines[0].startswith(b"#")
            if is_comment or (lines and b"".join(lines).count(b'"') % 2 == 0):
                break
        return b"".join(lines).decode("utf-8"), n_empty

    def skip_lines(self, n_lines: int) -> None:
        """Skip this many lines."""
        for _ in range(n_lines):
            self._read_line()
        if self._is_checked:
            self._check_quotes(self._buffer)

    def line(self) -> str:
        """Return the next line."""
        return self._read_line().decode("utf-8")

    def _read_line(self) -> bytes:
        """Return the next line with its end; empty at the end of the file."""
        parts: list[bytes] = []
        while True:
            if not self._buffer:
                self._buffer = self._read_more()
                if not self._buffer:
                    return b"".join(parts)
            match = re.search(rb"\r\n|\n|\r", self._buffer)
            if match and match.end() == len(self._buffer) and match[0] == b"\r":
                more = self._read_more()  # the \n of \r\n may come next
                if more:
                    self._buffer += more
                    continue
            if match:
                parts.append(self._buffer[: match.end()])
                self._buffer = self._buffer[match.end() :]
                return b"".join(parts)
            parts.append(self._buffer)
            self._buffer = b""

    def _check_quotes(self, content: bytes) -> None:
        """Check that every quote opens or closes a whole value.

        Quotes alternate: an opening one follows a separator or line end, a closing one
        precedes one. A doubled quote is a closing and an opening one side by side.
        """
        if self.is_doubtful:
            return
        if not content:
            self.is_doubtful = self._is_open_quote
            return
        if self._was_quote and not self._is_edge[content[0]]:
            self.is_doubtful = True
        if b'"' in content:
            codes = np.frombuffer(content, np.uint8)
            at = np.flatnonzero(codes == _QUOTE)
            opens = (np.arange(len(at)) % 2 == 0) ^ self._is_open_quote
            before = np.where(at > 0, codes[at - 1], self._last)
            inside = at < len(codes) - 1
            after = np.where(inside, codes[np.minimum(at + 1, len(codes) - 1)], 10)
            right = np.where(opens, self._is_edge[before], self._is_edge[after])
            self.is_doubtful |= not bool(right.all())
            self._is_open_quote ^= bool(len(at) % 2)
        self._last = content[-1]
        self._was_quote = self._last == _QUOTE and not self._is_open_quote

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _whole_records(content: bytes, n: int, is_last: bool) -> tuple[int, int] | None:
    r"""Return where the last whole record in `n` bytes ends, and how many there are.

    None where an empty line, an unusual line end or an open quote needs a parser, or no
    record ends. Quotes open and close whole values, so that they alternate.

    Examples
    --------
    >>> _whole_records(b'1,2\n3,"x\ny"\n5', 13, False)
    (12, 2)
    >>> _whole_records(b"1,2\n\n3,4\n", 9, True)
    """
    codes = np.frombuffer(content, np.uint8, n)  # a slice of them would be a copy
    ends = np.flatnonzero(codes == ord("\n"))
    n_quotes = 0
    if content.find(b'"', 0, n) >= 0:
        quotes = np.flatnonzero(codes == _QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        n_quotes = len(quotes)
    stop = int(ends[-1]) + 1 if len(ends) else 0
    if is_last and stop < n:  # the last line has no end
        if n_quotes % 2:
            return None
        stop = n
        ends = np.append(ends, stop)
    least, n_returns = 2, content.count(b"\r", 0, n)
    if n_returns:
        least = 3
        if content.count(b"\r", 0, stop) != content.count(b"\r\n", 0, stop):
            return None
    if not len(ends) or (np.diff(ends, prepend=-1) < least).any():
        return None
    return stop, len(ends)


def decoding_error(path: str, encoding: str) -> UndecidedError:
    """Return an error that names the first byte that the encoding does not allow."""
    name, bad = encoding.upper(), first_bad_byte(path, encoding)
    if bad is None:
        return UndecidedError(f"it is no {name}; name its encoding by --encoding")
    text = f"it is no {name}: byte 0x{bad.byte:02x} in line {bad.line}; name its "
    text += "encoding by --encoding, such as "
    if encoding != "utf-8":
        return UndecidedError(f"{text}another one")
    # Where both encodings read a file, they differ in control characters only, which no
    # table has.
    way = "cp1252" if first_bad_byte(path, "cp1252") is None else "latin-1"
    return UndecidedError(
        f"{text}{way}, which reads {bad.word.decode(way, 'replace')[:40]!r} there",
        [("--encoding", way)],
    )


class BadByte(NamedTuple):
    """A byte that an encoding does not allow."""

    byte: int
    line: int
    word: bytes
    """The word around it, between blanks, separators and quotes."""


def first_bad_byte(path: str, encoding: str) -> BadByte | None:
    """Return the first byte that the encoding does not allow.

    None where it allows all, or a character is cut off at the end.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    n_lines, before = 1, b""
    with open_binary(path) as file:
        while True:
            raw = bytes(file.read(_READ_NBYTES))
            try:
                decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                # `error.object` begins with bytes that the decoder kept from the last
                # block.
                content, place = bytes(error.object), error.start
                n_lines += content[:place].count(b"\n")
                word = re.split(_WORD_ENDS, content[:place])[-1]
                word += re.split(_WORD_ENDS, content[place:])[0]
                return BadByte(content[place], n_lines, word)
            if not raw:
                return None
            n_lines += (before + raw).count(b"\n") - before.count(b"\n")


def _is_utf8_with_signs(path: str) -> bool:
    """Return whether a file is UTF-8 and has other characters than those of ASCII.

    Text in another encoding is hardly ever such a file.
    """
    if first_bad_byte(path, "utf-8") is not None:
        return False
    return first_bad_byte(path, "ascii") is not None


def file_stamp(path: str) -> tuple[int, int]:
    """Return the size and modification time of a file."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
