"""Options, markers and fixtures shared by all tests."""

import os
from pathlib import Path

import numpy as np
import pytest

MARKERS = {
    "slow": "takes minutes; run with --runslow",
    "cluster": "starts Dask workers; run with --runcluster",
    "gpu": "needs a GPU; run with --rungpu",
}


def pytest_addoption(parser):
    for name, reason in MARKERS.items():
        parser.addoption(f"--run{name}", action="store_true", help=reason)


def pytest_collection_modifyitems(config, items):
    for name, reason in MARKERS.items():
        if config.getoption(f"--run{name}"):
            continue
        for item in items:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def rng():
    return np.random.default_rng(20260923)


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the public benchmark sets, which are no part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("DSEL_DATA", beside))
    if not (folder / "MANIFEST.json").exists():
        pytest.skip("the benchmark sets are not here; set DSEL_DATA to their folder")
    return folder
