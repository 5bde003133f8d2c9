"""What was appended is found again, by runs of the same thing only."""

import shutil
import uuid

import numpy as np
import pytest
import zarr
from fsspec.implementations.memory import MemoryFileSystem
from zarr.storage import MemoryStore

from dsel.errors import DselWarning, StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.journal import open_journal, read_fingerprint
from tests.clusters import wait_until

FINGERPRINT = {"data": "3f9a", "seed": 7, "versions": {"numpy": "2.1"}}


@pytest.fixture(params=["directory", "url", "store"])
def place(request, tmp_path):
    if request.param == "directory":
        return tmp_path / "run"
    if request.param == "store":
        return MemoryStore()
    return f"memory://{uuid.uuid4().hex}/run"


def append(journal, *numbers):
    for number in numbers:
        journal.append(f"fit/{number}", record_of(number))


def record_of(number):
    return {
        "errors": np.array([number, number + 1]),
        "by_fold": np.outer([number], np.arange(3)),
        "seconds": number / 8,
        "split": "full",
        "messages": ["", f"number {number}"],
    }


def numbers_in(journal):
    return [int(record["errors"][0]) for record in journal.read().values()]


def kept_at(place):
    with open_journal(place, FINGERPRINT) as journal:
        return numbers_in(journal)


def objects(place):
    return sorted((place / "journal").iterdir())


