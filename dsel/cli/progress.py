"""Progress on standard error: fits and pool rows, pieces, rows; time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Display

if TYPE_CHECKING:
    from dsel.searches.engine.driver import Progress


@contextmanager
def run_progress(
    quiet: bool, n_unlabeled: int
) -> "Iterator[Callable[[Progress], None] | None]":
    """Show what a run reports, on standard error; nothing where `quiet`."""
    if quiet:
        yield None
        return
    with _display() as display:
        fits = display.add_task("fits", total=None, rate="")
        rows = display.add_task("pool rows", total=None, rate="", visible=False)

        def update(progress: "Progress") -> None:
            seconds = max(progress.seconds, 1e-9)
            dropped = progress.fits_dropped
            display.update(
                fits,
                completed=progress.fits_done,
                total=progress.fits_total - dropped,
                rate=f"{progress.fits_done / seconds:,.0f}/s"
                + (f", {dropped:,} not needed" if dropped else ""),
            )
            if progress.spans_total:
                share = progress.spans_done / progress.spans_total
                done = int(share * n_unlabeled)
                display.update(
                    rows,
                    completed=done,
                    total=n_unlabeled,
                    rate=f"{done / seconds:,.0f}/s",
                    visible=True,
                )

        yield update


@contextmanager
def piece_progress(quiet: bool, total: int) -> Iterator[Callable[[], None]]:
    """Show how many pieces are done, on standard error; nothing where `quiet`."""
    with _display(quiet) as display:
        pieces = display.add_task("pieces", total=total, rate="")
        yield lambda: display.advance(pieces)


@contextmanager
def row_progress(quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Show how many rows are written, on standard error; nothing where `quiet`."""
    with _display(quiet) as display:
        rows = display.add_task("rows", total=None, rate="")
        yield lambda done, total: display.update(rows, completed=done, total=total)


def _display(quiet: bool = False) -> Display:
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Display(*columns, console=Console(stderr=True), disable=quiet)
