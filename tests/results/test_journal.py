"""What was appended is found again, by the same run only, written by one at a time."""

import os
import shutil
import uuid

import numpy as np
import pytest
import zarr

from dsel.errors import DselWarning, StoreBusyError, StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.journal import Journal, open_journal
from dsel.results.lock import WriterLock, machine
from dsel.results.log import CHUNK, create_log, read_log, write_payload
from dsel.results.stored_journal import read_fingerprint, read_journal
from tests.clusters import wait_until

FINGERPRINT = {"data": "3f9a", "seed": 7, "versions": {"numpy": "2.1"}}


@pytest.fixture(params=["directory", "url"])
def place(request, tmp_path):
    if request.param == "directory":
        return tmp_path / "run"
    return f"memory://{uuid.uuid4().hex}/run"


def append(journal, *numbers):
    for number in numbers:
        journal.append(f"fit/{number}", record_of(number))


def record_of(number):
    return {
        "errors": np.array([number, number + 1]),
        "by_fold": np.outer([number], np.arange(3)),
        "seconds": number / 8,
        "training": "full",
        "messages": ["", f"number {number}"],
    }


def numbers_in(journal):
    return [int(record["errors"][0]) for record in journal.read().values()]


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
        wait_until(lambda: _stored(tmp_path), what="the first write")
        assert _stored(tmp_path) == 1


def _stored(place):
    root = zarr.open_group(place, mode="r")
    log = root.get("journal/log-1")
    return 0 if log is None else len(read_log(log).payloads)


def test_journal__lives_beside_the_cube(cube, place):
    with open_journal(place, FINGERPRINT) as journal:
        append(journal, 1)
        with pytest.raises(FileNotFoundError, match="a run that has not ended"):
            open_results(place)
        save_results(cube, place)
    assert open_results(place).load().identical(cube)
    with open_journal(place, FINGERPRINT) as journal:
        assert numbers_in(journal) == [1]


def test_journal__is_rewritten_into_few_chunks(tmp_path):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        for number in range(20):
            append(journal, number)
            journal.flush()
    log = zarr.open_group(tmp_path, mode="r")["journal/log-2"]
    assert read_log(log).n_chunks == 1
    with open_journal(tmp_path, FINGERPRINT) as journal:
        assert numbers_in(journal) == list(range(20))


def test_open_journal__refuses_another_run_and_shows_the_difference(place):
    with open_journal(place, FINGERPRINT):
        pass
    other = FINGERPRINT | {"seed": 8, "n_folds": 5}
    with pytest.raises(StoreMismatchError, match="seed: 7 in the store, 8 now") as info:
        open_journal(place, other)
    assert r"n_folds: (nothing) in the store, 5 now" in str(info.value)
    assert "data" not in str(info.value)
    open_journal(place, FINGERPRINT).close()


def test_open_journal__refuses_a_second_writer(place):
    with (
        open_journal(place, FINGERPRINT),
        pytest.raises(StoreBusyError, match=f"written by process {os.getpid()} on"),
    ):
        open_journal(place, FINGERPRINT)
    open_journal(place, FINGERPRINT).close()


def _hold(place, **changes):
    """Leave a lock behind as another process would."""
    root = zarr.open_group(place, mode="a")
    lock = WriterLock(root)
    lock.acquire()
    root["lock"].attrs.update(changes)


def test_open_journal__takes_over_at_once_from_a_process_that_is_gone(place):
    open_journal(place, FINGERPRINT).close()
    _hold(place, pid=2**22 + 1)
    # Whoever is watched for so long is not taken for dead in the time of a test.
    open_journal(place, FINGERPRINT, patience=1e6).close()


def test_open_journal__knows_a_process_that_has_the_number_of_a_dead_one(place):
    open_journal(place, FINGERPRINT).close()
    _hold(place, started="1")
    open_journal(place, FINGERPRINT).close()


def test_open_journal__watches_a_writer_elsewhere_before_it_takes_over(place):
    open_journal(place, FINGERPRINT).close()
    _hold(place, machine="elsewhere")
    open_journal(place, FINGERPRINT, patience=0.2).close()


def test_open_journal__sees_a_writer_elsewhere_beat(place, monkeypatch):
    open_journal(place, FINGERPRINT).close()
    _hold(place, machine="elsewhere")
    root = zarr.open_group(place, mode="a")
    beats = iter(range(1, 100))
    monkeypatch.setattr(
        "dsel.results.lock.time.sleep",
        lambda seconds: root["lock"].attrs.update({"beat": next(beats)}),
    )
    with pytest.raises(StoreBusyError, match="wait until it has ended"):
        open_journal(place, FINGERPRINT, patience=5)


def test_journal__stops_writing_when_another_took_over(place):
    journal = open_journal(place, FINGERPRINT)
    zarr.open_group(place, mode="a")["lock"].attrs.update({"token": "other"})
    append(journal, 1)
    with pytest.raises(StoreBusyError, match="is being written by"):
        journal.flush()
    with pytest.raises(StoreBusyError, match="is being written by"):
        journal.close()


def test_journal__changes_nothing_where_another_began_at_the_same_moment(
    place, monkeypatch
):
    monkeypatch.setattr("dsel.results.lock.SETTLE_SECONDS", 1.0)
    journal = open_journal(place, FINGERPRINT)
    root = zarr.open_group(place, mode="a")
    root["lock"].attrs.update({"token": "other"})
    with pytest.raises(StoreBusyError, match="is being written by"):
        journal.close()
    assert sorted(root.group_keys()) == ["lock"]


def test_journal__beats(tmp_path, monkeypatch):
    monkeypatch.setattr("dsel.results.journal.BEAT_SECONDS", 0.0)
    with open_journal(tmp_path, FINGERPRINT):
        wait_until(lambda: _beat(tmp_path), what="the first beat")


