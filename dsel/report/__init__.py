"""Report: one HTML page about a search, in plain words, readable without a network.

The page says first what is guaranteed or why nothing is, then what was chosen, how the
candidates compare, on which assumptions it rests, where the time went, and how to get
the same numbers again. Every number comes from the cube; no fit is run.

Vocabulary: a *section* is a heading and HTML made from a `Story`: the cube, the choice
and what goes with it, worked out once.

To add a section: a function of the story in `sections.py`, and its place in `page.py`.
Needs the extra ``report``.
"""

from dsel.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
