"""The store: kill a writer, damage a file, start again: same records or an error."""

import errno
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import ClassVar

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dsel.errors import StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.cube import make_pair_cube
from dsel.results.place import HEAD, JOURNAL, unseal
from dsel.results.store import open_store

PLAN = {"data": "d1", "cv": "5"}


def open_plan(out, **options):
    return open_store(out, kind="search", plan=PLAN, **options)


@pytest.fixture(params=["folder", "url"])
def out(request, tmp_path):
    return (
        f"memory://{uuid.uuid4().hex}" if request.param == "url" else tmp_path / "out"
    )


def test_store__keeps_records_as_json_gives_them_back(out):
    record = {"errors": np.array([3, 4]), "seconds": np.float64(0.1), "token": "t"}
    with open_plan(out) as store:
        store.append("fit/0", record)
        store.append("fit/0", {"errors": [9, 9]})  # the first counts
        kept = {"fit/0": {"errors": [3, 4], "seconds": 0.1, "token": "t"}}
        assert store.records == kept
    assert open_plan(out).records == kept


def test_store__keeps_cube_pairs_and_outcome(out, cube, axes):
    pairs = make_pair_cube(
        axes, [(0, 1)], np.ones((6, 1, 2), int), [[5, 5]], [[1.0]] * 6
    )
    store = open_plan(out)
    assert store.dataset("cube") is store.dataset("pairs") is store.outcome is None
    store.save("cube", cube)
    store.save("pairs", pairs)
    assert store.save_outcome({"deploy": "one_fold", "bound": np.float64(0.1)}) == {
        "deploy": "one_fold",
        "bound": 0.1,
    }
    for again in (store, open_plan(out)):
        assert again.dataset("cube").identical(cube)
        assert again.dataset("pairs").identical(pairs)
        assert again.outcome["bound"] == 0.1
    assert open_results(out).identical(cube)


def test_store__takes_the_first_outcome_with_its_cube(out, cube):
    first, second = open_plan(out), open_plan(out)
    second.save("cube", cube.assign_attrs(run="second"))
    second.save_outcome({"run": "second"})
    first.save("cube", cube.assign_attrs(run="first"))
    assert first.save_outcome({"run": "first"}) == {"run": "second"}
    assert first.dataset("cube").run == open_results(out).run == "second"


def test_store__of_a_finished_run_writes_nothing(tmp_path, cube):
    with open_plan(tmp_path) as store:
        store.save("cube", cube)
        store.save_outcome({})
    before = sorted(tmp_path.rglob("*"))
    with open_plan(tmp_path) as store:
        assert store.outcome == {}
    assert sorted(tmp_path.rglob("*")) == before


def test_store__writes_by_itself(tmp_path):
    store = open_plan(tmp_path)
    store.append("a", {"n": 1})
    deadline = time.monotonic() + 30
    while "a" not in open_plan(tmp_path).records:
        assert time.monotonic() < deadline
        time.sleep(0.1)


