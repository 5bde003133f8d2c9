"""Small pieces of HTML; whatever comes from outside is escaped here."""

from collections.abc import Iterable, Sequence
from html import escape

ROW_LIMIT = 20


def text(value: object) -> str:
    """Return a value as text that HTML shows as it is.

    Examples
    --------
    >>> text("<b> & 3")
    '&lt;b&gt; &amp; 3'
    """
    return escape(str(value))


def paragraph(value: object, *, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{text(value)}</p>"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    marked: int | None = None,
    numbers: Sequence[int] = (),
) -> str:
    """Return a table; row `marked` stands out, columns `numbers` align right."""
    align = [' class="number"' if n in numbers else "" for n in range(len(head))]
    lines = ["<div class='wide'><table><thead><tr>"]
    lines += [
        f'<th scope="col"{a}>{text(h)}</th>' for a, h in zip(align, head, strict=True)
    ]
    lines.append("</tr></thead><tbody>")
    for place, row in enumerate(rows):
        lines.append('<tr class="marked">' if place == marked else "<tr>")
        lines += [
            f"<td{a}>{text(cell)}</td>" for a, cell in zip(align, row, strict=True)
        ]
        lines.append("</tr>")
    return "".join([*lines, "</tbody></table></div>"])


def section(heading: str, *content: str) -> str:
    """Return a section, or nothing where there is no content."""
    body = "".join(content)
    return f"<section><h2>{text(heading)}</h2>{body}</section>" if body else ""


def figure(svg: str, caption: str) -> str:
    """Return a figure of a drawing that is trusted, with its caption."""
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"
