"""What a user meets when the place of the results, or the pool, is not as it was."""

import importlib
import json
import logging
import os
import shutil
import subprocess
import threading
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import xarray as xr
from sklearn.naive_bayes import GaussianNB
from zarr.storage import LocalStore

import dsel
from dsel.errors import DselWarning, FitFailedWarning, StoreMismatchError
from dsel.results.models import open_model
from dsel.runtime.local import LocalExecutor
from dsel.searches import execute
from tests.executors import FaultyExecutor

GRID = np.geomspace(1e-9, 1.0, 5)
TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(300, 3))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int)


@pytest.fixture
def plan(table):
    return make_plan(table, table[0][100:])


def make_plan(table, pool, model=None, grid=GRID):
    X, y = table
    grid = {"var_smoothing": grid}
    return dsel.plan_search(
        model or GaussianNB(), grid, X[:100], y[:100], pool,
        criterion="cv_bound", cv=3, random_state=0, prune=False,
    )  # fmt: skip


def counts(cube):
    return cube.drop_vars(TIMES)


@pytest.fixture
def counted(caplog):
    """Return the log lines of fits and spans that were counted, not read again."""
    seen = []

    class Handler(logging.Handler):
        def emit(self, record):
            if record.dsel["event"] in ("fit", "span"):
                seen.append(record)

    handler, logger = Handler(), logging.getLogger("dsel.searches")
    with caplog.at_level(logging.INFO, "dsel.searches"):
        logger.addHandler(handler)
        yield seen
        logger.removeHandler(handler)


