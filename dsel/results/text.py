"""Numbers as text that stays true, and facts as a table of a notebook.

An upper limit rounds up, so that what is shown is a bound, too. A number is taken as
its shortest decimal text: 0.07 stays 0.07 although no float is exactly that, and .25
stays 25 % however it is scaled.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from math import isfinite
from typing import Final

DIGITS: Final = 4
"""Significant digits where no number of decimals is asked for."""
EXACT: Final = Context(prec=800)
"""Holds every float and its percentage."""


def at_most(value: float, *, decimals: int | None = None, percent: bool = False) -> str:
    """Return an upper limit as text, never below it, at most a last digit above.

    It has so many decimals; where None, four significant digits. `percent` shows 100
    times the limit, without the sign.

    Examples
    --------
    >>> at_most(0.2546496, percent=True), at_most(0.25, percent=True)
    ('25.47', '25')
    """
    return _text(value, ROUND_CEILING, decimals, percent)


def at_least(
    value: float, *, decimals: int | None = None, percent: bool = False
) -> str:
    """Return a lower limit as text, never above it; arguments as of `at_most`.

    Examples
    --------
    >>> at_least(0.2546496, percent=True)
    '25.46'
    """
    return _text(value, ROUND_FLOOR, decimals, percent)


def in_percent(rate: float) -> str:
    """Return an upper limit in percent with one digit, as every text of dsel has it.

    Examples
    --------
    >>> in_percent(0.1501), in_percent(0.15)
    ('15.1 %', '15.0 %')
    """
    return f"{at_most(rate, decimals=1, percent=True)} %"


def confidence(delta: float) -> str:
    """Return 1 - delta in percent, without the sign, rounded down to four decimals.

    Examples
    --------
    >>> confidence(0.05), confidence(1e-9)
    ('95', '99.9999')
    """
    held = EXACT.subtract(Decimal(1), Decimal(repr(float(delta))))
    return _text(held, ROUND_FLOOR, 4, True).rstrip("0").rstrip(".")


def as_lines(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts, which are names and texts, as lines; some have no name.

    Examples
    --------
    >>> print(as_lines([("", "Error at most 5.0 %"), ("By", "nested")]))
    Error at most 5.0 %
    By       nested
    """
    return "\n".join(f"{name:8} {text}" if name else text for name, text in facts)


def as_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    r"""Return facts as HTML; whatever their texts hold is shown as it is.

    They are names and texts; a fact without a name takes the whole row. No colour is
    set, so that it can be read on light and dark ground.

    Examples
    --------
    >>> html = as_html("Choice", [("Chosen", "C<1")])
    >>> html[:49], "C&lt;1" in html
    ('<div><strong>Choice</strong><table>\n<tr><th style', True)
    """
    left = 'style="text-align: left"'
    rows = [
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>\n"
        if name
        else f'<tr><td colspan="2" {left}>{escape(text)}</td></tr>\n'
        for name, text in facts
    ]
    head = f"<div><strong>{escape(title)}</strong><table>\n"
    return f"{head}{''.join(rows)}</table></div>"


def _text(
    value: float | Decimal, rounding: str, decimals: int | None, percent: bool
) -> str:
    if not isfinite(value):
        return f"{value:g}"
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if percent:
        exact = EXACT.multiply(exact, Decimal(100))
    places = DIGITS - 1 - exact.adjusted() if decimals is None else decimals
    shown = exact.quantize(Decimal(1).scaleb(-places), rounding, EXACT)
    # Four digits are left: the nearest ones are the same.
    return f"{float(shown):.{DIGITS}g}" if decimals is None else f"{shown:f}"
