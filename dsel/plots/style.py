"""Style of all figures: colors, labels of parameter values, new axes."""

from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from dsel.checks import show
from dsel.results.values import read_coordinate, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#22303c"
"""Color of texts and axes; pages replace it by the color of their own text."""
ON_PALE: Final = "#1d2a36"
"""Color of texts on pale cells, on light and dark pages."""
ACCENT: Final = "#d95f02"
BLUE: Final = "#4a7fb5"
PALE: Final = "#a9c4de"
GREY: Final = "#c9ccd1"
MIDDLE: Final = "#808890"
"""Color of lines and areas behind the data, half transparent for dark pages, too."""
GREEN: Final = "#009e73"
PINK: Final = "#cc79a7"
COLORMAP: Final = "Blues"


def new_axes(ax: Any = None, width: float = 6.4, height: float = 4.4) -> "Axes":
    """Return `ax`, or the axes of a new figure."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need matplotlib, which is not installed; "
            "pip install 'dsel[plots]'."
        ) from error
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"`ax` must be axes of matplotlib, such as pyplot.subplots()[1], got "
            f"{show(ax)}."
        )
    return ax


def show_as_written(ax: "Axes") -> None:
    """Make texts of axes plain: matplotlib reads mathematics between two dollars.

    Names of parameters, columns and classes may hold any sign. The numbers along a
    logarithmic axis are matplotlib's own, and stay what they are.
    """
    from matplotlib.text import Text

    axes = (ax.xaxis, ax.yaxis)
    powers = [
        label
        for axis in axes
        if axis.get_scale() == "log"
        for label in axis.get_ticklabels(which="both")
    ]
    for text in ax.findobj(Text):
        if not any(text is label for label in powers):
            text.set_parse_math(False)


def tidy(ax: "Axes", *, title: str) -> None:
    """Style axes like those of all figures; call it after all texts are set."""
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.spines[:].set_color(INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0, which="both", labelsize=8, colors=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_color(INK)
    show_as_written(ax)


def in_hundreds(rate: float, _: Any = None) -> str:
    """Return a rate as a tick label in percent."""
    return f"{100 * rate:g}"


def value_labels(coordinate: xr.DataArray) -> list[str]:
    """Return the tick labels of the values of a parameter.

    Examples
    --------
    >>> value_labels(xr.DataArray([0.25, 1.0])), value_labels(xr.DataArray([1, 8]))
    (['0.25', '1.0'], ['1', '8'])
    """
    if coordinate.dtype.kind in "OUT":
        return [str(label) for label in coordinate.values]  # what `sel` takes
    return [value_text(v) for v in read_coordinate(coordinate, may_lack=False)]
