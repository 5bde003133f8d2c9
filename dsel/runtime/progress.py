"""Progress on standard error, for terminals and notebooks: one line for each phase.

`verbose` is True, False, or None, which shows progress in terminals and notebooks only.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Final

from dsel.checks import check_integer, show
from dsel.errors import warn_of_old_name
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
    slices_done: int = 0
    """Slices of the pool that are counted, over all rounds."""
    slices_total: int = 0
    """Slices of all rounds that have begun."""
    pool_rows_done: int = 0
    """Rows of the pool compared, over all rounds."""
    seconds: float = 0.0
    """Time since the run began."""
    phase: str = ""
    """Name of the current phase, such as ``Fitting, round 1 of 2``."""
    fits_most: int = 0
    """Largest possible number of fits of the run, from the plan; it never changes."""

    @property
    def spans_done(self) -> int:
        """Old name of `slices_done`."""
        warn_of_old_name("spans_done", "slices_done")
        return self.slices_done

    @property
    def spans_total(self) -> int:
        """Old name of `slices_total`."""
        warn_of_old_name("spans_total", "slices_total")
        return self.slices_total

    def __add__(self, later: "Progress") -> "Progress":
        """Return the progress of two successive parts of a run."""
        counts, more = vars(self), vars(later)
        sums = {n: counts[n] + more[n] for n in counts if n not in _NOT_SUMMED}
        return Progress(
            **sums,
            phase=later.phase or self.phase,
            fits_most=max(self.fits_most, later.fits_most),
        )


_NOT_SUMMED: Final = ("phase", "fits_most")
"""Fields that describe the whole run, and are no counts of a part."""
CHECKING: Final = "Checking the pool"
FITTING: Final = "Fitting"
CHOSEN: Final = "Fitting what was chosen"
COUNTING: Final = "Counting on the pool"
SLOW_SECONDS: Final = 1.0
"""Slower fits are shown as seconds per fit, faster ones as fits per second."""
FULL_WIDTH: Final = 80
"""Columns of a terminal that a whole line fits into."""
ESTIMATE_SECONDS: Final = 5.0
"""Time after which the time left is estimated, if `ESTIMATE_PART` is done, too."""
ESTIMATE_PART: Final = 0.1
"""Part of the work that must be done before the time left is estimated."""


def check_verbose(verbose: Any) -> bool | None:
    """Return `verbose` as True, False or None; 0 is False, larger numbers are True."""
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
    """Yield a function that shows the progress of a run; None if nothing is shown."""
    with _line(verbose) as update:
        yield None if update is None else partial(_show, update)


def _show(update: Callable[..., None], progress: Progress) -> None:
    seconds, done = max(progress.seconds, 1e-9), progress.fits_done
    if progress.phase == COUNTING:
        rate = f"{progress.pool_rows_done / seconds:,.0f} rows/s"
        text = f"{progress.slices_done:,} of {progress.slices_total:,} slices, {rate}"
        update(progress.phase, progress.slices_done, progress.slices_total, text)
        return
    if progress.phase == CHECKING:
        update(progress.phase, 0, None, "")
        return
    most = progress.fits_most or progress.fits_total
    rate = f"{done / seconds:,.0f}/s"
    if done and seconds / done >= SLOW_SECONDS:
        rate = f"{seconds / done:,.1f} s each"
    text = f"{done:,} of up to {most:,} fits" + f", {rate}" * (done > 0)
    update(progress.phase or "Fitting", done, most, text)


@contextmanager
def row_progress(
    verbose: bool | None, phase: str = "Writing rows"
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function that shows the number of rows done, for `write_pool`.

    It also takes the total number, None where it is unknown.
    """
    with _line(verbose) as update:

        def show(done: int, total: int | None) -> None:
            assert update is not None  # this function is yielded only with a display
            of_all = "" if total is None else f" of {total:,}"
            update(phase, done, total, f"{done:,}{of_all} rows")

        yield None if update is None else show


@contextmanager
def _line(verbose: bool | None) -> Iterator[Callable[..., None] | None]:
    """Yield a function that updates a line (phase, done, total, text), or None.

    The line of a phase that has ended stays; the next phase is shown below it. No line
    is wider than 80 columns; in a narrower terminal the bar and rates are left out.
    """
    if not (_has_display() if verbose is None else verbose):
        yield None
        return
    # Imported here, because it takes time that only a display is worth.
    from rich import progress as shown
    from rich.console import Console

    console = Console(stderr=True)
    is_narrow = console.width < FULL_WIDTH
    columns: list[shown.ProgressColumn] = [
        shown.TextColumn("{task.description:<23}", markup=False),
        shown.BarColumn(bar_width=10),
        shown.TextColumn("{task.fields[text]:<34}", markup=False),
        shown.TextColumn("{task.fields[time]}", markup=False),
    ]
    if is_narrow:
        del columns[1]
        columns[:2] = (
            shown.TextColumn(f"{{task.{field}}}", markup=False)
            for field in ("description", "fields[text]")
        )
    with shown.Progress(*columns, console=console) as display:
        tasks: dict[str, Any] = {}
        began: dict[str, float] = {}

        def update(phase: str, done: int, total: int | None, text: str) -> None:
            now = time.monotonic()
            if phase not in tasks:
                tasks[phase] = display.add_task(phase, total=total, text="", time="")
                began[phase] = now
            passed = now - began[phase]
            if is_narrow:
                text = text.partition(", ")[0].replace(" of up to ", "/")
            times: Any = {"text": text, "time": _time_text(passed, done, total)}
            display.update(tasks[phase], completed=done, total=total, **times)

        yield update


def _time_text(seconds: float, done: int, total: int | None) -> str:
    """Return the estimated time left as text, or the time so far if it is too early."""
    part = done / total if total else 0.0
    if ESTIMATE_PART <= part < 1.0 and seconds >= ESTIMATE_SECONDS:
        return f"{_clock(seconds * (1.0 - part) / part)} left"
    return _clock(seconds)


def _clock(seconds: float) -> str:
    """Return seconds as text, in minutes or hours.

    Examples
    --------
    >>> _clock(75.0), _clock(3725.0)
    ('1:15', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _has_display() -> bool:
    """Return whether a terminal or a notebook shows standard error to the caller."""
    if is_task():
        return False
    if "IPython" not in sys.modules and not sys.stderr.isatty():
        return False
    from rich.console import Console

    console = Console(stderr=True)
    # Without ipywidgets a notebook cannot redraw a line.
    can_redraw = console.is_jupyter and find_spec("ipywidgets") is not None
    return console.is_terminal or can_redraw
