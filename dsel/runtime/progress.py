"""Progress on standard error: a bar for each phase in terminals and notebooks.

Elsewhere there are plain lines. `verbose` is True, False, or None: bars where they can
be drawn, and lines where a run takes long.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from numbers import Integral
from threading import Event, Lock, Thread
from typing import Any, Final, NamedTuple

from dsel.checks import check_integer, show
from dsel.old_names import OldName
from dsel.runtime.tasks import is_task

OnProgress = Callable[[int, int | None], None]
"""Called with the number of rows done, and that of all rows, None if unknown."""


class FitTime(NamedTuple):
    """Seconds of fits, summed over tasks: those done, and those that are left.

    Kinds of models may differ by orders of magnitude, so that a count of fits says
    little. What is left of a kind that was not fitted yet is a range.
    """

    done: float
    least_left: float
    most_left: float


@dataclass(frozen=True)
class Progress:
    """How much of a run is done."""

    fits_done: int = 0
    """Fits counted."""
    fits_total: int = 0
    """Fits if pruning makes none unnecessary."""
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
    fits_least: int = 0
    """Smallest possible number of fits of the run if none fails, from the plan."""
    phase_done: int = 0
    """Fits of this phase that are done, or slices of the pool."""
    phase_total: int = 0
    """How many there are in this phase; 0 where that is not known."""
    total_is_exact: bool = True
    """Whether the total is exact; pruning may make some fits unnecessary."""
    unit: str = "fits"
    """Plural name of the fits, such as ``searches by GridSearchCV``."""
    fits_kept: int = 0
    """Fits that an earlier run has left in the results, from which this one continues.
    """

    phase_time: FitTime | None = None
    """Seconds of the fits of this phase; None where only their number is known."""
    whole_time: FitTime | None = None
    """Seconds of all fits of the run; None where only their number is known."""

    spans_done = OldName("slices_done")
    spans_total = OldName("slices_total")

    def __add__(self, later: "Progress") -> "Progress":
        """Return the progress of two successive parts of a run."""
        sums = {name: getattr(self, name) + getattr(later, name) for name in _SUMS}
        fits_most = max(self.fits_most, later.fits_most)
        return replace(later, **sums, fits_most=fits_most)


class Phase(NamedTuple):
    """The current work of a run, with its amount."""

    name: str
    done: int = 0
    total: int = 0
    is_exact: bool = True


_SUMS: Final = (
    "fits_done",
    "fits_total",
    "fits_dropped",
    "candidates_active",
    "candidates_pruned",
    "slices_done",
    "slices_total",
    "pool_rows_done",
    "fits_kept",
)
"""Counts that add up; the other fields describe the current phase."""
WHOLE: Final = "Whole run"
"""Name of the bar of all fits of a run, with the time of the run."""
CHECKING: Final = "Checking the pool"
FITTING: Final = "Fitting"
CHOSEN: Final = "Fitting what was chosen"
COUNTING: Final = "Counting on the pool"
SLOW_SECONDS: Final = 1.0
"""Slower fits are shown as seconds per fit, faster ones as fits per second."""
FULL_WIDTH: Final = 80
"""Columns of a terminal that a whole line fits into."""
NARROW_WIDTH: Final = 24
"""Columns of a narrow line after the name of its phase: counts, and the time left."""
ESTIMATE_SECONDS: Final = 5.0
"""Time after which the time left is estimated, if enough is done, too."""
ESTIMATE_PART: Final = 0.1
"""Part of the phase that must be done before the time left is estimated."""
ESTIMATE_DONE: Final = 2
"""Number of fits, slices or rows that must be done before it is estimated."""
WIDE_RANGE: Final = 2.0
"""Ratio of two times that are left, from which on both are shown."""
SILENT_SECONDS: Final = 5.0
"""Time after which a run without a display writes lines if `verbose` is None."""
FIRST_LINE_SECONDS: Final = 5.0
"""Time after which a phase writes its first line; a shorter one writes its end only."""
LINE_SECONDS: Final = 10.0
"""Least time between two lines about the same phase."""
QUIET_SECONDS: Final = 30.0
"""Time after which a phase has another line although nothing more was done."""
REPEAT_SECONDS: Final = 1.0
"""Time after which a state is shown again, with the time that has passed."""
BAR_WIDTH: Final = 5
"""Columns of a bar; with them the longest line has `FULL_WIDTH`."""
TEXT_WIDTH: Final = 34
"""Number of characters of the text next to a bar."""


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
def progress_display(
    verbose: bool | None, notes: str = ""
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the progress of a run; None if nothing is shown.

    `notes` are lines about the run, which are shown before its progress.
    """
    is_told = False
    with _display(verbose, notes) as show:

        def update(progress: Progress) -> None:
            nonlocal is_told
            assert show is not None  # this function is yielded only with a display
            if progress.fits_kept and not is_told:
                is_told = True
                sys.stderr.write(
                    f"Continues: {progress.fits_kept:,} of up to "
                    f"{progress.fits_most:,} {progress.unit} were kept in the results\n"
                )
            phase, is_counting = progress.phase or FITTING, progress.phase == COUNTING
            state = _State(
                phase,
                progress.phase_done,
                progress.phase_total,
                "slices" if is_counting else progress.unit,
                progress.total_is_exact,
                rows=progress.pool_rows_done if is_counting else None,
                time=progress.phase_time,
            )
            if most := progress.fits_most:
                # Once pruning has dropped all that it can, it is known how many remain.
                # In a first round fewer are wanted than the plan makes at least.
                needed = progress.fits_total - progress.fits_dropped
                is_known = max(1, progress.fits_least) <= needed <= most
                is_exact = progress.total_is_exact and is_known
                # Counting takes no fits, but its bar shows how far it is.
                show(
                    _State(
                        WHOLE,
                        progress.fits_done,
                        needed if is_exact else most,
                        progress.unit,
                        is_exact,
                        has_rate=False,
                        time=progress.whole_time,
                    )
                )
            show(_State(CHECKING) if phase == CHECKING else state)

        yield None if show is None else update


