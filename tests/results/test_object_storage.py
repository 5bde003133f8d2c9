"""Stores in S3-compatible storage, on a server of our own on loopback."""

import numpy as np
import pytest

from dsel.errors import StoreBusyError, StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.journal import open_journal
from dsel.results.log import CHUNK


def test_save_results__round_trip_is_exact(cube, storage_options):
    for _ in range(4):  # generations come and go
        save_results(cube, "s3://dsel/cube", storage_options=storage_options)
    opened = open_results("s3://dsel/cube", storage_options=storage_options)
    assert opened.load().identical(cube)


def test_journal__is_found_again(storage_options):
    place, noise = "s3://dsel/journal", np.random.default_rng(1).bytes(3 * CHUNK)
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
    assert [len(record["values"]) for record in found.values()][6:8] == [10, 3 * CHUNK]
    assert sorted(map(int, found)) == list(range(60))


def test_open_journal__refuses_others(storage_options):
    place = "s3://dsel/busy"
    first = open_journal(place, {"a": 1}, storage_options=storage_options)
    with pytest.raises(StoreBusyError, match="is being written by process"):
        open_journal(place, {"a": 1}, storage_options=storage_options)
    first.close()
    with pytest.raises(StoreMismatchError, match="a: 1 in the store, 2 now"):
        open_journal(place, {"a": 2}, storage_options=storage_options)
