"""Figures of the page as SVG text."""

import re
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING

from dsel.plots.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def as_svg(draw: "Callable[..., Axes]", *, width: float, height: float) -> str:
    """Return what `draw` puts on a fresh pair of axes, its `ax`, as an SVG element."""
    return figure_svg(
        lambda drawing: draw(ax=drawing.add_subplot()), width=width, height=height
    )


def figure_svg(
    draw: "Callable[[Figure], object]", *, width: float, height: float
) -> str:
    """Return what `draw` puts on a fresh figure, as an SVG element.

    Raises
    ------
    ModuleNotFoundError
        Where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a report needs matplotlib, which is not installed; "
            "pip install 'dsel[report]'."
        ) from error
    drawing = Figure(figsize=(width, height), layout="constrained")
    draw(drawing)
    return svg_of(drawing)


def svg_of(drawing: "Figure") -> str:
    """Return a figure as an SVG element on the ground of the page that holds it.

    Texts and axes have the page's own text colour, so a dark page can show it too.
    """
    from matplotlib import rc_context

    # The salt makes the page the same each time.
    with rc_context({"svg.hashsalt": "dsel", "svg.fonttype": "path"}):
        file = StringIO()
        drawing.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    element = file.getvalue()
    element = element[element.index("<svg") :]
    for ink in (INK, "#000000"):
        element = element.replace(ink, "currentColor")
    size = f'fill="currentColor" style="max-width:{100 * drawing.get_figwidth():.0f}px"'
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', rf"\1 {size}", element, count=1)
