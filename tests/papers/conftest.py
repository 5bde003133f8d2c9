"""The scripts of the papers import each other by name, as they do when they are run."""

import sys
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
sys.path.append(str(PAPERS))


@pytest.fixture
def draw():
    """Draw all figures of an experiment, and return their names."""
    pytest.importorskip("matplotlib").use("agg")
    import common

    def names_of(figures):
        drawn = [(name, common.svg_of(figure)) for name, _, figure in figures]
        assert all(svg.startswith("<svg") for _, svg in drawn)
        return [name for name, _ in drawn]

    return names_of