@contextmanager
def row_progress(
    verbose: bool | None, phase: str = "Writing rows"
) -> Iterator[OnProgress | None]:
    """Yield a function that shows the number of rows done, for `write_pool`.

    It also takes the total number, None where it is unknown.
    """
    with _display(verbose) as show:

        def update(done: int, total: int | None) -> None:
            assert show is not None  # this function is yielded only with a display
            show(_State(phase, done, total, "rows", has_rate=False))

        if show is not None:  # the first rows may take long, and the phase has begun
            show(_State(phase, unit="rows", has_rate=False))
        yield None if show is None else update


@contextmanager
def phase_progress(verbose: bool | None, phase: str) -> Iterator[None]:
    """Show a phase that counts nothing, and how long it has taken."""
    with _display(verbose) as show:
        if show is not None:
            show(_State(phase))
        yield


class Compilers:
    """The number of threads of this process that translate code to machine code.

    The first use of a compiled function in an installation takes seconds, and the
    progress shows that it waits for this.
    """

    def __init__(self) -> None:
        self._lock, self._n_running = Lock(), 0

    def begin(self) -> None:
        """Note that a thread begins."""
        with self._lock:
            self._n_running += 1

    def end(self) -> None:
        """Note that a thread has ended."""
        with self._lock:
            self._n_running -= 1

    @property
    def are_running(self) -> bool:
        """Whether any thread compiles now."""
        return self._n_running > 0


COMPILERS: Final = Compilers()
"""The compilers of this process; workers of a cluster have their own."""
_ONE: Final = {"fits": "fit", "searches": "search", "slices": "slice", "rows": "row"}
"""Units in the singular."""


@dataclass(frozen=True)
class _State:
    """The displayed state of a phase."""

    phase: str
    done: int = 0
    total: int | None = None
    unit: str = ""
    is_exact: bool = True
    has_rate: bool = True
    rows: int | None = None
    """Rows of the pool that are done, where the rate is that of rows."""
    time: FitTime | None = None
    """Seconds of its fits, where they are known."""