def _beat(place):
    return zarr.open_group(place, mode="r")["lock"].attrs["beat"]


def test_open_journal__sweeps_partial_files(tmp_path):
    open_journal(tmp_path, FINGERPRINT).close()
    leftover = tmp_path / "journal" / "log-1" / "c" / f"0.{32 * 'a'}.partial"
    leftover.parent.mkdir(parents=True, exist_ok=True)
    leftover.write_bytes(b"half")
    open_journal(tmp_path, FINGERPRINT).close()
    assert not leftover.exists()


def test_journal__leaves_alone_what_its_own_process_is_writing(tmp_path):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        under_way = tmp_path / "zarr.abc.partial"  # of a cube, say
        under_way.write_bytes(b"half")
        journal.append("one", {"errors": [1]})
        journal.flush()
        assert under_way.exists()


def test_open_journal__says_where_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write to .*run the same command again"):
        open_journal(tmp_path / "file" / "run", FINGERPRINT)


def test_journal__keeps_records_that_could_not_be_written(tmp_path, monkeypatch):
    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 1)
        with monkeypatch.context() as patch:
            patch.setattr("dsel.results.journal.write_payload", full)
            with pytest.raises(OSError, match="No space left on device; 1 finished"):
                journal.flush()
        journal.flush()
    with open_journal(tmp_path, FINGERPRINT) as journal:
        assert numbers_in(journal) == [1]


def test_journal__tells_of_a_failed_write_at_the_next_append(tmp_path, monkeypatch):
    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    with open_journal(tmp_path, FINGERPRINT) as journal:
        with monkeypatch.context() as patch:
            patch.setattr("dsel.results.journal.write_payload", full)
            append(journal, 1)
            _wait_for_failure(journal)
            with pytest.raises(OSError, match="cannot write to"):
                append(journal, 2)
        append(journal, 3)
    with open_journal(tmp_path, FINGERPRINT) as journal:
        assert numbers_in(journal) == [1, 2, 3]


def _wait_for_failure(journal: Journal):
    wait_until(lambda: journal._failure, what="the failure")


def test_read_log__ignores_a_write_that_was_cut_short(tmp_path):
    log = create_log(zarr.open_group(tmp_path, mode="a"), "log-1")
    long = os.urandom(3 * CHUNK)
    at = write_payload(log, b"first", at=0)
    write_payload(log, long, at=at)
    (tmp_path / "log-1" / "c" / str(at + 2)).unlink()
    content = read_log(log)
    assert content.payloads == (b"first",)
    assert content.n_damaged == 4
    at = write_payload(log, b"second", at=content.n_chunks)
    write_payload(log, long, at=at)
    assert read_log(log).payloads == (b"first", b"second", long)


@pytest.mark.parametrize("damage", [b"rubbish", None])
def test_open_journal__counts_again_what_was_damaged(tmp_path, damage):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        for number in range(3):
            append(journal, number)
            journal.flush()
    chunk = tmp_path / "journal" / "log-1" / "c" / "1"
    chunk.unlink() if damage is None else chunk.write_bytes(damage)
    with pytest.warns(DselWarning, match="1 of 3 parts of the journal"):
        journal = open_journal(tmp_path, FINGERPRINT)
    assert numbers_in(journal) == [0, 2]
    append(journal, 1)
    journal.close()
    with pytest.warns(DselWarning, match="1 of 4 parts"):
        journal = open_journal(tmp_path, FINGERPRINT)
    assert numbers_in(journal) == [0, 2, 1]
    journal.close()


HEADERS = {
    "cut short": lambda whole: whole[:100],
    "empty": lambda _: b"",
    "zeros": lambda whole: bytes(len(whole)),
    "missing": lambda _: None,
    "no header": lambda _: b"[1, 2]",
    "a group": lambda _: b'{"zarr_format": 3, "node_type": "group"}',
    "other chunks": lambda whole: whole.replace(b"65536", b"32768"),
    "other numbers": lambda whole: whole.replace(b"uint8", b"int16"),
    "other names": lambda whole: whole.replace(b'"/"', b'"."'),
}


@pytest.mark.parametrize("damage", HEADERS)
def test_open_journal__needs_no_header_of_a_log_and_writes_it_again(tmp_path, damage):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 0, 1)
    header = tmp_path / "journal" / "log-1" / "zarr.json"
    whole = header.read_bytes()
    damaged = HEADERS[damage](whole)
    header.unlink() if damaged is None else header.write_bytes(damaged)
    stored = read_journal(tmp_path, FINGERPRINT, reason=OSError("read only"))
    assert numbers_in(stored) == [0, 1]
    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 2)
    assert header.read_bytes() == whole
    with open_journal(tmp_path, FINGERPRINT) as journal:
        assert numbers_in(journal) == [0, 1, 2]


def test_open_journal__says_that_a_log_is_gone(tmp_path):
    with open_journal(tmp_path, FINGERPRINT) as journal:
        append(journal, 0)
    shutil.rmtree(tmp_path / "journal" / "log-1")
    with pytest.raises(ValueError, match=r"journal/log-1 is missing.*from a copy"):
        open_journal(tmp_path, FINGERPRINT)


def test_open_journal__refuses_a_newer_store(tmp_path):
    open_journal(tmp_path, FINGERPRINT).close()
    zarr.open_group(tmp_path, mode="a").attrs["dsel_schema_version"] = 99
    with pytest.raises(ValueError, match="written by a newer dsel"):
        open_journal(tmp_path, FINGERPRINT)


def test_machine__is_the_same_each_time():
    assert machine() == machine()
