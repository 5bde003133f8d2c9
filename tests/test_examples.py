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


@pytest.mark.cluster
def test_main_job__runs():
    script = EXAMPLES / "main_job.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )

    assert "With probability at least 95%" in done.stdout


@pytest.mark.slow
def test_text_covalidation__runs(capsys, data_dir, monkeypatch):
    monkeypatch.setenv("DSEL_DATA", str(data_dir))

    runpy.run_path(str(EXAMPLES / "text_covalidation.py"), run_name="__main__")

    assert "active learning" in capsys.readouterr().out
