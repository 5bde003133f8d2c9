"""What a run shows while it goes on; when it has ended nothing of this stays."""

import io
import re
import sys
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.runtime import progress
from dsel.runtime.progress import (
    COMPILERS,
    FitTime,
    Progress,
    phase_progress,
    progress_display,
    row_progress,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


class Stops(KNeighborsClassifier):
    def fit(self, X, y):
        raise KeyboardInterrupt


ERASED = r"\r(?:\x1b\[1A\x1b\[2K)+$"
"""What erases all bars at the end."""


def last_frame(terminal):
    """Return the lines of the bars before they are erased, at the end of a run."""
    return lines_of_screen(re.sub(ERASED, "", terminal.getvalue()))


def lines_of_screen(drawn):
    """Return the lines on the screen of a terminal after all that was drawn."""
    screen, row = [""], 0
    for code, text in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)|([^\x1b\r\n]+)",
                                 drawn):  # fmt: skip
        if text:
            screen[row] += text
        elif code == "\n":
            row += 1
            screen += [""] * (row == len(screen))
        elif code.endswith("A"):
            row -= int(code[2:-1] or 1)
        elif code.endswith("K"):
            screen[row] = ""
    return [line.rstrip() for line in screen if line.strip()]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(400, 3))
    return X[:100], (X[:100, 0] > 0).astype(int), X[100:]


