"""Values that no labeled row has: models have not learned them.

An encoder that takes unknown texts writes zeros for them, and models extrapolate to
numbers and times beyond those of labeled rows, so that predictions change in silence.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import betabinom

from dsel.checks import letters_of, listing
from dsel.data.schema import ColumnSchema, TableSchema
from dsel.data.text_columns.gaps import GAP_WORDS
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.errors import NewFile, UndecidedError
from dsel.rounded_texts import count_of

MOST_VALUES_SHOWN: Final = 3
"""Values of a column that are shown."""
MOST_TIMES: Final = 2
"""Largest ratio of rows with new values to those that are expected without a note."""
MOST_MISSPELLED: Final = 0.01
"""Fraction of a pool's rows up to which another spelling is a slip of a few rows."""
_GAPS: Final = frozenset(letters_of(word) for word in ("", *GAP_WORDS))
CHANCE_BEYOND: Final = 0.001
"""Level of the test whether rows lie beyond the labeled range by chance alone."""
MOST_BEYOND: Final = 0.01
"""Fraction of a table's rows up to which numbers beyond the labeled ones are a few
extreme values."""
_MOST_LETTERS: Final = 40
_MOST_COMPARED: Final = 1000
"""Unknown values of a block that are compared with those of labeled rows."""


@dataclass(frozen=True)
class KnownTexts:
    """The values of labeled rows in a text column."""

    values: frozenset[str | None]
    """Their values; None is a gap."""
    new_share: float
    """Fraction of new rows of the same population that are expected to have others."""


@dataclass(frozen=True)
class KnownRange:
    """The smallest and the largest number, or time, of labeled rows in a column."""

    limits: tuple[float, float] | tuple[str, str]
    """Times are in ISO form."""
    n_values: int
    """Labeled rows with a value."""

    @property
    def texts(self) -> tuple[str, str]:
        """The limits for messages."""
        low, high = self.limits
        return _short(low), _short(high)


KnownValues = Mapping[str, KnownTexts | KnownRange]
"""The values of labeled rows, by column of texts, numbers or times."""


