"""Fit the texts of a figure into its axes: wrap titles, thin ticks, shrink row texts.

`fit_texts` does all of it once the figure is complete, since only then the width of its
axes is known. Texts are measured in their font, since the letters of one name may be
twice as wide as those of another.
"""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axes._base import _AxesBase
    from matplotlib.figure import Figure
    from matplotlib.text import Text

FONT_SIZE: Final = 10.0
"""Size of titles and labels in points."""
BOLD: Final = 1.12
"""Width of bold letters, relative to others."""
SMALL: Final = 9.0
"""Size of ticks and legends."""
TALL_ENOUGH: Final = 125.0
"""Height of axes in points from which on a line says what is drawn: smaller ones, as in
a grid, have no room for it."""
ROW_SIZES: Final = (9.0, 8.5, 8.0)
"""Sizes of the texts above rows; the first that fits is taken."""
LINE_HEIGHT: Final = 1.25
"""Height of a line of text, relative to its font size."""
ROW: Final = "text above a row"
"""Group id of the texts above rows."""
ABOVE: Final = 0.25
"""Where the text above a row begins: rows are 1 apart, and bars end at 0.22."""
BELOW: Final = 0.3
"""Where a row begins, below its bar."""
MOST_TEXT: Final = 0.5
"""Largest height of the text above a row, so that it ends below the next bar."""
SMALLEST_BAR: Final = 5.0
"""Smallest height of the part of a row that has its bar, in points."""


def keep_inside(ax: "Axes") -> None:
    """Let matplotlib lay out the figure of axes, unless its owner did so already.

    The usual margins have room for one line; texts of axes in a small figure would be
    cut at its edge.
    """
    from matplotlib.figure import SubplotParams

    figure = _figure(ax)
    if figure.get_layout_engine() is not None:
        return
    margins = ("left", "right", "bottom", "top", "wspace", "hspace")
    usual, here = SubplotParams(), figure.subplotpars
    if all(getattr(here, name) == getattr(usual, name) for name in margins):
        figure.set_layout_engine("constrained")


def wrap(text: str, width: float, fontsize: float) -> str:
    r"""Return text wrapped at a width in points; words that are too long are broken.

    Examples
    --------
    >>> wrap("Fold by fold", 50, 10)
    'Fold by\nfold'
    >>> wrap("gamma=0.0009765625", 80, 10)
    'gamma=\n0.0009765625'
    """
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in re.split(r"\s+(?!%)", paragraph.strip()):  # no line is one "%"
            if text_width(f"{line} {word}", fontsize) <= width:
                line = f"{line} {word}".strip()
                continue
            *whole, last = _break_word(word, width, fontsize)
            if line:
                lines.append(line)
            lines += whole
            line = last
        lines.append(line)
    return "\n".join(lines)


def _break_word(word: str, width: float, fontsize: float) -> list[str]:
    """Return parts of a word, broken after signs such as ``=``, else anywhere."""
    parts = [""]
    for piece in re.findall(r"[^=_,/-]+[=_,/-]*|[=_,/-]+", word):
        fits = text_width(piece, fontsize) <= width
        for letters in [piece] if fits else piece:
            if parts[-1] and text_width(parts[-1] + letters, fontsize) > width:
                parts.append("")
            parts[-1] += letters
    return parts


