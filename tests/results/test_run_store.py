"""The store: kill a writer, damage a file, start again: same records or an error."""

import errno
import json
import shutil
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dsel import names
from dsel.errors import StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.cube import make_pair_cube
from dsel.results.place import HEAD, JOURNAL, OUTCOME, Place, seal, unseal
from dsel.results.run_store import Store
from tests.clusters import wait_until
from tests.object_store import BUCKET

PLAN = {"data": "d1", "cv": "5"}


def open_plan(out, options=None, **changes):
    plan = PLAN | changes
    return Store(out, kind="search", identity=plan, storage_options=options)


@pytest.fixture(params=["folder", "memory", "s3"])
def where(request, tmp_path):
    """Return a place, and the options that reach it."""
    if request.param == "s3":
        options = request.getfixturevalue("storage_options")
        return f"{BUCKET}/{uuid.uuid4().hex}", options
    url = f"memory://{uuid.uuid4().hex}"
    return (url if request.param == "memory" else tmp_path / "out"), {}


def opened(where):
    return open_results(where[0], storage_options=where[1])


def test_store__keeps_records_cube_pairs_and_outcome(where, cube, axes):
    record = {"errors": np.array([3, 4]), "seconds": np.float64(0.1), "token": "t"}
    kept = {"fit/0": {"errors": [3, 4], "seconds": 0.1, "token": "t"}}
    pairs = make_pair_cube(
        axes,
        [(0, 1)],
        {names.FOLD_ERRORS: np.ones((6, 1, 2), int)},
        [[5, 5]],
        [[1.0]] * 6,
    )
    with open_plan(*where) as store:
        store.append("fit/0", record)
        store.append("fit/0", {"errors": [9, 9]})  # the first counts
        assert store.records == kept
        assert store.dataset("cube") is store.dataset("pairs") is store.outcome is None
        store.save("cube", cube)
        store.save("pairs", pairs)
        said = store.save_outcome({"deploy": "one_fold", "bound": np.float64(0.1)})
    assert said == {"deploy": "one_fold", "bound": 0.1}
    for again in (store, open_plan(*where)):
        assert again.records == kept
        assert again.dataset("cube").identical(cube)
        assert again.dataset("pairs").identical(pairs)
        assert again.outcome == said
    assert opened(where).identical(cube)


def test_store__takes_the_first_outcome_with_its_cube(where, cube):
    first, second = open_plan(*where), open_plan(*where)
    for n, store in enumerate((first, second)):
        store.append(str(n), {"n": n})
        store.save("cube", cube.assign_attrs(run=n))
    assert second.save_outcome({"run": 1}) == {"run": 1}
    assert first.save_outcome({"run": 0}) == {"run": 1}
    assert first.dataset("cube").run == opened(where).run == 1
    assert open_plan(*where).records == {"0": {"n": 0}, "1": {"n": 1}}


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
    wait_until(lambda: "a" in open_plan(tmp_path).records, 30, "the late write")


def test_place__that_plans_claim_at_once_belongs_to_one(tmp_path):
    barrier = threading.Barrier(4)

    def claim(cv):
        barrier.wait()
        try:
            open_plan(tmp_path / "out", cv=cv)
        except StoreMismatchError as error:
            return str(error)

    with ThreadPoolExecutor(4) as threads:
        refused = list(filter(None, threads.map(claim, "1234")))
    assert len(refused) == 3
    assert all("holds another plan: cv is" in text for text in refused)


def test_store__names_the_place_that_is_full_and_loses_nothing(monkeypatch):
    out = f"memory://{uuid.uuid4().hex}"
    store = open_plan(out)
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", full)
    store.append("a", {"n": 1})

    def is_told():  # by an append after a late write
        with pytest.raises(OSError, match=rf"`out` {out}: No space left.*the same com"):
            store.flush()
        try:
            store.append("b", {"n": 2})
        except OSError as error:
            return "No space left" in str(error)

    wait_until(is_told, what="a late write, which fails")
    with pytest.raises(OSError, match="No space left"):  # before work starts
        open_plan(out)
    monkeypatch.undo()
    store.append("c", {"n": 3})
    assert open_plan(out).records == {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}}


