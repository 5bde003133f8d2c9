"""Numbers as text, rounded so that they hold: upper limits up, lower ones down."""

import re
import shutil
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import isfinite
from textwrap import fill, shorten
from typing import Final, TextIO

PLAIN_WIDTH: Final = 80
"""Width of wrapped lines outside a terminal."""
WIDEST: Final = 100
"""Largest width of wrapped lines: longer ones are hard to read."""
NONE: Final = "none"
"""Text in place of a number that is not finite, or of no rows."""
EXACT: Final = Context(prec=800)
"""Precision that represents every float, and its percentage, exactly."""
_QUOTED: Final = r"'[^'\n]*'|`[^`\n]*`"
_OPTION: Final = rf"--[a-z][\w-]*(?:[ =](?:{_QUOTED}|(?!--)[^\s,;]+))?"
_FILE: Final = r"[A-Z]+\b|[^\s,;]*[/._=\d][^\s,;]*"
WHOLE_PARTS: Final = re.compile(
    rf"\bdsel [a-z-]+(?: [^\s,;-][^\s,;]*)?(?: (?:{_QUOTED}|{_OPTION}|{_FILE}))*"
    rf"|{_OPTION}|(?<![^\s(=]){_QUOTED}"
)
"""Parts of a text that no line break may cut: a command, an option with its value, and
what is quoted. A user copies these."""
_HIDDEN: Final = str.maketrans({" ": "\x00", "-": "\x01"})
_SHOWN: Final = str.maketrans({"\x00": " ", "\x01": "-"})


def at_most(
    limit: float, *, decimals: int, shift: int = 0, rounding: str = ROUND_CEILING
) -> str:
    """Return an upper limit, times ten to the `shift`, as text that is never below it.

    The limit is taken as its shortest decimal text: 0.07 stays 0.07 although no float
    is exactly that.

    Examples
    --------
    >>> at_most(0.2546496, decimals=3), at_most(0.07, decimals=3)
    ('0.255', '0.070')
    """
    if not isfinite(limit):
        return NONE
    exact = Decimal(repr(float(limit))).scaleb(shift, EXACT)
    return f"{exact.quantize(Decimal(1).scaleb(-decimals), rounding, EXACT):f}"


def name_folds(*folds: int) -> str:
    """Return folds by their numbers, from 0 as in results, cubes, figures and JSON.

    Examples
    --------
    >>> name_folds(0), name_folds(2, 4)
    ('fold 0', 'folds 2 and 4')
    """
    texts = list(map(str, folds))
    return f"fold{'s' if len(texts) > 1 else ''} {' and '.join(texts)}"


def in_percent(rate: float) -> str:
    """Return an upper limit in percent with one decimal, rounded up.

    Examples
    --------
    >>> in_percent(0.1501), about_percent(0.1501), floor_percent(0.1509)
    ('15.1%', '15.0%', '15.0%')
    """
    return f"{at_most(rate, decimals=1, shift=2)}%"


def about_percent(rate: float) -> str:
    """Return an estimate in percent with one decimal."""
    return f"{100 * rate:.1f}%"


def fraction_in_percent(fraction: float) -> str:
    """Return a fraction in percent, with decimals only where it would be 100%.

    Examples
    --------
    >>> [fraction_in_percent(fraction) for fraction in (0.8, 249 / 250, 1.0)]
    ['80%', '99.6%', '100%']
    """
    decimals = 0
    while (
        fraction < 1 and float(f"{100 * fraction:.{decimals}f}") == 100 and decimals < 9
    ):
        decimals += 1
    return f"{fraction:.{decimals}%}"


def floor_percent(rate: float) -> str:
    """Return a lower limit in percent with one decimal, rounded down."""
    return f"{at_most(rate, decimals=1, shift=2, rounding=ROUND_FLOOR)}%"


def points_at_most(difference: float) -> str:
    """Return an upper limit of a difference in percentage points, without a unit.

    Examples
    --------
    >>> points_at_most(0.0312), points_at_least(0.0312)
    ('3.2', '3.1')
    """
    return at_most(min(difference, 1.0), decimals=1, shift=2)


def points_at_least(difference: float) -> str:
    """Return a lower limit of a difference in percentage points, without a unit."""
    return at_most(difference, decimals=1, shift=2, rounding=ROUND_FLOOR)


def count_of(n: int, noun: str, *verb: str) -> str:
    """Return a number with its noun and, if there is one, the matching verb.

    The plural of `noun` ends with ``s``; `verb` has its singular, then its plural.

    Examples
    --------
    >>> count_of(1, "row", "has", "have"), count_of(1200, "pool row")
    ('1 row has', '1,200 pool rows')
    """
    words = [f"{n:,} {noun}{'s' if n != 1 else ''}", *verb[n != 1 :][:1]]
    return " ".join(words)


def short_number(value: float) -> str:
    """Return an estimate with three significant digits.

    Examples
    --------
    >>> short_number(1104.2), short_number(0.012345), short_number(12.0)
    ('1,100', '0.0123', '12')
    """
    return f"{float(f'{value:.3g}'):,.10g}"


def confidence(delta: float, decimals: int = 4) -> str:
    """Return 1 - delta in percent, without the sign, rounded down.

    Examples
    --------
    >>> confidence(0.05), confidence(1e-9), confidence(0.05 / 21, decimals=2)
    ('95', '99.9999', '99.76')
    """
    # Rounding 1 - delta down means rounding delta up.
    missing = Decimal(at_most(delta, decimals=decimals, shift=2))
    return f"{100 - missing:f}".rstrip("0").rstrip(".")


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of lines on a stream's terminal; None if it is no terminal.

    The stream is standard output by default. The width is at most `WIDEST`.

    Files and pipes get one line for each statement, which tools can search.
    """
    is_terminal = getattr(stream or sys.stdout, "isatty", bool)()
    return min(shutil.get_terminal_size().columns, WIDEST) if is_terminal else None


def wrap_line(line: str, indent: int = 0, width: int | None = None) -> str:
    """Return a line wrapped between words, by default at the terminal's width or 80.

    A command, an option with its value, and what is quoted stay on one line.

    Examples
    --------
    >>> print(wrap_line("write --queries 50 and go on", width=16))
    write
    --queries 50 and
    go on
    """
    lines = fill(
        hide_breaks(line),
        width or terminal_width() or PLAIN_WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return show_breaks(lines)


def hide_breaks(text: str) -> str:
    """Return a text whose `WHOLE_PARTS` have no place at which a line may end."""
    return WHOLE_PARTS.sub(lambda part: part[0].translate(_HIDDEN), text)


def show_breaks(text: str) -> str:
    """Return the text that `hide_breaks` got, after its lines were wrapped."""
    return text.translate(_SHOWN)


def shorten_text(text: str, width: int = 60) -> str:
    """Return a long text, such as one of many costs, cut after a word."""
    return shorten(text, width, placeholder=" ...)")