KILLED = """
import os, signal, sys
from dsel.results.store import open_store
store = open_store(sys.argv[1], kind="search", plan={"data": "d1", "cv": "5"})
for n in range(300):
    store.append(str(n), {"n": n})
    if n % 50 == 49:
        store.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_store__of_a_killed_process_goes_on(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert ended.returncode < 0
    assert open_plan(tmp_path).records == {str(n): {"n": n} for n in range(300)}


def test_place__that_two_plans_claim_at_once_belongs_to_one(tmp_path):
    refused = []

    def claim(cv):
        barrier.wait()
        try:
            open_store(tmp_path / "out", kind="search", plan={"cv": cv}).close()
        except StoreMismatchError as error:
            refused.append(str(error))

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=claim, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert all("holds another plan: cv is" in text for text in refused)


class FullFileSystem(MemoryFileSystem):
    """A place that takes no more once `is_full` is set."""

    protocol = "full"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    is_full = False

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if type(self).is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().pipe_file(path, value, mode=mode, **kwargs)


@pytest.fixture
def full():
    fsspec.register_implementation("full", FullFileSystem, clobber=True)
    yield FullFileSystem
    FullFileSystem.is_full = False


def test_store__names_the_place_that_is_full_and_loses_nothing(full):
    out = f"full://{uuid.uuid4().hex}"
    store = open_plan(out)
    full.is_full = True
    store.append("a", {"n": 1})
    with pytest.raises(OSError, match=rf"`out` {out}: No space left.*the same command"):
        store.flush()
    with pytest.raises(OSError, match="No space left"):  # before work starts
        open_plan(out)
    full.is_full = False
    store.close()
    assert open_plan(out).records == {"a": {"n": 1}}


def test_open_store__makes_a_lost_head_anew(out):
    with open_plan(out) as store:
        store.append("a", {"n": 1})
    store.place.remove(HEAD)
    with pytest.raises(StoreMismatchError, match="cv is 5 there and 7 now"):
        open_store(out, kind="search", plan=PLAN | {"cv": "7"})
    assert open_plan(out).records == {"a": {"n": 1}}
    assert store.place.read(HEAD)


def test_save_results__replaces_a_cube_that_stays_whole(out, cube):
    for n in range(3):
        save_results(cube.assign_attrs(n=n), out)
        assert open_results(out).identical(cube.assign_attrs(n=n))
    if not str(out).startswith("memory"):
        assert len(list((out / "cube").iterdir())) == 2


@pytest.mark.parametrize("path", ["cube/*.zarr/fold_errors/c/0/0/0", "cube/*.json",
                                  "cube/*.zarr/zarr.json"])  # fmt: skip
@pytest.mark.parametrize("harm", ["cut", "change", "delete"])
def test_open_results__finds_damage(tmp_path, cube, path, harm):
    with open_plan(tmp_path) as store:
        store.save("cube", cube)
        store.save_outcome({})
    [file] = tmp_path.glob(path)
    damage(file, harm, 5)
    with pytest.raises(
        ValueError, match=r"cube at .* is damaged; run the same command"
    ):
        open_results(tmp_path)
    assert store.dataset("cube") is None
    store.save("cube", cube)
    assert open_results(tmp_path).identical(cube)


def damage(file, harm, place):
    content = bytearray(file.read_bytes())
    if harm == "delete":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(content[: place % len(content)] if content else b"")
    elif content:
        content[place % len(content)] ^= 1
        file.write_bytes(content)


class Gone:
    """The place of a writer that was killed."""

    def write(self, files):
        raise OSError("it was killed")


class StoreMachine(RuleBasedStateMachine):
    """Two writers in one place, which are killed, and files that are damaged."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.out = Path(self.folder) / "out"
        self.writers = {}
        self.written = set()  # keys in files that are whole
        self.outcomes = []
        self.is_outcome_damaged = False

    def teardown(self):
        for who in "ab":
            self.kill(who)
        shutil.rmtree(self.folder)

    @staticmethod
    def record(key):
        return {"n": key * 7, "text": "é\n" * (key % 3)}

    @rule(who=st.sampled_from("ab"))
    def start(self, who):
        try:
            self.writers[who] = open_plan(self.out)
        except ValueError:
            self.the_same_records_or_a_clear_error()

    @rule(who=st.sampled_from("ab"), keys=st.lists(st.integers(0, 20), min_size=1))
    def append(self, who, keys):
        if who in self.writers:
            for key in keys:
                self.writers[who].append(str(key), self.record(key))

    @rule(who=st.sampled_from("ab"))
    def flush(self, who):
        if who in self.writers:
            self.writers[who].flush()
            self.written = self.keys_in_files()

    @rule(who=st.sampled_from("ab"))
    def kill_one(self, who):
        self.kill(who)

    def kill(self, who):
        if who in self.writers:
            self.writers.pop(who).place = Gone()

    @rule(who=st.sampled_from("ab"))
    def end(self, who):
        if who in self.writers:
            if self.is_outcome_damaged:
                with pytest.raises(ValueError, match=r"outcome\.json in .* is damaged"):
                    self.writers[who].save_outcome({"by": who})
            else:
                self.outcomes.append(self.writers[who].save_outcome({"by": who}))
            self.written = self.keys_in_files()

    @precondition(lambda self: self.out.exists())
    @rule(harm=st.sampled_from(["cut", "change", "delete"]), place=st.integers(0, 500),
          which=st.integers(0, 50))  # fmt: skip
    def damage(self, harm, place, which):
        files = sorted(file for file in self.out.rglob("*") if file.is_file())
        if files:
            file = files[which % len(files)]
            damage(file, harm, place)
            if file.name == "outcome.json":
                self.outcomes.clear()
                left = file.read_bytes() if file.exists() else b""
                self.is_outcome_damaged = bool(left) and unseal(left) is None
        self.written = self.keys_in_files()

    def keys_in_files(self):
        bodies = [unseal(file.read_bytes()) for file in (self.out / JOURNAL).glob("*")]
        lines = [each.decode().split("\n")[1:] for each in bodies if each]
        return {json.loads(line)[0] for each in lines for line in each}

    @invariant()
    def the_same_records_or_a_clear_error(self):
        if not self.out.exists():
            return
        try:
            found = open_plan(self.out)
        except StoreMismatchError:
            raise
        except ValueError as error:
            told = str(error)
            is_headless = (
                unseal(
                    (self.out / HEAD).read_bytes()
                    if (self.out / HEAD).exists()
                    else None
                )
                is None
            )
            assert ("outcome.json" in told and self.is_outcome_damaged) or (
                "must be an empty place" in told and is_headless
            )
            return
        for key, record in found.records.items():
            assert record == self.record(int(key))
        assert set(found.records) >= self.written
        if self.outcomes:
            assert all(each == found.outcome for each in self.outcomes)


StoreMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None
)
TestStore = StoreMachine.TestCase


REFUSALS = [
    ("another_plan", StoreMismatchError, "data is d1 there and d2 now"),
    ("another_kind", StoreMismatchError, "kind is search there and co_validation now"),
    ("cube_over_plan", StoreMismatchError, "is search there and results now; choose"),
    ("stranger", ValueError, "must be an empty place .*notes.txt is there"),
    ("stranger_cube", ValueError, "must be an empty place"),
    ("old", ValueError, "was written by dsel 0.1"),
    ("old_cube", ValueError, "was written by dsel 0.1"),
    ("newer", ValueError, "has format 99 and this dsel reads"),
    ("nothing", FileNotFoundError, "there are no results at"),
    ("unfinished", FileNotFoundError, "a run that has not ended; run the same command"),
    ("damaged_outcome", ValueError, "outcome.json in .* is damaged, and a certificate"),
    ("object", TypeError, "`out` must be a path or a URL"),
    ("empty", ValueError, "`out` must name a place"),
    ("password", ValueError, "`out` must not hold a password"),
    ("protocol", ValueError, "`out` must be a path or a URL .*protocol"),
    ("a_file", OSError, r"cannot write to `out` .*out: File exists"),
    ("below_a_file", OSError, "cannot write to `out` "),
    ("no_cube", TypeError, "`results` must be an xarray.Dataset"),
    ("other_dataset", ValueError, "it lacks status"),
    ("transposed", ValueError, "transpose or select whole candidates"),
    ("text", ValueError, "has fold_rows of type object"),
    ("fraction", ValueError, "fold_errors = 0.5; a count is a whole number"),
    ("record", TypeError, "a record holds numbers and texts, got object"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "error", "words"), REFUSALS)
def test_refusals(case, error, words, tmp_path, cube):
    with pytest.raises(error, match=words):
        refuse(case, tmp_path / "out", cube)


def refuse(case, out, cube):  # noqa: C901
    changed = cube.drop_dims("criterion").copy(deep=True)
    match case:
        case "another_plan" | "another_kind" | "cube_over_plan" | "unfinished":
            open_plan(out).close()
        case "stranger" | "stranger_cube":
            out.mkdir()
            (out / "notes.txt").write_text("mine")
        case "old" | "old_cube":
            out.mkdir()
            (out / "zarr.json").write_text('{"attributes": {"dsel_schema_version": 2}}')
        case "newer":
            place = open_plan(out).place
            body = json.dumps({"format": 99, "kind": "search", "plan": PLAN}).encode()
            place.write({HEAD: b"%08x\n" % __import__("zlib").crc32(body) + body})
        case "damaged_outcome":
            open_plan(out).save_outcome({})
            damage(out / "outcome.json", "cut", 20)
        case "a_file":
            out.write_text("a file")
            open_plan(out)
        case "below_a_file":
            out.write_text("a file")
            open_plan(out / "results")
        case "transposed":
            changed = changed.transpose("kernel", "C", "fold")
            changed["fold_errors"] = changed.fold_errors.transpose(
                "fold", "C", "kernel"
            )
        case "text":
            changed["fold_rows"] = changed.fold_rows.astype(object)
        case "fraction":
            changed.fold_errors.values[0, 0, 0] = 0.5
        case "record":
            open_plan(out).append("a", {"n": object()})
    plans = {
        "another_plan": {"kind": "search", "plan": {"data": "d2", "cv": "5"}},
        "another_kind": {"kind": "co_validation", "plan": PLAN},
    }
    if case in plans:
        open_store(out, **plans[case])
    if case in ("stranger", "old", "newer", "damaged_outcome"):
        open_plan(out)
    if case in ("nothing", "unfinished"):
        open_results(out)
    places = {"object": {}, "empty": "", "password": "s3://me:secret@b/c",
              "protocol": "nowhere://a/b"}  # fmt: skip
    if case in places:
        open_plan(places[case])
    other = {"no_cube": 3, "other_dataset": cube[["fold_rows"]]}
    save_results(other.get(case, changed), out)