@lru_cache(10_000)
def text_width(text: str, fontsize: float) -> float:
    """Return the width of one line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=fontsize)
    width = text_to_path.get_text_width_height_descent(text, font, False)[0]
    return 1.03 * float(width)  # letters that are rounded to pixels are wider


def fit_texts(ax: "Axes", *, title: str, what: str, color: str) -> None:
    """Set title and legend of complete axes, and fit all texts into them.

    `what` is the line between them.
    """
    x_label, y_label = ax.get_xlabel(), ax.get_ylabel()
    rows = [text for text in ax.texts if text.get_gid() == ROW]
    row_texts = [text.get_text() for text in rows]
    figure = _figure(ax)
    if axes_size(ax)[1] < TALL_ENOUGH:
        what = ""
    # The layout makes axes smaller by their labels, whose lines follow from the size of
    # the axes: after three rounds both are stable, and mostly after two.
    last_fit: tuple[object, ...] = ()
    for _ in range(3):
        width, height = axes_size(ax)
        room = max([width, *(_right_end(ax, child) for child in ax.child_axes)])
        lines = wrap(y_label, height, FONT_SIZE)
        child_lines = [  # of a color bar
            wrap(" ".join(child.get_ylabel().split()), height, FONT_SIZE)
            for child in ax.child_axes
        ]
        # All that the texts and the limits of the axes follow from.
        heights = [round(height, 3)] if rows else []
        fit = (round(width, 3), round(room, 3), lines, child_lines, heights)
        if fit == last_fit:
            break
        last_fit = fit
        pad = 9.0 + _draw_legend(ax, what, room, color)
        ax.set_title(
            wrap(title, room / BOLD, FONT_SIZE),
            loc="left",
            fontsize=FONT_SIZE,
            fontweight="bold",
            color=color,
            pad=pad,
        )
        ax.set_xlabel(wrap(x_label, width, FONT_SIZE), fontsize=FONT_SIZE)
        ax.set_ylabel(lines, fontsize=FONT_SIZE)
        for child, label in zip(ax.child_axes, child_lines, strict=True):
            child.set_ylabel(label, fontsize=FONT_SIZE)
        if rows:
            _fit_rows(ax, rows, row_texts)
        _lay_out(figure)
        _thin_ticks(ax)


def _lay_out(figure: "Figure") -> None:
    """Place axes and ticks; to draw the figure would take twice as long."""
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
    else:
        engine.execute(figure)


def _draw_legend(ax: "Axes", what: str, room: float, color: str) -> float:
    """Draw a legend of all labels between title and data; return its height in points.

    The legend covers nothing there, however small the axes are. `what` is above it.
    """
    from matplotlib.container import BarContainer
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.transforms import ScaledTranslation

    pairs = zip(*ax.get_legend_handles_labels(), strict=True)
    ordered = sorted(pairs, key=lambda pair: not isinstance(pair[0], BarContainer))
    # Artists with the same label share an entry, each in its own color.
    entries: dict[str, tuple[Any, ...]] = {}
    for handle, label in ordered:
        entries[label] = (*entries.get(label, ()), handle)
    handles = [each[0] if len(each) == 1 else each for each in entries.values()]
    labels = [wrap(label, room - 3 * SMALL, SMALL) for label in entries]
    to_points = 72 / _figure(ax).dpi
    scale = _figure(ax).dpi_scale_trans
    above = ax.transAxes + ScaledTranslation(0, 0.5 * SMALL / 72, scale)
    for n_columns in range(max(1, len(labels)), 0, -1):
        legend = ax.legend(
            handles,
            labels,
            ncols=n_columns,
            fontsize=SMALL,
            labelcolor=color,
            title=wrap(what, room - SMALL, SMALL),
            title_fontsize=SMALL,
            alignment="left",
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            bbox_transform=above,
            borderaxespad=0,
            borderpad=0,
            handlelength=2.2 if any(map(_is_long, handles)) else 1.3,
            handletextpad=0.4,
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.3)},
            columnspacing=1.2,
        )
        legend.get_title().set_color(color)
        box = legend.get_window_extent()
        if to_points * box.width <= room:
            break
    return to_points * box.height


def _is_long(handle: object) -> bool:
    """Return whether a legend entry is several marks or a line, maybe dashed."""
    from matplotlib.lines import Line2D

    is_line = isinstance(handle, Line2D) and handle.get_linestyle() != "None"
    return isinstance(handle, tuple) or is_line


def _figure(ax: "Axes") -> "Figure":
    """Return the whole figure of axes, which may be in a part of it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _right_end(ax: "Axes", child: "_AxesBase") -> float:
    """Return where a color bar and its labels end, in points from the left of axes."""
    box = child.get_tightbbox()
    return 0.0 if box is None else 72 * (box.x1 - ax.bbox.x0) / _figure(ax).dpi


