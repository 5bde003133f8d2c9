"""Progress on standard error, for terminals and notebooks: fits, pool, rows.

`verbose` is True, False, or None: only where a terminal or a notebook shows it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from importlib.util import find_spec
from numbers import Integral
from typing import Any

from dsel.checks import check_integer, show
from dsel.runtime.tasks import is_task


@dataclass(frozen=True)
class Progress:
    """How much of a run is done."""

    fits_done: int = 0
    """Fits counted."""
    fits_total: int = 0
    """Fits of the exhaustive search."""
    fits_dropped: int = 0
    """Fits that pruning made unnecessary."""
    candidates_active: int = 0
    """Candidates that may still win and are not completely counted."""
    candidates_pruned: int = 0
    """Candidates that cannot win any more."""
    spans_done: int = 0
    """Spans of the pool that are counted, over all rounds."""
    spans_total: int = 0
    """Spans of all rounds that have begun."""
    pool_rows_done: int = 0
    """Rows of the pool compared, over all rounds."""
    seconds: float = 0.0
    """Time since the run began."""

    def __add__(self, later: "Progress") -> "Progress":
        """Return that of two parts of a run, one after the other."""
        return Progress(*map(sum, zip(astuple(self), astuple(later), strict=True)))


def check_verbose(verbose: Any) -> bool | None:
    """Return whether progress is shown, or None; 0 is False, 1 and more are True."""
    if verbose is None or isinstance(verbose, bool):
        return verbose
    if not isinstance(verbose, Integral):
        raise TypeError(
            f"`verbose` must be True, False, a number >= 0 or None, got "
            f"{show(verbose)}."
        )
    return check_integer(verbose, "verbose", at_least=0) > 0


@contextmanager
def run_progress(verbose: bool | None) -> Iterator[Callable[[Progress], None] | None]:
    """Show what a run reports to the function that this gives; None if nobody looks."""
    with _bars(verbose, "fits", "pool") as update:
        yield None if update is None else partial(_show, update)


def _show(update: Callable[..., None], progress: Progress) -> None:
    seconds, dropped = max(progress.seconds, 1e-9), progress.fits_dropped
    rate = f"{progress.fits_done / seconds:,.0f}/s"
    rate += f", {dropped:,} not needed" if dropped else ""
    update("fits", progress.fits_done, progress.fits_total - dropped, rate)
    if progress.spans_total:
        rate = f"{progress.pool_rows_done / seconds:,.0f} rows/s"
        update("pool", progress.spans_done, progress.spans_total, rate)


@contextmanager
def row_progress(
    verbose: bool | None,
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show how many rows are written, as `write_pool` tells them."""
    with _bars(verbose, "rows") as update:
        yield None if update is None else partial(update, "rows")


@contextmanager
def _bars(verbose: bool | None, *names: str) -> Iterator[Callable[..., None] | None]:
    """Give what updates bars: name, done, total, rate; a bar shows when it is updated.

    None where nobody looks.
    """
    if not (_is_watched() if verbose is None else verbose):
        yield None
        return
    # Imported here: who sees no display need not wait for it.
    from rich import progress as shown
    from rich.console import Console

    columns = (
        shown.TextColumn("{task.description:<10}"),
        shown.BarColumn(),
        shown.MofNCompleteColumn(),
        shown.TextColumn("{task.fields[rate]}"),
        shown.TimeElapsedColumn(),
        shown.TextColumn("elapsed"),
        shown.TimeRemainingColumn(),
        shown.TextColumn("{task.fields[left]}"),
    )
    with shown.Progress(*columns, console=Console(stderr=True)) as display:
        bars = {
            name: display.add_task(name, total=None, rate="", left="", visible=not at)
            for at, name in enumerate(names)
        }

        def update(name: str, done: int, total: int | None, rate: str = "") -> None:
            texts: Any = {"rate": rate, "left": "left" if total else ""}
            display.update(
                bars[name], completed=done, total=total, visible=True, **texts
            )

        yield update


def _is_watched() -> bool:
    """Whether a terminal or a notebook shows standard error to whoever called dsel."""
    if is_task():
        return False
    if "IPython" not in sys.modules and not sys.stderr.isatty():
        return False
    from rich.console import Console

    console = Console(stderr=True)
    # Without ipywidgets a notebook has no place that could be drawn again.
    has_place = console.is_jupyter and find_spec("ipywidgets") is not None
    return console.is_terminal or has_place
