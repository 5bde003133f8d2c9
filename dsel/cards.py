"""Cards: rows of texts as HTML for notebooks, in light and dark themes."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Final

from dsel.rounded_texts import WHOLE_PARTS

LONGEST_WORD: Final = 20
"""Letters of a word from which on it may be cut: parameters with a model, a path."""
LONGEST_WHOLE: Final = 40
"""Longest part of a text that a page keeps on one line: a phone shows as much."""
_LONG_WORD: Final = re.compile(rf"\S{{{LONGEST_WORD},}}")
_PLACE: Final = re.compile(r"(?<=\w[=(,/])(?=[\w'\"])")
"""Places in a word at which a page may end a line, so that no name or number is cut."""
_OPTION_WORD: Final = re.compile(r"(?<!\S)--?[a-z][\w-]*")
NAME_WIDTH: Final = 8
"""Letters of a name that has its text next to it in a column; after a longer one stands
a colon."""
ALARMS: Final = ("Refuted", "Warning")
"""Names of rows for which a card has an edge of another color."""
NO_PROOF: Final = ("No guarantee", "No bound", "No finite bound")
"""Beginnings of a first line for which it has this edge, too."""
ShownRow = tuple[str, ...]
"""A row that a result shows: a name, which may be empty, and a text; or table cells."""

# All colors derive from the text's own color, so that cards fit light and dark themes.
# Class names begin with dsel, since a notebook is one page with other elements.
_STYLE: Final = (
    ".dsel-card{border:1px solid rgba(128,128,128,.4);"
    "border-left:4px solid #3b6fa0;border-radius:4px;padding:10px 14px;margin:6px 0;"
    "max-width:72em;line-height:1.45;overflow-x:auto}"
    ".dsel-card.dsel-alarm{border-left-color:#d95f02}"
    ".dsel-card p{margin:2px 0}.dsel-card .dsel-head{font-weight:700}"
    ".dsel-card dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;"
    "margin:8px 0 0;font-size:.92em}"
    ".dsel-card dt{margin:0;opacity:.7;font-weight:400}.dsel-card dd{margin:0;"
    "grid-column:2;overflow-wrap:anywhere}"
    ".dsel-card table{border-collapse:collapse;margin:6px 0;font-size:.92em}"
    ".dsel-card .dsel-row{display:flex;flex-wrap:wrap;gap:0 28px}"
    ".dsel-card .dsel-row>*{flex:1 1 24em;min-width:0}"
    ".dsel-card .dsel-row>.dsel-figure{max-width:28em;margin:8px 0}"
    ".dsel-card svg{width:100%;height:auto;display:block}"
    ".dsel-card th,.dsel-card td{padding:1px 10px;text-align:right;border:0;"
    "background:none}.dsel-card th:first-child,.dsel-card td:first-child"
    "{text-align:left;padding-left:0}.dsel-card th{opacity:.7;font-weight:400}"
    "@media(max-width:480px){.dsel-card dl{display:block}.dsel-card dd"
    "{margin:0 0 6px}}"
)


def render_card(
    shown_rows: Iterable[ShownRow], figure: str = "", *, drawn: Container[str] = ()
) -> str:
    """Return rows of texts as a card: lines, named texts as a list, rows as a table.

    The first line without a name is in bold. The edge is orange where something is
    refuted, not guaranteed or warned of, else blue. `figure` is an SVG element, in
    which nothing is escaped, beside all that follows the first lines. It stands in the
    place of the rows whose names are in `drawn`, and these describe it to readers who
    do not see it.

    Examples
    --------
    >>> card = render_card([("", "Error at most 4.2%"), ("Note", "2 fits failed")])
    >>> card[card.index("<p"):]  # doctest: +NORMALIZE_WHITESPACE
    '<p class="dsel-head">Error at most 4.2%</p><dl><dt>Note</dt><dd>2 fits
    failed</dd></dl></article>'
    """
    rows, label = list(shown_rows), "Bounds"
    if figure:
        texts = [f"{name}: {text}" for name, text in rows if name in drawn]
        label = "; ".join([label, *texts])
        rows = [row for row in rows if row[0] not in drawn]
    parts: list[str] = []
    n_lines = 0
    for kind, group in groupby(rows, key=_kind_of):
        if kind == "row":
            parts.append(_table(list(group)))
        elif kind == "named":
            parts.append(f"<dl>{''.join(_definition_list(group))}</dl>")
        else:
            for _, text in group:
                name = "" if n_lines else ' class="dsel-head"'
                parts.append(f"<p{name}>{mark_code(text)}</p>")
                n_lines += 1
    if figure:  # beside the texts below the first lines
        n_lines = next((k for k, p in enumerate(parts) if p[:2] != "<p"), len(parts))
        below = f"<div>{''.join(parts[n_lines:])}</div>"
        image = f'<div class="dsel-figure" role="img" aria-label="{escape(label)}">'
        row = f'<div class="dsel-row">{below}{image}{figure}</div></div>'
        parts = [*parts[:n_lines], row]
    kind = "dsel-card dsel-alarm" if has_alarm(rows) else "dsel-card"
    return f'<article class="{kind}"><style>{_STYLE}</style>{"".join(parts)}</article>'


def has_alarm(rows: Sequence[ShownRow]) -> bool:
    """Return whether texts say that something is refuted, unproved or warned of.

    Examples
    --------
    >>> has_alarm([("", "Error at most 4.2%"), ("Warning", "5 of 50 fits failed")])
    True
    """
    head = next((text for name, text, *_ in rows if not name), "")
    return head.startswith(NO_PROOF) or any(row[0] in ALARMS for row in rows)


def mark_code(text: str) -> str:
    """Return a text as HTML, with what is between backticks as code.

    No browser ends a line inside of an option or a short command.

    Examples
    --------
    >>> mark_code("use `x`, or --queries 50")
    'use <code>x</code>, or <span style="white-space:nowrap">--queries 50</span>'
    >>> mark_code("model=LogisticRegression(max_iter=1000)")
    'model=<wbr>LogisticRegression(<wbr>max_iter=<wbr>1000)'
    """
    parts, end = [], 0
    for part in WHOLE_PARTS.finditer(text):
        shown = _with_breaks(part[0])
        if part[0].startswith("`"):
            code = part[0][1:-1]
            is_long = len(code) > LONGEST_WORD
            shown = f"<code>{mark_command(code) if is_long else escape(code)}</code>"
        elif part[0][0] != "'" and len(part[0]) <= LONGEST_WHOLE:
            shown = f'<span style="white-space:nowrap">{shown}</span>'
        parts += [_with_breaks(text[end : part.start()]), shown]
        end = part.end()
    return "".join([*parts, _with_breaks(text[end:])])


def mark_command(text: str) -> str:
    """Return a command or code as HTML in which no line ends behind hyphens.

    Examples
    --------
    >>> mark_command("dsel plan-bound 400 --error 0.1")  # doctest: +ELLIPSIS
    'dsel plan-bound 400 <span style="white-space:nowrap">--error</span> 0.1'
    """
    parts, end = [], 0
    for option in _OPTION_WORD.finditer(text):
        whole = f'<span style="white-space:nowrap">{escape(option[0])}</span>'
        parts += [_with_breaks(text[end : option.start()]), whole]
        end = option.end()
    return "".join([*parts, _with_breaks(text[end:])])


def _with_breaks(text: str) -> str:
    """Return a text as HTML, with places to end a line in its long words."""
    parts, end = [], 0
    for word in _LONG_WORD.finditer(text):
        pieces = map(escape, _PLACE.split(word[0]))
        parts += [escape(text[end : word.start()]), "<wbr>".join(pieces)]
        end = word.end()
    return "".join([*parts, escape(text[end:])])


def _kind_of(row: ShownRow) -> str:
    if len(row) > 2:
        return "row"
    return "named" if row[0] else "line"


def _definition_list(rows: Iterable[ShownRow]) -> Iterator[str]:
    """Yield named texts as a list; texts that follow each other share their name."""
    for name, group in groupby(rows, key=itemgetter(0)):
        yield f"<dt>{escape(name)}</dt>"
        yield from (f"<dd>{mark_code(text)}</dd>" for _, text in group)


def _table(rows: Sequence[ShownRow]) -> str:
    """Return rows as a table, the first one as its head."""

    def row(cells: ShownRow, tag: str) -> str:
        shown = (f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(shown)}</tr>"

    head, *body = rows
    lines = "".join(row(cells, "td") for cells in body)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{lines}</tbody></table>"
