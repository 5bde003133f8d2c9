"""Why columns are read as text though another kind was likely, and ways out."""

import re
import shlex
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import pyarrow as pa

from dsel.data.text_columns.column_scan import MOST_GAPS_OFFERED, ColumnScan
from dsel.data.text_columns.dates import (
    LIKE_NUMERIC_DATE,
    NUMERIC_DATE,
    write_iso_dates,
)
from dsel.option_values import join_names, quote_names

SUM_WORD: Final = (
    r"^(?i:(?:grand |sub ?|sous-)?tota(?:l|ls|le|al)|sums?|gesamt(?:summe)?|summe|"
    r"insgesamt|somme|suma|合计|总计) ?:?$"
)
"""Words with which sheets begin a last row of sums."""
DATE_ORDERS: Final = {True: "--dayfirst", False: "--monthfirst"}
"""Options of the shell for the order of day and month, by whether the day is first."""
_NANOSECONDS: Final = r":[0-9]{2}\.[0-9]{7,}"
MOST_EXCEPTIONS: Final = 0.1
"""Part of a column's values up to which those of another form are counted."""


class TextReason(NamedTuple):
    """Reason why a column is read as text, though another kind was likely."""

    text: str
    options: tuple[tuple[str, str], ...] = ()
    """Options of the shell, all of which together make it numbers or dates; () if none
    do."""
    date_orders: tuple[str, ...] = ()
    """Options of the shell, each of which makes it dates."""
    way: str = ""
    """End of the text that says which options these are."""

    @property
    def brief(self) -> str:
        """The text without the options, for a message that a whole command follows."""
        return self.text.removesuffix(self.way)

    def after(self, start: str) -> "TextReason":
        """Return the reason with a text before its own."""
        return self._replace(text=f"{start}{self.text}")


def text_reason(scan: ColumnScan, name: str) -> TextReason | None:
    """Return why values of a text column look like another kind, or None."""
    reason = _likeness(scan, name) if scan.n_values else None
    return reason and reason.after(f"column {name!r} ")


def _likeness(scan: ColumnScan, name: str) -> TextReason | None:
    """Return why a column of text is not of the kind that it resembles, or None."""
    n = scan.n_values
    if scan.n_codes and scan.n_codes + scan.n_whole == n:
        code = scan.examples["code"]
        way = f"; --number {quote_names(name)} reads it as numbers"
        return TextReason(
            f"is read as text: {code!r} may be a code, or the number "
            f"{float(code):.6g}{way}",
            (("--number", name),),
            way=way,
        )
    if 2 * scan.n_in_quotes > n:
        return TextReason(
            f"is read as text with the quotes of its values, such as "
            f"{scan.examples['quoted']}; only double quotes without blanks before "
            f"them are left out"
        )
    reason = _likeness_to_dates(scan)
    return _likeness_to_numbers(scan, name) if reason is None else reason


def _likeness_to_dates(scan: ColumnScan) -> TextReason | None:
    """Return why a column that is mostly dates is read as text, or None."""
    n, examples, n_times = scan.n_values, scan.examples, scan.n_times + scan.n_zoned
    n_dates = n_times + scan.n_like_dates + scan.n_other_dates
    if 2 * n_dates > n and len(scan.date_formats) > 1:
        return _describe_mixed_dates(scan, n - n_dates)
    if 2 * scan.n_like_dates > n:
        return _describe_numeric_dates(scan)
    if "no day" in examples and 2 * n_times > n:
        return _describe_wrong_date(scan, examples["no day"])
    if n_dates > n_times and 2 * n_dates > n:
        other = examples.get("other date", examples.get("like a date"))
        if other is not None and re.search(_NANOSECONDS, other):
            return TextReason(
                f"looks like times ({other!r}), and is read as text: a second may "
                f"have six digits behind the point; round the times"
            )
        return TextReason(
            f"looks like dates ({other!r}), and is read as text; write YYYY-MM-DD, "
            f"and times as 2023-09-26T10:30:00+02:00"
        )
    if scan.n_times and scan.n_zoned and n_times == n:
        return TextReason(
            "is read as text: some of its times have a zone and some have none; "
            "write all of them in one form"
        )
    if 2 * n_times > n:
        return _describe_wrong_date(scan, examples.get("no time", examples["other"]))
    return None