@pytest.fixture
def small_disk(tmp_path):
    """Return a place of a megabyte, and what changes how it is mounted."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    if mount("size=1m") != 0:
        pytest.skip("needs the right to mount a small file system")
    yield place, mount
    subprocess.run(["umount", str(place)], check=True)


def test_run__of_a_newer_store_is_refused_and_changes_nothing(plan, tmp_path, counted):
    place = tmp_path / "run"
    whole = plan.run(out=place)
    header = place / "zarr.json"
    ours = header.read_text()
    newer = json.loads(ours)
    newer["attributes"]["dsel_schema_version"] = 99
    header.write_text(json.dumps(newer))
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    with pytest.raises(ValueError, match=r"run was written by a newer dsel.*update"):
        plan.run(out=place)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    header.write_text(ours)
    counted.clear()
    xr.testing.assert_equal(plan.run(out=place), whole)
    assert not counted


@pytest.mark.parametrize("damage", ["", '{"zarr_form', "[]"])
def test_run__of_a_store_without_its_head_says_where_it_is(plan, tmp_path, damage):
    place = tmp_path / "run"
    plan.run(out=place)
    (place / "zarr.json").write_text(damage)
    with pytest.raises(ValueError, match=r"run.*is damaged.*another `out`"):
        plan.run(out=place)


def test_run__of_a_store_that_lost_its_head_changes_nothing(plan, tmp_path):
    plan.run(out=tmp_path)
    (tmp_path / "zarr.json").unlink()
    before = files_in(tmp_path)
    said = r"is damaged.*\(zarr\.json is missing.*copy, or choose another `out`"
    with pytest.raises(ValueError, match=said):
        plan.run(out=tmp_path)
    assert files_in(tmp_path) == before


def files_in(place):
    """Return all files, and when they were written."""
    return {
        path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()
    }


def test_execute__makes_a_damaged_model_anew(plan, tmp_path):
    whole = execute(plan, out=tmp_path, with_model=True).model
    [model] = (tmp_path / "model").iterdir()
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"is damaged.*run the same command again"):
        open_model(tmp_path)
    again = execute(plan, out=tmp_path, with_model=True).model
    np.testing.assert_array_equal(again.theta_, whole.theta_)
    np.testing.assert_array_equal(open_model(tmp_path).theta_, whole.theta_)


def test_open_results__of_a_deleted_cube_says_how_to_make_it_anew(plan, tmp_path):
    plan.run(out=tmp_path)
    shutil.rmtree(tmp_path / "cube-1")
    with pytest.raises(FileNotFoundError, match=r"cube-1, which was deleted.*again"):
        dsel.open_results(tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda cube: (cube / "zarr.json").unlink(), r"cube-1/zarr\.json is missing"),
        (lambda cube: (cube / "status" / "zarr.json").unlink(), "cube-1 lacks status"),
        (
            lambda cube: (cube / "status" / "zarr.json").write_text('{"sh'),
            "Unterminated",
        ),
        (lambda cube: change(cube, shape="x"), r"cube-1/status/zarr\.json: TypeError"),
        (lambda cube: cut(cube / "fold_errors"), "chunk cube-1/fold_errors/c"),
        (lambda cube: cut(cube / "delta_share"), "chunk cube-1/delta_share/c"),
    ],
)
def test_run__of_a_damaged_cube_makes_it_anew(plan, tmp_path, counted, damage, said):
    expected = counts(plan.run(out=tmp_path))
    damage(tmp_path / "cube-1")
    damaged = rf"is damaged.*{said}.*[Rr]un the same command again with the same `out`"
    with pytest.raises(ValueError, match=damaged) as caught:
        dsel.open_results(tmp_path).load()
    assert "delete" not in str(caught.value)
    n_counted = len(counted)
    for _ in range(3):
        xr.testing.assert_equal(counts(plan.run(out=tmp_path)), expected)
    xr.testing.assert_equal(counts(dsel.open_results(tmp_path).load()), expected)
    assert len(counted) == n_counted


def change(cube, **entries):
    head = cube / "status" / "zarr.json"
    head.write_text(json.dumps({**json.loads(head.read_text()), **entries}))


def cut(variable):
    files = (path for path in variable.rglob("*") if path.is_file())
    [chunk] = (path for path in files if path.name != "zarr.json")
    chunk.write_bytes(chunk.read_bytes()[:-5])


@pytest.mark.parametrize("kind", [TypeError, KeyError, AttributeError])
def test_open_results__of_a_sound_cube_hides_no_other_error(
    plan, tmp_path, monkeypatch, kind
):
    plan.run(out=tmp_path)

    def fail(*args, **kwargs):
        raise kind("a mistake in the program")

    monkeypatch.setattr(xr, "open_zarr", fail)
    with pytest.raises(kind, match="a mistake in the program"):
        dsel.open_results(tmp_path)


class Waiting(GaussianNB):
    """Fits the last two candidates no sooner than it may."""

    may_fit = (threading.Event(), threading.Event())

    def fit(self, X, y, sample_weight=None):
        for event, limit in zip(self.may_fit, (0.005, 0.5), strict=True):
            if self.var_smoothing > limit:
                event.wait()
        return super().fit(X, y, sample_weight)


def without_waiting(work):
    """Return threads whose tasks are not waited for when the run ends."""
    executor = FaultyExecutor(LocalExecutor(work))
    executor.close = lambda: None
    return executor


def test_run__whose_place_is_removed_ends_before_its_tasks_do(table, tmp_path):
    plan = make_plan(table, table[0][100:], Waiting())
    first, last = Waiting.may_fit

    def remove(progress):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        first.set()

    try:
        with pytest.raises(OSError, match=r"cannot write to .*choose another `out`"):
            plan.run(without_waiting, out=tmp_path / "run", on_progress=remove)
        assert not last.is_set()
    finally:
        last.set()


def test_run__counts_again_what_was_damaged(plan, tmp_path):
    whole = plan.run(out=tmp_path)
    [path] = (tmp_path / "journal").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(DselWarning, match=rf"{path.name} .* damaged.*counted again"):
        again = plan.run(out=tmp_path)
    counted = ["fold_errors", "train_errors", "disagreements", "pool_rows"]
    xr.testing.assert_equal(again[counted], whole[counted])


def test_run__on_a_full_disk_ends_and_goes_on_when_there_is_room(
    plan, small_disk, counted
):
    place, mount = small_disk
    whole = plan.run()
    filler, out = place / "filler", place / "run"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        for _ in range(2**10 - 40):
            file.write(bytes(2**10))
    with pytest.raises(OSError, match=r"No space left.*Make room or choose another"):
        plan.run(out=out)
    mount("remount,size=8m")
    filler.unlink()
    xr.testing.assert_equal(counts(plan.run(out=out)), counts(whole))
    counted.clear()
    plan.run(out=out)
    assert not counted


def test_run__in_a_read_only_place_says_so_at_once(table, plan, small_disk, counted):
    place, mount = small_disk
    plan.run(out=place / "run")
    counted.clear()
    larger = make_plan(table, table[0][100:], grid=np.geomspace(1e-9, 10.0, 6))
    mount("remount,ro,size=1m")
    for what, where in ((plan, "new"), (larger, "run")):
        with pytest.raises(OSError, match=r"Read-only.*choose another `out`"):
            what.run(out=place / where)
    assert not counted
    mount("remount,rw,size=1m")


def test_run__that_has_ended_is_opened_in_a_read_only_place(plan, small_disk, counted):
    place, mount = small_disk
    first = plan.run(out=place / "run")
    model = execute(plan, out=place / "run", with_model=True).model
    counted.clear()
    mount("remount,ro,size=1m")
    xr.testing.assert_equal(plan.run(out=place / "run"), first)
    again = execute(plan, out=place / "run", with_model=True).model
    np.testing.assert_array_equal(again.theta_, model.theta_)
    assert not counted
    assert dsel.open_results(place / "run").n_labeled == 100
    [cube] = (place / "run").glob("cube-2")
    mount("remount,rw,size=1m")
    shutil.rmtree(cube)
    mount("remount,ro,size=1m")
    with pytest.raises(OSError, match=r"Read-only.*choose another `out`"):
        plan.run(out=place / "run")
    mount("remount,rw,size=1m")


def test_run__in_a_store_for_reading_only_opens_what_has_ended(plan, tmp_path, counted):
    reading = LocalStore(tmp_path, read_only=True)
    with pytest.raises(OSError, match=r"reading only.*choose another `out`"):
        plan.run(out=reading)
    first = plan.run(out=tmp_path)
    counted.clear()
    xr.testing.assert_equal(plan.run(out=reading), first)
    assert not counted


def test_run__at_a_file_says_so(plan, tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(OSError, match="choose another `out`"):
        plan.run(out=tmp_path / "run")


@pytest.mark.parametrize("change", ["values", "rows"])
def test_run__refuses_a_pool_that_changed(table, tmp_path, change, counted):
    rows, place = table[0][100:], tmp_path / "pool.zarr"
    other = rows + 1.0 if change == "values" else rows[:-1]
    whole = make_plan(table, dsel.write_pool(rows, place)).run(out=tmp_path / "run")
    dsel.write_pool(other, tmp_path / "other.zarr")
    place.rename(tmp_path / "kept.zarr")
    (tmp_path / "other.zarr").rename(place)
    with pytest.raises(StoreMismatchError, match="pool"):
        make_plan(table, dsel.open_pool(place)).run(out=tmp_path / "run")
    counted.clear()
    again = make_plan(table, dsel.open_pool(tmp_path / "kept.zarr"))
    xr.testing.assert_equal(again.run(out=tmp_path / "run"), whole)
    assert not counted


@pytest.mark.parametrize("shape", [(150, 3), (200, 4)])
def test_run__refuses_a_file_that_was_written_anew_since_the_plan(
    table, tmp_path, shape
):
    np.save(tmp_path / "pool.npy", table[0][100:])
    plan = make_plan(table, tmp_path / "pool.npy")
    np.save(tmp_path / "pool.npy", np.ones(shape))
    with pytest.raises(ValueError, match="was written anew since it was opened"):
        plan.run()


LEARNER = """
from sklearn.naive_bayes import GaussianNB
__version__ = "1.0"
class Learner(GaussianNB): pass
"""


def test_run__uses_no_counts_of_another_version_of_a_library(
    table, tmp_path, monkeypatch, counted
):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "acme_learners.py").write_text(LEARNER)
    monkeypatch.syspath_prepend(folder)
    acme = importlib.import_module("acme_learners")
    plan = partial(make_plan, table, table[0][100:], acme.Learner())
    plan().run(out=tmp_path / "run")
    counted.clear()
    plan().run(out=tmp_path / "run")
    assert not counted
    monkeypatch.setattr(acme, "__version__", "2.0")
    with pytest.raises(StoreMismatchError, match=r"Learner 1\.0.*Learner 2\.0"):
        plan().run(out=tmp_path / "run")


@pytest.mark.parametrize("when", [0, 4_000_000_000])
def test_run__goes_on_whatever_the_clock_of_the_place_said(
    plan, tmp_path, when, counted
):
    place = tmp_path / "run"
    whole = plan.run(out=place)
    for path in place.rglob("*"):
        os.utime(path, (when, when))
    counted.clear()
    xr.testing.assert_equal(plan.run(out=place), whole)
    assert not counted


class Hungry(GaussianNB):
    """Fits where nothing is in its way."""

    in_the_way = None

    def fit(self, X, y, sample_weight=None):
        if self.var_smoothing > 0.5 and Hungry.in_the_way:
            raise Hungry.in_the_way("no room")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "error", [MemoryError, OSError, ConnectionError, TimeoutError, ValueError]
)
def test_run__tries_again_what_failed(table, tmp_path, monkeypatch, counted, error):
    plan = make_plan(table, table[0][100:], Hungry())
    with monkeypatch.context() as patch:
        patch.setattr(Hungry, "in_the_way", error)
        with pytest.warns(FitFailedWarning, match=f"{error.__name__}: no room"):
            assert (plan.run(out=tmp_path / "run").status == 2).sum() == 1
    found = plan.run(out=tmp_path / "run")
    xr.testing.assert_equal(counts(found), counts(plan.run()))
    counted.clear()
    plan.run(out=tmp_path / "run")
    assert not counted


@pytest.mark.parametrize("certificate", ["best_fold_of_leader", "nested", "cv_bound"])
def test_run__after_failures_certifies_no_other_leader(
    table, tmp_path, monkeypatch, certificate
):
    X, y = table
    plan = dsel.plan_search(
        Hungry(), {"var_smoothing": [0.5001, 0.5]}, X[:100], y[:100], X[100:], cv=3,
        criterion="cv_error", certificate=certificate, random_state=0,
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(Hungry, "in_the_way", MemoryError)
        with pytest.warns(FitFailedWarning):
            first = dsel.select(plan.run(out=tmp_path, n_jobs=1))
    for _ in range(2):
        again = dsel.select(plan.run(out=tmp_path, n_jobs=1))
        certified = [each.certificate.certified for each in (first, again)]
        assert (first.candidate, again.candidate) == (1, 0)
        assert certified == [True, certificate == "cv_bound"]
    assert again.certificate.certified or (
        "others led in an earlier run" in again.certificate.reasons[0]
    )


def test_run__that_ended_with_failures_is_opened_where_nothing_can_be_written(
    table, tmp_path, monkeypatch
):
    plan = make_plan(table, table[0][100:], Hungry())
    monkeypatch.setattr(Hungry, "in_the_way", OSError)
    with pytest.warns(FitFailedWarning, match="OSError: no room"):
        first = plan.run(out=tmp_path)
    with pytest.warns(FitFailedWarning, match="OSError: no room"):
        found = plan.run(out=LocalStore(tmp_path, read_only=True))
    xr.testing.assert_equal(counts(found), counts(first))


@pytest.mark.parametrize("name", ["cube-1/mine.csv", "download.partial", "notes.txt"])
def test_run__touches_nothing_of_others(plan, tmp_path, name, counted):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=r"`out` .*empty place .*choose another"):
        plan.run(out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name.partition("/")[0]]
    assert (tmp_path / name).read_text() == "mine"
    assert not counted


def test_run__removes_nothing_that_others_put_there(plan, tmp_path):
    plan.run(out=tmp_path)
    others = [tmp_path / "a.partial", tmp_path / "journal" / "b.partial"]
    for path in others:
        path.write_text("mine")
    plan.run(out=tmp_path)
    assert [path.read_text() for path in others] == ["mine", "mine"]


def test_run__begins_where_a_run_was_killed_at_its_first_file(plan, tmp_path):
    (tmp_path / f"zarr.{32 * '0'}.partial").write_text("{")
    whole = plan.run(out=tmp_path)
    xr.testing.assert_equal(dsel.open_results(tmp_path).load(), whole)
