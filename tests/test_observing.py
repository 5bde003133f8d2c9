"""What a run tells of itself: log lines, where the time went, Dask's own metrics."""

import io
import json
import logging
import re
import sys
import time
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from dsel.searches import execute
from dsel.searches.phases import PHASES
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.cli import main
from dsel.cluster import Local, connect


@pytest.fixture
def plan(rng):
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    grid = {"n_neighbors": [1, 3]}
    return dsel.plan_search(
        KNeighborsClassifier(), grid, X[:100], y[:100], X[100:], cv=3, random_state=0,
        prune=False, criterion="cv_bound",
    )  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_run__shows_progress_where_a_terminal_is_there(plan, monkeypatch):
    shown = {}
    for stderr in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stderr)
        plan.run()
        shown[type(stderr)] = stderr.getvalue()
    assert re.search("fits.*8/8.*pool.*rows/s", shown[Terminal], re.DOTALL)
    assert re.search(r"elapsed \S*0:00:00\S* left", shown[Terminal])
    assert shown[io.StringIO] == ""


def test_fit__shows_progress_if_asked_to(plan, monkeypatch, capsys):
    rows = plan.work.X, plan.work.y
    search = dsel.SemiSupervisedSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=3, prune=False
    )
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal := Terminal())
        search.fit(*rows)
    assert terminal.getvalue() == ""
    search.set_params(verbose=1).fit(*rows)
    assert re.search("fits .* 8/8", capsys.readouterr().err)


def _fields(record):
    return record.dsel


def test_log__has_a_line_for_every_fit_and_span(plan, caplog):
    with caplog.at_level(logging.INFO, "dsel.searches"):
        plan.run()
    events = [_fields(record) for record in caplog.records if hasattr(record, "dsel")]
    fits = {(e["candidates"], e["split"]) for e in events if e["event"] == "fit"}
    assert len(fits) == 2 * 4
    spans = [e for e in events if e["event"] == "span"]
    assert {e["candidates"] for e in spans} == {"0,1"}
    pool = plan.stages.parts[0].pool
    assert sum(e["bytes"] for e in spans) == pool.n_rows * pool.row_nbytes
    assert all(e["seconds"] >= 0 for e in events)


def test_log__lines_are_words_with_values(plan, caplog):
    with caplog.at_level(logging.INFO, "dsel.searches"):
        plan.run()
    line = r"fit candidates=[\d,]+ split=\S+ seconds=\S+ bytes=\d+ failed=0"
    assert any(re.fullmatch(line, record.getMessage()) for record in caplog.records)


def test_cube__says_where_the_time_went(plan):
    found = json.loads(plan.run().attrs["phase_seconds"])
    assert set(found) == {*PHASES, "fits", "full fits", "scoring", "slots"} - {"save"}
    assert all(value >= 0 for value in found.values())


def test_phases__add_up_to_the_time_of_the_run(plan, tmp_path, monkeypatch):
    # Of this thread's own work: what else the machine does meanwhile takes none of it.
    clock = SimpleNamespace(perf_counter=time.thread_time)
    monkeypatch.setattr("dsel.searches.phases.time", clock)
    plan.run()  # imports
    began = time.thread_time()
    outcome = execute(plan, out=tmp_path, with_model=True)
    whole = time.thread_time() - began
    found = json.loads(outcome.results.attrs["phase_seconds"])
    assert sum(found[name] for name in PHASES) == pytest.approx(whole, rel=0.1)


@pytest.mark.cluster
def test_command__writes_log_and_performance_report(tmp_path, rng):
    table = tmp_path / "table.npz"
    X = rng.normal(size=(300, 2))
    np.savez(table, X=X, y=(X[:, 0] > 0).astype(int))
    log, report = tmp_path / "log.txt", tmp_path / "report.html"
    done = CliRunner().invoke(
        main,
        ["select", str(table), "--criterion", "cv_error", "--model", "neighbors"]
        + ["--workers", "1", "--quiet", "--cv", "3"]
        + ["--log", str(log), "--performance-report", str(report)],
    )
    assert done.exit_code == 0, done.output
    assert "Time " in done.output
    assert "INFO fit candidates=" in log.read_text()
    assert report.stat().st_size > 10_000


@pytest.mark.cluster
def test_metrics__are_served_by_the_scheduler_on_loopback():
    with connect(Local(workers=1)) as client:
        client.submit(sum, [1, 2]).result()
        link = client.dashboard_link.replace("/status", "/metrics")
        assert link.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(link, timeout=60) as answer:
            text = answer.read().decode()
    assert "dask_scheduler_workers" in text
