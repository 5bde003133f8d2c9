"""What a run tells of itself: progress, log lines, Dask's own metrics."""

import io
import logging
import re
import sys
import urllib.request

import pytest
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.cluster import connect


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
    rows = plan.context.X, plan.context.y
    search = dsel.SemiSupervisedSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=3, prune=False
    )
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal := Terminal())
        search.fit(*rows)
    assert terminal.getvalue() == ""
    search.set_params(verbose=1).fit(*rows)
    assert re.search("fits .* 9/9", capsys.readouterr().err)


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
        (candidate, split.name) for candidate in (0, 1) for split in plan.layout.splits
    }
    span = re.compile(r"span rows=(\d+)-(\d+) candidates=\((.*)\) seconds=[\d.]+")
    spans = [found.groups() for found in map(span.fullmatch, lines) if found]
    assert {tuple(numbers(text)) for *_, text in spans} == {(0, 1)}
    assert sum(int(stop) - int(start) for start, stop, _ in spans) == plan.pool.n_rows


@pytest.mark.cluster
def test_metrics__are_served_by_the_scheduler_on_loopback():
    with connect(workers=1) as client:
        client.submit(sum, [1, 2]).result()
        link = client.dashboard_link.replace("/status", "/metrics")
        assert link.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(link, timeout=60) as answer:
            text = answer.read().decode()
    assert "dask_scheduler_workers" in text
