"""Cards: rows of texts as HTML for notebooks, in light and dark themes."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Final

Fact = tuple[str, ...]
"""A name, which may be empty, and a text; or a row of a table."""

# All colors derive from the text's own color, so that cards fit light and dark themes.
# Class names begin with dsel, since a notebook is one page with other elements.
_STYLE: Final = (
    ".dsel-card{border:1px solid rgba(128,128,128,.4);"
    "border-left:4px solid #3b6fa0;border-radius:4px;padding:10px 14px;margin:6px 0;"
    "max-width:52em;line-height:1.45;overflow-x:auto}"
    ".dsel-card p{margin:2px 0}.dsel-card .dsel-head{font-weight:700}"
    ".dsel-card dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;"
    "margin:8px 0 0;font-size:.92em}"
    ".dsel-card dt{margin:0;opacity:.7;font-weight:400}.dsel-card dd{margin:0;"
    "overflow-wrap:anywhere}"
    ".dsel-card table{border-collapse:collapse;margin:6px 0;font-size:.92em}"
    ".dsel-card th,.dsel-card td{padding:1px 10px;text-align:right;border:0;"
    "background:none}.dsel-card th:first-child,.dsel-card td:first-child"
    "{text-align:left;padding-left:0}.dsel-card th{opacity:.7;font-weight:400}"
    "@media(max-width:480px){.dsel-card dl{display:block}.dsel-card dd"
    "{margin:0 0 6px}}"
)


def render_card(facts: Iterable[Fact]) -> str:
    """Return rows of texts as a card: lines, named texts as a list, rows as a table.

    The first line without a name is in bold.

    Examples
    --------
    >>> card = render_card([("", "Error at most 4.2%"), ("Note", "2 fits failed")])
    >>> card[card.index("<p"):]  # doctest: +NORMALIZE_WHITESPACE
    '<p class="dsel-head">Error at most 4.2%</p><dl><dt>Note</dt><dd>2 fits
    failed</dd></dl></article>'
    """
    parts: list[str] = []
    n_lines = 0
    for kind, group in groupby(facts, key=_kind_of):
        rows = list(group)
        if kind == "row":
            parts.append(_table(rows))
        elif kind == "named":
            listed = (f"<dt>{escape(n)}</dt><dd>{mark_code(t)}</dd>" for n, t in rows)
            parts.append(f"<dl>{''.join(listed)}</dl>")
        else:
            for _, text in rows:
                name = "" if n_lines else ' class="dsel-head"'
                parts.append(f"<p{name}>{mark_code(text)}</p>")
                n_lines += 1
    return (
        f'<article class="dsel-card"><style>{_STYLE}</style>{"".join(parts)}</article>'
    )


def mark_code(text: str) -> str:
    """Return a text as HTML, with what is between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _kind_of(fact: Fact) -> str:
    if len(fact) > 2:
        return "row"
    return "named" if fact[0] else "line"


def _table(rows: Sequence[Fact]) -> str:
    """Return rows as a table, the first one as its head."""

    def row(cells: Fact, tag: str) -> str:
        shown = (f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(shown)}</tr>"

    head, *body = rows
    lines = "".join(row(cells, "td") for cells in body)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{lines}</tbody></table>"
