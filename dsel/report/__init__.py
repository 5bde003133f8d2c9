"""Report: one HTML page about a search, in plain words, readable without a network.

The page says first what is guaranteed or why nothing is, then what each model's number
is made of, how the candidates compare, on what it rests, and how to get the same
numbers again. Every number comes from the cube; no fit is run.

To add a section: its values in `page.report_html`, its place in `report.html.j2`. Needs
the extra ``report``.
"""

from dsel.report.page import write_report

__all__ = ["write_report"]
