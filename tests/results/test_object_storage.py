"""Stores in S3-compatible storage, on a server of our own on loopback."""

import gc
import warnings

import numpy as np
import pytest

from dsel.errors import StoreBusyError, StoreMismatchError
from dsel.results import open_results, save_results
from dsel.results.journal import open_journal
from dsel.results.log import CHUNK

pytest.importorskip("s3fs", reason="needs the extra `cloud`")
pytest.importorskip("moto.server", reason="needs moto's server")


@pytest.fixture(scope="module")
def storage_options():
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "key": "nobody",
        "secret": "nothing",
        "endpoint_url": f"http://{host}:{port}",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    S3FileSystem(**options).mkdir("s3://runs")
    yield options
    with warnings.catch_warnings():
        # s3fs closes the sessions of asynchronous file systems only when collected.
        warnings.simplefilter("ignore", ResourceWarning)
        S3FileSystem.clear_instance_cache()
        gc.collect()
    server.stop()


def test_save_results__round_trip_is_exact(cube, storage_options):
    for _ in range(4):  # generations come and go
        save_results(cube, "s3://runs/cube", storage_options=storage_options)
    opened = open_results("s3://runs/cube", storage_options=storage_options)
    assert opened.load().identical(cube)


def test_journal__is_found_again(storage_options):
    place, noise = "s3://runs/journal", np.random.default_rng(1).bytes(3 * CHUNK)
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
    place = "s3://runs/busy"
    first = open_journal(place, {"a": 1}, storage_options=storage_options)
    with pytest.raises(StoreBusyError, match="is being written by process"):
        open_journal(place, {"a": 1}, storage_options=storage_options)
    first.close()
    with pytest.raises(StoreMismatchError, match="a: 1 in the store, 2 now"):
        open_journal(place, {"a": 2}, storage_options=storage_options)