def _describe_mixed_dates(scan: ColumnScan, n_others: int) -> TextReason:
    """Return which formats of dates a column mixes, and the way out."""
    *shown, last = map(scan.quote, [*scan.date_formats.values()][:3])
    start = f"holds dates in several formats, such as {', '.join(shown)} and {last}"
    start += ", and is read as text"
    orders = () if n_others else scan.date_orders
    options = tuple(DATE_ORDERS[day_first] for day_first in orders)
    if not options:
        return TextReason(f"{start}; write YYYY-MM-DD everywhere")
    end = " to read all" if len(options) == 1 else ""
    way = f"; write {' or '.join(options)}{end}"
    return TextReason(f"{start}{way}", (), options, way)


def _describe_numeric_dates(scan: ColumnScan) -> TextReason:
    """Return why a column of dates of numbers is read as text, and the way out."""
    examples, example = scan.examples, scan.examples["like a date"]
    day, month = examples.get("day first"), examples.get("month first")
    if day is not None and month is not None:
        return TextReason(
            f"looks like dates, but the day comes first in {scan.quote(day)} and "
            f"the month in {scan.quote(month)}, and is read as text; write "
            f"YYYY-MM-DD"
        )
    n_either = min(scan.n_day_first, scan.n_month_first)
    if n_either == scan.n_values and len(scan.date_signs) == 1:
        either = examples.get("either first", example)
        readings = " or ".join(
            write_iso_dates(pa.array([either]), day_first=first)[0].as_py()
            for first in (True, False)
        )
        options = tuple(DATE_ORDERS.values())
        way = f"; write {' or '.join(options)}"
        return TextReason(
            f"holds dates, and is read as text: {either!r} may be {readings}{way}",
            (),
            options,
            way,
        )
    other = examples.get("no numeric date")
    if other is not None and (
        not re.match(LIKE_NUMERIC_DATE, other) or re.match(NUMERIC_DATE, other)
    ):
        return _describe_wrong_date(scan, other)
    return TextReason(
        f"looks like dates ({other or example!r}), and is read as text; write "
        f"YYYY-MM-DD"
    )


def _describe_wrong_date(scan: ColumnScan, value: str) -> TextReason:
    start = f"looks like dates, but {scan.quote(value)} is none, and is read as text"
    # All other values must be dates, and a number is no word for a gap.
    options = _as_gaps(scan.no_dates)
    if scan.n_numbers or value not in scan.no_dates or not options:
        return TextReason(start)
    read = "reads it as a gap" if len(options) == 1 else "read them as gaps"
    way = f"; {_words_of(options)} {read}"
    return TextReason(f"{start}{way}", options, way=way)


def _likeness_to_numbers(scan: ColumnScan, name: str) -> TextReason | None:
    """Return why a column that is mostly numbers is read as text, or None."""
    n = scan.n_values
    if scan.n_too_large and 2 * scan.n_numbers > n:
        return TextReason(
            "is read as text: its numbers are too large, or too near to 0, to be "
            "held exactly"
        )
    n_like = scan.n_numbers + scan.n_like_numbers
    # Whole numbers with leading zeros are codes, such as 00123.
    if scan.n_leading_zeros or 2 * n_like <= n:
        return None
    start = f"is read as text: {_part(n_like, n)} are numbers"
    are_all_commas = scan.separator == ";" and n_like == scan.n_whole + scan.n_commas
    if not scan.n_like_numbers or (are_all_commas and scan.no_amounts):
        other = scan.quote(scan.examples["no amount"])
        return _way_to_gaps(scan, name).after(f"{start}, but not {other}")
    start += f" written as text, such as {scan.examples['like']!r}"
    return way_to_amounts(scan, name).after(start)


