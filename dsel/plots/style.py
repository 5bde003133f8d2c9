"""Style of all figures: colors, labels of parameter values, new axes."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from dsel.checks import show
from dsel.results.certificate import params_text
from dsel.results.values import read_coordinate, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#22303c"
"""Color of texts and axes; pages replace it with the color of their own text."""
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
    """Switch off mathematics in texts of axes, which matplotlib reads between dollars.

    Names of parameters, columns and classes may contain any character. The numbers
    along a logarithmic axis, which matplotlib writes as mathematics, are unchanged.
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


def wrap(text: str, inches: float, fontsize: float) -> str:
    r"""Return text wrapped at about a width in inches.

    Examples
    --------
    >>> wrap("Fold by fold", 0.6, 10)
    'Fold by\nfold'
    """
    # The average letter of DejaVu Sans is half as wide as the font's size; rounding to
    # pixels makes it wider.
    width = max(8, int(72 * inches / (0.54 * fontsize)))
    lines = (
        fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def tidy(ax: "Axes", *, title: str) -> None:
    """Style axes in the same way for all figures; call it after all texts are set.

    Titles and labels are wrapped, since a narrow page cuts long lines.
    """
    # An estimate: the layout that makes room for labels is computed later.
    inches = ax.get_window_extent().width / ax.figure.dpi
    title = wrap(title, 1.15 * inches, 10)
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.set_xlabel(wrap(ax.get_xlabel(), 1.15 * inches, 10))
    height = ax.get_window_extent().height / ax.figure.dpi
    ax.set_ylabel(wrap(ax.get_ylabel(), height, 10))
    ax.spines[:].set_color(INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0, which="both", labelsize=8, colors=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_color(INK)
    show_as_written(ax)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return names by full name, without the pipeline step that all of them share.

    Examples
    --------
    >>> short_names(["model__C", "model__gamma"])
    {'model__C': 'C', 'model__gamma': 'gamma'}
    >>> short_names(["model__C", "scale"])
    {'model__C': 'model__C', 'scale': 'scale'}
    """
    steps = {name.rpartition("__")[0] for name in names}
    while len(steps) > 1:  # up to the step that all have in common
        longest = max(steps, key=len)
        steps = (steps - {longest}) | {longest.rpartition("__")[0]}
    prefix = f"{step}__" if (step := "".join(steps)) else ""
    return {name: name.removeprefix(prefix) for name in names}


def candidate_labels(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each candidate: the parameters in which candidates differ.

    Examples
    --------
    >>> candidate_labels([{"m__C": 1, "m__tol": 0.1}, {"m__C": 2, "m__tol": 0.1}])
    ['C=1', 'C=2']
    """
    names = list(dict.fromkeys(name for each in params for name in each))
    texts = {
        name: {params_text({name: p[name]}) if name in p else "" for p in params}
        for name in names
    }
    differ = [name for name in names if len(texts[name]) > 1] or names
    short = short_names(names)
    return [
        params_text({short[name]: each[name] for name in differ if name in each})
        for each in params
    ]


def label_rows(ax: "Axes", texts: Sequence[str]) -> None:
    """Write a text above each row of a figure, the first row at the top.

    Left of the axis they would leave no space for the data on narrow pages.
    """
    inches = ax.get_window_extent().width / ax.figure.dpi
    texts = [wrap(text, 1.1 * inches, 8) for text in texts]
    for place, text in zip(range(len(texts))[::-1], texts, strict=True):
        ax.text(
            0,
            place + 0.25,
            text,
            color=INK,
            fontsize=8,
            va="bottom",
            transform=ax.get_yaxis_transform(),
        )
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    n_lines = 1 + texts[0].count("\n") if texts else 1
    # The space for the text of the first row; a single row does not fill the figure.
    ax.set_ylim(-0.3 - 0.7 * (len(texts) == 1), len(texts) - 0.5 + 0.2 * n_lines)


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
