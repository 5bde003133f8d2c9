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
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")

    assert words in capsys.readouterr().out


@pytest.mark.cluster
def test_tables__runs_from_a_shell(tmp_path):
    pytest.importorskip("pyarrow")
    script = [sys.executable, "tables.py", str(tmp_path)]
    subprocess.run(script, cwd=EXAMPLES, check=True, stdout=subprocess.DEVNULL)
    command = [
        *(sys.executable, "-m", "dsel", "select", tmp_path / "labeled.parquet"),
        *("--target", "label", "--pool", tmp_path / "unlabeled"),
        *("--model", "tables:pipeline", "--quiet"),
        *("--grid", "logisticregression__C=0.01,0.1,1,10", "--workers", "1"),
    ]
    done = subprocess.run(
        list(map(str, command)), cwd=EXAMPLES, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "Error at most" in done.stdout


@pytest.mark.cluster
def test_main_job__runs():
    script = EXAMPLES / "main_job_on_workers.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )

    assert "Error at most" in done.stdout
