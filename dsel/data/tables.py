"""Tables from the usual files: in memory, or some rows at a time.

`FORMATS` has the reader of each ending. Text files are read by strict rules; formats
that have types keep them.
"""

import gzip
import json
import lzma
import os
import re
import shlex
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import zarr
from numpy.typing import NDArray
from pyarrow import dataset, feather, parquet
from scipy import sparse

from dsel.checks import check_path, check_url, did_you_mean, listed, show
from dsel.data.frames import NUMERIC
from dsel.data.kinds import (
    ColumnScan,
    Kind,
    decimal_mark,
    is_gap_word,
    trim,
    truth_words,
    whole_labels,
)
from dsel.data.schema import (
    ColumnSchema,
    TableSchema,
    categories_of,
    convert_frame,
    in_utc,
    schema_of,
    with_classes,
)
from dsel.data.targets import CLASSIFICATION, numbers_of_labels, numbers_of_texts
from dsel.data.text import COMPRESSED, MOST_NBYTES, SHOWN, TextFile, open_text
from dsel.data.zarr_rows import meanings_of, read_and_decode, stored_columns
from dsel.runtime.clients import count_threads, current_worker
from dsel.zarr_stores import BAD_HEADER, check_array

_PLAIN_TEXT: Final = (".csv", ".tsv", ".txt")
TEXT_FILES: Final = tuple(
    ending + more for more in ("", *COMPRESSED) for ending in _PLAIN_TEXT
)
PARQUET: Final = (".parquet", ".parq", ".pq")
FEATHER: Final = (".feather", ".arrow")
JSON_LINES: Final = (".jsonl",)
NPZ: Final = (".npz",)
NPY: Final = (".npy",)
SVMLIGHT: Final = (".svm", ".svmlight", ".libsvm", ".svm.gz", ".svmlight.gz")

UNREADABLE: Final = (
    EOFError,
    KeyError,  # from pyarrow, for pandas' metadata about columns
    RuntimeError,  # from the decoders of zarr
    ValueError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    tokenize.TokenError,  # from numpy, for a header
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of readers for files that are cut short or of another kind."""


@contextmanager
def name_file(path: str) -> Iterator[None]:
    """Add the name of the file to error messages that lack it."""
    try:
        yield
    except UNREADABLE as error:
        text = str(error).strip()
        if path in text:
            raise
        way = "check that the file is whole and of that kind"
        if "allow_pickle" in text:
            way = "save arrays of numbers or text, such as y.astype(str)"
        raise ValueError(
            f"{path!r} cannot be read as the kind of file that its ending names: "
            f"{text.rstrip('.')}; {way}."
        ) from error


def check_distinct_names(names: Sequence[str], path: str) -> None:
    """Raise ValueError if a table has two columns of one name."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{path!r} has the column {twice[0]!r} twice; rename one.")


@contextmanager
def name_text_file(path: str) -> Iterator[None]:
    """Add the name of the text file to error messages that lack it."""
    try:
        yield
    except (*UNREADABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path!r} cannot be read: {text}.") from error


def feature_columns(
    columns: Sequence[str], target: str | None, where: str
) -> list[str]:
    """Return the columns without the target, which must be one of them."""
    if target is not None and target not in columns:
        raise ValueError(
            f"`target` must be a column of {where}, got {show(target)}; it has "
            f"{listed(list(columns), 20) or 'no names'}{separator_hint(columns)}"
            f"{did_you_mean(target, columns)}"
        )
    return [name for name in columns if name != target]


def separator_hint(columns: Sequence[str]) -> str:
    """Return a hint if the only column name may consist of several names."""
    if len(columns) != 1 or not re.search(r"\S[ :]+\S", columns[0]):
        return ""
    sign = ":" if ":" in columns[0] else " "
    return f"; if {sign!r} separates its values, write --sep {sign!r}"


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

    @property
    def labeled_groups(self) -> NDArray[Any] | None:
        """Keys of the rows that have a label; other rows may be a pool."""
        if self.groups is None or self.y is None or self.y.ndim != 1:
            return self.groups
        known: NDArray[Any] = self.groups[~pd.isna(self.y)]
        return known


