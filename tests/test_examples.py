"""The narrated scripts run as they stand."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


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