def test_store__makes_a_lost_head_anew(where):
    with open_plan(*where) as store:
        store.append("a", {"n": 1})
    store.place.remove(HEAD)
    with pytest.raises(StoreMismatchError, match="cv is 5 there and 7 now"):
        open_plan(*where, cv="7")
    body = b'{"plan": "that came at the same time"}\n["b", {"n": 2}]'
    store.place.write({f"{JOURNAL}/9.json": seal(body)})
    assert open_plan(*where).records == {"a": {"n": 1}}
    assert store.place.read(HEAD)


def test_place__creates_a_file_once(where):
    place = open_plan(*where).place
    for content in (b"first", b"second"):
        place.create("file", content)
        assert place.read("file") == b"first"
    place.write({"file": b""})  # its writer was killed
    place.create("file", b"second")
    assert place.read("file") == b"second"


def test_save_results__replaces_a_cube_that_stays_whole(where, cube):
    place, options = where
    for n in range(3):
        save_results(cube.assign_attrs(n=n), place, storage_options=options)
        assert opened(where).identical(cube.assign_attrs(n=n))
    assert len(Place(place, storage_options=options).files("cube")) == 2


@pytest.mark.filterwarnings("ignore:Unclosed|unclosed:ResourceWarning")
def test_place__at_a_url_that_cannot_be_reached_is_named(storage_options):
    with pytest.raises(OSError, match=r"cannot write to `out` s3://no-such"):
        open_plan("s3://no-such-bucket/run", storage_options)
    nobody = {**storage_options, "endpoint_url": "http://127.0.0.1:9"}
    nobody["config_kwargs"] = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
    for each in (opened, lambda where: open_plan(*where)):
        with pytest.raises(ConnectionError, match=r"dsel/cube cannot be reached"):
            each((f"{BUCKET}/cube", nobody))


@pytest.mark.parametrize("path", ["cube/*.zarr/fold_errors/c/0/0/0", "cube/*.json",
                                  "cube/*.zarr/zarr.json"])  # fmt: skip
@pytest.mark.parametrize("harm", ["cut", "change", "delete"])
def test_open_results__finds_damage(tmp_path, cube, path, harm):
    with open_plan(tmp_path) as store:
        store.save("cube", cube)
        store.save_outcome({})
    [file] = tmp_path.glob(path)
    damage(file, harm, 5)
    with pytest.raises(ValueError, match=r"cube at .* is damaged; run the same com"):
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


GONE = Mock(spec=["write"], **{"write.side_effect": OSError("it was killed")})
"""The place of a writer that was killed."""
WRITERS = st.sampled_from("ab")


def record_of(key):
    return {"n": key * 7, "text": "é\n" * (key % 3)}


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
        # The thread of a killed writer may be in the middle of a file.
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.cancel()
                thread.join()
        shutil.rmtree(self.folder)

    @rule(who=WRITERS)
    def start(self, who):
        try:
            self.writers[who] = open_plan(self.out)
        except ValueError:
            self.the_same_records_or_a_clear_error()

    @rule(who=WRITERS, keys=st.lists(st.integers(0, 20), min_size=1))
    def append(self, who, keys):
        if who in self.writers:
            for key in keys:
                self.writers[who].append(str(key), record_of(key))

    @rule(who=WRITERS)
    def flush(self, who):
        if who in self.writers:
            self.writers[who].flush()
            self.written = self.keys_in_files()

    @rule(who=WRITERS)
    def kill(self, who):
        if who in self.writers:
            self.writers.pop(who).place = GONE

    @rule(who=WRITERS)
    def end(self, who):
        if who in self.writers and self.is_outcome_damaged:
            with pytest.raises(ValueError, match=r"outcome\.json in .* is damaged"):
                self.writers[who].save_outcome({"by": who})
        elif who in self.writers:
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
        # A file without its final name is not written yet, and may be written again.
        files = (self.out / JOURNAL).glob("*.json")
        bodies = [unseal(file.read_bytes()) for file in files]
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
            head = self.out / HEAD
            is_headless = not head.exists() or unseal(head.read_bytes()) is None
            is_final = OUTCOME in told and self.is_outcome_damaged
            assert is_final or ("must be an empty place" in told and is_headless)
            return
        for key, record in found.records.items():
            assert record == record_of(int(key))
        assert set(found.records) >= self.written
        if self.outcomes:
            assert all(each == found.outcome for each in self.outcomes)


StoreMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None
)
TestStore = StoreMachine.TestCase


def strange(out, name="notes.txt", text="mine"):
    out.mkdir()
    (out / name).write_text(text)
    return out


def ended(out, name, content):
    """Return the place of a run that has ended, in which a file holds other bytes."""
    open_plan(out).save_outcome({})
    (out / name).write_bytes(content)
    return out


def is_a_file(out):
    out.write_text("a")
    return out


OLD = "zarr.json", '{"attributes": {"dsel_schema_version": 2}}'
A_PLACE = [
    (lambda out: strange(out), ValueError, "an empty place .*notes.txt is there"),
    (lambda out: strange(out, HEAD), ValueError, "an empty place .*dsel.json is there"),
    (lambda out: strange(out, *OLD), ValueError, "has format 2 .*by dsel 0.1"),
    (lambda out: ended(out, HEAD, seal(b'{"format": 99}')), ValueError,
     "has format 99 and this dsel reads"),
    (lambda out: ended(out, HEAD, seal(b"[]")), ValueError,
     f"{HEAD} in `out` .* not what dsel"),
    (lambda out: ended(out, OUTCOME, b"torn"), ValueError,
     "is damaged, .* are not made again"),
    (is_a_file, OSError, "`out` .* is a file; name a folder"),
    (lambda out: is_a_file(out) / "in", OSError, "cannot write to `out` "),
    (lambda out: {}, TypeError, "`out` must be a path or a URL"),
    (lambda out: "", ValueError, "`out` must name a place"),
    (lambda out: "s3://me:secret@b/c", ValueError, "`out` must not hold a password"),
    (lambda out: "nowhere://a/b", ValueError, "must be a path or a URL .*protocol"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "words"), A_PLACE)
def test_store__refuses_what_is_no_place_of_ours(make, error, words, tmp_path):
    place = make(tmp_path / "out")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    with pytest.raises(error, match=words):
        open_plan(place)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before


A_CUBE = [
    (lambda cube: 3, TypeError, "must be an outcome, a fitted search, or an "),
    (lambda cube: cube[["fold_rows"]], ValueError, "it lacks status"),
    (lambda cube: cube.assign(fold_errors=cube.fold_errors.sum("fold")), ValueError,
     "select whole candidates only"),
    (lambda cube: cube.astype(object), ValueError, "has status of type object"),
    (lambda cube: cube.assign(fold_rows=cube.fold_rows / 3), ValueError,
     "fold_rows = 6.66.*; it is a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), A_CUBE)
def test_save_results__refuses_what_is_no_cube(change, error, words, cube, tmp_path):
    with pytest.raises(error, match=words):
        save_results(change(cube), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_store__refuses_what_does_not_belong_there(tmp_path, cube):
    out = tmp_path / "out"
    open_plan(out)
    for error, words, call in [
        (StoreMismatchError, "data is d1 there and d2 now; choose",
         lambda: open_plan(out, data="d2")),
        (StoreMismatchError, "kind is search there and audit now;",
         lambda: Store(out, kind="audit", identity={})),
        (StoreMismatchError, "kind is search there and results now",
         lambda: save_results(cube, out)),
        (FileNotFoundError, "has not ended; run the same command",
         lambda: open_results(out)),
        (FileNotFoundError, "there is nothing at",
         lambda: open_results(tmp_path / "nothing")),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
