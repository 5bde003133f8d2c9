r"""Amounts such as ``$1,234.50`` and ``18%``: numbers with a sign or grouped digits.

The sign stands before or behind the number. Commas, points, apostrophes and blanks
group digits; which of comma and point is the decimal mark depends on the table.
"""

from collections import Counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_BLANK: Final = r"[ \x{a0}\x{202f}]"
_GROUPED: Final = (
    rf"[0-9]{{1,3}}(?:(?:[,.'\x{{2019}}_]|{_BLANK})[0-9]{{3}})+(?:[.,][0-9]+)?"
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]+)?"  # as in India
)
_UNGROUPED: Final = r"(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)"
_SIGN_BEFORE: Final = (
    rf"[A-Z]{{0,3}}\p{{Sc}}|[A-Z]{{3}}{_BLANK}|EUR|USD|GBP|CHF"
    rf"|(?:Rs|Fr|[Kk]r)(?:\.|{_BLANK})"
)
_SIGN_AFTER: Final = (
    rf"[%‰]|[A-Z]{{0,3}}\p{{Sc}}|[\p{{L}}°µ²³/]{{1,4}}|\p{{L}}{{1,5}}/\p{{L}}{{1,3}}"
    rf"|{_BLANK}[\p{{L}}°²³/]{{5,9}}"
)
_AMOUNT: Final = (
    rf"^(?P<open>\(?)(?P<minus>[+\x{{2212}}-]?){_BLANK}?(?P<before>{_SIGN_BEFORE})?"
    rf"{_BLANK}?(?P<inner>-?)(?P<digits>{_GROUPED}|{_UNGROUPED}){_BLANK}?"
    rf"(?P<after>(?:(?:{_SIGN_AFTER})\.?)?)(?P<close>\)?)$"
)
_WHOLE: Final = r"(?:0|[1-9][0-9]*)"
_BEFORE: Final = rf"(?:{_SIGN_BEFORE}|N[or]\.? |n[or]\.? |#|№) ?"
BASE_16: Final = "^[+-]?0[xX][0-9a-fA-F]+$"
LIKE_NUMBER: Final = (
    rf"^[<>~≈≤≥]? ?\(?[+\x{{2212}}-]?{_BLANK}?(?:{_BEFORE})?-?"
    rf"(?:{_GROUPED}|{_UNGROUPED}(?:[dDeE][+-]?[0-9]+)?)"
    rf"{_BLANK}?(?:(?:[*+-]|{_SIGN_AFTER})\.?)?\)?$"
    r"|^[+-]?(?:inf|Inf|INF|Infinity|infinity|1\.#(?:INF|IND|QNAN))$"
    rf"|{BASE_16}|^[+-]?\p{{Nd}}+(?:[.,\x{{66b}}]\p{{Nd}}+)?$"
)
"""Numbers with thousands separators, units, signs of currencies, a decimal comma or the
minus sign of print; negative numbers in parentheses, as in accounts; numbers of base
16, in digits of other scripts, and in the formats of C and Fortran."""
_TO_255: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS: Final = rf"^{_TO_255}(?:\.{_TO_255}){{3}}$"
"""Addresses of the internet, which may look like grouped digits."""


def _digits_pattern(decimal: str) -> str:
    """Return a pattern of unsigned numbers, plain or grouped by thousands."""
    other = "," if decimal == "." else "."
    grouped = "|".join(
        rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+"
        for mark in (rf"\{other}", r"['\x{2019}]", "_", _BLANK)
    )
    if decimal == ".":
        grouped += "|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"
    return rf"^(?:(?:{_WHOLE}|{grouped})(?:\{decimal}[0-9]*)?|\{decimal}[0-9]+)$"


_DIGITS: Final = {mark: _digits_pattern(mark) for mark in (".", ",")}
"""Patterns of the digits of an amount, by the decimal mark."""
_MOST_SIGNS: Final = 50


