"""Files of queries: the record, the rows to label, and the result with their labels.

Rows are labeled in spreadsheets, which reorder them, add columns, write 12.0 for 12 and
change separators. Therefore a label belongs to the row number in its line, and all
other columns of the file are ignored.
"""

import json
import os
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd

from dsel.checks import class_without_blanks, describe_missing_path, nearest_name
from dsel.data.columns import MissingColumnsError, check_columns
from dsel.data.missing_labels import MINUS_ONE
from dsel.data.query_rows import POOL_ROW
from dsel.data.schema import TableSchema
from dsel.data.tables import reader_of
from dsel.data.text_columns.gaps import GAP_WORDS
from dsel.data.text_columns.kinds import TRUTH_PAIRS
from dsel.data.text_tables import TextSource, is_text, text_source
from dsel.files import COMPARISON, check_folder
from dsel.results.choice import Choice
from dsel.results.comparison import ModelComparison
from dsel.results.place import (
    Place,
    check_has_results,
    read_outcome,
    seal,
    stamp,
    unseal,
)
from dsel.results.queried_labels import check_same_labels
from dsel.results.run_tables import load_schema
from dsel.typing import PathLike

LabeledResult = TypeVar("LabeledResult", Choice, ModelComparison)
QUERY_ROWS: Final = "query_rows.csv"
LABELED_RESULT: Final = "answer.json"
CORRECTIONS: Final = "corrections"
"""Folder of results with corrected labels, of which the last one counts."""
TARGET: Final = "target"
"""Key of a record in addition to the fields of a comparison: the column of labels."""
FORM: Final = "form"
"""Key of separator and encoding of the pool, where it is a text table."""
WHOLE: Final = re.compile(r"(\d+)(?:[.,]0{1,2})?|\d[.,]?\d*[eE]\+?\d+")
"""Row numbers as spreadsheets write them. Three digits after a mark are ambiguous, so
1,000 is no row number: it could be 1 or a thousand."""

NUMBER: Final = re.compile(
    r"-?(?:(?:0|[1-9]\d{3,})(?:[.,]\d*)?|[1-9]\d{0,2}(?:[.,](?!\d{3}$)\d*)?)"
    r"(?:[eE][+-]?\d+)?",
    re.ASCII,
)
"""Numbers as spreadsheets write labels; 007 and 1,000 do not count as numbers, as
above."""


def check_new_place(folder: PathLike, name: str = "out") -> None:
    """Raise unless a folder is empty or does not exist: a comparison goes there."""
    check_folder(folder, name)
    if not os.path.isdir(folder) or not (there := sorted(os.listdir(folder))):
        return
    if COMPARISON in there:
        raise FileExistsError(
            f"`{name}` {os.fspath(folder)} holds a comparison already, and the rows of "
            f"another draw would not be those that were queried; name another folder."
        )
    raise FileExistsError(
        f"`{name}` {os.fspath(folder)} must be an empty folder or free, but holds "
        f"{there[0]!r}; name another one."
    )


def write_comparison(
    folder: PathLike,
    comparison: ModelComparison,
    *,
    target: str,
    source: TextSource | None = None,
) -> str | None:
    """Write a comparison, and the rows to label with an empty column `target`.

    `source` is the pool if it is a text table. Return the path of the rows; None if
    there are none.
    """
    file = None
    if comparison.rows:
        shown = comparison.query_rows().set_axis(list(comparison.rows), axis=0)
        check_target(target, list(map(str, shown.columns)))
        row_numbers = shown.index.tolist()
        file, _ = write_query_rows(
            folder, shown, target=target, source=source, row_numbers=row_numbers
        )
    record = {**json.loads(comparison.to_json()), TARGET: target}
    if source is not None:
        record |= {FORM: [source.files[0].separator, source.files[0].encoding]}
    # The record is written last, so that a folder with a record has all other files,
    # too.
    Place(folder).create(COMPARISON, json.dumps(record).encode())
    return file


def check_target(target: str, columns: Sequence[str]) -> None:
    """Raise ValueError if the name of the column of labels is empty or taken."""
    if not target.strip() or target in (*columns, POOL_ROW):
        what = "a column of the pool" if target in columns else "no name for a column"
        raise ValueError(
            f"--target {target!r} is {what}; choose another name for the empty column "
            f"of labels, such as --target true_label."
        )


def read_comparison(folder: PathLike) -> tuple[ModelComparison, str, TableSchema]:
    """Return the comparison in a folder, and the name of its column of labels.

    Also return a schema with the separator and the encoding of its text files.
    """
    content = Place(folder, name="place").read(COMPARISON)
    if content is None:
        raise FileNotFoundError(
            f"there is no {COMPARISON} in {os.fspath(folder)!r}; name the folder that "
            f"`dsel compare --out` has made."
        )
    try:
        comparison = ModelComparison.from_json(content.decode())
        record = json.loads(content)
        separator, encoding = record.get(FORM, (None, None))
        form = TableSchema((), separator=separator, encoding=encoding)
        return comparison, str(record[TARGET]), form
    except (KeyError, ValueError) as error:
        file = f"{os.fspath(folder)}/{COMPARISON}"
        raise ValueError(f"{file!r} cannot be read: {error}") from error