def axes_size(ax: "Axes") -> tuple[float, float]:
    """Return width and height of axes in points."""
    box, dpi = ax.get_window_extent(), _figure(ax).dpi
    return 72 * box.width / dpi, 72 * box.height / dpi


def _fit_rows(ax: "Axes", rows: Sequence["Text"], texts: Sequence[str]) -> None:
    """Wrap the texts above rows, and make room for that of the first."""
    width, height = axes_size(ax)
    n = len(rows)
    # A single row does not fill the figure.
    below = BELOW + 0.7 * (n == 1)
    ax.set_yscale("linear")
    for fontsize in ROW_SIZES:
        shown = [wrap(text, width, fontsize) for text in texts]
        heights = [LINE_HEIGHT * fontsize * (1 + text.count("\n")) for text in shown]
        tall = max(heights)
        # Rows from -below to n - 1 + ABOVE + tall, the last one in units of rows.
        units = (n - 1 + ABOVE + below) / max(0.1, 1 - tall / height)
        if tall * units / height <= MOST_TEXT:
            ax.set_ylim(-below, units - below)
            break
    else:
        _give_each_row_its_height(ax, heights[::-1], height)
    ax.set_yticks([])  # a scale has ticks of its own
    for text, wrapped in zip(rows, shown, strict=True):
        text.set_text(wrapped)
        text.set_fontsize(fontsize)


def _give_each_row_its_height(
    ax: "Axes", text_heights: Sequence[float], height: float
) -> None:
    """Scale the rows of axes, from below, so that each has room for its own text.

    Rows of equal height would have to be as high as that with the longest text. What
    the texts leave is divided equally among the bars.
    """
    n = len(text_heights)
    bar = max(SMALLEST_BAR, (height - sum(text_heights)) / n)
    parts = [part for text in text_heights for part in (bar, text)]
    points = np.cumsum([0.0, *parts])
    places = [place for row in range(n) for place in (row - BELOW, row + ABOVE)]
    places.append(n - BELOW)
    to_points = partial(np.interp, xp=places, fp=points)
    to_places = partial(np.interp, xp=points, fp=places)
    ax.set_yscale("function", functions=(to_points, to_places))
    ax.set_ylim(places[0], places[-1])


def _thin_ticks(ax: "Axes") -> None:
    """Leave out labels of ticks that would overlap; slanted ones have their room.

    Ticks that matplotlib chose along a logarithmic axis have enough room, too.
    """

    def is_fixed(locator: object) -> bool:
        return type(locator).__name__ == "FixedLocator"

    for axis, side in ((ax.xaxis, "width"), (ax.yaxis, "height")):
        low, high = sorted(axis.get_view_interval())
        labels = [
            tick.label1
            for tick in axis.get_major_ticks()
            if low <= tick.get_loc() <= high and tick.label1.get_text()
        ]
        is_log = axis.get_scale() == "log" and not is_fixed(axis.get_major_locator())
        if len(labels) < 2 or is_log or labels[0].get_rotation():
            continue
        at = 0 if side == "width" else 1
        for text in labels:  # artists that were left out have no size
            text.set_visible(True)
        boxes = [text.get_window_extent() for text in labels]
        order = sorted(range(len(labels)), key=lambda n: boxes[n].min[at])
        labels, boxes = [labels[n] for n in order], [boxes[n] for n in order]
        starts, ends = ([box.min[at] for box in boxes], [box.max[at] for box in boxes])
        gap = 4.0 if side == "width" else 1.5
        if axis.get_scale() == "log":  # axes in a grid get narrower later
            gap = 16.0
        step = 1
        while any(
            starts[n + step] < ends[n] + gap for n in range(0, len(labels) - step, step)
        ):
            step += 1
        for n, text in enumerate(labels):
            text.set_visible(n % step == 0)
