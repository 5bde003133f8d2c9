"""Style of all figures: colors, labels of parameter values, new axes."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import nan
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from dsel import names
from dsel.checks import show
from dsel.plots.fitting import ABOVE, ROW, SMALL, fit_texts, keep_inside
from dsel.results.certificate import Certificate
from dsel.results.cube import read_counts
from dsel.results.params_texts import params_text, short_names
from dsel.results.values import read_coordinate, value_text
from dsel.rounded_texts import count_of
from dsel.typing import Options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#22303c"
"""Color of texts and axes; pages replace it with the color of their own text."""
PAPER: Final = "#e6ebf0"
"""Color of texts where the ground of a figure is dark."""
ON_PALE: Final = "#1d2a36"
"""Color of texts on pale cells, on light and dark pages."""
ACCENT: Final = "#d95f02"
"""Color of what was chosen."""
BLUE: Final = "#3b6fa0"
"""Color of bounds."""
PALE: Final = "#a9c4de"
"""Color of the part of a bound that comes from the pool."""
GREY: Final = "#c9ccd1"
MIDDLE: Final = "#808890"
"""Color of lines and areas behind the data, half transparent for dark pages, too."""
NOT_RUN: Final[Options] = {
    "fill": False,
    "edgecolor": MIDDLE,
    "linestyle": "--",
    "linewidth": 1.2,
}
"""Style of bars that are no bounds: of a hold-out set, which is expected, and of the
best constant prediction."""
NO_GUARANTEE: Final[dict[str, Any]] = {
    "facecolor": "none",
    "edgecolor": MIDDLE,
    "hatch": "////",
    "linewidth": 0.8,
}
"""Style of the bar of a number that something voids."""
TO_COMPARE: Final = "only to compare, no bound of this run"
"""Label of dashed bars."""
UNPROVED: Final = "no guarantee"
"""Label of such bars."""
DROPPED: Final = "dropped early, from fewer fits"
"""Label of candidates whose number is the mean of the fits of a first round alone."""
DROPPED_MARK: Final[dict[str, Any]] = {"marker": "^", "fillstyle": "none", "ls": "none"}
"""Style of their markers."""
UNITS: Final = ", in units of the target"
"""End of the name of an axis of distances to the target."""
GREEN: Final = "#1fa37c"
"""Color of a second bound: of precision, and of the model trained on all labels."""
PINK: Final = "#cc79a7"
IN_UNITS: Final = "{x:,g}"
"""Format of the numbers along an axis that is not in percent."""
LONGEST_TICK: Final = 6
"""Letters of a number up to which a tick label has all of its digits."""
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
    keep_inside(ax)
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


def tidy_axes(ax: "Axes", *, title: str, what: str) -> None:
    """Style axes in the same way for all figures; call it after all texts are set.

    The title is what a reader should conclude. The line below it says what is drawn,
    and from which rows, since a figure is read without its page.
    """
    for axes in (ax, *ax.child_axes):
        axes.tick_params(length=0, which="both", labelsize=SMALL, colors=INK)
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
    ax.spines[:].set_color(INK)
    ax.spines[["top", "right"]].set_visible(False)
    show_as_written(ax)
    fit_texts(ax, title=title, what=what, color=INK)
    show_as_written(ax)  # the legend, too
    if _is_on_dark(ax):
        _lighten_ink(ax)


def _is_on_dark(ax: "Axes") -> bool:
    """Return whether axes are on a dark ground, as with the style "dark_background"."""
    from matplotlib.colors import to_rgba

    for ground in (ax.get_facecolor(), ax.figure.get_facecolor()):
        red, green, blue, opacity = to_rgba(ground)
        if opacity > 0.5:
            return 0.3 * red + 0.6 * green + 0.1 * blue < 0.4
    return False


def _lighten_ink(ax: "Axes") -> None:
    """Draw in a light color what is drawn in the color of texts."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import same_color
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    for axes in (ax, *ax.child_axes):
        axes.tick_params(which="both", colors=PAPER)
        axes.spines[:].set_color(PAPER)
    for artist in ax.findobj():
        if isinstance(artist, Text | Line2D | LineCollection):
            color: Any = artist.get_color()
            if len(color) and same_color(color, INK):
                artist.set_color(PAPER)


def name_rows(
    results: xr.Dataset, *, has_pool: bool = True, is_inner: bool = False
) -> str:
    """Return the numbers of labeled rows, and of pool rows, of a cube as text.

    With groups, chosen models are tested on one row of each; `is_inner` is of inner
    cross-validation, which tests candidates on all rows.
    """
    counts = read_counts(results)
    texts = [count_of(int(counts[names.N_LABELED]), "labeled row")]
    if names.N_GROUPS in counts and not is_inner:
        n_groups = count_of(int(counts[names.N_GROUPS]), "group")
        texts = [f"one labeled row of each of {n_groups}"]
    n_pool = int(counts[names.N_UNLABELED])
    if has_pool and n_pool > 0:
        texts.append(count_of(n_pool, "pool row"))
    return " and ".join(texts)