def query_rows_as_csv(
    shown: pd.DataFrame,
    target: str,
    source: TextSource | None,
    row_numbers: Sequence[int],
) -> bytes:
    """Return rows to label as a CSV file, with an empty column `target`.

    Rows of a text table are written as they stand there, with its separator: a person
    opens them in the spreadsheet program from which the table came. `row_numbers` are
    those of the rows in `source`.
    """
    separator, encoding = ",", "utf-8"
    if source is not None:
        dialect = source.files[0].dialect(".")
        separator = dialect.separator
        encoding = "utf-8-sig" if dialect.has_mark else encoding
        texts = source.rows_as_written(row_numbers, list(map(str, shown.columns)))
        shown = texts.set_axis(np.asarray(shown.index)[np.argsort(row_numbers)], axis=0)
    rows = shown.assign(**{target: ""})
    text: str = rows.to_csv(index_label=POOL_ROW, sep=separator)
    return text.encode(encoding)


def write_query_rows(
    place: PathLike,
    rows: pd.DataFrame,
    *,
    target: str,
    source: TextSource | None = None,
    row_numbers: Sequence[int] = (),
) -> tuple[str, bool]:
    """Write rows to label next to the results of a search, once.

    `source` and `row_numbers` are those of `query_rows_as_csv`. Return the file, and
    whether it is new. An existing file may have labels, and is not replaced.
    """
    where = Place(place, name="out")
    is_new = where.read(QUERY_ROWS) is None
    if is_new:
        where.create(QUERY_ROWS, query_rows_as_csv(rows, target, source, row_numbers))
    return f"{os.fspath(place).rstrip('/')}/{QUERY_ROWS}", is_new


def is_comparison(folder: PathLike) -> bool:
    """Return whether a folder holds a comparison of two models."""
    return Place(folder, name="place").read(COMPARISON) is not None


def read_choice(place: PathLike) -> tuple[Choice, TableSchema | None]:
    """Return the choice of a stored search, and the schema of its labeled table."""
    where = Place(place, name="place")
    check_has_results(where)
    outcome = read_outcome(where)
    if outcome is None or "choice" not in outcome["said"]:
        raise ValueError(
            f"{where} holds no search that has ended; run the same command again to "
            f"continue it."
        )
    schema = load_schema(place)
    labeled_schema = None if schema is None else TableSchema.from_json(schema)
    return Choice.from_json(outcome["said"]["choice"]), labeled_schema


def keep_labeled_result(
    place: PathLike, result: LabeledResult, *, corrected: bool = False
) -> LabeledResult:
    """Store a choice or a comparison with its labels, once; return the stored one.

    Raises ValueError if other labels were stored before, unless the result has
    `corrected` ones: then it counts, and what it replaces is kept.
    """
    where, content = Place(place, name="place"), seal(result.to_json().encode())
    if corrected:
        where.write({f"{CORRECTIONS}/{stamp()}.json": content})
        return result
    where.create(LABELED_RESULT, content)
    stored = read_labeled_result(where, type(result)) or result
    check_same_labels(
        _labels_in(stored), _labels_in(result), f"{where}/{LABELED_RESULT}"
    )
    return stored


def _labels_in(result: Choice | ModelComparison) -> Sequence[object] | None:
    """Return the labels that a choice or a comparison was made with, if any."""
    if isinstance(result, ModelComparison):
        return result.labels
    return None if result.queries is None else result.queries.labels


def read_labeled_result(
    place: Place, kind: type[LabeledResult]
) -> LabeledResult | None:
    """Return what `keep_labeled_result` stored last; None if there is none.

    Raises ValueError if it is damaged: labels that it has corrected must not count
    again.
    """
    # A file browser may have left hidden files.
    names = [name for name in place.files(CORRECTIONS) if name[0] != "."]
    if not names:
        return _read_first(place, kind)
    file = f"{CORRECTIONS}/{names[-1]}"
    if (text := unseal(place.read(file))) is None:
        raise ValueError(
            f"{file} in {place} is damaged, or not what dsel wrote there; restore it "
            f"from a copy, or remove it, and the labels before it count again."
        )
    return kind.from_json(text.decode())


def add_passed_labels(place: PathLike, result: Choice | ModelComparison) -> None:
    """Add the labels that were stored to those that a result without labels knows.

    Then other labels are counted as corrected ones. Raises ValueError if there are
    none.
    """
    where, kind = Place(place, name="place"), type(result)
    first: Any = _read_first(where, kind)
    if first is None:
        raise ValueError(
            f"{where} has no labels to correct; leave out --corrected, which is for "
            f"labels that take the place of others."
        )
    owner: Any = result.queries if isinstance(result, Choice) else result
    last: Any = read_labeled_result(where, kind)
    known = [tuple(_labels_in(stored) or ()) for stored in (first, last)]
    owner.passed_labels[owner.rows] = known