class _Request(NamedTuple):
    """The options of reading a table."""

    target: str | None
    like: TableSchema | None
    drop: tuple[str, ...]
    ids: tuple[str, ...]
    separator: str | None
    encoding: str | None
    groups: str | None = None
    task: str | None = CLASSIFICATION

    def _target_hint(self, missing: Sequence[str]) -> str:
        # Schemas of searches have a target; a labeled table's has none before it is
        # named.
        if self.like is None or self.like.target is not None or len(missing) > 1:
            return ""
        [name] = missing
        return f" If {name!r} holds the labels, write --target {shlex.quote(name)}."

    def _check_options(self, columns: Sequence[str], where: str) -> None:
        of_groups = () if self.groups is None else (self.groups,)
        for option, values in (
            ("--drop", self.drop),
            ("--id", self.ids),
            ("--groups", of_groups),
        ):
            if missing := [name for name in values if name not in columns]:
                raise ValueError(
                    f"{option} names {', '.join(map(repr, missing))}, which is no "
                    f"column of {where}; it has {listed(list(columns), 20)}"
                    f"{did_you_mean(missing[0], columns, (self.target, *values))}"
                )
            if self.target in values:
                raise ValueError(f"{option} names {self.target!r}, the target.")

    def features(self, columns: Sequence[str], where: str) -> list[str]:
        """Return the columns that become features; raise where one is missing."""
        if self.like is not None:
            self._check_options(columns, where)
            if missing := self.like.missing_columns(columns):
                raise ValueError(
                    f"{where} lacks the column{'s' * (len(missing) > 1)} "
                    f"{', '.join(map(repr, missing[:10]))} of the labeled table; it "
                    f"has {listed(list(columns), 20)}{separator_hint(columns)}"
                    f"{did_you_mean(missing[0], columns, self.like.used_names)}"
                    f"{self._target_hint(missing)}"
                )
            return list(self.like.names)
        names = feature_columns(columns, self.target, where)
        self._check_options(columns, where)
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
        return self.ids if self.like is None else self.like.ids

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are left out."""
        more = () if self.groups in (None, *self.drop, *self.ids) else (self.groups,)
        return (*self.drop, *(name for name in more if name is not None))


def read_table(
    path: str | Path,
    *,
    target: str | None = None,
    like: TableSchema | None = None,
    drop: Sequence[str] = (),
    ids: Sequence[str] = (),
    groups: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    task: str | None = CLASSIFICATION,
) -> Table:
    """Read a table of any format in `FORMATS`, or a zarr group, into memory.

    Text files are read as text, and the kinds of columns are decided by strict rules
    over all of their values; formats that have types keep them. npz files and zarr
    groups have arrays ``X`` and ``y``, or `target`, and may have ``classes``, names of
    the codes in y, and ``feature_names``. Nothing is unpickled.

    Parameters
    ----------
    path
        A file whose ending is in `FORMATS`, a folder of Parquet or of text files, or a
        zarr group.
    target
        Column of the labels.
    like
        Schema of the labeled table, by which the columns are converted. Columns that it
        does not have are left out.
    drop
        Columns that are left out.
    ids
        Columns that are read as text and are no features.
    groups
        Column with the groups of rows, which is no feature.
    separator
        Separator of text files; None finds it in the header.
    encoding
        Encoding of text files; None means UTF-8, or UTF-16 with a byte order mark.
    task
        ``classification`` or ``regression``. None decides: numbers with fractions are
        a regression; text, truth values and at most 20 different whole numbers are
        classes.

    Raises
    ------
    FileNotFoundError
        Where the path does not exist.
    ValueError
        Where the file cannot be read completely, or a value is not of its kind in
        `like`, or a target has more than 20 different whole numbers and `task` is None.
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but there is nothing at {location!r}."
        )
    request = _Request(
        target, like, tuple(drop), tuple(ids), separator, encoding, groups, task
    )
    table = reader_of(location)(location, request)
    if table.y is None or table.is_regression:
        return table
    targets = numbers_of_labels(table.y, target or "y", task)
    if targets is None:
        return table
    schema = None if table.schema is None else replace(table.schema, classes=None)
    return table._replace(y=targets, schema=schema, is_regression=True)


