"""Options, markers and fixtures shared by all tests."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.clusters import two_workers
from tests.object_store import object_store

STARTED = time.monotonic()
MARKERS = {
    "slow": "takes minutes; run with --runslow",
    "cluster": "starts Dask workers; run with --runcluster",
}

# How long an example takes says how busy the machine is, not whether it holds.
settings.register_profile(
    "dsel", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dsel")

# A shell has what it runs in the background ignore an interrupt, and so would all
# processes that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    for name, reason in MARKERS.items():
        parser.addoption(f"--run{name}", action="store_true", help=reason)
    parser.addoption(
        "--slow-seconds",
        type=float,
        default=float("inf"),
        help="begin no slow test after that many seconds",
    )


def pytest_collection_modifyitems(config, items):
    for item in items:
        for name, reason in MARKERS.items():
            if item.get_closest_marker(name) and not config.getoption(f"--run{name}"):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup(item):
    limit = item.config.getoption("--slow-seconds")
    if item.get_closest_marker("slow") and time.monotonic() - STARTED > limit:
        pytest.skip(f"the {limit:g} s for slow tests are over")


@pytest.fixture(autouse=True)
def _on_threads(request, monkeypatch):
    """Keep searches in this process, where tests count calls and replace functions.

    Those of the contract run as users' do.
    """
    if "contract" not in request.path.parts:
        monkeypatch.setattr(
            "dsel.runtime.local_executor.PATIENCE_SECONDS", float("inf")
        )


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


@pytest.fixture(scope="session")
def processes():
    """Client of two worker processes, which nobody harms; not the current one."""
    with two_workers() as client:
        yield client


@pytest.fixture(scope="session")
def storage_options(tmp_path_factory):
    """Options that reach a bucket in an S3-compatible server of our own."""
    pytest.importorskip("s3fs", reason="needs the extra `cloud`")
    pytest.importorskip("moto.server", reason="needs moto's server")
    with object_store(tmp_path_factory.mktemp("store")) as options:
        yield options