def _read_first(place: Place, kind: type[LabeledResult]) -> LabeledResult | None:
    """Return the result with the labels that came first; None if there is none."""
    content = place.read(LABELED_RESULT)
    if content is None:
        return None
    if (text := unseal(content)) is None:
        raise ValueError(
            f"{LABELED_RESULT} in {place} is damaged, or not what dsel wrote there; "
            f"restore it from a copy."
        )
    return kind.from_json(text.decode())


def read_labels(
    path: PathLike,
    row_numbers: Sequence[int],
    known: tuple[object, ...],
    *,
    place: str,
    target: str,
    separator: str | None = None,
    encoding: str | None = None,
    like: TableSchema | None = None,
) -> "pd.Series[Any]":
    """Return the labels in a text file by pool row number, None for a missing one.

    `place` is the folder or URL of the queried rows, which a message names.
    `like` is the schema of the labeled table, as `text_source` takes it.

    Lines with neither a row number nor a label are skipped. A text that is one of the
    `known` labels becomes that label. ValueError where the file has no column of row
    numbers or labels, or a line has the number of a row that was not queried, or a
    label without a number.
    """
    location = os.fspath(path)
    if not os.path.exists(location):
        raise FileNotFoundError(describe_missing_path(location))
    if not is_text(location):
        reader_of(location)  # raises with a way out for a spreadsheet
        raise ValueError(
            f"{location!r} is no text table; save the rows as CSV, with the columns "
            f"{POOL_ROW!r} and {target!r}."
        )
    source = text_source(location, separator=separator, encoding=encoding, like=like)
    for name, what in (
        (POOL_ROW, "which has the row number of each label"),
        (target, "which has the labels; name another one by --target"),
    ):
        way = f" Fill {place.rstrip('/')}/{QUERY_ROWS}."
        try:
            check_columns(source.names, [name], repr(location), f", {what}", way)
        except MissingColumnsError as error:
            near = None if name != target else nearest_name(target, source.names)
            raise error.with_way([("--target", str(near))] if near else ()) from None
    queried = set(row_numbers)
    labeled_rows = list[int]()
    labels = list[Any]()
    n_read = 0
    for batch in source.batches([POOL_ROW, target]):
        cells = (column.to_pylist() for column in batch.columns)
        for row, text in zip(*cells, strict=True):
            n_read += 1
            if row is None and text is None:
                continue
            row_number = _row_number(row)
            if row_number is None:
                raise ValueError(
                    f"{location!r} must have a whole number as {POOL_ROW} in every "
                    f"line, got {row!r} in {source.line_of(n_read - 1)}; take it from "
                    f"{QUERY_ROWS}."
                )
            if row_number not in queried:
                raise ValueError(
                    f"{location!r} has a label for pool row {row_number}, which was "
                    f"not queried (such as {row_numbers[0]}); label the {QUERY_ROWS} "
                    f"of this folder."
                )
            labeled_rows.append(row_number)
            labels.append(as_label(text, known))
    return pd.Series(labels, index=labeled_rows, dtype=object)


def _row_number(text: str | None) -> int | None:
    match = None if text is None else WHOLE.fullmatch(text)
    if match is None or text is None:
        return None
    if match[1]:
        return int(match[1])
    value = float(text.replace(",", "."))
    return int(value) if value.is_integer() else None


def as_label(text: object, known: tuple[object, ...]) -> Any:
    """Return the known label that a text means; else what it says, which is no label.

    None if it means a missing label. A value that is no text means itself.
    """
    if text is None or text in known:
        return text
    # A search refuses both as classes, unless they are among the known ones.
    is_mark = str(text).strip() in ("", *MINUS_ONE)
    if not isinstance(text, str):
        return None if is_mark else text
    if (label := class_without_blanks(text, known)) is not None:
        return label
    number = _number(text)
    if isinstance(known[0], bool):
        words = {"1": True, "0": False, "1.0": True, "0.0": False}
        for true, false in TRUTH_PAIRS:
            words |= {true: True, false: False}
        if text.lower() in words:
            return words[text.lower()]
    if number is not None:
        # A spreadsheet writes 12.0 for the class 12, and 1,5 for 1.5.
        same = [
            label
            for label in known
            if (_number(label) if isinstance(label, str) else label) == number
        ]
        if len(same) == 1:
            return same[0]
        if not isinstance(known[0], str):
            return None if is_mark else number
    return None if is_mark or text in GAP_WORDS else text


def _number(text: str) -> float | None:
    return float(text.replace(",", ".")) if NUMBER.fullmatch(text) else None