@dataclass(frozen=True)
class UnknownValues:
    """Values of one column that no labeled row has.

    Examples
    --------
    >>> UnknownValues("town", 340, ("Ulm", "Bonn")).line
    "in 340 rows column 'town' has values that no labeled row has, such as 'Ulm', 'Bonn': the models have learned nothing about them"
    """  # noqa: E501

    column: str
    n_rows: int
    """Rows that have one of them."""
    values: tuple[str, ...]
    """The first ones."""
    n_gaps: int = 0
    """Rows that have no value, where every labeled row has one."""
    n_alike: int = 0
    """Rows with a value, or none, that labeled rows have in another spelling."""
    alike: str | None = None
    """The other spelling of the first one; None where it is the empty cell."""
    new_share: float = 0.0
    """Fraction of rows of the labeled population that are expected to have such
    values."""
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Values with what labeled rows have in their place, in one or several spellings,
    but for gaps."""
    limits: tuple[str, str] | None = None
    """Smallest and largest value of labeled rows; None for a column of texts."""
    n_labeled: int = 0
    """Labeled rows that `limits` are of."""

    @property
    def ambiguous_spellings(self) -> tuple[str, ...]:
        """Spellings of labeled rows of which none is chosen; () where each has one."""
        return next((texts for _, texts in self.spellings if len(texts) > 1), ())

    @property
    def record(self) -> dict[str, object]:
        """The findings, for JSON."""
        left_out = ("new_share", "spellings", "n_labeled")
        return {k: v for k, v in asdict(self).items() if k not in left_out}

    def is_expected(self, n_rows: int) -> bool:
        """Return whether rows of the labeled population may hold as many new values.

        Free texts and identifiers differ in nearly all rows, of the labeled table as
        well: models were tested on rows whose texts were new to them. Of numbers the
        part that lies beyond n independent draws has the beta distribution of 2 and
        n - 1, so that the number of such rows is beta-binomial.
        """
        if self.limits is not None:
            if self.n_labeled < 2 or self.n_rows <= MOST_BEYOND * n_rows:
                return True
            chance = betabinom(n_rows, 2, self.n_labeled - 1).sf(self.n_rows - 1)
            return bool(chance > CHANCE_BEYOND)
        return not self.n_gaps and self.n_rows <= MOST_TIMES * self.new_share * n_rows

    @property
    def line(self) -> str:
        """Description of the values in one line."""
        parts, what = [], f"column {self.column!r}"
        if self.limits is not None:
            low, high = self.limits
            return (
                f"in {count_of(self.n_rows, 'row')} {what} is beyond the labeled rows, "
                f"which have {low} to {high}, such as {self.values[0]}: the models "
                f"have learned nothing about such values"
            )
        if self.n_rows:
            shown = listing([repr(value[:_MOST_LETTERS]) for value in self.values], 10)
            parts.append(
                f"in {count_of(self.n_rows, 'row')} {what} has values that no labeled "
                f"row has, such as {shown}"
            )
            what = "it"
        if self.n_gaps:
            parts.append(
                f"in {count_of(self.n_gaps, 'row')} {what} is empty, as in no labeled "
                f"row"
            )
        hint = ""
        if self.n_alike:
            spellings = " and ".join(
                "gaps" if text is None else repr(text[:_MOST_LETTERS])
                for text in self.ambiguous_spellings or (self.alike,)
            )
            hint = f"; labeled rows have {spellings}"
            if any(
                value.casefold() == text.casefold()
                for value, texts in self.spellings[:1]
                for text in texts
            ):
                hint += ", which differs only in capital letters"
            if (
                self.values
                and _has_zeros(self.alike)
                and not _has_zeros(self.values[0])
            ):
                hint += ", so zeros at the beginning may be lost here"
        return (
            f"{', and '.join(parts)}: the models have learned nothing about them{hint}"
        )

    def merge(self, later: "UnknownValues") -> "UnknownValues":
        """Return the unknown values of these rows and of later ones."""
        values = dict.fromkeys((*self.values, *later.values))
        return UnknownValues(
            self.column,
            self.n_rows + later.n_rows,
            tuple(values)[:MOST_VALUES_SHOWN],
            self.n_gaps + later.n_gaps,
            self.n_alike + later.n_alike,
            self.alike if self.n_alike else later.alike,
            self.new_share,
            tuple({**dict(later.spellings), **dict(self.spellings)}.items()),
            self.limits,
            self.n_labeled,
        )


def known_values(schema: TableSchema | None) -> KnownValues:
    """Return the values of labeled rows by column, where they are kept."""
    columns = () if schema is None else schema.columns
    known = {column.name: _known_values_of(column) for column in columns}
    return {name: values for name, values in known.items() if values is not None}


def known_values_for_pool(schema: TableSchema) -> KnownValues:
    """Return the values of those columns of which every value of a pool is read.

    These are texts, times and numbers that differ in all labeled rows, as keys do: a
    pool has too many numbers to be read before its run, which compares a sample.
    """
    keys = {column.name for column in schema.columns if column.is_unique}
    kinds = {column.name: column.kind for column in schema.columns}
    return {
        name: values
        for name, values in known_values(schema).items()
        if not kinds[name].is_number or name in keys
    }


def _known_values_of(column: ColumnSchema) -> KnownTexts | KnownRange | None:
    """Return the values of labeled rows in a column; None where they are not kept."""
    if column.kind is Kind.TEXT and column.categories is not None:
        texts = column.categories
        all_texts = texts if column.has_gaps is False else (*texts, None)
        return KnownTexts(frozenset(all_texts), column.new_share)
    if column.limits is not None:
        return KnownRange(column.limits, column.n_values)
    return None


def find_unknown_values(
    X: pd.DataFrame, known: KnownValues
) -> dict[str, UnknownValues]:
    """Return the values by column of a block that no labeled row has."""
    unknown_values = {}
    for name, texts in known.items():
        if isinstance(texts, KnownRange):
            if (beyond := _find_beyond(X[name], texts)) is not None:
                unknown_values[name] = beyond
            continue
        values = texts.values
        n_rows_of = _count_unknown(X[name], values)
        n_rows = sum(n_rows_of.values())
        shown = tuple(str(value) for value in islice(n_rows_of, MOST_VALUES_SHOWN))
        n_gaps = 0 if None in values else int(X[name].isna().sum())
        if n_gaps:
            n_rows_of = {None: n_gaps, **n_rows_of}
        if n_rows_of:
            # The order is sorted, since that of a set differs from process to process.
            spellings = dict[str, list[str | None]]()
            for value in sorted(values, key=str):
                spellings.setdefault(_meaning(value), []).append(value)
            alike = [
                value
                for value in islice(n_rows_of, _MOST_COMPARED)
                if _meaning(value) in spellings
            ]
            meant = [(value, spellings[_meaning(value)]) for value in alike]
            first = meant[0][1][-1] if meant else None
            pairs = tuple(
                (value, tuple(text for text in texts if text is not None))
                for value, texts in meant
                if value is not None and None not in texts
            )
            n_alike = sum(n_rows_of[value] for value in alike)
            unknown_values[name] = UnknownValues(
                name, n_rows, shown, n_gaps, n_alike, first, texts.new_share, pairs
            )
    return unknown_values


def check_spellings(
    unknown: Mapping[str, UnknownValues],
    n_rows: int,
    respell: Callable[[Mapping[str, Mapping[str, str]]], NewFile | None],
) -> None:
    """Raise ValueError where a pool spells values of labeled rows in another way.

    A few such rows may be a slip. If there are more, models predict other rows than
    those on which they were tested, and no bound is about these. `respell` takes the
    spellings of the labeled table by column and value, and returns the pool with these.
    """
    often = [e for e in unknown.values() if e.n_alike > MOST_MISSPELLED * n_rows]
    if often:
        names = ",".join(each.column for each in often)
        pairs = {
            each.column: {value: texts[0] for value, texts in each.spellings}
            for each in often
            if each.spellings
        }
        several = [each.column for each in often if each.ambiguous_spellings]
        file = respell(pairs) if pairs and not several else None
        advice = ""
        if several:
            advice = (
                f" Which spelling of {several[0]!r} is meant, only you know: write it "
                f"in the labeled table, too."
            )
        raise UndecidedError(
            f"the pool has other spellings than the labeled table: "
            f"{'; '.join(each.line for each in often)}. Write both tables in one way, "
            f"or leave the columns out by --drop {shlex.quote(names)}.{advice}",
            *([] if file is None else [file]),
            [("--drop", names)],
        )


def _find_beyond(values: pd.Series, known: KnownRange) -> UnknownValues | None:
    """Return the numbers or times of a block that no labeled row reaches, if any."""
    low, high = known.limits
    if isinstance(low, str):
        if values.dtype.kind != "M":
            return None
        first, last = pd.Timestamp(low), pd.Timestamp(high)
        if isinstance(values.dtype, pd.DatetimeTZDtype) != (first.tz is not None):
            return None
        beyond = values[((values < first) | (values > last)).fillna(False)]
        shown: list[Any] = [t.isoformat() for t in beyond.head(MOST_VALUES_SHOWN)]
    elif values.dtype.kind in "iuf":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        beyond = numbers[(numbers < low) | (numbers > high)]
        shown = beyond[:MOST_VALUES_SHOWN].tolist()
    else:
        return None
    if not len(beyond):
        return None
    return UnknownValues(
        str(values.name),
        len(beyond),
        tuple(dict.fromkeys(map(_short, shown))),
        limits=known.texts,
        n_labeled=known.n_values,
    )


def _short(limit: float | str) -> str:
    """Return a number, or a time in ISO form, as a person writes it."""
    if isinstance(limit, str):
        return limit.removesuffix("T00:00:00").replace("T", " ")
    is_whole = abs(limit) < LARGEST_EXACT and limit == round(limit)
    return f"{limit:.0f}" if is_whole else f"{limit:.6g}"


def _has_zeros(value: str | None) -> bool:
    return re.match("0[0-9]", value or "") is not None


def _meaning(value: str | None) -> str:
    """Return a text that is equal for all spellings of a value, "" for a gap."""
    letters = letters_of(value or "")
    return "" if letters in _GAPS else re.sub("^0+(?=[0-9])", "", letters)


def _count_unknown(
    column: pd.Series, known: frozenset[str | None]
) -> dict[str | None, int]:
    """Return the number of rows of each value that is unknown, in the order of rows."""
    if isinstance(column.dtype, pd.StringDtype):
        # This is several times as fast as pandas where many values differ.
        texts = pa.array(column, from_pandas=True)  # in its own type: no copy
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        is_known = pc.is_in(texts, value_set=pa.array(list(known), texts.type))
        counted = pc.value_counts(texts.filter(pc.invert(is_known)).drop_null())
        return dict(zip(*(each.to_pylist() for each in counted.flatten()), strict=True))
    counts = column.value_counts(sort=False)
    return {str(v): n for v, n in counts.items() if n and str(v) not in known}


def merge_unknown_values(
    earlier: Mapping[str, UnknownValues], later: Mapping[str, UnknownValues]
) -> dict[str, UnknownValues]:
    """Return the unknown values of both parts of a table."""
    both = {
        name: unknown.merge(later[name]) if name in later else unknown
        for name, unknown in earlier.items()
    }
    return {**later, **both}


def select_unexpected_values(
    unknown: Mapping[str, UnknownValues], n_rows: int
) -> list[UnknownValues]:
    """Select the values that a table of the same population would not have."""
    return [
        values
        for values in unknown.values()
        if values.n_alike or not values.is_expected(n_rows)
    ]
