"""Report: one HTML page about a search, which a browser opens without a network.

The page begins with the guarantee, or the reason why there is none. The parts of each
model's number follow, then a comparison of the candidates, the assumptions, and the
settings that reproduce the numbers. Every number comes from the cube; no fit is run.

To add a section, pass its values in `page.report_html` and show them in
`report.html.j2`. Needs the extra ``report``.
"""

from dsel.checks import explain_public
from dsel.report.page import write_report

__all__ = ["write_report"]

explain_public(globals())
