"""How the columns of a data frame become numbers, by the rules of `dsel select`.

A frame keeps its types: numbers, amounts and dates that are written as texts are texts
there. `find_ways` sorts the columns by what makes numbers of them, and `Ways.advice`
says it in lines of Python that run as they are printed.
"""

import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from dsel.checks import listing
from dsel.data.frame_columns import (
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    Column,
    columns_of,
    has_texts,
    texts_of,
)
from dsel.data.identifiers import (
    MOST_CATEGORIES,
    holds_categories,
    is_name_of_identifier,
    notes_on_repeats,
)
from dsel.data.text_columns.amounts import plain_numbers
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.gaps import trim
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.text_reasons import TextReason, text_reason

NUMBERS: Final = "numbers"
DATES: Final = "dates"
VALUES: Final = "values"
LEFT_OUT: Final = "left out"
"""Name of the columns that no model uses."""
MOST_VALUES: Final = 100
"""Most different values of a column that is one-hot encoded."""
MOST_WORDS: Final = 0.05
"""Largest fraction of values in a column of numbers that may be words: slips, or words
for a gap."""
NEARLY_ALL: Final = 0.9
"""Part of the rows with different values from which a column identifies rows."""
COLUMN: Final = "X[c]"
"""The column `c` in a line of Python."""
_SINGLE: Final = "another value in nearly every row, as identifiers do"
_KEY: Final = "the name of an identifier"
_OTHER: Final = "values of which no encoder makes numbers"


def kind_of_encoder(column: Column, values: pd.Series) -> str | None:
    """Return how a column is encoded; None if no encoder accepts it."""
    known = values.dropna()
    if column.kind == NOTHING or known.empty:
        return LEFT_OUT
    is_category = isinstance(values.dtype, pd.CategoricalDtype)
    if column.kind == NUMBER and not is_category:
        return NUMBERS
    if column.is_time:
        return DATES
    if column.kind in (TEXT, TRUTH, NUMBER) and not has_many_values(known):
        return VALUES
    return None