class _Phase:
    """One phase while it lasts: its last state, and how fast it goes on."""

    def __init__(self, state: _State, now: float) -> None:
        # An earlier run, or an earlier part of this one, may have done some already.
        self.first, self.began, self.changed = state, now, now
        self.state = state
        # No later fit waits for a compiler, so its time is no part of a forecast.
        self.compiled = now

    def take(self, state: _State, now: float) -> None:
        """Take a new state; note when something was done last."""
        if COMPILERS.are_running and state.done == self.first.done:
            self.compiled = now
        if state.done != self.state.done:
            self.changed = now
        self.state = state

    @property
    def n_timed(self) -> int:
        return self.state.done - self.first.done

    def text(self, *, has_ended: bool = False, is_short: bool = False) -> str:
        """Return as text how much is done, and unless it `is_short` how fast."""
        state, total = self.state, self.state.total
        if not state.unit:
            return ""
        n = f"{state.done:,}"
        if has_ended:
            n = f"{(total if state.is_exact and total else state.done):,}"
        elif total and is_short:
            n += f"/{total:,}"
        elif total:
            n += f" of {'' if state.is_exact else 'up to '}{total:,}"
        (noun, *by), rate = state.unit.split(), "" if is_short else self._rate()
        if not (state.done or has_ended) and total and state.phase != WHOLE:
            # A count of 0 for a minute looks as if nothing happened.
            if COMPILERS.are_running:
                return "compiling" if is_short else "compiling, once an installation"
            what = "" if is_short else f" for the first {_ONE.get(noun, noun)}"
            return f"waiting{what}"
        if n == "1":
            noun = _ONE.get(noun, noun)
        if by and len(" ".join([n, noun, *by]) + rate) > TEXT_WIDTH:
            rate = ""
        if len(text := " ".join([n, noun, *by])) > TEXT_WIDTH:
            text = f"{n} {noun}"
        return text + rate

    def _rate(self) -> str:
        """Return the speed as ", 12 rows/s"; "" before anything was timed."""
        n, seconds = self.n_timed, max(self.changed - self.compiled, 1e-9)
        if n <= 0 or not self.state.has_rate:
            return ""
        if self.state.rows is not None:
            n_rows = self.state.rows - (self.first.rows or 0)
            return f", {n_rows / seconds:,.0f} rows/s"
        if seconds / n >= SLOW_SECONDS:
            return f", {seconds / n:,.1f} s each"
        return f", {n / seconds:,.0f}/s"

    def time_left(self, now: float) -> tuple[float, float] | None:
        """Return the least and most seconds that are left; None if they are not known.

        They are based on finished units, so that they fall until the next fit, slice or
        row is done; if that takes longer than all remaining units should, they are not
        known again. The seconds of fits, where they are known, weigh the units.
        """
        total, n = self.state.total, self.n_timed
        if not total or n < ESTIMATE_DONE or now - self.compiled < ESTIMATE_SECONDS:
            return None
        if n < ESTIMATE_PART * (total - self.first.done):
            return None
        passed, waited = self.changed - self.compiled, now - self.changed
        left = (passed / n * (total - self.state.done),) * 2
        if (time := self.state.time) is not None:
            before = 0.0 if self.first.time is None else self.first.time.done
            if time.done > before:
                speed = passed / (time.done - before)
                left = speed * time.least_left, speed * time.most_left
        least, most = (max(seconds - waited, 0.0) for seconds in left)
        return (least, most) if most > 0 else None

    def time_text(
        self, now: float, part: "_Phase | None" = None, *, is_short: bool = False
    ) -> str:
        """Return the time that is left where it is known, else the time so far.

        The time left is at least that of a `part` of it: fits of the part may be slower
        than those before it.
        """
        left = self.time_left(now)
        if left is not None:
            if part is not None:
                of_part = part.time_left(now) or left
                left = max(left[0], of_part[0]), max(left[1], of_part[1])
            return f"{_clock_range(*left)} left"
        return f"{_clock(now - self.began)}{'' if is_short else ' elapsed'}"


