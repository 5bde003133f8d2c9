"""A disk that is full anywhere in a run: one line with the path, and no damage."""

import errno
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.report import write_report
from dsel.results import open_model, save_model
from dsel.search import predict_pool, read_rows
from tests.disks import files_of_at_most, room_for, small_disk, why_no_mount

ROWS = np.random.default_rng(0).normal(size=(300, 3))
X, POOL = ROWS[:60], ROWS[60:]
Y = (X[:, 0] > 0).astype(int)
TEXTS = pd.DataFrame({"a": range(5000), "b": [f"word {i * i}" for i in range(5000)]})
TREE = ["sklearn.tree._tree.Tree"]
NO_ROOM = (errno.ENOSPC, errno.EFBIG)


@pytest.fixture
def disk(tmp_path):
    if reason := why_no_mount():
        pytest.skip(reason)
    try:
        with small_disk(tmp_path / "disk", 1) as folder:
            yield folder
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no disk can be mounted here: {error.stderr.decode()}")


def run(out):
    plan = dsel.plan_search(
        DecisionTreeClassifier(), {"max_depth": [1, 2]}, X, Y, POOL, cv=2,
        random_state=0,
    )  # fmt: skip
    return plan.run(out=out, n_jobs=1)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return run(tmp_path_factory.mktemp("undisturbed") / "out")


def same_outcome(out, outcome):
    again = run(out)
    assert dsel.open_results(out).fold_errors.identical(outcome.results.fold_errors)
    assert again.choice.bound == outcome.choice.bound


def same_results(place, outcome):
    dsel.save_results(outcome.results, place)
    assert dsel.open_results(place).identical(outcome.results)


def same_pool(path, _):
    written = dsel.write_pool(POOL, path, chunk_rows=50).as_array().compute()
    assert (written == POOL).all()


def same_parquet(path, _):
    source, path = path.parent.parent / "texts.csv", path.with_suffix(".parquet")
    assert dsel.write_pool(source, path).n_rows == len(TEXTS)
    path.unlink()


def same_model(place, outcome):
    save_model(outcome.model, place)
    assert (
        open_model(place, trusted=TREE).predict(POOL) == outcome.model.predict(POOL)
    ).all()


def same_predictions(path, outcome):
    predict_pool(outcome.model, POOL, path)
    [(_, codes)] = read_rows(path, "label")
    assert (outcome.model.classes_[codes] == outcome.model.predict(POOL)).all()
    shutil.rmtree(path)


def same_page(path, outcome):
    assert "</html>" in write_report(outcome.results, path).read_text()


def refusal(write, place, outcome):
    """Return the error that a writer ends with where there is no room, or None."""
    try:
        write(place, outcome)
    except OSError as error:
        return error
    return None


def check_refusal(error, place):
    assert error.errno in NO_ROOM
    assert re.search(rf"cannot write to `\w+` {place}.*make room", str(error))
    assert "\n" not in str(error)


WRITERS = {
    "run": (same_outcome, [0, 8, 20, 60, 100, 140, 180, 220, 256]),
    "save_results": (same_results, [0, 8, 60, 120]),
    "save_model": (same_model, [0, 4, 8]),
    "write_pool": (same_pool, [0, 4, 8, 12]),
    "write_pool to Parquet": (same_parquet, [0, 8, 40]),
    "predict_pool": (same_predictions, [0, 4, 8]),
    "write_report": (same_page, [0, 16]),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_full_disk__is_named_and_leaves_a_place_that_is_usable(disk, writer, outcome):
    write, kibibytes = WRITERS[writer]
    TEXTS.to_csv(disk.parent / "texts.csv", index=False)
    n_refused = 0
    for size in kibibytes:
        place = disk / f"out-{size}"
        with room_for(disk, 1024 * size):
            error = refusal(write, place, outcome)
        if error is not None:
            n_refused += 1
            check_refusal(error, place)
        assert not list(disk.rglob("*.partial"))
        write(place, outcome)
        for left in disk.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert n_refused >= 2


@pytest.mark.parametrize("writer", WRITERS)
def test_quota__is_named_and_leaves_a_place_that_is_usable(writer, outcome, tmp_path):
    write, place = WRITERS[writer][0], tmp_path / "folder" / "out"
    TEXTS.to_csv(tmp_path / "texts.csv", index=False)
    for nbytes in (1, 300, 1000):
        with files_of_at_most(nbytes):
            error = refusal(write, place, outcome)
        if error is not None or nbytes == 1:
            check_refusal(error, place)
        assert not list(tmp_path.rglob("*.partial"))
    write(place, outcome)


@pytest.mark.parametrize("writer", WRITERS)
def test_read_only_disk__is_named(disk, writer, outcome):
    TEXTS.to_csv(disk.parent / "texts.csv", index=False)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    error = refusal(WRITERS[writer][0], disk / "out", outcome)
    assert error.errno == errno.EROFS
    assert re.search(rf"cannot write to `\w+` {disk}/out.*let it be", str(error))