def reader_of(location: str) -> Callable[[str, _Request], Table]:
    """Return the reader of a file or folder, by its ending."""
    lower = location.lower().rstrip("/")
    ending = max((e for e in FORMATS if lower.endswith(e)), key=len, default=None)
    if ending is not None:
        return FORMATS[ending]
    if os.path.isdir(location):
        if _files_in(location, PARQUET):
            return _read_parquet
        if _files_in(location, TEXT_FILES):
            return _read_text
        return _read_zarr
    way = ""
    if lower.endswith((".xlsx", ".xls", ".xlsm", ".ods")):
        way = "; save the sheet as CSV UTF-8 in the spreadsheet program"
    elif lower.endswith((".rds", ".rdata", ".sas7bdat", ".dta")):
        way = "; write it as CSV or Parquet there"
    raise ValueError(
        f"`path` must end in one of {', '.join(listed_formats())}, or be a folder of "
        f"Parquet or text files or a zarr group, got {show(location)}{way}"
        f"{'.' if way else did_you_mean(os.path.splitext(lower)[1], FORMATS)}"
    )


def listed_formats() -> list[str]:
    """Return the list of endings that are read, for messages."""
    plain = [ending for ending in FORMATS if not ending.endswith(COMPRESSED)]
    return [*plain, *(f".csv{more}" for more in COMPRESSED)]


def check_source(location: Any, name: str) -> str:
    """Return a path or URL as text; raise where it cannot hold rows.

    Every location that is read is checked here; errors call the argument `name`.
    """
    text = check_path(location, name)
    if "://" in text:
        check_url(text, name)
        return text
    if not os.path.exists(text):
        raise FileNotFoundError(f"`{name}` must exist, but nothing is at {text!r}.")
    lower = text.lower().rstrip("/")
    is_named_as_file = lower.endswith(SINGLE_FILES) and os.path.isdir(text)
    if is_named_as_file and not _files_in(text, TEXT_FILES):
        raise IsADirectoryError(
            f"`{name}` {text!r} is a folder, and its name that of a file; name a "
            f"file in it, or rename it."
        )
    return text


def _files_in(folder: str, endings: tuple[str, ...]) -> list[str]:
    """Return the visible files of a folder with one of these endings."""
    if not os.path.isdir(folder) or os.path.exists(f"{folder}/zarr.json"):
        return []
    names = [
        name
        for name in sorted(os.listdir(folder))
        if name.lower().endswith(endings) and not name.startswith(("_", "."))
    ]
    return [os.path.join(folder, name) for name in names]


# Text files


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

    @property
    def row_number_names(self) -> tuple[str, ...]:
        """Names of the leading columns that are left out."""
        return self.files[0].header[: self.files[0].n_row_numbers]

    def features(self, target: str | None) -> list[str]:
        """Return the columns that are read, without the target."""
        request = _Request(target, self.like, self.drop, (), None, None)
        return request.features(self.names, repr(self.location))


def is_text(location: str) -> bool:
    """Return whether a location is a text file, or a folder of them."""
    return os.path.exists(location) and (
        location.lower().endswith(TEXT_FILES)
        or (not _files_in(location, PARQUET) and bool(_files_in(location, TEXT_FILES)))
    )


def text_source(
    location: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    like: TableSchema | None = None,
    drop: Sequence[str] = (),
) -> TextSource:
    """Open a text file, or a folder of them; only headers are read.

    Raises ValueError where files have different columns.
    """
    paths = _files_in(location, TEXT_FILES) or [location]
    files = []
    for path in paths:
        with name_text_file(path):
            files.append(open_text(path, separator=separator, encoding=encoding))
        differing = {*files[0].names} ^ {*files[-1].names}
        if differing:
            name = min(differing)
            has = files[0].path if name in files[0].names else path
            lacks = path if has != path else files[0].path
            raise ValueError(
                f"{lacks!r} lacks the column {name!r} that {has!r} has; write all "
                f"files with the same columns."
            )
    if like is not None:
        kept = tuple(each for each in like.columns if each.name not in drop)
        like = replace(like, columns=kept)
    return TextSource(location, tuple(files), like, tuple(drop))


