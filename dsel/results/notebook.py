"""What notebooks show of a plan, a choice, a certificate or a search: one small table.

It sets no colour, so that it can be read on light and dark ground, and runs nothing.
"""

from collections.abc import Iterable
from html import escape


def as_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    r"""Return facts as HTML; whatever their texts hold is shown as it is.

    They are names and texts; a fact without a name takes the whole row.

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