def watch(monkeypatch):
    """Return a terminal that shows standard error from now on."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


def drawn_time(terminal):
    """Return the time that the next frame shows; frames come ten times a second."""
    before = len(terminal.getvalue())
    for _ in range(100):
        threading.Event().wait(0.05)
        frames = terminal.getvalue()[before:]
        if len(found := re.findall(r"\d+:\d\d(?: left| elapsed)?", frames)) > 1:
            return found[-1]
    raise AssertionError("nothing was drawn")


def test_bars__end_with_all_that_was_done(rows, monkeypatch):
    terminal = watch(monkeypatch)
    grid = {"n_neighbors": [1, 3, 5, 7, 9, 11]}
    told = []
    plan = dsel.plan_search(KNeighborsClassifier(), grid, *rows, random_state=0)
    plan.run()
    frame = last_frame(terminal)
    assert lines_of_screen(terminal.getvalue()) == []
    # No total of the whole run is smaller than that of the plan.
    least, most = plan.search.fits_range()
    assert f" of up to {most} fits" in terminal.getvalue()
    totals = re.findall(r"Whole run[^\n]* of (\d+) fits", terminal.getvalue())
    assert min(map(int, totals), default=least) >= least
    plan.run(on_progress=told.append)
    n_second = told[-1].fits_done - 6 * 5 - 6
    ends = [
        ("Whole run", f"{told[-1].fits_done} fits"),
        ("Fitting, round 1 of 2", "30 fits, "),
        ("Fitting, round 2 of 2", f"{n_second} fits, "),
        ("Fitting what was chosen", "6 fits, "),
        ("Counting on the pool", "1 slice, "),
    ]
    lines = [line for line in frame if not line.startswith("Checking the pool")]
    for line, (phase, done) in zip(lines, ends, strict=True):
        assert line.startswith(phase)
        assert done in line
        assert " of " not in line.removeprefix(phase)
        assert re.search(r" \d:\d\d$", line)  # the time that it took, and none left


def test_bars__of_a_narrow_terminal_cut_names_of_phases_only(rows, monkeypatch):
    terminal = watch(monkeypatch)
    monkeypatch.setenv("COLUMNS", "40")
    grid = {"n_neighbors": [1, 3, 5, 7, 9, 11]}
    dsel.plan_search(KNeighborsClassifier(), grid, *rows, random_state=0).run()
    frame, drawn = last_frame(terminal), terminal.getvalue()
    assert "\u2026" not in drawn
    assert "elapsed" not in drawn
    assert max(map(len, frame)) <= 40
    assert any(re.match(r"Fitting, round 1 30 fits +\d:\d\d$", line) for line in frame)


def test_bars__of_a_search_say_what_each_fit_is(rows, monkeypatch):
    terminal = watch(monkeypatch)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]})
    for model in (search, make_pipeline(StandardScaler(), search)):
        terminal.truncate(0)
        dsel.certify(model, *rows, random_state=0)
        frame = last_frame(terminal)
        assert frame[-2].startswith("Fitting ")
        assert "6 searches by GridSearchCV" in frame[-2]
    assert "up to" not in terminal.getvalue()  # it is known before how many there are
    plan = dsel.plan_search(None, [search], *rows, random_state=0)
    assert re.search(r"^  fits +6 searches by GridSearchCV$", str(plan), re.MULTILINE)


def test_bars__are_erased_where_a_run_is_interrupted(rows, monkeypatch):
    terminal = watch(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        dsel.certify(Stops(), *rows[:2], random_state=0)
    assert "Fitting" in terminal.getvalue()
    assert lines_of_screen(terminal.getvalue()) == []


def test_time_left__falls_while_nothing_new_is_done(monkeypatch):
    clock, left, terminal = Clock(monkeypatch), [], watch(monkeypatch)
    with row_progress(True) as show:
        for now, done in ((0, 0), (30, 1), (60, 2), (80, 2), (100, 3), (239, 3),
                          (340, 3), (350, 9)):  # fmt: skip
            clock.now = now
            show(done, 10)
            left.append(drawn_time(terminal))
    # At 60 s two of ten had taken 30 s each, at 100 s three 33.3 s each; at 340 s more
    # time has passed than all seven others should take, and nothing is known.
    assert left == ["0:00 elapsed", "0:30 elapsed", "4:00 left", "3:40 left",
                    "3:53 left", "1:34 left", "5:40 elapsed", "0:38 left"]  # fmt: skip


def test_lines__of_logs_say_each_phase_and_each_slow_fit(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with row_progress(None, "Predicting") as show:
        for now, done in ((0, 0), (4, 1), (20, 1), (25, 2), (36, 3), (37, 4)):
            clock.now = now
            show(done, 4)
    assert log.getvalue().splitlines() == [
        "Predicting: 1 of 4 rows, 0:20 elapsed",
        "Predicting: 3 of 4 rows, 0:12 left",
        "Predicting: 4 rows, done in 0:37",
    ]


def test_lines__name_the_whole_run_once_its_time_left_is_known(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress_display(True) as show:
        for clock.now, done in ((0, 0), (12, 3), (24, 9), (36, 12)):
            show(Progress(fits_done=done, fits_most=60, phase_done=done,
                          phase_total=15, phase="Fitting"))  # fmt: skip
    assert log.getvalue().splitlines() == [
        "Fitting: 3 of 15 fits, 4.0 s each, 0:48 left",
        "Fitting: 9 of 15 fits, 2.7 s each, 0:16 left, whole run 2:16 left",
        "Fitting: 12 of 15 fits, 3.0 s each, 0:09 left, whole run 2:24 left",
        "Fitting: 15 fits, 3.0 s each, done in 0:36",
    ]


def test_lines__begin_with_the_first_phase_however_short_it_was(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress_display(None) as show:
        for clock.now, n_round, done in ((0, 1, 0), (3, 1, 15), (4, 2, 1), (9, 2, 9)):
            show(Progress(phase_done=done, phase_total=15 if n_round == 1 else 9,
                          phase=f"Fitting, round {n_round} of 2"))  # fmt: skip
    assert log.getvalue().splitlines() == [
        "Fitting, round 1 of 2: 15 fits, 5/s, done in 0:04",
        "Fitting, round 2 of 2: 9 fits, 2/s, done in 0:05",
    ]


def test_lines__say_that_a_run_waits_for_a_compiler(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    COMPILERS.begin()
    try:
        with row_progress(True, "Predicting") as show:
            show(0, 4)
            clock.now = 6.0
            show(0, 4)
            COMPILERS.end()
            clock.now = 20.0
            show(4, 4)
    finally:
        assert not COMPILERS.are_running
    assert log.getvalue().splitlines()[0] == (
        "Predicting: compiling, once an installation, 0:06 elapsed"
    )


def test_time_left__counts_no_time_of_a_compiler(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    COMPILERS.begin()
    try:
        with row_progress(True, "Predicting") as show:
            show(0, 10)
            clock.now = 30.0
            show(0, 10)
            COMPILERS.end()
            clock.now = 40.0
            show(5, 10)
    finally:
        assert not COMPILERS.are_running
    assert log.getvalue().splitlines()[1] == "Predicting: 5 of 10 rows, 0:10 left"


def test_lines__end_with_one_that_says_that_all_is_done(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with row_progress(True, "Predicting") as show:
        for clock.now, done in ((0, 0), (12, 2), (24, 4), (26, 4)):
            show(done, 4)
    assert log.getvalue().splitlines() == [
        "Predicting: 2 of 4 rows, 0:12 left",
        "Predicting: 4 rows, done in 0:26",
    ]


def test_lines__give_the_whole_run_as_much_time_as_its_phase_and_say_it_once(
    monkeypatch,
):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress_display(True) as show:
        for clock.now, phase, total, done, n_run in (
            (0, "Fitting, round 1 of 2", 50, 0, 0),
            (10, "Fitting, round 2 of 2", 10, 0, 50),
            (20, "Fitting, round 2 of 2", 10, 5, 55),
        ):
            show(Progress(fits_done=n_run, fits_most=62, phase_done=done,
                          phase_total=total, phase=phase))  # fmt: skip
    # By all 55 fits the other 7 would take 3 seconds, and those of the phase take 10.
    assert log.getvalue().splitlines()[1] == (
        "Fitting, round 2 of 2: 5 of 10 fits, 2.0 s each, 0:10 left"
    )


def test_lines__count_no_fits_of_the_whole_run_that_pruning_has_dropped(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    known = {"fits_most": 85, "fits_total": 105, "fits_dropped": 35}
    with progress_display(True) as show:
        for clock.now, done in ((0, 50), (10, 60)):
            show(Progress(fits_done=done, phase_done=done - 50, phase_total=15,
                          phase="Fitting, round 2 of 2", **known))  # fmt: skip
    assert log.getvalue().splitlines()[0] == (
        "Fitting, round 2 of 2: 10 of 15 fits, 1.0 s each, 0:05 left, whole run 0:10 "
        "left"
    )


def test_lines__weigh_fits_by_the_seconds_of_their_kind(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress_display(True) as show:
        for clock.now, done, fit_time in (
            (0, 0, None),
            (10, 5, FitTime(20.0, 20.0, 120.0)),  # five forests, on two threads
            (21, 12, FitTime(42.0, 10.0, 12.0)),
        ):
            show(Progress(fits_done=done, fits_most=50, phase_done=done, phase_total=40,
                          phase="Fitting", phase_time=fit_time,
                          whole_time=fit_time))  # fmt: skip
    # By the count of fits 70 and 49 seconds would be left.
    assert log.getvalue().splitlines()[:2] == [
        "Fitting: 5 of 40 fits, 2.0 s each, 0:10-1:00 left",
        "Fitting: 12 of 40 fits, 1.8 s each, 0:05 left",
    ]


def test_lines__of_a_phase_that_reports_nothing_say_how_long_it_takes(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(progress, "REPEAT_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with phase_progress(None, "Reading the tables"):
        for clock.now in (4.0, 6.0, 20.0, 37.0):
            threading.Event().wait(0.3)
    assert log.getvalue().splitlines() == [
        "Reading the tables: 0:06 elapsed",
        "Reading the tables: 0:37 elapsed",
        "Reading the tables: done in 0:37",
    ]


def test_lines__of_a_short_phase_are_one(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with row_progress(True, "Predicting") as show:
        for clock.now, done in ((0, 0), (1, 1), (4, 3)):
            show(done, 4)
    assert log.getvalue().splitlines() == ["Predicting: 4 rows, done in 0:04"]
    log.truncate(0), log.seek(0)
    clock.now = 10
    with row_progress(True, "Predicting") as show:
        for clock.now, done in ((10, 0), (15, 0), (18, 3)):
            show(done, 4)
    assert log.getvalue().splitlines() == [
        "Predicting: waiting for the first row, 0:05 elapsed",
        "Predicting: 4 rows, done in 0:08",
    ]  # fmt: skip


def test_lines__are_not_written_of_short_runs_unless_asked_for(rows, monkeypatch):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    dsel.certify(KNeighborsClassifier(), *rows, random_state=0)
    assert log.getvalue() == ""
    dsel.certify(KNeighborsClassifier(), *rows, random_state=0, verbose=True)
    assert re.search("^Fitting: 6 fits, .*done in 0:0", log.getvalue(), re.MULTILINE)
    log.truncate(0)
    with pytest.raises(KeyboardInterrupt):
        dsel.certify(Stops(), *rows[:2], random_state=0, verbose=True)
    assert "done" not in log.getvalue()


def test_lines__of_one_call_begin_with_what_a_plan_says(rows, monkeypatch):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    X, y = rows[:2]
    frame = pd.DataFrame(X).add_prefix("column_").assign(customer_id=np.arange(len(X)))
    frame["customer_id"] //= 2
    labels = np.where(np.arange(len(y)) % 12 == 0, "rare", "usual")
    grid, tree = {"max_depth": [1, 2]}, DecisionTreeClassifier(random_state=0)
    learner = GridSearchCV(tree, grid, scoring="f1_macro", cv=2)
    search = dsel.SemiSupervisedSearchCV(learner, {"cv": [2]}, verbose=1)
    for run in (partial(dsel.certify, learner, verbose=True), search.fit):
        run(frame, labels)
        before, _, after = " ".join(log.getvalue().split()).partition("Fitting")
        assert before.startswith("Notes on this run, before its fits begin:")
        assert "pass groups='customer_id'" in before
        assert "rare class 'rare'," in before
        assert "loss='recall:rare' bounds its misses" in before
        assert "GridSearchCV ranks by scoring='f1_macro'" in before
        assert "done in" in after
        log.seek(0)
        log.truncate(0)
    search.set_params(verbose=0).fit(frame, labels)
    assert not log.getvalue()


def test_lines__of_a_pipe_name_a_table_of_one_part_that_took_six_seconds(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with row_progress(None, "Predicting") as show:
        clock.now = 6.0
        show(800, None)
    assert log.getvalue().splitlines()[-1] == "Predicting: 800 rows, done in 0:06"