@contextmanager
def _display(
    verbose: bool | None, notes: str = ""
) -> Iterator[Callable[[_State], None] | None]:
    """Yield a function that shows the state of a phase; None if nothing is shown.

    A terminal or a notebook shows bars. Elsewhere, as in logs, there are plain lines:
    at once if `verbose` is True, and only in runs that take long if it is None.
    """
    if verbose is False or (verbose is None and is_task()):
        yield None
    elif _can_draw_bars():
        sys.stderr.write(notes)
        with _bars() as show, _keep_showing(show) as show_now:
            yield show_now
    else:
        lines = _Lines(0.0 if verbose else SILENT_SECONDS, notes)
        with _keep_showing(lines.show) as show_now:
            yield show_now
        lines.end()


@contextmanager
def _keep_showing(
    show: Callable[[_State], None],
) -> Iterator[Callable[[_State], None]]:
    """Yield a function that shows a state now, and again until there is another one.

    A phase that reports nothing for a while, such as one long task, would look dead.
    """
    lock, is_over = Lock(), Event()
    states: dict[bool, _State] = {}

    def show_now(state: _State) -> None:
        with lock:
            states[state.phase == WHOLE] = state
            show(state)

    def repeat() -> None:
        while not is_over.wait(REPEAT_SECONDS):
            with lock:
                for state in states.values():
                    show(state)

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield show_now
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _bars() -> Iterator[Callable[[_State], None]]:
    """Show a bar for each phase, below those that have ended; at the end, erase all.

    No line is wider than 80 columns; in a narrower terminal the bar and rates are left
    out, and names of phases are cut.
    """
    # The import takes time, which is wasted without a display.
    from rich import progress as shown
    from rich.console import Console

    console = Console(stderr=True)
    is_narrow = console.width < FULL_WIDTH
    columns: list[shown.ProgressColumn] = [
        shown.TextColumn("{task.description:<23}", markup=False),
        shown.BarColumn(bar_width=BAR_WIDTH),
        shown.TextColumn(f"{{task.fields[text]:<{TEXT_WIDTH}}}", markup=False),
        shown.TextColumn("{task.fields[time]}", markup=False),
    ]
    if is_narrow:
        # The widths are fixed, or each refresh would cut other texts.
        room = max(8, console.width - NARROW_WIDTH)
        columns[:3] = (
            shown.TextColumn(f"{{task.{field}}}", markup=False)
            for field in (f"description:<{room}.{room}", "fields[text]:<13")
        )
    phases: dict[str, _Phase] = {}
    bars: dict[str, shown.TaskID] = {}
    current = ""
    # The bars vanish at the end, since the user came for the result.
    display = shown.Progress(*columns, console=console, transient=True)

    def draw(name: str, done: int, total: int | None, text: str, when: str) -> None:
        fields: Any = {"text": text, "time": when}
        display.update(bars[name], completed=done, total=total, **fields)

    def finish(name: str) -> None:
        phase, now = phases[name], time.monotonic()
        # A phase without a total has a moving bar, which this fills.
        n = max(1, phase.state.done)
        text = phase.text(has_ended=True, is_short=is_narrow)
        draw(name, n, n, text, _clock(now - phase.began))

    def show(state: _State) -> None:
        nonlocal current
        now, name = time.monotonic(), state.phase
        if name != WHOLE:
            if current not in ("", name):
                finish(current)
            current = name
        if name not in phases:
            phases[name] = _Phase(state, now)
            bars[name] = display.add_task(name, total=state.total, text="", time="")
        phase = phases[name]
        phase.take(state, now)
        part = phases.get(current) if name == WHOLE else None
        when = phase.time_text(now, part, is_short=is_narrow)
        draw(name, state.done, state.total, phase.text(is_short=is_narrow), when)

    with display:
        yield show
        for name in {current, WHOLE} & bars.keys():
            finish(name)


