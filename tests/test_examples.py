"""The narrated scripts run as they stand."""

import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = [*EXAMPLES.glob("*.py"), *(ROOT / "docs").rglob("*.py")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonconformity", "all kept"),
        ("learners_with_a_pool", "Error at most"),
        ("tables", "Error at most"),
    ],
)
def test_example__runs_here(name, words, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script__underlines_the_whole_of_each_title(script):
    lines = [line.removeprefix("# ") for line in script.read_text().splitlines()]
    short = [
        title
        for title, rule in pairwise(lines)
        if re.fullmatch(r"([-=~^])\1{2,}", rule) and len(rule) < len(title)
    ]
    assert not short  # the site is not built from them with -W


def printed(*words):
    command = [sys.executable, *words]
    options = {"cwd": EXAMPLES, "capture_output": True, "text": True}
    return subprocess.run(command, check=True, **options).stdout


@pytest.mark.cluster
def test_example__runs_from_a_shell(tmp_path):
    printed("tables.py", str(tmp_path))
    command = [
        *("-m", "dsel", "select", tmp_path / "labeled.parquet", "--target", "label"),
        *("--pool", tmp_path / "unlabeled", "--model", "tables:pipeline", "--quiet"),
        *("--grid", "logisticregression__C=0.01,0.1,1,10", "--workers", "1"),
    ]
    assert "Error at most" in printed(*command)
    assert "Error at most" in printed("main_job_on_workers.py")
