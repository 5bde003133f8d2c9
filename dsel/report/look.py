"""The look of the page."""

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
