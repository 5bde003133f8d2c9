"""Models of slow fits are in the store, so that a killed run repeats none of them."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

import dsel
from dsel.results.signed import read_signed, write_signed
from dsel.results.store import open_store
from dsel.searches.engine import kept_models
from tests.estimators import FAMILIES
from tests.executors import Killed, faulty_threads

TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """Give this test's user a cache folder, and call every fit slow."""
    monkeypatch.setattr(kept_models, "LONG", 0.0)
    monkeypatch.setattr(kept_models, "NBYTES_PER_SECOND", 1e12)
    return become_another(tmp_path_factory, monkeypatch)


def become_another(tmp_path_factory, monkeypatch):
    """Give the user a cache folder without a secret, as somebody else has."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def make_plan(rng, name="kernel svm", **options):
    X = rng.normal(size=(400, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=400), [-0.5, 0.5])
    return dsel.plan_search(
        *FAMILIES[name],
        X[:90],
        y[:90],
        X[90:],
        **{"cv": 3, "random_state": 0, "criterion": "cv_bound", "prune": False}
        | options,
    )


def kill_when_all_is_fitted(plan, out):
    """Run until every fit was done and its models are kept, then die."""
    ran = []

    def stop(task):
        ran.append(task)
        if "count" in kinds_of([task]):
            raise KeyError("no pool here")

    with pytest.raises(KeyError, match="no pool here"):
        plan.run(faulty_threads(stop), out=out)
    return kinds_of(ran)


def run_and_tell(plan, out):
    """Run, and return the cube and what kinds of tasks were run."""
    ran = []
    found = plan.run(faulty_threads(ran.append), out=out)
    return found.drop_vars(TIMES), kinds_of(ran)


def kinds_of(tasks):
    """Return what tasks do; those without models look for labeled rows in the pool."""
    kinds = [(task.key.partition("-")[0], bool(task.inputs)) for task in tasks]
    named = {("span", True): "count", ("span", False): "look"}
    return {named.get(kind, kind[0]) for kind in kinds} - {"look"}


def objects(out):
    return sorted(Path(out, "model").glob("*.signed"))


@pytest.mark.parametrize("name", FAMILIES)
def test_run__that_was_killed_repeats_no_slow_fit(name, rng, tmp_path):
    plan = make_plan(rng, name)
    ran = kill_when_all_is_fitted(plan, tmp_path / "run")
    assert ran == {"fit", "pack", "count"}
    assert objects(tmp_path / "run")
    found, kinds = run_and_tell(plan, tmp_path / "run")
    assert kinds == {"load", "count"}
    assert not objects(tmp_path / "run")
    xr.testing.assert_equal(found, plan.run(n_jobs=1).drop_vars(TIMES))


def test_run__that_was_killed_early_fits_the_rest(rng, tmp_path):
    plan = make_plan(rng, "several")
    with pytest.raises(Killed):
        plan.run(faulty_threads(killed_after=5), out=tmp_path / "run")
    found, kinds = run_and_tell(plan, tmp_path / "run")
    assert kinds == {"fit", "pack", "load", "count"}
    assert not objects(tmp_path / "run")
    xr.testing.assert_equal(found, plan.run(n_jobs=1).drop_vars(TIMES))


def test_run__keeps_no_models_of_quick_fits(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_models, "LONG", 1.0)
    plan = make_plan(rng)
    kill_when_all_is_fitted(plan, tmp_path / "run")
    assert not objects(tmp_path / "run")
    assert run_and_tell(plan, tmp_path / "run")[1] == {"fit", "count"}


class Exploding:
    """Runs code where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_run__unpickles_nothing_that_another_user_wrote(
    rng, tmp_path, tmp_path_factory, monkeypatch
):
    plan, out = make_plan(rng), tmp_path / "run"
    kill_when_all_is_fitted(plan, out)
    mine = os.environ["XDG_CACHE_HOME"]
    become_another(tmp_path_factory, monkeypatch)
    bomb = pickle.dumps(Exploding(tmp_path / "exploded"))
    for path in objects(out):
        assert write_signed(open_store(out), path.stem, bomb)
        assert read_signed(open_store(out), path.stem) == bomb
    monkeypatch.setenv("XDG_CACHE_HOME", mine)
    found, kinds = run_and_tell(plan, out)
    assert not (tmp_path / "exploded").exists()
    assert "load" not in kinds
    xr.testing.assert_equal(found, plan.run(n_jobs=1).drop_vars(TIMES))


def test_signed_objects__are_lost_where_they_were_changed_or_renamed(tmp_path, home):
    store = open_store(tmp_path)
    assert write_signed(store, "one", b"models")
    assert read_signed(store, "one") == b"models"
    path = tmp_path / "model" / "one.signed"
    path.rename(path.with_stem("two"))
    assert read_signed(store, "two") is None
    assert write_signed(store, "one", b"models")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert read_signed(store, "one") is None
    (home / "dsel" / "secret").chmod(0o644)  # others may have read it
    assert not write_signed(store, "one", b"models")


SCRIPT = """
import sys, time
import numpy as np
import dsel
from tests.searches.engine.test_kept_models import SlowSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
plan = dsel.plan_search(
    SlowSVC(log=sys.argv[2]), {"C": [0.1, 1.0]}, X[:90], X[:90, 0] > 0, X[90:],
    cv=2, random_state=0, criterion="cv_bound", prune=False,
)
plan.run(out=sys.argv[1])
"""


class SlowSVC(SVC):
    """Takes its time to fit, and at its first pool rows waits to be killed."""

    def __init__(self, C=1.0, log=""):
        super().__init__(C=C)
        self.log = log

    def fit(self, X, y):
        time.sleep(1.1)
        with open(self.log, "a") as file:
            file.write("fit\n")
        return super().fit(X, y)

    def predict(self, X):
        if len(X) > 90 and not Path(f"{self.log}.resumed").exists():
            Path(f"{self.log}.waits").touch()
            time.sleep(60)
        return super().predict(X)


@pytest.mark.slow
def test_run__in_a_process_that_was_killed_repeats_no_fit(tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), str(log)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root) as process:
        deadline = time.monotonic() + 120
        while not Path(f"{log}.waits").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2.0)  # the journal writes every half second
        process.send_signal(signal.SIGKILL)
    assert log.read_text().count("fit") == 6
    Path(f"{log}.resumed").touch()
    assert subprocess.run(command, cwd=root, check=False).returncode == 0
    assert log.read_text().count("fit") == 6
    assert dsel.open_results(tmp_path / "run").status.values.tolist() == [0, 0]