def short_verdict(certificate: Certificate) -> str:
    """Return the bound of a certificate for a title, or its number without one."""
    if certificate.certified:
        return certificate.statement()
    what = f"{certificate.title[:1].lower()}{certificate.title[1:]}"
    return f"No guarantee: {what} about {certificate.amount(certificate.number)}"


def mark_unproved_bars(ax: "Axes", bars: Iterable[Any], *, certified: bool) -> None:
    """Hatch bars of numbers that are no guarantee, with a legend entry for all."""
    if certified:
        return
    for bar in bars:  # an edge of its own color, so that the legend still fits
        bar.set(**NO_GUARANTEE | {"edgecolor": bar.get_facecolor()})
    explain_bars(ax, UNPROVED, NO_GUARANTEE)


def explain_bars(ax: "Axes", label: str, style: Mapping[str, Any]) -> None:
    """Add one entry to the legend for all bars of a style."""
    if label not in ax.get_legend_handles_labels()[1]:
        ax.barh([nan], [nan], label=label, **style)


def candidate_labels(params: Sequence[Options]) -> list[str]:
    """Return a label for each candidate: the parameters in which candidates differ.

    Models have the names of their classes, where these differ as the models do.

    Examples
    --------
    >>> candidate_labels([{"m__C": 1, "m__tol": 0.1}, {"m__C": 2, "m__tol": 0.1}])
    ['C=1', 'C=2']
    >>> from sklearn.linear_model import LogisticRegression, RidgeClassifier
    >>> models = LogisticRegression(max_iter=1000), RidgeClassifier()
    >>> candidate_labels([{"model": model} for model in models])
    ['model=LogisticRegression', 'model=RidgeClassifier']
    """
    all_names = list(
        dict.fromkeys(
            name for params_of_candidate in params for name in params_of_candidate
        )
    )
    texts = [{name: value_text(value) for name, value in p.items()} for p in params]
    values = {
        name: {params_of_candidate.get(name, "") for params_of_candidate in texts}
        for name in all_names
    }
    differ = [name for name in all_names if len(values[name]) > 1] or all_names
    short = short_names(all_names)
    shown = {name: _shorten_models(values[name] - {""}) for name in differ}
    return [
        ", ".join(
            f"{short[n]}={shown[n][params_of_candidate[n]]}"
            for n in differ
            if n in params_of_candidate
        )
        or params_text({})
        for params_of_candidate in texts
    ]


def _shorten_models(texts: set[str]) -> dict[str, str]:
    """Return texts of values by the whole ones: names of classes if these differ."""
    classes = {text: text.partition("(")[0] for text in texts if text.endswith(")")}
    are_models = all(name.isidentifier() for name in classes.values())
    if are_models and len(texts) == len({*classes.values()}):
        return classes
    return {text: text for text in texts}


def count_shown(n_shown: int, results: xr.Dataset) -> str:
    """Return how many of all candidates a figure shows; "" where it shows all."""
    n = results[names.STATUS].size
    return f" ({n_shown:,} of {n:,} candidates)" if n_shown < n else ""


def label_rows(ax: "Axes", texts: Sequence[str]) -> None:
    """Write a text above each row of a figure, the first row at the top.

    Left of the axis they would leave no space for the data on narrow pages. `tidy_axes`
    fits them into the axes.
    """
    for height, text in zip(range(len(texts))[::-1], texts, strict=True):
        ax.text(
            0,
            height + ABOVE,
            text,
            color=INK,
            va="bottom",
            gid=ROW,
            transform=ax.get_yaxis_transform(),
        )
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])


def percent_tick(rate: float, _: Any = None) -> str:
    """Return a rate as a tick label in percent."""
    return f"{100 * rate:g}"


def value_labels(coordinate: xr.DataArray) -> list[str]:
    """Return the tick labels of the values of a parameter.

    Examples
    --------
    >>> value_labels(xr.DataArray([0.25, 1.0])), value_labels(xr.DataArray([1, 8]))
    (['0.25', '1.0'], ['1', '8'])
    >>> value_labels(xr.DataArray([2.0**-15, 0.5]))  # digits that tell them apart
    ['3.05e-05', '0.5']
    """
    if coordinate.dtype.kind in "OUT":
        texts = [str(label) for label in coordinate.values]  # what `sel` takes
    else:
        values = read_coordinate(coordinate, may_lack=False)
        texts = [value_text(value) for value in values]
    short = [shorten_number(text) for text in texts]
    return short if len({*short}) == len({*texts}) else texts


def shorten_number(text: str) -> str:
    """Return the text of a number with three digits, if it has many; others as is.

    Examples
    --------
    >>> shorten_number("0.0009765625"), shorten_number("uniform")
    ('0.000977', 'uniform')
    """
    with suppress(ValueError):
        if len(text) > LONGEST_TICK and not text.isdigit():
            return f"{float(text):.3g}"
    return text
