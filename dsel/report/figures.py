"""Figures of the page as SVG text."""

import re
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def as_svg(draw: "Callable[[Axes], None]", *, width: float, height: float) -> str:
    """Return what `draw` puts on a fresh pair of axes, as an SVG element."""
    return figure_svg(
        lambda drawing: draw(drawing.add_subplot()), width=width, height=height
    )


def figure_svg(draw: "Callable[[Figure], None]", *, width: float, height: float) -> str:
    """Return what `draw` puts on a fresh figure, as an SVG element.

    Raises
    ------
    ModuleNotFoundError
        Where matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a report needs matplotlib, which is not installed; "
            "pip install 'dsel[report]'."
        ) from error
    # The salt makes the page the same each time.
    with rc_context({"svg.hashsalt": "dsel", "svg.fonttype": "path"}):
        drawing = Figure(figsize=(width, height), layout="constrained")
        draw(drawing)
        file = StringIO()
        drawing.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    element = file.getvalue()
    element = element[element.index("<svg") :]
    size = f'style="max-width:{100 * width:.0f}px"'
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', rf"\1 {size}", element, count=1)
