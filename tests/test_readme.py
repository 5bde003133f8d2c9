"""What README and the site's pages show as Python runs as it stands."""

import re
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


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Return the names that a reader has, in a folder with a pool."""
    monkeypatch.chdir(tmp_path)
    X, y = make_classification(350, 4, random_state=0)
    dsel.write_pool(X[300:], "pool.zarr")
    widths, regularizations = np.array([1.0, 2.0]), np.array([1e-3, 1e-2])
    return {
        "X": X[:300],
        "y": y[:300],
        "widths": widths,
        "regularizations": regularizations,
    }


def test_readme__runs_as_it_stands(reader, capsys):
    reader |= {"dsel": dsel, "SVC": SVC, "pool": dsel.open_pool("pool.zarr")}
    for block in _blocks(README):
        exec(block, reader)

    assert _blocks(README, "text")[1] in capsys.readouterr().out
    assert reader["choice"].certificate.certified
    assert set(reader["outcome"].models) == {"one_fold", "all_rows"}
    assert set(reader["search"].results_.dims) >= {"width", "regularization"}


def test_readme__bounds_are_those_of_plan_bound():
    shown = re.findall(
        r"^\| ([\d,]+) \| (0\.\d+) \| (0\.\d+ \| .*) \|$", README.read_text(), re.M
    )
    certificates = ["one_fold", "all_rows", "cv_bound", "held_out_fifth"]

    assert len(shown) == 3
    for labels, error, cells in shown:
        n_labeled = int(labels.replace(",", ""))
        plan = dsel.plan_bound(n_labeled, 100_000, n_candidates=100, error=float(error))
        bounds = plan.bound.sel(certificate=certificates, n_folds=5).values
        assert [float(cell) for cell in cells.split(" | ")] == pytest.approx(
            bounds, abs=5e-4
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page__runs_as_it_stands(reader, page):
    pool = dsel.open_pool("pool.zarr")
    reader |= {"dsel": dsel, "SVC": SVC, "pool": pool}
    known = dict(CRITERIA)
    try:
        for block in _blocks(page):
            exec(block, reader)
    finally:
        for name in set(CRITERIA) - set(known):
            del CRITERIA[name]


@pytest.mark.cluster
def test_readme__shows_what_the_demo_prints(tmp_path):
    demo = [sys.executable, "-m", "dsel", "demo", "--quiet", "--workers", "1"]
    done = subprocess.run(
        demo, capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert _blocks(README, "text")[0] in done.stdout
