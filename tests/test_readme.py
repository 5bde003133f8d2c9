"""What the README shows as Python runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

import dsel

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Return the names that a reader has, in a folder with a pool."""
    monkeypatch.chdir(tmp_path)
    X, y = make_classification(150, 4, random_state=0)
    dsel.write_pool(X[100:], "pool.zarr")
    widths, regularizations = np.array([1.0, 2.0]), np.array([1e-3, 1e-2])
    return {
        "X": X[:100],
        "y": y[:100],
        "widths": widths,
        "regularizations": regularizations,
    }


def test_readme__runs_as_it_stands(reader):
    for block in BLOCKS:
        exec(block, reader)

    assert reader["choice"].certificate.certified
    assert set(reader["search"].results_.dims) >= {"width", "regularization"}
