"""Numbers as text that stays true: upper limits round up, lower limits down.

The number is taken as its shortest decimal text, so that 0.07 stays 0.07 although no
float is exactly that, and .25 stays 25 % however it is scaled.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
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


def confidence(delta: float, *, percent: bool = False) -> str:
    """Return 1 - delta as text, rounded down to six decimals.

    Examples
    --------
    >>> confidence(0.05), confidence(1e-9, percent=True)
    ('0.95', '99.9999')
    """
    held = EXACT.subtract(Decimal(1), Decimal(repr(float(delta))))
    text = _text(held, ROUND_FLOOR, 4 if percent else 6, percent)
    return text.rstrip("0").rstrip(".")


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
