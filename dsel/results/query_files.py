"""A comparison in a folder: its record, the rows to be labeled, and its one answer.

Rows are labeled in spreadsheets, which reorder them, add columns, write 12.0 for 12 and
change separators. So a label belongs to the row number that stands in its line, and
nothing else of the file is looked at.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dsel.data.kinds import GAP_WORDS, TRUTH_PAIRS
from dsel.data.query_rows import POOL_ROW
from dsel.data.tables import is_text, text_source
from dsel.files import check_folder, check_no_link, create_file, whole_file
from dsel.results.comparison import ModelComparison

COMPARISON: Final = "comparison.json"
QUERY_ROWS: Final = "query_rows.csv"
ANSWER: Final = "answer.json"
TARGET: Final = "target"
"""What a record has beside the fields of a comparison: the column of the labels."""
WHOLE: Final = re.compile(r"(\d+)(?:[.,]0{1,2})?|\d[.,]?\d*[eE]\+?\d+")
"""Row numbers as spreadsheets write them. Three digits behind a mark may be thousands,
so that 1,000 is no number of a row."""


def check_new_place(folder: str | os.PathLike[str], name: str = "out") -> None:
    """Raise where a comparison cannot be kept in a folder: it must be free or empty."""
    check_folder(folder, name)
    if not os.path.isdir(folder) or not (there := sorted(os.listdir(folder))):
        return
    if COMPARISON in there:
        raise FileExistsError(
            f"`{name}` {os.fspath(folder)} holds a comparison already, and the rows of "
            f"another draw would not be those that were handed out; name another "
            f"folder."
        )
    raise FileExistsError(
        f"`{name}` {os.fspath(folder)} must be an empty folder or free, but holds "
        f"{there[0]!r}; name another one."
    )


def write_comparison(
    folder: str | os.PathLike[str], comparison: ModelComparison, *, target: str
) -> Path | None:
    """Write a comparison, and the rows to be labeled with an empty column `target`.

    Return the file of the rows; None where there are none.
    """
    place = Path(folder)
    rows = None
    if comparison.rows:
        shown = comparison.query_rows()
        check_target(target, list(map(str, shown.columns)))
        rows = place / QUERY_ROWS
        with whole_file(rows, "out") as partial:
            shown.assign(**{target: ""}).to_csv(partial, index_label=POOL_ROW)
    record = {**json.loads(comparison.to_json()), TARGET: target}
    with whole_file(place / COMPARISON, "out") as partial:  # last: all is there now
        partial.write_text(json.dumps(record), "utf-8")
    return rows


def check_target(target: str, columns: Sequence[str]) -> None:
    """Raise ValueError where the column of the labels has a name that is taken."""
    if not target.strip() or target in (*columns, POOL_ROW):
        what = "a column of the pool" if target in columns else "no name for a column"
        raise ValueError(
            f"--target {target!r} is {what}; name the empty column for the labels "
            f"otherwise, such as --target true_label."
        )


def read_comparison(folder: str | os.PathLike[str]) -> tuple[ModelComparison, str]:
    """Return the comparison of a folder, and the name of its column of labels."""
    file = Path(folder, COMPARISON)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no {COMPARISON} in {os.fspath(folder)!r}; name the folder that "
            f"`dsel compare --out` has made."
        )
    text = file.read_text("utf-8")
    try:
        comparison = ModelComparison.from_json(text)
        return comparison, str(json.loads(text)[TARGET])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(file)!r} cannot be read: {error}") from error


def read_labels(
    path: str | os.PathLike[str],
    comparison: ModelComparison,
    *,
    target: str,
    separator: str | None = None,
    encoding: str | None = None,
) -> "pd.Series[Any]":
    """Return the labels of a text file by pool row number, None where there is none.

    Lines without a row number and a label are left out. Labels are those that the
    models predict, as far as a text is one of them.

    Raises
    ------
    ValueError
        Where the file has no column of row numbers or labels, or a line has a number
        that was not handed out, or a label without one.
    """
    if not comparison.rows:
        comparison.query_rows()  # says why there are none
    location = os.fspath(path)
    if not os.path.exists(location):
        raise FileNotFoundError(f"there is nothing at {location!r}.")
    if not is_text(location):
        raise ValueError(
            f"{location!r} is no text table; save the rows as CSV, with the columns "
            f"{POOL_ROW!r} and {target!r}."
        )
    source = text_source(location, separator=separator, encoding=encoding)
    for name, what in (
        (POOL_ROW, "which says whose label it is"),
        (target, "which has the labels; name another one by --target"),
    ):
        if name not in source.names:
            raise ValueError(
                f"{location!r} lacks the column {name!r}, {what}; it has "
                f"{', '.join(source.names[:20])}."
            )
    known = known_labels(comparison)
    handed_out, numbers, labels = set(comparison.rows), list[int](), list[Any]()
    n_read = 0
    for batch in source.batches([POOL_ROW, target]):
        cells = (each.to_pylist() for each in batch.columns)
        for row, text in zip(*cells, strict=True):
            n_read += 1
            if row is None and text is None:
                continue
            number = _row_number(row)
            if number is None:
                raise ValueError(
                    f"{location!r} must have a whole number as {POOL_ROW} in every "
                    f"line, got {row!r} in row {n_read} of the table; take it from "
                    f"{QUERY_ROWS}."
                )
            if number not in handed_out:
                raise ValueError(
                    f"{location!r} has a label for pool row {number}, which was not "
                    f"handed out by this comparison (such as {comparison.rows[0]}); "
                    f"label its own {QUERY_ROWS}."
                )
            numbers.append(number)
            labels.append(_as_label(text, known))
    return pd.Series(labels, index=numbers, dtype=object)


def known_labels(comparison: ModelComparison) -> tuple[Any, ...]:
    """Return the labels that a comparison knows: declared ones, else predicted ones."""
    predicted = (*comparison.old_predictions, *comparison.new_predictions)
    return comparison.classes or tuple(dict.fromkeys(predicted))


def keep_answer(
    folder: str | os.PathLike[str], answer: ModelComparison
) -> ModelComparison:
    """Keep the answer of a comparison, once; return the one that is kept.

    Raises ValueError where other labels were given before.
    """
    file = Path(folder, ANSWER)
    check_no_link(file, "comparison")
    create_file(file, answer.to_json().encode())
    kept = ModelComparison.from_json(file.read_text("utf-8"))
    if kept.labels != answer.labels:
        pairs = zip(kept.labels or (), answer.labels or (), strict=True)
        n = sum(before != now for before, now in pairs)
        raise ValueError(
            f"this comparison was answered by other labels before ({n} of "
            f"{len(answer.rows)} rows differ), and an answer is final: to look at "
            f"labels again would void its limits. The first is in {os.fspath(file)!r}; "
            f"compare on another draw for new labels."
        )
    return kept


def _row_number(text: str | None) -> int | None:
    found = None if text is None else WHOLE.fullmatch(text)
    if found is None or text is None:
        return None
    if found[1]:
        return int(found[1])
    value = float(text.replace(",", "."))
    return int(value) if value.is_integer() else None


def _as_label(text: str | None, known: tuple[Any, ...]) -> Any:
    """Return the label that a text means; the text, or None, where it means none."""
    if text is None or text in known:
        return text
    number = _number(text)
    if isinstance(known[0], bool):
        words = {"1": True, "0": False, "1.0": True, "0.0": False}
        for true, false in TRUTH_PAIRS:
            words |= {true: True, false: False}
        return words.get(text.lower())
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
            return number
    is_missing = text in GAP_WORDS or not isinstance(known[0], str)
    return None if is_missing else text


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ".", 1))
    except ValueError:
        return None
