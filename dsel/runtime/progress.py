"""Progress on standard error, for terminals and notebooks: one line for each phase.

`verbose` is True, False, or None: only where a terminal or a notebook shows it.
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
    """What is done now, such as ``Fitting, round 1 of 2``."""
    fits_most: int = 0
    """Fits of the whole run at most, known from the plan; it never changes."""

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
        """Return that of two parts of a run, one after the other."""
        own, others = vars(self), vars(later)
        sums = {name: own[name] + others[name] for name in own if name not in _LAST}
        return Progress(
            **sums,
            phase=later.phase or self.phase,
            fits_most=max(self.fits_most, later.fits_most),
        )


_LAST: Final = ("phase", "fits_most")
"""Fields that are of the whole run, and no counts."""
CHECKING: Final = "Checking the pool"
FITTING: Final = "Fitting"
CHOSEN: Final = "Fitting what was chosen"
COUNTING: Final = "Counting on the pool"
SLOW_SECONDS: Final = 1.0
"""From one fit to the next: above, seconds per fit are shown, not fits per second."""
SURE_SECONDS: Final = 5.0
"""Time after which the rest can be estimated ..."""
SURE_PART: Final = 0.1
"""... where so much is done."""


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
    """Show how many rows are done, as `write_pool` tells them.

    Where their number is not known they are read.
    """
    with _line(verbose) as update:

        def show(done: int, total: int | None) -> None:
            assert update is not None  # else nobody calls it
            of_all = "" if total is None else f" of {total:,}"
            update(phase, done, total, f"{done:,}{of_all} rows")

        yield None if update is None else show


@contextmanager
def _line(verbose: bool | None) -> Iterator[Callable[..., None] | None]:
    """Give what updates a line: phase, done, total, text. None where nobody looks.

    A phase that has ended stays; the next one is shown below it. No line is wider than
    80 columns.
    """
    if not (_is_watched() if verbose is None else verbose):
        yield None
        return
    # Imported here: who sees no display need not wait for it.
    from rich import progress as shown
    from rich.console import Console

    columns = (
        shown.TextColumn("{task.description:<23}", markup=False),
        shown.BarColumn(bar_width=10),
        shown.TextColumn("{task.fields[text]:<34}", markup=False),
        shown.TextColumn("{task.fields[time]}", markup=False),
    )
    with shown.Progress(*columns, console=Console(stderr=True)) as display:
        tasks: dict[str, Any] = {}
        began: dict[str, float] = {}

        def update(phase: str, done: int, total: int | None, text: str) -> None:
            now = time.monotonic()
            if phase not in tasks:
                tasks[phase] = display.add_task(phase, total=total, text="", time="")
                began[phase] = now
            passed = now - began[phase]
            times: Any = {"text": text, "time": _time_text(passed, done, total)}
            display.update(tasks[phase], completed=done, total=total, **times)

        yield update


def _time_text(seconds: float, done: int, total: int | None) -> str:
    """Return the time that is left, once it is an estimate; before, the time so far."""
    part = done / total if total else 0.0
    if SURE_PART <= part < 1.0 and seconds >= SURE_SECONDS:
        return f"{_clock(seconds * (1.0 - part) / part)} left"
    return _clock(seconds)


def _clock(seconds: float) -> str:
    """Return seconds as minutes, or hours.

    Examples
    --------
    >>> _clock(75.0), _clock(3725.0)
    ('1:15', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