class _Lines:
    """Plain lines for logs: one when a phase ends, and before it few of a long one."""

    def __init__(self, silent_seconds: float, notes: str) -> None:
        self.begins_at = time.monotonic() + silent_seconds
        self.phase: _Phase | None = None
        self.written: float | None = None
        """When the last line about this phase was written; None where none was."""
        self.shown_text = ""
        """Text of this line, which says what was done, or what the phase waits for."""
        self.run: _Phase | None = None
        """All fits of the run, if they are known."""
        self.unwritten: list[str] = [notes]
        """Notes, and lines of phases that ended before lines were due. They are written
        together with the first line that is due, so that no log begins with the second
        round."""
        if not silent_seconds:
            self._write()

    def show(self, state: _State) -> None:
        now = time.monotonic()
        if state.phase == WHOLE:
            self.run = self.run or _Phase(state, now)
            self.run.take(state, now)
            return
        if self.phase is None or self.phase.state.phase != state.phase:
            self.end()
            self.phase, self.written = _Phase(state, now), None
        phase = self.phase
        phase.take(state, now)
        since, pause = self.written, QUIET_SECONDS
        if since is None:  # a short phase is one line, when it has ended
            since, pause = phase.began, FIRST_LINE_SECONDS
        elif phase.text() != self.shown_text:
            pause = LINE_SECONDS
        if state.total and state.done >= state.total:
            pause = QUIET_SECONDS  # the line of its end will report it
        is_due = now - since >= pause
        if now >= self.begins_at and is_due:
            run, left = "", phase.time_text(now)
            if self.run is not None and self.run.time_left(now) is not None:
                run = self.run.time_text(now, phase)
                run = f"whole run {run}" if run != left else ""
            line = self._line(phase.text(), left, run)
            self.unwritten.append(line)
            self._write()
            self.shown_text = phase.text()

    def end(self) -> None:
        """Write that the phase has ended."""
        now, phase = time.monotonic(), self.phase
        if phase is not None:
            passed = f"done in {_clock(now - phase.began)}"
            line = self._line(phase.text(has_ended=True), passed)
            self.unwritten.append(line)
            if now >= self.begins_at:
                self._write()
        self.phase = None

    def _line(self, *texts: str) -> str:
        assert self.phase is not None  # without a phase there is nothing to report
        text = ", ".join(filter(None, texts))
        name = self.phase.state.phase
        return f"{name}: {text}\n" if text else f"{name}\n"

    def _write(self) -> None:
        sys.stderr.write("".join(self.unwritten))
        sys.stderr.flush()
        self.unwritten.clear()
        self.written = time.monotonic()


def _clock(seconds: float) -> str:
    """Return seconds as text, in minutes or hours.

    Examples
    --------
    >>> _clock(75.0), _clock(3725.0)
    ('1:15', '1:02:05')
    """
    minutes, seconds_left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours}:{minutes:02}:{seconds_left:02}"
        if hours
        else f"{minutes}:{seconds_left:02}"
    )


def _clock_range(least: float, most: float) -> str:
    """Return a time between two numbers of seconds as text, as a range if it is wide.

    Examples
    --------
    >>> _clock_range(60.0, 90.0), _clock_range(20.0, 90.0), _clock_range(900.0, 8000.0)
    ('1:15', '0:20-1:30', '0-3 h')
    """
    if most <= WIDE_RANGE * least:
        return _clock((least + most) / 2)
    if most >= 3600:
        return f"{int(least // 3600)}-{-int(-most // 3600)} h"
    return f"{_clock(least)}-{_clock(most)}"


def _can_draw_bars() -> bool:
    """Return whether a terminal or a notebook can redraw lines of standard error."""
    if "IPython" not in sys.modules and not sys.stderr.isatty():
        return False
    from rich.console import Console

    console = Console(stderr=True)
    # Without ipywidgets a notebook cannot redraw a line.
    can_redraw = console.is_jupyter and find_spec("ipywidgets") is not None
    return (console.is_terminal and not console.is_dumb_terminal) or can_redraw