def read_ahead(batches: Generator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches in order; a thread reads the next one meanwhile."""
    with closing(batches), ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch


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
            # The next batch is read while columns of this one are scanned; of each
            # column one batch at a time, since a scan goes by the order of rows.
            for each in running:
                each.result()
            running = [
                threads.submit(scans.setdefault(name, ColumnScan()).add, values)
                for name, values in zip(batch.schema.names, batch.columns, strict=True)
            ]
            done += batch.num_rows
            report(done, None)
        for each in running:
            each.result()
    return scans


def decimal_of(source: TextSource, scans: Mapping[str, ColumnScan]) -> str:
    """Return the decimal mark of a text table; ValueError where it has two."""
    with name_text_file(source.location):
        return decimal_mark(scans, source.files[0].separator)


def decimal_marks(source: TextSource, like: TableSchema) -> tuple[str, str]:
    """Return the decimal mark of a text table, and the one for files written for it.

    They differ where no number has a mark: tables separated by semicolons come from
    places with decimal commas, where a spreadsheet program turns 1.5 into a date.
    """
    numbers = [column.name for column in like.columns if column.kind.is_number]
    if source.files[0].separator != ";":
        return ".", "."
    if not numbers:
        return ".", ","
    scans = scan_columns(source.batches(numbers))
    has_point = any(scan.n_with_point for scan in scans.values())
    return decimal_of(source, scans), "." if has_point else ","


def _read_text(location: str, request: _Request) -> Table:
    source = text_source(
        location, separator=request.separator, encoding=request.encoding
    )
    names = request.features(source.names, repr(location))
    target = None if request.like is not None else request.target
    others = [name for name in (request.groups, target) if name is not None]
    read = list(dict.fromkeys([*names, *request.id_columns, *others]))
    raw = () if target is None else (target,)
    parts, nbytes = [], 0
    for batch in source.batches(read, raw=raw):
        nbytes += batch.nbytes
        if nbytes > MOST_NBYTES:
            raise ValueError(
                f"{location!r} holds more than {MOST_NBYTES // 2**30} GiB of text, "
                f"which is too much to be read at once; convert it by `dsel pool "
                f"build`, or write Parquet."
            )
        parts.append(batch)
    rows = pa.Table.from_batches(parts)
    scans = {name: ColumnScan() for name in names}
    for name, scan in scans.items():
        for chunk in rows.column(name).chunks:
            scan.add(chunk)
    labels, classes, cells = None, None, None
    label_caveats: list[str] = []
    marked = dict(scans)
    if target is not None:
        cells = trim(rows.column(target).combine_chunks())
        if request.task != CLASSIFICATION:  # it may be the only column with fractions
            marked[target] = ColumnScan()
            marked[target].add(cells)
    decimal = decimal_of(source, marked)
    if target is not None:
        with _naming_notes(scans, decimal):
            labels = numbers_of_texts(cells, target, decimal, request.task)
        if labels is None:
            labels, label_caveats = _text_labels(rows.column(target), target)
            classes = _classes(labels)
    if request.like is not None:
        schema = request.like
    else:
        columns = tuple(
            ColumnSchema(name, scan.kind(decimal), truth_words(scan))
            for name, scan in scans.items()
        )
        left_out = (*source.row_number_names, *request.dropped)
        schema = TableSchema(columns, target, classes, request.ids, left_out)
    frame = schema.convert_texts(rows, decimal=decimal, where=repr(location))
    ids = frame[list(schema.ids)] if schema.ids else None
    X: Any = frame[names]
    if request.like is None:
        schema = replace(
            schema,
            columns=tuple(
                replace(column, categories=categories_of(X[column.name]))
                if column.kind is Kind.TEXT
                else column
                for column in schema.columns
            ),
        )
        if all(getattr(dtype, "kind", "O") in NUMERIC for dtype in X.dtypes):
            X = X.to_numpy(dtype=np.float64)
    caveats = [*label_caveats, *_text_caveats(source, request, scans, schema)]
    keys = None
    if request.groups is not None:
        texts = trim(rows.column(request.groups).combine_chunks())
        keys, more = np.array(texts.to_pylist(), dtype=object), texts.unique()
        if gaps := sorted(more.filter(is_gap_word(more)).to_pylist()):
            are = "is one group" if len(gaps) == 1 else "are groups"
            caveats.append(
                f"{' and '.join(map(repr, gaps))} {are} of {request.groups!r}; a row "
                f"without a key has an empty cell there"
            )
    facts = _text_facts(source, request, scans, schema, decimal)
    return Table(
        X,
        labels,
        tuple(names),
        schema,
        ids,
        tuple(facts),
        tuple(caveats),
        keys,
        is_regression=target is not None and classes is None,
    )


MOST_LABELS: Final = 10_000
"""Largest number of different labels; more are measurements, names or texts."""


@contextmanager
def _naming_notes(scans: Mapping[str, ColumnScan], decimal: str) -> Iterator[None]:
    """Add what is doubtful of columns to an error about the target.

    Else a user mends one, and meets the other in the next run.
    """
    try:
        yield
    except ValueError as error:
        notes = [
            scan.looks_like(name)
            for name, scan in scans.items()
            if scan.kind(decimal) is Kind.TEXT
        ]
        also = " ".join(f"Also, {note}." for note in notes if note)
        raise ValueError(f"{error} {also}".rstrip()) from error


def _text_labels(
    values: pa.ChunkedArray, target: str
) -> tuple[NDArray[Any], list[str]]:
    """Return labels, None where the cell is empty, and caveats about them."""
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
    alike: dict[str, list[str]] = {}
    for text in sorted(texts):
        alike.setdefault("".join(text.split()).casefold(), []).append(text)
    caveats += [
        f"labels {' and '.join(repr(text[:40]) for text in group[:3])} differ by "
        f"blanks or case only, and are {len(group)} classes"
        for group in alike.values()
        if len(group) > 1
    ]
    words = pa.array(texts, pa.string())
    if gaps := sorted(words.filter(is_gap_word(words)).to_pylist()):
        are = "is a class" if len(gaps) == 1 else "are classes"
        caveats.append(
            f"{' and '.join(map(repr, gaps))} {are}"
            f" of {target!r}; a row without a label has an empty cell there"
        )
    whole = whole_labels(texts) if texts else None
    as_label = dict(zip(texts, texts if whole is None else whole, strict=True))
    labels = [as_label.get(text) for text in trim(values.combine_chunks()).to_pylist()]
    if None in labels:
        with_gaps = np.empty(len(labels), dtype=object)
        with_gaps[:] = labels
        return with_gaps, caveats
    return np.array(labels), caveats


def _classes(labels: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(sorted({label for label in labels.tolist() if label is not None}))


def _text_caveats(
    source: TextSource,
    request: _Request,
    scans: Mapping[str, ColumnScan],
    schema: TableSchema,
) -> list[str]:
    caveats = []
    if numbers := source.row_number_names:
        shown = " and ".join(map(repr, numbers))
        caveats.append(f"column {shown} is left out: it has no name, as row numbers")
    if source.names[:2] == ("0", "1"):
        caveats.append(
            f"the columns are called 0 to {len(source.names) - 1}, as pandas names "
            f"them; if the first line is a row, write a header above it"
        )
    if request.like is not None:
        if request.like.target in source.names:
            caveats.append(
                f"column {request.like.target!r}, the target of the labeled table, is "
                f"left out"
            )
        return caveats
    for column in schema.columns:
        scan = scans[column.name]
        if column.kind is Kind.TEXT and (line := scan.looks_like(column.name)):
            caveats.append(line)
        if column.kind is Kind.WHOLE and scan.is_running and scan.n_rows > 1:
            caveats.append(_running_numbers_note(column.name))
    return caveats


def _running_numbers_note(name: str) -> str:
    return (
        f"column {name!r} holds running whole numbers, as row numbers are; name "
        f"it by --id {shlex.quote(name)}, which keeps it in predictions, or leave it "
        f"out by --drop {shlex.quote(name)}"
    )


def _text_facts(
    source: TextSource,
    request: _Request,
    scans: Mapping[str, ColumnScan],
    schema: TableSchema,
    decimal: str,
) -> list[tuple[str, str]]:
    file = source.files[0]
    sign = SHOWN.get(file.separator) or repr(file.separator)
    form = f"{file.encoding.upper()}, separated by {sign}"
    if decimal == ",":
        form += ", decimal commas"
    facts = [("read as", form)]
    words: dict[str, int] = {}
    with_gaps = []
    for column in schema.columns:
        scan = scans[column.name]
        found = dict(scan.gap_words) if column.kind is not Kind.TEXT else {}
        if scan.n_empty:
            found["empty cells"] = scan.n_empty
        for word, n in found.items():
            words[word] = words.get(word, 0) + n
        if found:
            with_gaps.append(column.name)
    if words:
        shown = ", ".join(
            f"{n:,} {word if word == 'empty cells' else repr(word)}"
            for word, n in sorted(words.items(), key=lambda item: -item[1])
        )
        facts.append(("gaps", f"in {listed(with_gaps, 8)}: {shown}"))
    if schema.dropped or schema.ids or file.is_quiet_end:
        left = [name or "''" for name in schema.dropped]
        left += ["the last column (no name, no values)"] * file.is_quiet_end
        left += [f"{name} (kept for predictions)" for name in schema.ids]
        facts.append(("left out", listed(left, 8)))
    return facts


# Formats that have types


def _read_parquet(location: str, request: _Request) -> Table:
    files = _files_in(location, PARQUET)
    with name_file(location):
        if not files:
            if os.path.isfile(location):
                names = parquet.read_schema(location).names
                check_distinct_names(names, location)
            frame = parquet.read_table(location).to_pandas()
        else:
            _check_same_columns(files)
            rows = dataset.dataset(files, format="parquet").to_table()
            frame = rows.to_pandas()
    return _of_frame(frame, request, location)


def _check_same_columns(files: Sequence[str]) -> None:
    first = parquet.read_schema(files[0]).names
    check_distinct_names(first, files[0])
    for file in files[1:]:
        names = parquet.read_schema(file).names
        check_distinct_names(names, file)
        if differing := {*first} ^ {*names}:
            name = min(differing)
            one, other = (file, files[0]) if name in first else (files[0], file)
            raise ValueError(
                f"{one!r} lacks the column {name!r} that {other!r} has; write all "
                f"files with the same columns."
            )


def _read_feather(location: str, request: _Request) -> Table:
    with name_file(location):
        frame = feather.read_table(location).to_pandas()
    return _of_frame(frame, request, location)


def _read_json_lines(location: str, request: _Request) -> Table:
    with name_file(location):
        # Line by line: pandas' reader converts texts to dates in columns with certain
        # names.
        with open(location, encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines if line.strip()]
        if not records or not all(isinstance(record, dict) for record in records):
            raise ValueError("it must have an object with names in every line")
        frame = pd.DataFrame(records)
    return _of_frame(frame, request, location)


def _read_npz(location: str, request: _Request) -> Table:
    # The file is opened here, because numpy leaves it open if it is no archive.
    with (
        name_file(location),
        open(location, "rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        if {"format", "shape"} <= {*arrays} and request.target is None:
            return Table(sparse.load_npz(location).tocsr(), None)
        table = _of_arrays(arrays, request.target, location)
    return _with_schema(table, request, location)


def _read_npy(location: str, request: _Request) -> Table:
    _no_target(location, request, "holds one array without labels")
    with name_file(location):
        return Table(np.load(location, allow_pickle=False), None)


def _read_svmlight(location: str, request: _Request) -> Table:
    from sklearn.datasets import load_svmlight_file  # takes a while to import

    _no_target(location, request, "has lines that begin with their label")
    with name_file(location):
        X, y = load_svmlight_file(location)
    return Table(X, _as_integers(y))


def _no_target(location: str, request: _Request, why: str) -> None:
    if request.groups is not None:
        raise ValueError(
            f"--groups names no column of {location!r}, which {why}, got "
            f"{request.groups!r}; write a table with names of columns."
        )
    if request.target is not None:
        raise ValueError(
            f"`target` names no column of {location!r}, which {why}, got "
            f"{request.target!r}; leave it out."
        )


def _read_zarr(location: str, request: _Request) -> Table:
    with name_file(location):
        try:
            group = zarr.open_group(location, mode="r")
            arrays = dict(group.arrays())
        except (FileNotFoundError, *BAD_HEADER) as error:
            raise ValueError(
                f"`path` must end in one of {', '.join(listed_formats())} or be a zarr "
                f"group with X and y, got {show(location)}."
            ) from error
        for name, array in arrays.items():
            check_array(array)
            if meanings := meanings_of(array):
                arrays[name] = read_and_decode(array, meanings, slice(None))
        table = _of_arrays(arrays, request.target, location)
        names = table.columns or stored_columns(group.attrs, repr(location))
    return _with_schema(table._replace(columns=names), request, location)


FORMATS: Final[dict[str, Callable[[str, _Request], Table]]] = {
    **dict.fromkeys(TEXT_FILES, _read_text),
    **dict.fromkeys(PARQUET, _read_parquet),
    **dict.fromkeys(FEATHER, _read_feather),
    **dict.fromkeys(JSON_LINES, _read_json_lines),
    **dict.fromkeys(NPZ, _read_npz),
    **dict.fromkeys(NPY, _read_npy),
    **dict.fromkeys(SVMLIGHT, _read_svmlight),
    ".zarr": _read_zarr,
}
"""Reader of each ending: the only list of formats."""
SINGLE_FILES: Final = tuple({*FORMATS} - {*PARQUET, ".zarr"})
"""Endings of single files; only a folder of text files may have such a name."""


def _of_frame(frame: pd.DataFrame, request: _Request, path: str) -> Table:
    """Return a data frame from a format that has types as a table."""
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    check_distinct_names(frame.columns, path)
    names = request.features(list(frame.columns), repr(path))
    ids = frame[list(request.id_columns)].astype(str) if request.id_columns else None
    if request.like is not None:
        X = convert_frame(frame, replace(request.like, ids=()), where=repr(path))
        return Table(X, None, tuple(names), request.like, ids)
    y = None if request.target is None else _typed_labels(frame[request.target])
    X = frame[names]
    # Columns without any value get one type, whichever the format gave them.
    X = X.assign(**{name: None for name in names if len(X) and X[name].isna().all()})
    X = in_utc(X)
    schema = schema_of(X, target=request.target)
    caveats = tuple(
        _running_numbers_note(column.name)
        for column in schema.columns
        if column.kind is Kind.WHOLE and _is_running(X[column.name])
    )
    if y is not None:
        schema = with_classes(schema, y)
    schema = replace(schema, ids=request.ids, dropped=request.dropped)
    facts = [("left out", listed([*request.dropped, *request.ids], 8))]
    if not len(X) or all(getattr(t, "kind", "O") in NUMERIC for t in X.dtypes):
        X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    facts = facts if request.dropped or request.ids else []
    keys = None if request.groups is None else frame[request.groups].to_numpy(object)
    return Table(X, y, tuple(names), schema, ids, tuple(facts), caveats, groups=keys)


def _is_running(values: pd.Series) -> bool:
    """Return whether whole numbers go up by one from row to row."""
    if len(values) < 2 or values.isna().any():
        return False
    # As int64, since differences of short and unsigned types wrap around.
    return bool((np.diff(values.to_numpy(dtype=np.int64)) == 1).all())


def _typed_labels(values: pd.Series) -> NDArray[Any]:
    """Return the labels of a typed column; floats without fractions become integers."""
    missing = values.isna().to_numpy()
    if getattr(values.dtype, "kind", "O") == "f":
        known = _as_integers(values[~missing].to_numpy(dtype=np.float64))
    else:
        known = values[~missing].to_numpy()
    if not missing.any():
        return np.asarray(known)
    labels = np.empty(len(values), dtype=object)
    labels[~missing] = known.tolist()
    return labels


def _with_schema(table: Table, request: _Request, path: str) -> Table:
    """Return arrays as a table, with the requested columns."""
    has_names = table.columns is not None and table.X.ndim == 2
    if not has_names or len(table.columns or ()) != table.X.shape[1]:
        if request.dropped or request.ids or request.like is not None:
            raise ValueError(
                f"{path!r} has no names of columns, by which --drop, --id, --groups "
                f"and a schema find them; add an array feature_names."
            )
        return table
    frame = pd.DataFrame(table.X, columns=list(table.columns or ()))
    keys = None
    if request.dropped or request.ids or request.like is not None:
        selected = _of_frame(frame, request._replace(target=None), path)
        schema, X, columns = selected.schema, selected.X, selected.columns
        ids, keys = selected.ids, selected.groups
    else:
        schema, X, columns, ids = schema_of(frame), table.X, table.columns, None
    if schema is not None and table.y is not None and request.like is None:
        schema = with_classes(replace(schema, target=request.target), table.y)
    return Table(X, table.y, columns, schema, ids, groups=keys)


def iter_frames(
    path: str | Path,
    like: TableSchema,
    *,
    n_rows: int,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield a table of any size as data frames of `n_rows` rows, by a schema.

    The frames have the features of the schema in its order, then its ids as text. Their
    indices are row numbers of the file. Text files and Parquet are streamed, other
    formats are read into memory. `decimal` is the decimal mark of a text file; for None
    the file is read twice to find it.

    Raises
    ------
    ValueError
        Where a column is missing, or a value is not of its kind; the message has
        column, row and value.
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but there is nothing at {location!r}."
        )
    reader = reader_of(location)
    request = _Request(None, like, (), (), separator, encoding)
    if reader is _read_text:
        yield from _text_frames(location, request, like, n_rows, decimal)
        return
    if reader is _read_parquet:
        yield from _parquet_frames(location, request, like, n_rows)
        return
    table = reader(location, request)
    frame = table.X if table.ids is None else table.X.join(table.ids)
    for start in range(0, len(frame), n_rows):
        yield frame.iloc[start : start + n_rows]


def _text_frames(
    location: str,
    request: _Request,
    like: TableSchema,
    n_rows: int,
    decimal: str | None = None,
) -> Iterator[pd.DataFrame]:
    source = text_source(
        location, separator=request.separator, encoding=request.encoding
    )
    request.features(source.names, repr(location))
    if decimal is None:
        decimal, _ = decimal_marks(source, like)
    names, first = [*like.names, *like.ids], 0
    for batch in source.batches(names):
        for start in range(0, batch.num_rows, n_rows):
            rows = pa.Table.from_batches([batch.slice(start, n_rows)])
            frame = like.convert_texts(
                rows, decimal=decimal, first_row=first, where=repr(location)
            )
            yield frame.set_axis(pd.RangeIndex(first, first + len(frame)), axis=0)
            first += len(frame)


def _parquet_frames(
    location: str, request: _Request, like: TableSchema, n_rows: int
) -> Iterator[pd.DataFrame]:
    files = _files_in(location, PARQUET)
    with name_file(location):
        if files:
            _check_same_columns(files)
        rows = dataset.dataset(files or location, format="parquet")
    names, first = [*like.names, *like.ids], 0
    request.features(rows.schema.names, repr(location))
    for batch in rows.to_batches(columns=names, batch_size=n_rows):
        frame = pa.Table.from_batches([batch]).to_pandas()
        if not len(frame):
            continue
        typed = convert_frame(frame, like, first_row=first, where=repr(location))
        typed = typed.astype(dict.fromkeys(like.ids, str))
        yield typed.set_axis(pd.RangeIndex(first, first + len(typed)), axis=0)
        first += len(typed)


def _of_arrays(arrays: Mapping[str, Any], target: str | None, path: str) -> Table:
    for needed in ("X", target):
        if needed is not None and needed not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise ValueError(f"{path!r} must hold an array {needed!r}, found {found}.")
    name = "y" if target is None else target
    y = np.asarray(arrays[name]) if name in arrays else None
    if y is not None and name == "y" and "classes" in arrays:
        classes = np.asarray(arrays["classes"])
        codes = _as_integers(y) if y.dtype.kind in "fb" else y
        are_codes = codes.dtype.kind in "iu" and codes.ndim == classes.ndim == 1
        n_names, wrong = len(np.unique(classes)), np.zeros(1, dtype=np.int64)
        if are_codes:
            wrong = np.flatnonzero((codes < 0) | (codes >= len(classes)))
        if len(wrong) or n_names < len(classes):
            example = f", {y[wrong[0]]} in row {wrong[0]}" if len(wrong) else ""
            raise ValueError(
                f"{path!r} must hold distinct names in its array classes, and in y "
                f"their codes, whole numbers from 0 to {classes.size - 1}, got "
                f"{n_names} names and {codes.dtype}{example}; rows without a label "
                f"belong into the pool, and labels as they are need no classes."
            )
        y = np.asarray(classes[codes])
    names = next((arrays[k] for k in ("feature_names", "columns") if k in arrays), None)
    columns = None if names is None else tuple(map(str, np.asarray(names)))
    return Table(np.asarray(arrays["X"]), y, columns)


def _as_integers(y: NDArray[np.float64]) -> NDArray[Any]:
    """Return integral labels as integers; svmlight files have only floats."""
    with np.errstate(invalid="ignore"):  # NaN has no integer
        whole = y.astype(np.int64)
    return whole if (whole == y).all() else y
