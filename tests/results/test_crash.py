"""A writer killed at any moment leaves whole records and loses none it had written."""

import multiprocessing
import resource
import time
import warnings

import numpy as np
import pytest

from dsel.errors import DselWarning
from dsel.results.journal import open_journal

FINGERPRINT = {"seed": 1}
ROWS_A_SESSION = 30


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dsel.results.journal"])
    return context


def _values(number):
    """From one byte to 140,000."""
    noise = np.random.default_rng(number).bytes(1 + number % 3 * 70_000)
    return np.frombuffer(noise, dtype=np.uint8)


def _write(place, acknowledge):
    """Append, flush, acknowledge; close, which merges the objects, now and then."""
    while True:
        with open_journal(place, FINGERPRINT) as journal:
            start = len(journal.read())
            for number in range(start, start + ROWS_A_SESSION):
                journal.append(str(number), {"values": _values(number)})
                journal.flush()
                acknowledge.send(number)


def _write_with_little_room(place, answer):
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, most))
    with open_journal(place, FINGERPRINT) as journal:
        journal.append("0", {"values": _values(0)})
        journal.flush()
        journal.append("2", {"values": _values(2)})
        try:
            journal.flush()
        except OSError as error:
            answer.send(str(error))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _kill_after(processes, place, seconds):
    """Return the numbers that the writer acknowledged before it was killed."""
    receive, send = processes.Pipe(duplex=False)
    writer = processes.Process(target=_write, args=(place, send))
    writer.start()
    send.close()
    acknowledged = [receive.recv()]  # the clock runs from the first write
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if receive.poll(left):
            acknowledged.append(receive.recv())
    writer.kill()
    writer.join()
    while receive.poll():
        try:
            acknowledged.append(receive.recv())
        except EOFError:
            break
    receive.close()
    return acknowledged


def _check(place, acknowledged, *, since):
    """Return how many rows there are, having compared those from `since` on."""
    with open_journal(place, FINGERPRINT) as journal:
        stored = {int(key): record for key, record in journal.read().items()}
    found = set(stored)
    for number in range(since, len(stored)):
        np.testing.assert_array_equal(stored[number]["values"], _values(number))
    assert set(acknowledged) <= found
    assert found == set(range(len(found)))
    return len(found)


def _kill_again_and_again(processes, place, n_kills, rng):
    acknowledged, n_rows = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", DselWarning)  # no object is cut short
        for _ in range(n_kills):
            acknowledged += _kill_after(processes, place, rng.uniform(0.0, 0.3))
            n_rows = _check(place, acknowledged, since=n_rows)
        _check(place, acknowledged, since=0)
    assert len(acknowledged) == len(set(acknowledged))


def test_journal__survives_being_killed(processes, tmp_path, rng):
    _kill_again_and_again(processes, tmp_path, 4, rng)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_journal__survives_being_killed_many_times(processes, tmp_path, rng):
    _kill_again_and_again(processes, tmp_path, 40, rng)


def test_journal__goes_on_when_a_full_disk_has_room_again(processes, tmp_path):
    receive, send = processes.Pipe(duplex=False)
    writer = processes.Process(target=_write_with_little_room, args=(tmp_path, send))
    writer.start()
    send.close()  # a writer that died would end the wait
    text = receive.recv()
    writer.join()
    assert "cannot write to" in text
    assert "1 finished tasks are not in it" in text
    with open_journal(tmp_path, FINGERPRINT) as journal:
        assert list(journal.read()) == ["0", "2"]
