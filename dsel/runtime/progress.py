"""Progress on standard error, for terminals and notebooks: fits, pool, pieces, rows.

`verbose` is True, False, or None: only where a terminal or a notebook shows it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from importlib.util import find_spec
from numbers import Integral
from typing import Any

from dsel.checks import check_integer
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
            f"`verbose` must be True, False, a number >= 0 or None, got {verbose!r}."
        )
    return check_integer(verbose, "verbose", at_least=0) > 0


@contextmanager
def run_progress(verbose: bool | None) -> Iterator[Callable[[Progress], None] | None]:
    """Show what a run reports to the function that this gives; None if nobody looks."""
    if not (_is_watched() if verbose is None else verbose):
        yield None
        return
    with _display() as display:
        fits = display.add_task("fits", total=None, rate="", left="left")
        pool = display.add_task("pool", total=None, rate="", left="left", visible=False)

        def update(progress: Progress) -> None:
            seconds = max(progress.seconds, 1e-9)
            dropped = progress.fits_dropped
            display.update(
                fits,
                completed=progress.fits_done,
                total=progress.fits_total - dropped,
                rate=f"{progress.fits_done / seconds:,.0f}/s"
                + (f", {dropped:,} not needed" if dropped else ""),
            )
            display.update(
                pool,
                completed=progress.spans_done,
                total=progress.spans_total,
                rate=f"{progress.pool_rows_done / seconds:,.0f} rows/s",
                visible=progress.spans_total > 0,
            )

        yield update


@contextmanager
def piece_progress(verbose: bool, total: int) -> Iterator[Callable[[], None]]:
    """Show how many pieces are done."""
    with _display(verbose) as display:
        pieces = display.add_task("pieces", total=total, rate="", left="left")
        yield lambda: display.advance(pieces)


@contextmanager
def row_progress(verbose: bool | None) -> Iterator[Callable[[int, int | None], None]]:
    """Show how many rows are written."""
    with _display(_is_watched() if verbose is None else verbose) as display:
        rows = display.add_task("rows", total=None, rate="", left="")
        yield lambda done, total: display.update(
            rows, completed=done, total=total, left="left" if total else ""
        )


def _display(verbose: bool = True) -> Any:
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
    # Older releases of rich end what is disabled by an empty line.
    console = Console(stderr=True, quiet=not verbose)
    return shown.Progress(*columns, console=console, disable=not verbose)


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
