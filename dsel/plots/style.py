"""What all figures share: colours, labels of parameter values, a place to draw."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#22303c"
"""Of texts and axes; pages show it in the colour of their own text."""
ON_PALE: Final = "#1d2a36"
"""Of texts on pale cells, on any page."""
ACCENT: Final = "#d95f02"
BLUE: Final = "#4a7fb5"
PALE: Final = "#a9c4de"
GREY: Final = "#c9ccd1"
MIDDLE: Final = "#808890"
"""Of lines and areas behind the data, half transparent; for light and dark pages."""
GREEN: Final = "#009e73"
PINK: Final = "#cc79a7"
COLORMAP: Final = "Blues"


def new_axes(width: float = 6.4, height: float = 4.4) -> "Axes":
    """Return the axes of a new figure."""
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need matplotlib, which is not installed; "
            "pip install 'dsel[plots]'."
        ) from error
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def tidy(ax: "Axes", *, title: str) -> None:
    """Style axes as all figures are."""
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.spines[:].set_color(INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0, which="both", labelsize=8, colors=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_color(INK)


def in_hundreds(rate: float, _: Any = None) -> str:
    """Return a rate along an axis of percents."""
    return f"{100 * rate:g}"


def value_labels(values: NDArray[Any]) -> list[str]:
    """Return how the values of a parameter are written along an axis.

    Examples
    --------
    >>> value_labels(np.array([0.25, 1.0, 4.0])), value_labels(np.array([0.1, 10.0]))
    (['$2^{-2}$', '$2^{0}$', '$2^{2}$'], ['0.1', '10'])
    """
    if values.dtype.kind != "f":
        return [str(value) for value in values]
    halves, powers = np.frexp(values)
    if len(values) > 2 and np.all(halves == 0.5):  # powers of two
        return [f"$2^{{{power - 1}}}$" for power in powers]
    return [f"{value:g}" for value in values]
