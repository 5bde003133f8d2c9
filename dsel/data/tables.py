"""Tables from the usual files: in memory, or some rows at a time.

`FORMATS` has the reader of each ending: text files are read by the strict rules of
`text_tables`, formats that have types keep them in `typed_tables`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from dsel.argument_words import name_arguments
from dsel.checks import describe_missing_path, did_you_mean, show
from dsel.data.labeled import check_spelling
from dsel.data.missing_labels import check_gap_words, without_words
from dsel.data.schema import TableSchema, with_classes
from dsel.data.table_files import (
    FEATHER,
    JSON_LINES,
    NPY,
    NPZ,
    PARQUET,
    SVMLIGHT,
    TEXT_FILES,
    ZARR,
    files_in,
    list_formats,
)
from dsel.data.table_request import Table, TableRequest
from dsel.data.targets import notes_on_blanks, numbers_of_labels
from dsel.data.text import MOST_NBYTES
from dsel.data.text_columns.gaps import trim
from dsel.data.text_tables import is_text, read_text, text_source
from dsel.data.typed_tables import (
    read_feather,
    read_json_lines,
    read_npy,
    read_npz,
    read_parquet,
    read_svmlight,
    read_zarr,
)
from dsel.errors import NewFile, UndecidedError, Way
from dsel.option_values import CLASSIFICATION, SPREADSHEETS

FORMATS: Final[dict[str, Callable[[str, TableRequest], Table]]] = {
    **dict.fromkeys(TEXT_FILES, read_text),
    **dict.fromkeys(PARQUET, read_parquet),
    **dict.fromkeys(FEATHER, read_feather),
    **dict.fromkeys(JSON_LINES, read_json_lines),
    **dict.fromkeys(NPZ, read_npz),
    **dict.fromkeys(NPY, read_npy),
    **dict.fromkeys(SVMLIGHT, read_svmlight),
    ZARR: read_zarr,
}
"""Reader of each ending."""
FRAME_READERS: Final = (read_parquet, read_feather, read_json_lines)
"""Readers of formats that have types, and columns of texts."""


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
    day_first: bool | None = None,
    unlabeled: Sequence[str] = (),
    gap_classes: Sequence[str] = (),
    number: Sequence[str] = (),
    text: Sequence[str] = (),
    gaps: Sequence[str] = (),
) -> Table:
    r"""Read a table of any format in `FORMATS`, or a zarr group, into memory.

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
    day_first
        Whether 5/9/2023 is a day of September, and not of May, in columns of text files
        in which no date shows it; None leaves such columns text.
    unlabeled
        Labels, such as ``NULL``, that mean that the row has no label, like the empty
        cell.
    gap_classes
        Words for a missing value, such as ``None``, that are classes of the target also
        where every other label is a number.
    number
        Columns of texts such as ``$1,234.50`` or ``18%`` that are read as numbers, the
        target among them. All values must have the same symbol, or none, here and in
        all tables that are read by this one's schema.
    text
        Columns that stay text whatever they look like, such as versions: 1.1 and 1.10
        are one number.
    gaps
        Words and numbers for a missing value, such as ``unknown`` and ``-999``, other
        than those that are gaps anyway. In the target they are labels. Tables that are
        read by this one's schema have them, too.

    Returns
    -------
    Table
        ``X`` of shape (n_rows, n_features), ``y`` of shape (n_rows,), or None without
        `target`; ``schema``, which later tables take as `like`.

    Raises
    ------
    FileNotFoundError
        Where the path does not exist.
    ValueError
        Where the file cannot be read completely, or a value is not of its kind in
        `like`, or `task` is None and a target has more than 20 different whole numbers,
        or more than 20 different texts with fewer than 10 rows each on average, or the
        target has a word for a missing value that is hardly a class.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "labeled.csv")
    ...     _ = path.write_text("age,plan,left\n35,A,yes\n?,B,no\n51,A,\n")
    ...     table = read_table(path, target="left")
    >>> table.X.to_dict("list")
    {'age': [35.0, nan, 51.0], 'plan': ['A', 'B', 'A']}
    >>> table.y.tolist()  # an empty cell is a row without a label
    ['yes', 'no', None]
    """
    location = str(path)
    if not os.path.exists(location):
        raise FileNotFoundError(
            f"`path` must be a table that exists, but {describe_missing_path(location)}"
        )
    request = TableRequest(
        target,
        like,
        tuple(drop),
        tuple(ids),
        separator,
        encoding,
        groups,
        task,
        day_first,
        tuple(unlabeled),
        tuple(gap_classes),
        tuple(number),
        tuple(text),
        tuple(gaps),
    )
    with name_arguments() as reword:
        table = _read_labels(location, request)
        return table._replace(caveats=tuple(map(reword, table.caveats)))


def _read_labels(location: str, request: TableRequest) -> Table:
    """Return a table whose labels are of one kind, classes or numbers."""
    read = reader_of(location)
    if request.gaps and read not in (read_text, *FRAME_READERS):
        raise ValueError(
            f"--gap is for tables that hold texts, and {location!r} has an array of "
            f"numbers, where a missing value is NaN."
        )
    table = read(location, request)
    if read is not read_text:
        table = _without_missing_labels(table, request, location)
    if table.y is None or table.is_regression:
        return table
    reason = table.why_texts.get(request.target or "")
    targets = numbers_of_labels(table.y, request.target or "y", request.task, reason)
    if targets is None:
        n_rows = pd.Series(np.ravel(table.y)).value_counts().to_dict()
        check_spelling(n_rows, partial(_describe_respelling, location, request))
        return table._replace(caveats=(*notes_on_blanks(n_rows), *table.caveats))
    schema = None if table.schema is None else replace(table.schema, classes=None)
    return table._replace(y=targets, schema=schema, is_regression=True)


def _without_missing_labels(
    table: Table, request: TableRequest, location: str
) -> Table:
    """Return a table of a format with types, None where a label says it is missing.

    Such formats have gaps of their own, but texts such as 'nan' are in them, too: they
    were gaps before somebody made texts of a column.
    """
    if table.y is None or not len(table.y):
        return table
    target = request.target or "y"
    is_known = pd.notna(table.y)
    texts = pa.array(
        [str(y) if k else None for y, k in zip(table.y, is_known, strict=True)],
        pa.string(),
    )
    known = without_words(texts, request.unlabeled, target, location)
    if any(isinstance(label, str) for label in table.y):
        check_gap_words(trim(known), target, request.gap_classes, {})
    if not request.unlabeled:
        return table
    labels = table.y.astype(object)
    labels[known.is_null().to_numpy(zero_copy_only=False)] = None
    schema = table.schema and with_classes(table.schema, labels)
    return table._replace(y=labels, schema=schema)


def _describe_respelling(
    location: str, request: TableRequest, other: Mapping[str, str]
) -> tuple[str, NewFile | None]:
    """Return how labels are replaced by other ones, and the file that has it done."""
    target = f"t[{request.target!r}]"
    # Blanks around a text are no part of it here, but pandas keeps them.
    strip = ".str.strip()" if is_text(location) else ""
    change = f"{target} = {target}{strip}.replace({other})"
    file = None
    if request.target is not None:
        form = {"separator": request.separator, "encoding": request.encoding}
        file = rewrite_file(location, "_respelled", change, **form)
    return f"{other}.", file


def rewrite_file(
    location: str,
    addition: str,
    change: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
) -> NewFile | None:
    """Return a table as another file, changed by code about the data frame `t`.

    None for a format, or a size, for which one line of pandas does not do. The name of
    the file is that of the table with an `addition`.
    """
    if os.path.isdir(location) or os.path.getsize(location) > MOST_NBYTES:
        return None
    new = _new_file(location, addition)
    if is_text(location):
        [file] = text_source(location, separator=separator, encoding=encoding).files
        form = f"sep={file.separator!r}, encoding={file.encoding!r}"
        options = f"dtype=str, keep_default_na=False, {form}"
        read = f"read_csv({location!r}, {options}).rename(columns=str.strip)"
        write = f"to_csv({new!r}, index=False, {form})"
    elif location.lower().endswith(PARQUET):
        read = f"read_parquet({location!r})"
        write = f"to_parquet({new!r}, index=False)"
    else:
        return None
    return NewFile(
        location, new, f"import pandas; t = pandas.{read}; {change}; t.{write}"
    )


def _new_file(location: str, addition: str, ending: str | None = None) -> str:
    """Return a path next to a table that no file has yet.

    It has the ending of the table, or the named one.
    """
    lower = location.lower()
    old = max((e for e in FORMATS if lower.endswith(e)), key=len, default=None)
    old = os.path.splitext(location)[1] if old is None else location[-len(old) :]
    stem = f"{location.removesuffix(old)}{addition}"
    names = (f"{stem}{n}{ending or old}" for n in ("", *range(2, 1000)))
    return next(name for name in names if not os.path.exists(name))


JSON: Final = ".json"
OTHER_TABLES: Final = (
    ".arff", ".avro", ".db", ".dbf", ".dta", ".fst", ".h5", ".hdf5", ".mat", ".nc",
    ".orc", ".pickle", ".pkl", ".rdata", ".rds", ".sas7bdat", ".sqlite", ".xpt",
)  # fmt: skip
"""Endings of tables of other programs and libraries."""
NO_TABLES: Final = (".py", ".ipynb", ".r", ".sh", ".md", ".pdf", ".yaml")
"""Endings of files that are no tables, so that no similar ending was meant."""


def reader_of(location: str) -> Callable[[str, TableRequest], Table]:
    """Return the reader of a file or folder, by its ending."""
    lower = location.lower().rstrip("/")
    ending = max((e for e in FORMATS if lower.endswith(e)), key=len, default=None)
    if ending is not None:
        return FORMATS[ending]
    if os.path.isdir(location):
        if files_in(location, PARQUET):
            return read_parquet
        if files_in(location, TEXT_FILES):
            return read_text
        return read_zarr
    way, ways = "", list[Way]()
    if lower.endswith(SPREADSHEETS):
        new = _new_file(location, "", ".csv")
        # Words such as NA are gaps to pandas, and may be classes.
        code = (
            f"pandas.read_excel({location!r}, dtype=str, keep_default_na=False)"
            f".to_csv({new!r}, index=False)"
        )
        raise UndecidedError(
            f"`path` {show(location)} is a spreadsheet: save the sheet as CSV UTF-8 in "
            f"its program, or convert its first sheet in Python by {code}, which needs "
            f"openpyxl",
            NewFile(location, new, f"import pandas; {code}"),
        )
    if lower.endswith(OTHER_TABLES):
        way = "; write it as CSV or Parquet there"
    elif lower.endswith(JSON):
        new = _new_file(location, "", ".jsonl")
        # pandas would read '007' as 7, and round numbers to ten digits.
        code = (
            f"import json; rows = json.load(open({location!r}, encoding='utf-8')); "
            f"open({new!r}, 'w').writelines(json.dumps(row) + chr(10) for row in rows)"
        )
        way = f"; write its rows one a line, in Python by {code}"
        ways.append(NewFile(location, new, code))
    elif lower.endswith(NO_TABLES):
        way = "; this is no table"
    elif os.path.isfile(location):
        # The file may be a table whose name does not show it, such as adult.data or an
        # export.
        with open(location, "rb") as file:
            start = file.read(6)
        kinds = {b"PAR1": PARQUET[0], b"ARROW1": FEATHER[0]}
        ending = next((e for s, e in kinds.items() if start.startswith(s)), ".csv")
        new = _new_file(location, "", ending)
        code = f"import shutil; shutil.copy({location!r}, {new!r})"
        ways.append(NewFile(location, new, code))
    raise UndecidedError(
        f"`path` must end in one of {', '.join(list_formats())}, or be a folder of "
        f"Parquet or text files or a zarr group, got {show(location)}{way}"
        f"{'.' if way else did_you_mean(os.path.splitext(lower)[1], FORMATS)}",
        *ways,
    )
