"""Small pieces of HTML, and their look; whatever comes from outside is escaped here."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

STYLE: Final = """
:root { --ink: #22303c; --soft: #5b6b79; --line: #dde3e8; --accent: #d95f02;
        --blue: #3b6fa0; --ground: #ffffff; --pale: #f4f7fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 860px; margin: 0 auto; padding: 40px 24px 80px; }
h1 { font-size: 1.05rem; font-weight: 600; color: var(--soft); margin: 0 0 20px; }
h2 { font-size: 1.2rem; margin: 48px 0 12px; }
p { margin: 0 0 12px; }
.verdict { border-left: 5px solid var(--blue); background: var(--pale);
           padding: 18px 22px; border-radius: 0 6px 6px 0; }
.verdict.warning { border-color: var(--accent); background: #fdf3ea; }
.headline { font-size: 2rem; font-weight: 700; line-height: 1.2; margin-bottom: 10px; }
.chosen { font-size: 1.1rem; margin: 20px 0; }
dl { display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 16px 0 12px; }
dt { font-size: .8rem; color: var(--soft); }
dd { margin: 0; font-size: 1.25rem; font-weight: 600;
     font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
        font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line);
         vertical-align: top; overflow-wrap: break-word; }
td:first-child { white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
tr.marked td { font-weight: 700; border-bottom-color: var(--accent); }
figure { margin: 8px 0 26px; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: .88rem; }
details table { font-size: .82rem; table-layout: fixed; }
details td { overflow-wrap: anywhere; }
details td:first-child { width: 14em; }
details thead { display: none; }
summary { cursor: pointer; color: var(--blue); }
@media screen and (max-width: 640px) {
  /* Their letters would be too small to read: figures scroll instead. */
  figure { overflow-x: auto; } figure svg { min-width: 620px; }
  table { font-size: .8rem; } th, td { padding-right: 8px; }
  /* Tables scroll, too, before a column has one word a line. */
  .wide td:not(.number) { min-width: 9em; }
  .wide td:first-child { min-width: 0; } }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --soft: #a3b1bd; --line: #37424d; --accent: #f0883e;
          --blue: #79b0e3; --ground: #14191f; --pale: #1d252d; }
  .verdict.warning { background: #33241a; } }
@media print { body { font-size: 10.5pt; } main { padding: 0; }
  figure, tr, .verdict { break-inside: avoid; } section > p { break-after: avoid; }
  h2 { break-after: avoid; margin-top: 26px; } figure svg { max-height: 78mm; }
  details::details-content { content-visibility: visible; } summary { display: none; } }
"""


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
