"""What README and the site's pages show as Python runs as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import dsel
from dsel.criteria import CRITERIA

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if "```python" in path.read_text("utf-8") and "_build" not in path.parts
)


def _blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def _read(page, tmp_path, monkeypatch):
    """Run a page in a folder with a pool; return the names that its reader has then."""
    monkeypatch.chdir(tmp_path)
    X, y = make_classification(350, 4, random_state=0)
    known = {"dsel": dsel, "SVC": SVC, "X": X[:300], "y": y[:300]}
    known["pool"] = dsel.write_pool(X[300:], "pool.zarr")
    known["widths"] = np.array([1.0, 2.0])
    known["regularizations"] = np.array([1e-3, 1e-2])
    for block in _blocks(page):
        exec(block, known)
    return known


def test_readme__runs_as_it_stands(tmp_path, monkeypatch, capsys):
    reader = _read(README, tmp_path, monkeypatch)
    assert _blocks(README, "text")[1] in capsys.readouterr().out
    assert reader["choice"].certificate.certified
    assert set(reader["outcome"].models) == {"one_fold", "all_rows"}
    assert set(reader["search"].results_.dims) >= {"width", "regularization"}


def test_predict_page__is_a_session_that_runs(tmp_path, monkeypatch):
    page = ROOT / "docs/using/predict.md"
    _read(page, tmp_path, monkeypatch)
    [commands, look] = _blocks(page, "sh")
    dsel_here = f"{shlex.quote(sys.executable)} -m dsel "
    script = re.sub(r"^dsel ", dsel_here, f"set -e\n{commands}{look}", flags=re.M)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = _blocks(page, "text")
    assert all(text.rstrip("\n") in done.stdout for text in shown[:2])


def test_page_by_value__shows_what_is_printed(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs/using/by_value.md"
    _read(page, tmp_path, monkeypatch)
    assert _blocks(page, "text")[0] in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page__runs_as_it_stands(page, tmp_path, monkeypatch):
    known = dict(CRITERIA)
    _read(page, tmp_path, monkeypatch)
    for name in set(CRITERIA) - set(known):
        del CRITERIA[name]


def test_readme__bounds_are_those_of_plan_bound():
    row = r"^\| ([\d,]+) \| (0\.\d+) \| (0\.\d+ \| .*) \|$"
    shown = re.findall(row, README.read_text(), re.MULTILINE)
    certificates = ["one_fold", "all_rows", "cv_bound", "held_out_fifth"]
    assert len(shown) == 3
    for labels, error, cells in shown:
        sizes = (int(labels.replace(",", "")), 100_000)
        plan = dsel.plan_bound(*sizes, n_candidates=100, error=float(error))
        bounds = plan.bound.sel(certificate=certificates, n_folds=5).values
        found = [float(cell) for cell in cells.split(" | ")]
        assert found == pytest.approx(bounds, abs=5e-4)


@pytest.mark.cluster
def test_readme__shows_what_the_demo_prints(tmp_path):
    demo = [sys.executable, "-m", "dsel", "demo", "--quiet", "--workers", "1"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path)
    assert _blocks(README, "text")[0] in done.stdout
