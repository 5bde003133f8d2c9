"""What a run tells of itself: progress, log lines, Dask's own metrics."""

import io
import logging
import re
import sys
import urllib.request
from operator import attrgetter

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.cluster import connect
from dsel.criteria.criterion import Settings
from dsel.results.bounded_values import BoundedValues
from dsel.results.certificate import Certificate
from dsel.results.class_report import CertifiedReport
from dsel.runtime.progress import Progress


@pytest.fixture
def plan(rng):
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    grid = {"n_neighbors": [1, 3]}
    return dsel.plan_search(
        KNeighborsClassifier(), grid, X[:100], y[:100], X[100:], cv=3, random_state=0,
        prune=False, certificate="cv_bound",
    )  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def plain_lines(text):
    """Return lines without the codes of a terminal."""
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))


def test_run__shows_progress_where_a_terminal_is_there(plan, monkeypatch):
    shown = {}
    for stderr in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stderr)
        plan.run()
        shown[type(stderr)] = stderr.getvalue()
    lines = plain_lines(shown[Terminal])
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("Checking the pool ") for line in lines)
    assert any(re.search("^Fitting .* 8 fits", line) for line in lines)
    counting = [line for line in lines if line.startswith("Counting on the pool ")]
    assert re.search(r"\d+ slices? .* \d:\d\d", counting[-1])
    assert shown[io.StringIO] == ""


def test_fit__shows_progress_if_asked_to(plan, monkeypatch, capsys):
    rows = plan.search.labeled.X, plan.search.labeled.y
    search = dsel.SemiSupervisedSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=3, prune=False
    )
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal := Terminal())
        search.fit(*rows)
    assert terminal.getvalue() == ""
    search.set_params(verbose=1).fit(*rows)
    assert re.search("Fitting what was chosen: 3 fits", capsys.readouterr().err)


def test_progress__has_named_phases_and_a_total_that_never_changes(plan):
    rows, labels = plan.search.labeled.X, plan.search.labeled.y
    nested = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 7, 9, 11]}, rows, labels,
        plan.search.pool, random_state=0,
    )  # fmt: skip
    told = []
    nested.run(on_progress=told.append)
    phases = list(dict.fromkeys(each.phase for each in told))
    assert [phase for phase in phases if phase != "Checking the pool"] == [
        "Fitting, round 1 of 2", "Fitting, round 2 of 2", "Fitting what was chosen",
        "Counting on the pool",
    ]  # fmt: skip
    least, most = nested.search.fits_range()
    assert {each.fits_most for each in told} == {most}
    seconds = [each.seconds for each in told]  # one clock for all phases
    assert seconds == sorted(seconds)
    assert least <= told[-1].fits_done <= most
    assert f"{least:,} to {most:,}" in str(nested)


@pytest.mark.parametrize("certificate", ["cv_bound", "holdout"])
def test_fits_range__has_the_fits_that_an_exact_search_saves(certificate):
    rng = np.random.default_rng(0)
    rows, pool = rng.normal(size=(2, 200, 3))
    exact = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, *range(100, 160, 4)]}, rows,
        rows[:, 0] > 0, pool, certificate=certificate, random_state=0,
    )  # fmt: skip
    told = []
    exact.run(on_progress=told.append, n_jobs=1)
    least, most = exact.search.fits_range()
    assert least <= told[-1].fits_done <= most
    assert (least, most) == (most // 16, 16 * len(exact.search.scheme.splits))
    assert (told[-1].fits_done < most) == (certificate == "cv_bound")
    every = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [1, 9]}, rows, rows[:, 0] > 0, pool,
        certificate=certificate, prune=False, random_state=0,
    )  # fmt: skip
    assert every.search.fits_range() == (2 * len(every.search.scheme.splits),) * 2


def numbers(text):
    """Return the candidates of a line, such as ``(0, 1)``."""
    return [int(found) for found in re.findall(r"\d+", text)]


def test_log__has_a_line_for_every_fit_and_span(plan, caplog):
    with caplog.at_level(logging.INFO, "dsel.search"):
        plan.run()
    lines = [record.getMessage() for record in caplog.records]
    fit = re.compile(r"fit candidates=\((.*)\) split=(\S+) seconds=[\d.]+ failed=0")
    fits = [found.groups() for found in map(fit.fullmatch, lines) if found]
    assert {(c, split) for text, split in fits for c in numbers(text)} == {
        (number, split.name) for number in (0, 1) for split in plan.search.scheme.splits
    }
    line = re.compile(r"slice rows=(\d+)-(\d+) model_sets=\((.*)\) seconds=[\d.]+")
    slices = [found.groups() for found in map(line.fullmatch, lines) if found]
    assert {tuple(numbers(text)) for *_, text in slices} == {(0, 1)}
    n_rows = sum(int(stop) - int(start) for start, stop, _ in slices)
    assert n_rows == plan.search.pool.n_rows


@pytest.mark.cluster
def test_metrics__are_served_by_the_scheduler_on_loopback():
    with connect(workers=1) as client:
        client.submit(sum, [1, 2]).result()
        link = client.dashboard_link.replace("/status", "/metrics")
        assert link.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(link, timeout=60) as answer:
            text = answer.read().decode()
    assert "dask_scheduler_workers" in text


def test_old_names__are_the_new_ones_and_say_so(plan):
    some = Progress(slices_done=1, slices_total=2)
    bound = Certificate(0.1, 0.05, "nested", "one_fold", trained_on="80%")
    values = BoundedValues(())
    report = CertifiedReport(0.05, "a model", (), (), values, values, values)
    for owner, old, new in (
        (plan, "certificate", "search.method_name"),
        (plan, "layout", "search.scheme"),
        (plan, "spans", "search.slices"),
        (plan, "prior", "search.prior_shares"),
        (plan, "delta_shares", "search.candidate_deltas"),
        (plan, "labeled", "search.labeled"),
        (plan, "caveats", "facts.caveats"),
        (Settings(np.array([0.01, 0.04])), "delta_shares", "candidate_deltas"),
        (some, "spans_done", "slices_done"),
        (some, "spans_total", "slices_total"),
        (bound, "deploy", "model_name"),
        (bound, "criterion", "method"),
        (bound, "share", "trained_on"),
        (bound, "model", "model_text"),
        (report, "model", "model_text"),
        (report, "remarks", "reasons"),
        (plan.search.scheme.splits[0], "key", "numbers"),
        (plan.search.scheme.splits[0], "test_parts", "row_parts"),
    ):
        with pytest.warns(FutureWarning, match=f"`{old}` is now called `{new}`"):
            np.testing.assert_equal(getattr(owner, old), attrgetter(new)(owner))
