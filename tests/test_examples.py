"""The narrated scripts run as they stand."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_nonconformity__runs(capsys):
    runpy.run_path(str(EXAMPLES / "nonconformity.py"), run_name="__main__")

    assert "all kept" in capsys.readouterr().out


def test_learners_with_a_pool__runs(capsys):
    runpy.run_path(str(EXAMPLES / "learners_with_a_pool.py"), run_name="__main__")

    assert "Error at most" in capsys.readouterr().out


def test_tables__runs_here(capsys, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(sys, "argv", ["tables.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "tables.py"), run_name="__main__")

    assert "Error at most" in capsys.readouterr().out


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