def contents(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def cut_short(place, *numbers):
    """Leave what a run leaves that is killed: one object for each of its flushes."""
    journal = open_journal(place, FINGERPRINT)
    for number in numbers:
        append(journal, number)
        journal.flush()
    kept = contents(place)
    journal.close()
    shutil.rmtree(place / "journal")
    (place / "journal").mkdir()
    for path, content in kept.items():
        path.write_bytes(content)


def test_journal__gives_back_what_was_appended(place):
    with open_journal(place, FINGERPRINT) as journal:
        append(journal, 1, 2)
    with open_journal(place, FINGERPRINT) as journal:
        found = journal.read()
    assert list(found) == ["fit/1", "fit/2"]
    for number, record in enumerate(found.values(), start=1):
        expected = record_of(number)
        assert set(record) == set(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(record[name], value)


def test_journal__is_empty_at_first(place):
    with open_journal(place, FINGERPRINT) as journal:
        assert journal.read() == {}
    assert read_fingerprint(place) == FINGERPRINT


def test_journal__counts_a_key_once(place):
    with open_journal(place, FINGERPRINT) as journal:
        append(journal, 5)
        journal.append("fit/5", record_of(99))
        assert numbers_in(journal) == [5]


def test_journal__writes_by_itself(tmp_path):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 1)
        wait_until(lambda: len(objects(tmp_path)) == 2, what="the first write")
        assert kept_at(tmp_path) == [1]


def test_journal__lives_beside_the_cube(cube, place):
    with open_journal(place, FINGERPRINT) as journal:
        append(journal, 1)
        with pytest.raises(FileNotFoundError, match="a run that has not ended"):
            open_results(place)
        save_results(cube, place)
    assert open_results(place).load().identical(cube)
    assert kept_at(place) == [1]


def test_journal__that_ends_is_one_object(tmp_path):
    for session in range(3):
        with open_journal(tmp_path, FINGERPRINT) as journal:
            for number in range(5 * session, 5 * session + 5):
                append(journal, number)
                journal.flush()
        assert len(objects(tmp_path)) == 1
    assert kept_at(tmp_path) == list(range(15))


def test_journal__that_is_only_read_leaves_all_as_it_was(tmp_path):
    cut_short(tmp_path / "cut", 1, 2)
    with open_journal(tmp_path / "run", FINGERPRINT) as journal:
        append(journal, 1)
    before = contents(tmp_path / "run")
    assert kept_at(tmp_path / "run") == [1]
    assert contents(tmp_path / "run") == before


def test_journal__of_a_killed_run_is_found_in_the_order_of_writing(tmp_path):
    cut_short(tmp_path, 3, 1, 2)
    assert len(objects(tmp_path)) == 4
    assert kept_at(tmp_path) == [3, 1, 2]
    assert len(objects(tmp_path)) == 1
    assert kept_at(tmp_path) == [3, 1, 2]


def test_open_journal__refuses_another_run_and_shows_the_difference(place):
    with open_journal(place, FINGERPRINT):
        pass
    other = FINGERPRINT | {"seed": 8, "n_folds": 5}
    with pytest.raises(StoreMismatchError, match="seed: 7 in the store, 8 now") as info:
        open_journal(place, other)
    assert r"n_folds: (nothing) in the store, 5 now" in str(info.value)
    assert "data" not in str(info.value)
    open_journal(place, FINGERPRINT).close()


def test_journal__of_two_writers_loses_nothing(place):
    with open_journal(place, FINGERPRINT) as one:
        append(one, 1)
        one.flush()
        with open_journal(place, FINGERPRINT) as other:
            assert numbers_in(other) == [1]
            append(one, 2)
            one.flush()
            append(other, 3, 4)
        append(one, 3, 5)
    assert sorted(kept_at(place)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("last", [0, 1])
def test_journal__a_merge_removes_nothing_that_it_did_not_read(place, last):
    journals = [open_journal(place, FINGERPRINT) for _ in range(2)]
    for number, journal in enumerate(journals):
        append(journal, number)
        journal.flush()
    journals[1 - last].close()
    assert sorted(kept_at(place)) == [0, 1]
    journals[last].close()
    assert sorted(kept_at(place)) == [0, 1]


def test_open_journal__finds_records_that_are_merged_while_it_reads(
    tmp_path, monkeypatch
):
    cut_short(tmp_path, 1, 2)
    reader, get = MemoryFileSystem(), MemoryFileSystem.cat_file
    reader.put(str(tmp_path), "/merging", recursive=True)
    before = open_journal("memory://merging", FINGERPRINT)
    merged = []

    def reading(*given, **keywords):
        if not merged:
            merged.append(before.close())
        return get(*given, **keywords)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", reading)
    with open_journal("memory://merging", FINGERPRINT) as journal:
        assert numbers_in(journal) == [1, 2]
    assert merged


def test_refresh__finds_what_another_writer_wrote(place):
    with open_journal(place, FINGERPRINT) as one:
        with open_journal(place, FINGERPRINT) as other:
            append(other, 1)
            other.flush()
            one.refresh()
        assert numbers_in(one) == [1]


def test_journal__leaves_alone_what_others_put_beside_it(tmp_path):
    open_journal(tmp_path, FINGERPRINT).close()
    theirs = [tmp_path / "journal" / name for name in ("mine.csv", "a.records")]
    for path in theirs:
        path.write_text("mine")
    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 1)
    assert [path.read_text() for path in theirs] == ["mine", "mine"]


def test_open_journal__says_where_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write to .*run the same command again"):
        open_journal(tmp_path / "file" / "run", FINGERPRINT)


class FullStore(MemoryStore):
    """A store that takes nothing while it is full."""

    is_full = False

    async def set(self, key, value, byte_range=None):
        if self.is_full:
            raise OSError(28, "No space left on device")
        await super().set(key, value, byte_range)


def test_journal__keeps_records_that_could_not_be_written():
    store = FullStore()
    with open_journal(store, FINGERPRINT) as journal:
        store.is_full = True
        append(journal, 1)
        with pytest.raises(OSError, match="No space left on device; 1 finished"):
            journal.flush()
        store.is_full = False
        journal.flush()
    assert kept_at(store) == [1]


@pytest.mark.parametrize("call", ["append", "check"])
def test_journal__tells_of_a_failed_write(call):
    store, told = FullStore(), []
    with open_journal(store, FINGERPRINT) as journal:
        store.is_full = True
        append(journal, 1)

        def is_told():
            try:
                append(journal, 2) if call == "append" else journal.check()
            except OSError as error:
                told.append(str(error))
            return told

        wait_until(is_told, what="the failure")
        store.is_full = False
        append(journal, 3)
    assert "cannot write to" in told[0]
    assert set(kept_at(store)) >= {1, 3}


def test_open_journal__where_nothing_can_be_written_reads_only():
    store = FullStore()
    with open_journal(store, FINGERPRINT) as journal:
        append(journal, 1)
    store.is_full = True
    with open_journal(store, FINGERPRINT) as journal:
        assert journal.is_read_only
        append(journal, 1)
        with pytest.raises(OSError, match="No space left on device"):
            append(journal, 2)
        assert numbers_in(journal) == [1]


def test_journal__whose_place_was_removed_writes_no_more(tmp_path):
    journal = open_journal(tmp_path / "run", FINGERPRINT)
    shutil.rmtree(tmp_path / "run")
    append(journal, 1)
    with pytest.raises(OSError, match=r"cannot write to .*1 finished tasks are not"):
        journal.close()
    assert not (tmp_path / "run").exists()


DAMAGE = {
    "rubbish": lambda _: b"rubbish",
    "empty": lambda _: b"",
    "cut short": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "one bit": lambda whole: whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_open_journal__counts_again_what_was_damaged(tmp_path, damage):
    cut_short(tmp_path, 0, 1, 2)
    path = objects(tmp_path)[2]
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.warns(DselWarning, match=rf"^journal/{path.name} in .* is damaged"):
        journal = open_journal(tmp_path, FINGERPRINT)
    with journal:
        assert numbers_in(journal) == [0, 2]
        append(journal, 1)
    assert path.exists()  # it may have held a declaration, which must not be forgotten
    with pytest.warns(DselWarning, match="is damaged"):
        assert kept_at(tmp_path) == [0, 2, 1]


def test_open_journal__refuses_a_newer_store(tmp_path):
    open_journal(tmp_path, FINGERPRINT).close()
    zarr.open_group(tmp_path, mode="a").attrs["dsel_schema_version"] = 99
    with pytest.raises(ValueError, match="written by a newer dsel"):
        open_journal(tmp_path, FINGERPRINT)


def test_open_journal__refuses_the_journal_of_an_older_dsel(tmp_path):
    open_journal(tmp_path, FINGERPRINT).close()
    zarr.open_group(tmp_path, mode="a").attrs["dsel_schema_version"] = 1
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"older dsel \(schema 1, .*another place"):
        open_journal(tmp_path, FINGERPRINT)
    assert contents(tmp_path) == before
