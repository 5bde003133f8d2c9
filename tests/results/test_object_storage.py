"""Stores in S3-compatible storage, on a server of our own on loopback."""

import numpy as np
import pytest

from dsel.errors import StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.journal import open_journal


def test_save_results__round_trip_is_exact(cube, storage_options):
    for _ in range(4):  # generations come and go
        save_results(cube, "s3://dsel/cube", storage_options=storage_options)
    opened = open_results("s3://dsel/cube", storage_options=storage_options)
    assert opened.load().identical(cube)


def test_journal__is_found_again(storage_options):
    place, noise = "s3://dsel/journal", np.random.default_rng(1).bytes(200_000)
    values = np.frombuffer(noise, dtype=np.uint8)
    for session in range(3):
        with open_journal(place, {"a": 1}, storage_options=storage_options) as journal:
            assert len(journal.read()) == 20 * session
            for number in range(20 * session, 20 * session + 20):
                size = len(values) if number == 7 else 10
                journal.append(str(number), {"values": values[:size]})
                journal.flush()
    with open_journal(place, {"a": 1}, storage_options=storage_options) as journal:
        found = journal.read()
    assert [len(record["values"]) for record in found.values()][6:8] == [10, 200_000]
    assert sorted(map(int, found)) == list(range(60))


def test_journal__of_two_writers_loses_nothing(storage_options):
    place = "s3://dsel/shared"
    first, second = (
        open_journal(place, {"a": 1}, storage_options=storage_options) for _ in range(2)
    )
    for number, journal in enumerate((first, second)):
        journal.append(str(number), {"values": [number]})
        journal.flush()
    second.refresh()
    assert sorted(second.read()) == ["0", "1"]
    second.close()
    first.close()
    with pytest.raises(StoreMismatchError, match="a: 1 in the store, 2 now"):
        open_journal(place, {"a": 2}, storage_options=storage_options)
    with open_journal(place, {"a": 1}, storage_options=storage_options) as journal:
        assert sorted(journal.read()) == ["0", "1"]


def test_open_results__sees_what_others_brought_back(cube, storage_options):
    from s3fs import S3FileSystem

    place, head = "s3://dsel/lost", "s3://dsel/lost/zarr.json"
    other = S3FileSystem(**storage_options, skip_instance_cache=True)
    save_results(cube, place, storage_options=storage_options)
    content = other.cat_file(head)
    other.rm_file(head)
    with pytest.raises(ValueError, match=r"zarr\.json is missing beside cube-1"):
        save_results(cube, place, storage_options=storage_options)
    other.pipe_file(head, content)
    save_results(cube, place, storage_options=storage_options)
    other.rm_file("s3://dsel/lost/cube-2/status/c/0/0")
    opened = open_results(place, storage_options=storage_options)
    with pytest.raises(ValueError, match=r"cube-2/status/c/0/0 is missing"):
        opened.load()


@pytest.mark.filterwarnings("ignore:Unclosed|unclosed:ResourceWarning")
def test_open_results__says_that_nobody_answers(storage_options):
    nobody = {**storage_options, "endpoint_url": "http://127.0.0.1:9"}
    nobody["config_kwargs"] = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
    with pytest.raises(ConnectionError, match=r"cannot reach .*dsel/cube.*endpoint"):
        open_results("s3://dsel/cube", storage_options=nobody)
    with pytest.raises(ConnectionError, match=r"cannot reach .*same command again"):
        open_journal("s3://dsel/cube", {"a": 1}, storage_options=nobody)