def has_many_values(known: pd.Series) -> bool:
    """Return whether a column has more different values than are encoded."""
    return int(known.nunique()) > min(MOST_VALUES, max(2, len(known) // 2))


def is_single(values: pd.Series) -> bool:
    """Return whether nearly every row has another value, as identifiers of rows do."""
    known = values.dropna()
    return int(known.nunique()) > NEARLY_ALL * len(known)


def is_prose(values: pd.Series) -> bool:
    """Return whether most texts have several words, as no identifier has."""
    return bool(values.dropna().astype(str).str.contains(r"\S\s+\S").mean() > 0.5)


def has_words_among_numbers(reason: TextReason, values: pd.Series) -> bool:
    """Return whether a few words stand among many numbers, and may be slips or gaps.

    Categories would lose the order of such numbers, and a new one in the pool would
    stop the command.
    """
    if not any(option == "--gap" for option, _ in reason.options):
        return False
    known = values.dropna().astype(str)
    numbers = pd.to_numeric(known.str.replace(",", "."), errors="coerce")
    are_few = numbers.isna().mean() <= MOST_WORDS
    return bool(are_few and numbers.nunique() > MOST_CATEGORIES)


class Conversion(NamedTuple):
    """A line of pandas that makes another kind of a column of texts."""

    code: str
    """The line, for the column `COLUMN`."""
    kind: str
    """How the converted column is encoded."""
    note: str = ""
    """What the line takes for granted, "" if the texts show it."""


def find_conversion(values: pd.Series) -> Conversion | None:
    """Return the line that makes numbers or dates of texts; None if they are others.

    Examples
    --------
    >>> find_conversion(pd.Series(["1.026,64 €", "12,50 €"])).code
    "pd.to_numeric(X[c].str.replace('[ .€]', '', regex=True).str.replace(',', '.'))"
    >>> find_conversion(pd.Series(["26.09.2023", "5.10.2023"])).code
    'pd.to_datetime(X[c], dayfirst=True)'
    >>> find_conversion(pd.Series(["26.09.2023", "5.10.2023", "unknown"])).code
    "pd.to_datetime(X[c].mask(X[c].isin(['unknown'])), dayfirst=True)"
    >>> find_conversion(pd.Series(["red", "blue"]))
    """
    texts = texts_of(values)
    if texts is None:
        return None
    scan = _scan(texts)
    kind, n = scan.kind(), scan.n_values
    if not n or kind is Kind.TRUTH:
        return None
    known = pd.Series(texts.to_pandas(), dtype=object).dropna().drop_duplicates()
    # Methods of texts make gaps of numbers next to texts.
    is_mixed = columns_of(values.to_frame("values"))[0].kind != TEXT
    code = f"{COLUMN}.map(str, na_action='ignore')" if is_mixed else COLUMN
    if _holds_dates(scan) or 2 * scan.n_other_dates > n:
        return _find_dates(scan, known, code, ())
    if kind.is_number:
        return _find_numbers(scan, known, code, ())
    reason = text_reason(scan, str(values.name))
    options = () if reason is None else reason.options
    gaps = [word for option, word in options if option == "--gap"]
    if gaps and _holds_dates(others := _scan(trim(texts, gaps))):
        return _find_dates(others, known, code, gaps)
    n_of_sign = scan.amounts.n_by_sign[scan.amount_sign]
    n_amounts = n_of_sign + (scan.n_numbers if scan.amount_sign == "" else 0)
    # Leading zeros and letters without a pattern are those of codes.
    is_code = scan.n_codes or scan.n_leading_zeros or scan.n_too_large
    if reason is None or is_code or 2 * n_amounts <= n:
        return None
    is_few = values.nunique() <= MOST_VALUES
    if is_few and gaps and values.isin(gaps).mean() > MOST_WORDS:
        return None
    return _find_numbers(scan, known, code, gaps)


def _scan(texts: pa.Array) -> ColumnScan:
    """Return the forms of texts, which nobody has read as another kind."""
    scan = ColumnScan()
    scan.is_typed = True
    scan.add(texts)
    return scan


def _holds_dates(scan: ColumnScan) -> bool:
    """Return whether all texts are dates or times, with the day or the month first."""
    return scan.kind().is_time or bool(scan.date_orders)


def _without(code: str, words: Sequence[str]) -> str:
    """Return the code of a column in which these words are gaps."""
    return f"{code}.mask({COLUMN}.isin({[*words]}))" if words else code


def _find_numbers(
    scan: ColumnScan, known: pd.Series, code: str, gaps: Sequence[str]
) -> Conversion:
    """Return the line for texts of numbers and amounts, such as ``1.234,50 €``."""
    words = [*scan.gap_words, *gaps]
    line, texts = _without(code, words), known[~known.isin(words)]
    note = ""
    if not scan.kind().is_number:
        marks = {*scan.amounts.marks} | ({"."} if scan.n_with_point else set())
        either = scan.amounts.ambiguous
        if not marks and either is not None:
            note = f"{either!r} is read as {re.sub('[^0-9]', '', either)}"
        for pattern, new in _replacements(texts, scan.amount_sign, marks):
            line += f".str.replace({pattern!r}, {new!r}, regex=True)"
            texts = texts.str.replace(pattern, new, regex=True)
        if "," in marks:
            line += ".str.replace(',', '.')"
            texts = texts.str.replace(",", ".")
    try:
        pd.to_numeric(texts)
    except ValueError:
        numbers = pd.to_numeric(texts, errors="coerce")
        other = known[numbers.index[numbers.isna()][0]]
        note = f"{other!r}, like other texts that are no such numbers, becomes a gap"
        return Conversion(f"pd.to_numeric({line}, errors='coerce')", NUMBERS, note)
    return Conversion(f"pd.to_numeric({line})", NUMBERS, note)


def _replacements(
    texts: pd.Series, sign: str, marks: Collection[str]
) -> list[tuple[str, str]]:
    """Return patterns and texts in their place that leave numbers of amounts.

    `marks` are their decimal marks.
    """
    steps = list[tuple[str, str]]()
    if {*sign} & {*".,"}:  # Rs. and Fr.
        steps.append((re.escape(sign.strip()), ""))
    plain = [plain_numbers(pa.array(texts), sign, mark).to_pandas() for mark in ".,"]
    are_amounts = plain[0].notna() | plain[1].notna()
    amounts = texts[are_amounts.to_numpy()] if are_amounts.any() else texts
    characters = {*"".join(amounts)} - {*"0123456789-+"}
    minuses = characters & {"(", "\u2212"}
    # Of other characters none is left, so that a value of another form is an error.
    removed = characters - minuses - {*(marks if len(marks) < 2 else ".,")}
    if minuses:
        steps.append((f"[{''.join(sorted(minuses))}]", "-"))
    if removed:
        steps.append((f"[{''.join(sorted(removed))}]", ""))
    if len(marks) > 1:  # 1,026.64 and 1.026,64: three digits follow a grouping mark
        steps.append((r"[.,]([0-9]{3})\b", r"\1"))
    return steps


def _find_dates(
    scan: ColumnScan, known: pd.Series, code: str, gaps: Sequence[str]
) -> Conversion | None:
    """Return the line for texts of dates and times."""
    words, n = [*scan.gap_words, *gaps], scan.n_values
    kind, orders, note = scan.kind(), scan.date_orders, ""
    options = dict[str, Any]()
    if kind is Kind.ZONED_TIMES:
        options = {"utc": True, "format": "ISO8601"}
    elif scan.n_times == n:
        options = {} if kind is Kind.DATES else {"format": "ISO8601"}
    elif orders:
        options = {"dayfirst": True} if True in orders else {}
        if kind is not Kind.DATES or scan.n_times:
            options["format"] = "mixed"
        if len(orders) == 2:
            date = scan.examples.get("either first", known.iloc[0])
            note = f"dayfirst=False if the month comes first in {date!r}"
    texts = known[~known.isin(words)]
    for added in ({}, {"format": "mixed"}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                pd.to_datetime(texts, **options | added)
            except (ValueError, OverflowError, UserWarning):
                continue
        shown = "".join(f", {k}={v!r}" for k, v in (options | added).items())
        line = f"pd.to_datetime({_without(code, words)}{shown})"
        return Conversion(line, DATES, note)
    return None


@dataclass
class Ways:
    """What makes numbers of the columns of a data frame, by their names."""

    encoded: dict[str, list[str]] = field(default_factory=dict)
    """Columns by how they are encoded as they are."""
    conversions: dict[str, Conversion] = field(default_factory=dict)
    """Lines that are needed before."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Columns that are no features, with what they have instead."""
    owners: dict[str, str] = field(default_factory=dict)
    """Columns by which rows come in groups, with the note on them."""
    prose: list[str] = field(default_factory=list)
    """Columns of free text."""
    large: list[str] = field(default_factory=list)
    """Columns of many values, of which each has several rows."""
    has_gaps: bool = False
    """Whether numbers are missing, or would be after the conversion."""

    @property
    def is_ready(self) -> bool:
        """Whether an encoder takes every column that it does not leave out as it is."""
        return not any((self.conversions, self.dropped, self.prose, self.large))

    @property
    def texts_of_numbers(self) -> str:
        """The argument of `astype` if plain texts of numbers are all that is wrong."""
        codes = {conversion.code for conversion in self.conversions.values()}
        others = [*self.dropped, *self.owners, *self.prose, *self.large]
        others += [
            n for kind, of in self.encoded.items() if kind != NUMBERS for n in of
        ]
        if others or codes != {f"pd.to_numeric({COLUMN})"}:
            return ""
        if not self.encoded.get(NUMBERS):
            return "float"
        columns = ", ".join(f"{name!r}: float" for name in self.conversions)
        return f"{{{columns}}}"

    def code(self, *, is_pandas: bool = True) -> str:
        """Return the statements that convert the columns, or ""."""
        names_by_code = dict[str, list[str]]()
        for name, conversion in self.conversions.items():
            names_by_code.setdefault(conversion.code, []).append(name)
        steps = f".drop(columns={[*self.dropped]})" if self.dropped else ""
        arguments = [_assignment(code, of) for code, of in names_by_code.items()]
        if arguments:
            steps += f".assign({', '.join(arguments)})"
        if not steps:
            return ""
        return f"X = X{steps}" if is_pandas else f"X = X.to_pandas(); X = X{steps}"

    def pipeline(self) -> str:
        """Return the code of the encoder with its estimator, after `code`."""
        options = f", categories={self.large}" if self.large else ""
        encoder = f"dsel.data.make_encoder(X{options})"
        if self.prose:
            words = ", ".join(f"(TfidfVectorizer(), {name!r})" for name in self.prose)
            others = f"X.drop(columns={self.prose})"
            rest = f"dsel.data.make_encoder({others}{options})"
            converted = (
                c.kind for n, c in self.conversions.items() if n not in self.prose
            )
            has_others = any(self.encoded.values()) or self.large or any(converted)
            end = f", ({rest}, [*{others}])" if has_others else ""
            encoder = f"make_column_transformer({words}{end}, sparse_threshold=0)"
        return f"make_pipeline({encoder}, estimator)"

    def advice(self, *, is_pandas: bool = True) -> str:
        """Return what to write, as the end of a message without a point."""
        for name, note in self.owners.items():
            return f"{note}, or leave it out, X = X.drop(columns=[{name!r}])"
        if is_pandas and self.texts_of_numbers:
            return f"they are texts of numbers: pass X.astype({self.texts_of_numbers})"
        parts = list[str]()
        if code := self.code(is_pandas=is_pandas):
            notes = [f"{n!r}: {c.note}" for n, c in self.conversions.items() if c.note]
            for reason in dict.fromkeys(self.dropped.values()):
                of = [repr(name) for name, why in self.dropped.items() if why == reason]
                verb = "has" if len(of) == 1 else "have"
                notes.append(f"{listing(of, 8)} {verb} {reason}")
            end = f" ({'; '.join(notes)})" if notes else ""
            parts.append(f"write {code}, and the same for the pool{end}")
        kinds = {c.kind for c in self.conversions.values()}
        needs_encoder = (
            self.has_gaps
            or self.prose
            or self.large
            or kinds - {NUMBERS}
            or any(of for kind, of in self.encoded.items() if kind != NUMBERS)
        )
        if needs_encoder or not parts:
            then = "then " if parts else ""
            parts.append(f"{then}put an encoder in front of it, {self.pipeline()}")
        return "; ".join(parts)


def _assignment(code: str, names: Sequence[str]) -> str:
    """Return the arguments of `assign` that convert these columns."""
    if len(names) > 1:
        return f"**{{c: {code} for c in {[*names]}}}"
    [name] = names
    line = code.replace(COLUMN, f"X[{name!r}]")
    if name.isidentifier() and not iskeyword(name) and name != "self":
        return f"{name}={line}"
    return f"**{{{name!r}: {line}}}"


def find_ways(frame: pd.DataFrame, categories: Collection[str] = ()) -> Ways:
    """Return what makes numbers of each column of a pandas frame.

    Columns in `categories` have a column for each value, however many they are.
    """
    ways = Ways()
    for column in columns_of(frame):
        values = frame[column.name]
        if column.name in categories:
            ways.encoded.setdefault(VALUES, []).append(column.name)
        else:
            _add_way(ways, column, values)
    return ways


def _add_way(ways: Ways, column: Column, values: pd.Series) -> None:
    """Add what makes numbers of a column."""
    name, is_category = column.name, isinstance(values.dtype, pd.CategoricalDtype)
    kind = kind_of_encoder(column, values)
    is_owner = column.kind == TEXT and is_name_of_identifier(name)
    for note in (
        notes_on_repeats(values.rename(name), is_feature=True) if is_owner else ()
    ):
        ways.owners[name] = note
        return
    if has_texts(column.kind) and not is_category:
        conversion = find_conversion(values)
        if conversion is not None:
            ways.conversions[name] = conversion
            makes_gaps = re.search(r"\.mask\(|'coerce'", conversion.code) is not None
            ways.has_gaps |= makes_gaps or bool(values.isna().any())
            return
    if kind is not None:
        if kind == NUMBERS and is_name_of_identifier(name) and _counts(values):
            ways.dropped[name] = f"{_KEY} and {_SINGLE}"
            return
        ways.encoded.setdefault(kind, []).append(name)
        ways.has_gaps |= kind == NUMBERS and bool(values.isna().any())
        return
    if column.kind not in (TEXT, TRUTH, NUMBER):
        _add_other(ways, column, values)
        return
    if column.kind == TEXT and is_prose(values):
        ways.prose.append(name)
        if values.isna().any():
            ways.conversions[name] = Conversion(f"{COLUMN}.fillna('')", VALUES)
    elif is_single(values):
        ways.dropped[name] = _SINGLE
    elif is_name_of_identifier(name) and not (is_category or holds_categories(values)):
        ways.dropped[name] = _KEY
    else:
        ways.large.append(name)


def _counts(values: pd.Series) -> bool:
    """Return whether whole numbers differ in nearly all rows."""
    known = values.dropna()
    numbers = known.to_numpy(np.float64)
    return has_many_values(known) and is_single(known) and not (numbers % 1).any()


def _add_other(ways: Ways, column: Column, values: pd.Series) -> None:
    """Add what makes numbers of values that are no texts, numbers or times."""
    name = column.name
    if values.dtype.kind == "m":
        ways.conversions[name] = Conversion(f"{COLUMN}.dt.total_seconds()", NUMBERS)
        ways.has_gaps |= bool(values.isna().any())
    elif isinstance(values.dtype, pd.PeriodDtype):
        ways.conversions[name] = Conversion(f"{COLUMN}.dt.to_timestamp()", DATES)
    elif has_texts(column.kind) and not has_many_values(values.dropna().map(str)):
        code = f"{COLUMN}.map(str, na_action='ignore')"
        ways.conversions[name] = Conversion(code, VALUES)
    else:
        ways.dropped[name] = _OTHER