def _way_to_gaps(scan: ColumnScan, name: str) -> TextReason:
    """How the values of a column of numbers that are none become gaps."""
    if any(re.match(SUM_WORD, word) for word in scan.no_amounts):
        return TextReason("; remove that line if it has sums of the other ones")
    options = _gap_options(scan)
    if not options:
        return TextReason("")
    read = "reads it as a gap" if len(options) == 1 else "read them as gaps"
    if scan.is_typed:
        options, read = (("--number", name), *options), "reads it as numbers"
    way = f"; {_words_of(options)} {read}"
    return TextReason(way, options, way=way)


def _gap_options(
    scan: ColumnScan, more: Iterable[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return `--gap` options for values that are no numbers; () if many."""
    return _as_gaps({*scan.no_amounts, *more})


def way_to_amounts(scan: ColumnScan, name: str) -> TextReason:
    """Return how a column of amounts is read as numbers; no text if it has none."""
    sign, n_by_sign = scan.amount_sign, scan.amounts.n_by_sign
    # If no sign is frequent, they are letters of codes, such as 12A and 14C.
    if 2 * (n_by_sign[sign] + (sign == "") * scan.n_numbers) <= scan.n_values:
        return TextReason("")
    way = f"; --number {quote_names(name)} reads it as numbers"
    if scan.obstacle:
        return TextReason(f"{way} once this is mended: {scan.obstacle}")
    other_examples = {s: text for s, text in scan.amounts.examples.items() if s != sign}
    wrong = [*filter(None, [scan.amounts.no_number]), *other_examples.values()]
    # A plain number is no word for a gap: other columns may have it.
    has_plain = bool(sign) and scan.n_numbers > 0
    is_sum = any(re.match(SUM_WORD, word) for word in scan.no_amounts)
    are_known = len(wrong) == sum(n_by_sign[other] for other in other_examples)
    gaps = _gap_options(scan, wrong)
    are_gaps = bool(gaps) or not (wrong or scan.no_amounts)
    if not (are_known and are_gaps) or has_plain or is_sum:
        wrong += filter(None, [scan.examples.get("no amount")])
        wrong += [scan.examples["number"]] if has_plain else []
        return TextReason(f"{way} once {scan.quote(wrong[0])} is corrected")
    options = (("--number", name), *gaps)
    if not wrong:
        way = f"; {_words_of(options)} reads it as numbers"
        return TextReason(way, options, way=way)
    way += f" once {scan.quote(wrong[0])} is corrected; {_words_of(gaps)} "
    way += "reads it as a gap" if len(gaps) == 1 else "read them as gaps"
    return TextReason(way, options, way=way)


def _as_gaps(words: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the options that read words as gaps; () if there are many."""
    is_many = len(words) > MOST_GAPS_OFFERED
    return () if is_many else tuple(("--gap", word) for word in sorted(words))


def _words_of(options: Iterable[tuple[str, str]]) -> str:
    """Return options with one value each as words of the shell."""
    return shlex.join(
        word
        for option, value in options
        for word in (option, join_names([value]) if option == "--number" else value)
    )


def _part(n: int, n_all: int) -> str:
    """Return how many of a column's values are something; it is never rounded up.

    Examples
    --------
    >>> _part(9, 9), _part(8997, 9000), _part(2, 3)
    ('all of its values', 'all but 3 of its 9,000 values', '66% of its values')
    """
    if n == n_all:
        return "all of its values"
    if n_all - n <= MOST_EXCEPTIONS * n_all:
        return f"all but {n_all - n:,} of its {n_all:,} values"
    return f"{100 * n // n_all}% of its values"
