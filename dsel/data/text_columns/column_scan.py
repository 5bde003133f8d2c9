"""What one pass over a column counts, and the kind that follows."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsel.arrays import Bools, Integers
from dsel.data.text_columns.amounts import ADDRESS, BASE_16, LIKE_NUMBER, AmountScan
from dsel.data.text_columns.arrow_texts import (
    IN_OTHER_QUOTES,
    DistinctValues,
    all_true,
    any_true,
    matches,
    text_bytes,
)
from dsel.data.text_columns.dates import (
    DATE,
    ISO_DAY,
    LIKE_NUMERIC_DATE,
    NUMERIC_DATE,
    OTHER_DATE,
    TIME,
    ZONED,
    are_real_dates,
    date_formats,
    find_invalid_times,
    write_iso_dates,
)
from dsel.data.text_columns.gaps import is_gap_word
from dsel.data.text_columns.kinds import TRUTH_PAIRS, Kind
from dsel.data.text_columns.numbers import (
    CODE,
    COMMA_NUMBER,
    LARGEST_EXACT,
    NUMBER,
    WHOLE,
    number_forms,
    round_trips,
)

_LEADING_ZERO: Final = r"^-?0[0-9]"
_OF_WORDS: Final = np.zeros(256, dtype=np.bool_)
"""First bytes of words: letters with which no number, time or gap word begins."""
_OF_WORDS[list(range(ord("A"), ord("Z") + 1)) + list(range(ord("a"), ord("z") + 1))] = 1
_OF_WORDS[list(b"NnIi")] = False
MOST_GAPS_OFFERED: Final = 8
"""Most words of a column of numbers that are offered as gaps."""


class ColumnScan:
    """Counts of the forms of the values of a column; see `kind`.

    Values are added batch by batch, so that a table of any size takes one pass. The
    kind is decided after the last batch: a single value at the end may change it.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_empty = 0
        self.gap_words: Counter[str] = Counter()
        self.n_numbers = 0  # with or without a decimal point
        self.n_with_point = 0
        self.n_commas = 0  # decimal commas
        self.n_exact = 0  # numbers that are written back as they were
        self.n_whole = 0
        self.n_point_zero = 0  # whole numbers that are written with a point, as 3.0
        self.n_too_large = 0
        self.n_like_numbers = 0
        self.amounts = AmountScan()
        self.n_codes = 0  # whole numbers with an exponent, which may be codes
        self.n_leading_zeros = 0
        self.n_dates = 0
        self.n_times = 0
        self.n_zoned = 0
        self.n_like_dates = 0  # of numbers, in any order
        self.n_day_first = 0  # real dates if the day comes first
        self.n_month_first = 0
        self.n_with_time = 0  # those of them that have a time
        self.date_signs: set[str] = set()
        self.n_other_dates = 0
        self.date_formats: dict[str, str] = {}
        """First value of each format of dates, such as a-9-9 and 9/9/a; some of many.
        """
        self.n_in_quotes = 0
        self.examples: dict[str, str] = {}
        self.truth_words: set[str] | None = set()
        self._is_text = False
        self.quote: Callable[[str], str] = repr
        """Quotes a value in a note; tables in memory add its line."""
        self.no_amounts: set[str] = set()
        """Values that are no numbers in any form; not all, if they are many."""
        self.no_dates: set[str] = set()
        """Values that are neither dates nor numbers; not all, if they are many."""
        self.separator = ""
        """Separator of the file; "" where it is unknown, or there is none."""
        self.is_typed = False
        """Whether the table has types, so that texts are numbers by request only."""
        self.obstacle = ""
        """Why amounts of the column cannot be numbers of its table."""

    @property
    def n_values(self) -> int:
        """Cells that are neither empty nor a gap word."""
        return self.n_rows - self.n_empty - sum(self.gap_words.values())

    def add(self, values: pa.Array) -> None:
        """Count values, which are trimmed, with empty cells as null."""
        self.n_rows += len(values)
        self.n_empty += values.null_count
        known = values
        if values.null_count:
            known = values.drop_null()
        # Matching patterns takes most of a pass. Therefore values that are all numbers,
        # or gaps, are recognized by their bytes; otherwise only distinct values are
        # matched.
        if self._is_text:
            known = self._without_words(known)
        elif self._add_forms(known):
            return
        is_gap = is_gap_word(known)
        if any_true(is_gap):
            for count_of_value in pc.value_counts(known.filter(is_gap)).to_pylist():
                self.gap_words[count_of_value["values"]] += count_of_value["counts"]
            known = known.filter(pc.invert(is_gap))
            if self._add_forms(known):
                return
        if not self._is_text:  # most of codes such as 0123 and 1234 are numbers
            is_whole = matches(known, WHOLE)
            if any_true(is_whole) and self._add_forms(known.filter(is_whole)):
                known = known.filter(pc.invert(is_whole))
        if not len(known):
            return
        distinct = DistinctValues.of(known)
        is_number = matches(distinct.values, NUMBER)
        numbers, texts = distinct.split(is_number)
        n_numbers = numbers.n_cells
        if n_numbers and not self._add_forms(*numbers):  # as with 1e999
            self.examples.setdefault("number", numbers.values[0].as_py())
            self.n_numbers += n_numbers
            self.n_with_point += n_numbers
            self.n_too_large += n_numbers
        if len(texts.values):
            self._add_others(texts)
        self._is_text = not self.n_numbers

    def _without_words(self, known: pa.Array) -> pa.Array:
        """Return texts that may be counted; words are of no form that has a name."""
        is_seen = self.truth_words is None and {"other", "no time"} <= {*self.examples}
        if not is_seen or not len(known):
            return known
        starts, _, content = text_bytes(known)
        is_word = _OF_WORDS[content[starts]]
        return known.slice(0, 0) if is_word.all() else known.filter(pa.array(~is_word))

    def _add_forms(self, known: pa.Array, counts: pa.Array | None = None) -> bool:
        """Count values that are all finite numbers; False if some are not.

        `counts` has how many times each value occurs, if the values are distinct.
        """
        forms = number_forms(known) if len(known) else None
        if forms is None:
            return False
        is_whole, is_exact = forms.is_whole, forms.is_short | forms.is_whole
        weights = None if counts is None else counts.to_numpy()

        def total(mask: Bools) -> int:
            return int(np.count_nonzero(mask) if weights is None else mask @ weights)

        # float64 holds every integer of up to 15 digits.
        if is_whole.any() and pc.max(pc.binary_length(known)).as_py() > 15:
            texts = known.filter(pa.array(is_whole)).to_pylist()
            sizes = [abs(int(text)) for text in texts if len(text) > 15]
            self.n_too_large += sum(size > LARGEST_EXACT for size in sizes)
        positions = np.flatnonzero(~is_exact)
        if len(positions):
            other_texts, floats = (
                known.take(pa.array(positions)),
                forms.floats.take(positions),
            )
            # The only whole number that reaches this line is -0.
            is_whole[positions] = pc.equal(other_texts, "-0")
            is_exact[positions] = round_trips(other_texts, floats)
            is_code = np.zeros(len(known), dtype=np.bool_)
            is_code[positions] = matches(other_texts, CODE)
            if is_code.any():
                code = known[int(np.argmax(is_code))].as_py()
                self.examples.setdefault("code", code)
                self.n_codes += total(is_code)
        self.examples.setdefault("number", known[0].as_py())
        n, n_whole = total(np.ones(len(known), dtype=np.bool_)), total(is_whole)
        self.n_numbers += n
        self.n_whole += n_whole
        self.n_with_point += n - n_whole
        self.n_exact += total(is_exact)
        self.n_point_zero += forms.n_point_zero
        return True

    def _add_others(self, distinct: DistinctValues) -> None:
        """Count distinct values that are not numbers with a decimal point."""
        first = distinct.values[0].as_py()
        self.examples.setdefault("other", first)
        # Each pattern takes time, so the first value decides whether this one is tried.
        if re.match(IN_OTHER_QUOTES, first):
            self.n_in_quotes += self._count(
                distinct.select_matching(IN_OTHER_QUOTES), "quoted"
            )
        self.n_commas += self._count(distinct.select_matching(COMMA_NUMBER), "comma")
        self.n_leading_zeros += distinct.select_matching(_LEADING_ZERO).n_cells
        self._add_amounts(distinct)
        self._add_dates(distinct)
        self._add_truth_words(distinct.values)

    def _count(self, distinct: DistinctValues, form: str) -> int:
        """Return the number of cells with a form, and keep an example of it."""
        if len(distinct.values):
            self.examples.setdefault(form, distinct.values[0].as_py())
        return distinct.n_cells

    def _add_amounts(self, distinct: DistinctValues) -> None:
        """Count amounts such as $1,234.50, and keep some values that are none."""
        is_like = matches(distinct.values, LIKE_NUMBER)
        if any_true(is_like):
            is_address = matches(distinct.values, ADDRESS)
            is_like = pc.and_(is_like, pc.invert(is_address))
            like_numbers = distinct.select(is_like)
            self.n_like_numbers += self._count(like_numbers, "like")
            is_base_16 = matches(like_numbers.values, BASE_16)
            self.amounts.add(*like_numbers.select(pc.invert(is_base_16)))
        # A few examples of a column of texts are enough, and each batch has others.
        if len(self.no_amounts) <= MOST_GAPS_OFFERED and not all_true(is_like):
            no_amounts = distinct.values.filter(pc.invert(is_like))
            self.examples.setdefault("no amount", no_amounts[0].as_py())
            self.no_amounts |= {*no_amounts[: MOST_GAPS_OFFERED + 1].to_pylist()}

    def _add_truth_words(self, values: pa.Array) -> None:
        """Keep the words, in any case, of a column that has no more than two."""
        if self.truth_words is None:
            return
        words = pc.utf8_lower(values).unique()
        self.truth_words |= {*words[:9].to_pylist()}
        if len(self.truth_words) > 2:
            self.truth_words = None

    def _add_dates(self, distinct: DistinctValues) -> None:
        """Count dates and times by their forms, and keep one of each format."""
        values = distinct.values
        is_time, is_zoned = matches(values, TIME), matches(values, ZONED)
        begins_as_iso, is_numeric = (
            matches(values, ISO_DAY),
            matches(values, LIKE_NUMERIC_DATE),
        )
        is_other = pc.and_(
            pc.invert(pc.or_(is_time, is_zoned)), matches(values, OTHER_DATE)
        )
        is_date = pc.or_(pc.or_(begins_as_iso, is_other), is_numeric)
        if any_true(is_date):
            dates = values.filter(is_date)
            formats = date_formats(dates)
            for date_format in formats.unique().to_pylist()[:MOST_GAPS_OFFERED]:
                if date_format not in self.date_formats:
                    place = pc.index(formats, date_format).as_py()
                    self.date_formats[date_format] = dates[place].as_py()
        if any_true(is_numeric):
            self.n_like_dates += self._count(distinct.select(is_numeric), "like a date")
            self._add_numeric_dates(distinct)
        self.n_other_dates += self._count(distinct.select(is_other), "other date")
        if len(self.no_dates) <= MOST_GAPS_OFFERED:
            no_dates = values.filter(pc.invert(pc.or_(is_date, is_zoned)))
            self.no_dates |= {*no_dates[: MOST_GAPS_OFFERED + 1].to_pylist()}
        if "no time" not in self.examples and not all_true(begins_as_iso):
            no_time = values.filter(pc.invert(begins_as_iso))[0].as_py()
            self.examples["no time"] = no_time
        if any_true(is_time):
            times = distinct.select(is_time)
            weights = self._weights_of_real(times, zoned=False)
            are_days = matches(times.values, DATE).to_numpy(zero_copy_only=False)
            self.n_times += int(weights.sum())
            self.n_dates += int(weights[are_days].sum())
        if any_true(is_zoned):
            weights = self._weights_of_real(distinct.select(is_zoned), zoned=True)
            self.n_zoned += int(weights.sum())

    def _weights_of_real(self, times: DistinctValues, *, zoned: bool) -> Integers:
        """Return the cells of each time, 0 where it is no real one, as 2023-02-30."""
        weights: Integers = times.counts.to_numpy(zero_copy_only=False).copy()
        bad = find_invalid_times(times.values, zoned=zoned)
        if len(bad):
            self.examples.setdefault("no day", times.values[int(bad[0])].as_py())
        weights[bad] = 0
        return weights

    def _add_numeric_dates(self, distinct: DistinctValues) -> None:
        """Count what is a real date if the day comes first, and if the month does."""
        dates, other_values = distinct.split(matches(distinct.values, NUMERIC_DATE))
        self._count(other_values, "no numeric date")
        texts, weights = dates.values, dates.counts.to_numpy(zero_copy_only=False)
        signs = pc.replace_substring_regex(texts, r"^[0-9]+(.).*", r"\1")
        self.date_signs |= set(signs.unique().to_pylist())
        has_time = pc.match_substring(texts, ":").to_numpy(zero_copy_only=False)
        self.n_with_time += int(weights[has_time].sum())
        by_day, by_month = (are_real_dates(texts, day_first=f) for f in (True, False))
        self.n_day_first += int(weights[by_day].sum())
        self.n_month_first += int(weights[by_month].sum())
        readings = (write_iso_dates(texts, day_first=first) for first in (True, False))
        differ = pc.not_equal(*readings).to_numpy(zero_copy_only=False)
        for name, are_so in (
            ("day first", by_day & ~by_month),
            ("month first", by_month & ~by_day),
            ("either first", by_day & by_month & differ),  # unlike 5/5/2023
            ("no numeric date", ~(by_day | by_month)),
        ):
            if name not in self.examples and are_so.any():
                self.examples[name] = texts[int(np.argmax(are_so))].as_py()

    @property
    def truth_pair(self) -> tuple[str, str] | None:
        """Words of a column of truth values, the true one first; None of another."""
        return next((pair for pair in TRUTH_PAIRS if self.truth_words == {*pair}), None)

    @property
    def amount_sign(self) -> str:
        """The most frequent sign of amounts; "" where it is none."""
        n_by_sign = self.amounts.n_by_sign + Counter({"": self.n_numbers})
        return n_by_sign.most_common(1)[0][0] if n_by_sign else ""

    def decimal_marks(self, separator: str, *, is_amount: bool) -> dict[str, str]:
        """Return values by the decimal marks that they show; "" for plain numbers."""
        if is_amount:
            # 1.234 may be a thousand where 1.234.567 is in the column.
            return self.amounts.marks or ({".": ""} if self.n_with_point else {})
        if self.n_with_point and self.n_numbers == self.n_values:
            return {".": ""}
        if separator == ";" and self.n_commas:
            n_numbers = self.n_whole + self.n_commas
            if n_numbers == self.n_values:
                return {",": self.examples["comma"]}
        return {}

    def mark_of_most(self, separator: str) -> str | None:
        """Return the decimal mark of a mixed column, if most of it are numbers."""
        if self.n_with_point and 2 * self.n_numbers > self.n_values:
            return "."
        n_numbers = self.n_whole + self.n_commas
        if separator == ";" and self.n_commas and 2 * n_numbers > self.n_values:
            return ","
        return None

    def day_first(self, named: bool | None = None) -> bool | None:
        """Return whether the day comes first in dates of numbers, and not the month.

        Dots and numbers above 12 show the order; if all dates can be read in both ways,
        it is `named`. Next to ISO dates it must be `named`. None if the column does not
        hold such dates, all of one form.
        """
        orders = self.date_orders
        if self.n_times:
            return named if named in orders else None
        return named if len(orders) == 2 else next(iter(orders), None)

    @property
    def date_orders(self) -> list[bool]:
        """Possible orders of day and month, True if the day is first, of all values.

        ISO dates have no order; () where a value has another form.
        """
        if len(self.date_signs) != 1:
            return []
        n_of = {True: self.n_day_first, False: self.n_month_first}
        return [first for first, n in n_of.items() if n + self.n_times == self.n_values]

    def has_gap(self, word: str, decimal: str) -> bool:
        """Return whether a word is a gap in the column; in a text column it is none."""
        return word in self.gap_words and self.kind(decimal) is not Kind.TEXT

    def number_kind(self, decimal: str) -> Kind | None:
        """Return the kind of a column of plain numbers; None for another column."""
        n, n_numbers = self.n_values, self.n_numbers
        if decimal == ",":
            n_numbers = self.n_whole + self.n_commas
        if not n or n_numbers != n or self.n_too_large:
            return None
        return Kind.WHOLE if self.n_whole == n else Kind.NUMBERS

    def kind(self, decimal: str = ".", day_first: bool | None = None) -> Kind:
        """Return the kind of the column, given the decimal mark of numbers.

        `day_first` is the order of dates that may be read in two ways.
        """
        n = self.n_values
        if not n:
            return Kind.GAPS
        kind = self.number_kind(decimal)
        if kind is not None:
            # 1E2 and 10E1 are two codes and one number.
            are_codes = self.n_codes and self.n_codes + self.n_whole == n
            return Kind.TEXT if are_codes else kind
        if not self.n_numbers and self.truth_pair:
            return Kind.TRUTH
        if self.n_zoned == n:
            return Kind.ZONED_TIMES
        if self.n_times == n:
            return Kind.DATES if self.n_dates == n else Kind.TIMES
        if self.day_first(day_first) is not None:
            has_time = self.n_with_time or self.n_times > self.n_dates
            return Kind.TIMES if has_time else Kind.DATES
        return Kind.TEXT

    def exact_kind(self, decimal: str = ".") -> Kind:
        """Return the kind if every value is written back as it was, else text."""
        kind = self.kind(decimal)
        if kind is Kind.NUMBERS and self.n_whole and self.n_point_zero:
            return Kind.TEXT  # 3 and 3.0 are one number
        are_exact = not self.gap_words and (
            kind is Kind.GAPS
            or (kind is Kind.DATES and self.n_dates == self.n_values)
            or (kind.is_number and decimal == "." and self.n_exact == self.n_values)
        )
        return kind if are_exact else Kind.TEXT
