"""Pages and scripts state no duration but those that were measured and recorded."""

import json
import re
from pathlib import Path

import common
import hardoon2009
import kaariainen2005
import loog2015
import madani2004
import pytest
import sugiyama

PAGE = Path(__file__).parents[2] / "docs" / "project" / "papers.md"
EXPERIMENTS = (
    kaariainen2005.EXPERIMENT, kaariainen2005.CONSISTENCY, madani2004.ESTIMATION,
    madani2004.SELECTION, sugiyama.EXPERIMENT, hardoon2009.EXPERIMENT,
    loog2015.EXPERIMENT,
)  # fmt: skip


def row_of(experiment):
    """Return the line of an experiment in the page's table."""
    seconds = common.expect_seconds(experiment)
    time = common.as_time(seconds) if seconds == seconds else "not known"
    pieces = len(experiment.sets) * experiment.repetitions
    listed = common.list_seconds(experiment)
    return f"| `{experiment.name}` | {listed} | {pieces:,} | {time} |"


def rows():
    return [row_of(experiment) for experiment in EXPERIMENTS]


def test_page__has_the_recorded_seconds_and_no_others():
    text = PAGE.read_text("utf-8")
    table = re.findall(r"^\| `.*", text, re.MULTILINE)
    assert table == rows()
    stored = json.loads(common.SECONDS_FILE.read_text("utf-8"))["experiments"]
    machines = {entry["machine"] for entry in stored.values()}
    assert len(machines) == 1
    assert f"({machines.pop()})" in text


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_recorded_seconds__are_of_sets_that_the_experiment_has(experiment):
    recorded = common.recorded_seconds(experiment.name)
    assert set(recorded) <= set(experiment.sets)
    assert all(min(seconds) >= 0 for seconds in recorded.values())


def test_scripts_and_page__state_no_duration_by_hand():
    scripts = sorted(set(common.PAPERS.glob("*.py")) - {Path(common.__file__)})
    assert len(scripts) == 6
    for file in (*scripts, PAGE):
        lines = file.read_text("utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("| `"))
        assert not re.findall(r"\b(?:minutes?|hours?)\b", text), file
