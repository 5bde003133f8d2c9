"""Figures as SVG elements for pages and notebooks, in the color of the text around."""

import io
import re
from collections.abc import Callable
from typing import Any, Final

import xarray as xr

from dsel.plots.bars import plot_certificates
from dsel.plots.style import INK
from dsel.results import Choice

WIDTH: Final = 3.8
"""Width in inches, at which letters of 9 points are legible on a phone."""
HEAD: Final = 0.5
"""Height in inches of the lines above the data that say what is drawn."""
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_RULE: Final = re.compile(r"\s*<defs>\s*<style[^>]*>\*\{([^}]*)\}</style>\s*</defs>")
"""Rule of matplotlib for all elements, which would be those of the whole page, too."""


def draw_bounds(results: xr.Dataset, choice: Choice) -> str:
    """Return the figure of the bounds of a search, without its title.

    The page and the card print the title themselves.
    """
    n_bars = len(choice.certificates) + (choice.expected_holdout > 0)
    n_bars += bool(choice.best_constant[0])
    height = 1.3 + 0.42 * n_bars
    return draw_svg(plot_certificates, results, height=height, titled=False)


def draw_svg(
    plot: Callable[..., Any], what: object, *, height: float, titled: bool = True
) -> str:
    """Return a figure as an SVG element in the color of the text around it."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a report needs matplotlib, which is not installed; "
            "pip install 'dsel[report]'."
        ) from error
    # Texts are measured in whole pixels: at 72 to the inch a legend of six lines seems
    # seven points higher than it is drawn, and leaves a gap below the title.
    figure = Figure(figsize=(WIDTH, height + HEAD), dpi=300, layout="constrained")
    ax = plot(what, ax=figure.add_subplot())
    if not titled:
        ax.set_title("", loc="left")
    file = io.StringIO()
    # The salt makes the page the same each time.
    with rc_context({"svg.hashsalt": "dsel", "svg.fonttype": "path"}):
        figure.savefig(
            file, format="svg", dpi=72, metadata=_NO_METADATA, transparent=True
        )
    element = "<svg" + file.getvalue().partition("<svg")[2]
    for ink in (INK, "#000000"):
        element = element.replace(ink, "currentColor")
    rule = _RULE.search(element)
    element = _RULE.sub("", element, count=1)
    style = f"max-width:{120 * WIDTH:.0f}px{f';{rule[1]}' if rule else ''}"
    size = f'fill="currentColor" style="{style}"'
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', rf"\1 {size}", element, count=1)