def _split(values: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return signs, digits and whether an amount is negative; null where none is."""
    parts = pc.extract_regex(values, _AMOUNT)
    start, minus, before, inner, digits, after, end = parts.flatten()
    signs = pc.utf8_trim_whitespace(pc.binary_join_element_wise(before, after, " "))
    minuses = pc.binary_join_element_wise(start, minus, inner, "")
    is_closed = pc.equal(pc.equal(start, "("), pc.equal(end, ")"))
    is_right = pc.and_(is_closed, pc.less_equal(pc.utf8_length(minuses), 1))
    is_negative = pc.and_(pc.not_equal(minuses, ""), pc.not_equal(minuses, "+"))
    none = pa.scalar(None, pa.string())
    return signs, pc.if_else(is_right, digits, none), is_negative


def plain_numbers(values: pa.Array, sign: str, decimal: str) -> pa.Array:
    """Return amounts as numbers with decimal points.

    They are null where a text is no amount with this sign and this decimal mark.

    Examples
    --------
    >>> texts = pa.array(["$1,234.50", "($900)", "$1.234,50", "EUR 5", "5", None])
    >>> plain_numbers(texts, "$", ".").to_pylist()
    ['1234.50', '-900', None, None, None, None]
    >>> plain_numbers(pa.array(["1.234,50 €", "-€12"]), "€", ",").to_pylist()
    ['1234.50', '-12']
    """
    signs, digits, is_negative = _split(values)
    is_right = pc.and_(
        pc.equal(signs, sign), pc.match_substring_regex(digits, _DIGITS[decimal])
    )
    digits = pc.replace_substring_regex(digits, f"[^0-9{decimal}]", "")
    digits = pc.replace_substring(digits, decimal, ".")
    minus = pc.if_else(is_negative, "-", "")
    texts = pc.binary_join_element_wise(minus, digits, "")
    return pc.if_else(is_right, texts, pa.scalar(None, pa.string()))


class AmountScan:
    """Counts of the amounts in a column by their sign, and what shows its decimal mark.

    Examples
    --------
    >>> scan = AmountScan()
    >>> scan.add(pa.array(["1.234 €", "12,50 €", "$5"]), pa.array([2, 1, 1]))
    >>> scan.n_by_sign, scan.marks, scan.ambiguous
    (Counter({'€': 3, '$': 1}), {',': '12,50 €'}, '1.234 €')
    """

    def __init__(self) -> None:
        self.n_by_sign: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        """An amount by its sign."""
        self.marks: dict[str, str] = {}
        """An example for each decimal mark that an amount shows: 1,234.5 and 1.23 show
        it, 1,234 and 123 do not."""
        self.ambiguous: str | None = None
        """An amount that is one number with decimal points, and another one with
        decimal commas."""
        self.no_number: str | None = None
        """A text whose digits do not form a number, such as $0,777.50."""

    def add(self, values: pa.Array, counts: pa.Array) -> None:
        """Count distinct texts, of which some are amounts."""
        if len(self.n_by_sign) > _MOST_SIGNS:  # so they are no amounts of one sign
            return
        signs, digits, _ = _split(values)
        by_mark = {m: pc.match_substring_regex(digits, p) for m, p in _DIGITS.items()}
        is_either = pc.and_(*by_mark.values())
        for mark, is_valid in by_mark.items():
            shows = values.filter(pc.and_not(is_valid, is_either))
            if mark not in self.marks and len(shows):
                self.marks[mark] = shows[0].as_py()
        has_mark = pc.and_(is_either, pc.match_substring_regex(digits, "[.,]"))
        if self.ambiguous is None and len(doubtful := values.filter(has_mark)):
            self.ambiguous = doubtful[0].as_py()
        is_amount = pc.or_(*by_mark.values())
        if self.no_number is None and len(bad := values.filter(pc.invert(is_amount))):
            self.no_number = bad[0].as_py()
        table = pa.table({"sign": signs, "n": counts, "value": values})
        rows_by_sign = table.filter(is_amount).group_by("sign", use_threads=False)
        for row in rows_by_sign.aggregate(
            [("n", "sum"), ("value", "first")]
        ).to_pylist():
            self.n_by_sign[row["sign"]] += row["n_sum"]
            self.examples.setdefault(row["sign"], row["value_first"])
