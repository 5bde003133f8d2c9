"""Each script runs from a shell, keeps its pieces and writes its tables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


def run(script, *options, cwd):
    command = [sys.executable, PAPERS / f"{script}.py", *options]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=cwd
    )


@pytest.mark.parametrize(
    ("script", "name", "data_set"),
    [
        ("hardoon2009", "hardoon2009", "glass"),
        ("loog2015", "loog2015", "banknote"),
        ("madani2004", "madani2004-estimation", "votes"),
        pytest.param(
            "kaariainen2005", "kaariainen2005", "segment", marks=pytest.mark.slow
        ),
    ],
)
def test_script__measures_a_set_and_goes_on_from_it(
    script, name, data_set, data_dir, tmp_path
):
    options = (name, "--data", data_dir, "--sets", data_set, "--repetitions", 1)
    done = run(script, *options, "--out", "there", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Agree with the paper" in done.stdout
    assert f"1 of 1 pieces ({data_set})" in done.stderr
    there = tmp_path / "there"
    assert (there / "pieces" / f"{data_set}-0.json").exists()
    written = json.loads((there / "comparison.json").read_text())
    assert written["experiment"] == name
    again = run(script, *options, "--out", "there", "--json", cwd=tmp_path)
    assert "pieces (" not in again.stderr  # nothing is measured twice
    assert "0.0 seconds of them in this run" in again.stderr
    assert json.loads(again.stdout) == written


def test_sugiyama__runs_without_data(tmp_path):
    options = ("--sets", "sin", "--repetitions", 1, "--out", "there", "--quiet")
    done = run("sugiyama", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "there" / "comparison.html").read_text()
    assert "<svg" in page
    assert "slide 83" in page
