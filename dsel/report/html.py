"""Small pieces of HTML; whatever comes from outside is escaped here."""

from collections.abc import Iterable, Sequence
from html import escape

from dsel.report.look import STYLE


def text(value: object) -> str:
    """Return a value as text that HTML shows as it is.

    Examples
    --------
    >>> text("<b> & 3")
    '&lt;b&gt; &amp; 3'
    """
    return escape(str(value))


def document(title: str, *body: str) -> str:
    """Return a whole page of parts that are HTML; it loads nothing from elsewhere."""
    parts = "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{text(title)}</h1>\n{parts}\n</main></body></html>\n"
    )


def bullets(items: Iterable[object]) -> str:
    """Return a list of plain texts, or nothing where there are none."""
    lines = "".join(f"<li>{text(item)}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


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
    """Return a figure of a drawing that is trusted; its caption is read out, too."""
    drawing = svg.replace("<svg", f'<svg role="img" aria-label="{text(caption)}"', 1)
    return f"<figure>{drawing}<figcaption>{text(caption)}</figcaption></figure>"
