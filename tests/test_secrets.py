"""What URLs and their options hold that nobody else may see."""

import functools
import http.server
import threading

import numpy as np
import pytest
from click.testing import CliRunner

import dsel
from dsel.cli import main
from dsel.data.pool import read_blocks

SECRET = "nothing-to-be-seen"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    dsel.write_pool(rows, place / "pool.zarr", chunk_rows=30)
    X = rng.normal(size=(80, 3))
    np.savez(place / "table.npz", X=X, y=(X[:, 0] > 0).astype(int))
    return place


class _Guarded(http.server.SimpleHTTPRequestHandler):
    """Gives files to those who know the secret, but row 60 to nobody."""

    def do_GET(self):
        if f"sig={SECRET}" in self.path and "c/2/0" not in self.path:
            super().do_GET()
        else:
            self.send_error(403)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *args):
        """Print nothing."""


@pytest.fixture(scope="module")
def url(folder):
    handler = functools.partial(_Guarded, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("https://host/pool.zarr?X-Amz-Signature={}", "must not hold a query"),
        ("https://host?sig={}", "must not hold a query"),
        ("simplecache::https://host/pool.zarr?token={}", "must not hold a query"),
        ("zip://pool.zarr::https://host/pool.zip?sig={}", "must not hold a query"),
        ("s3://bucket/pool.zarr?secret_key={}", "must not hold a query"),
        ("nothing://host/pool.zarr?sig={}", "must not hold a query"),
        ("https://{}@host/pool.zarr", "must not hold a password"),
        ("https://user:{}@host/pool.zarr", "must not hold a password"),
        ("s3://user:with/{}@bucket/pool.zarr", "must not hold a password"),
        ("zip://pool.zarr::https://user:{}@host/pool.zip", "must not hold a password"),
    ],
)
def test_info__takes_no_secret_in_a_url_and_shows_none(place, message):
    done = CliRunner().invoke(main, ["pool", "info", place.format(SECRET)])
    assert done.exit_code == 1
    assert message in done.output
    assert SECRET not in done.output


@pytest.mark.parametrize(
    "words",
    [
        ["pool", "build", "TABLE", "PLACE"],
        ["pool", "build", "PLACE", "written.zarr"],
        ["report", "PLACE"],
        ["select", "TABLE", "--pool", "PLACE", "--workers", "1", "--cv", "3"],
        ["select", "TABLE", "--out", "PLACE", "--workers", "1", "--cv", "3"],
    ],
    ids=" ".join,
)
def test_commands__take_no_secret_in_a_url_and_show_none(folder, words, monkeypatch):
    monkeypatch.chdir(folder)
    place = f"https://host/pool.zarr?sig={SECRET}"
    known = {"PLACE": place, "TABLE": "table.npz"}
    done = CliRunner().invoke(main, [known.get(word, word) for word in words])
    assert done.exit_code == 1
    assert "must not hold a query" in done.output
    assert SECRET not in done.output


@pytest.mark.parametrize(
    "place",
    [
        "file:///nowhere/a?b:c@d/pool.zarr",
        "memory://nowhere/a?b=c",
        "s3://bucket/a:b@c/pool.zarr",
        "http://127.0.0.1:9/pool.zarr",
    ],
)
def test_check_url__takes_what_is_no_secret(place):
    dsel.checks.check_url(place, "pool")


def test_open_pool__sends_a_query_that_its_options_hold(url):
    pool = dsel.open_pool(
        f"{url}/pool.zarr", storage_options={"params": {"sig": SECRET}}
    )
    assert pool.n_rows == 90
    assert SECRET not in f"{pool!r} {pool.token}"


def test_pool__shows_no_query_in_an_error_that_a_worker_sends(url):
    options = {"params": {"sig": SECRET}}
    pool = dsel.open_pool(f"{url}/pool.zarr", storage_options=options)
    with pytest.raises(ConnectionError, match=r"403.*zarr.*\?\.\.\.") as told:
        list(read_blocks(pool.sources(pool.spans(90)[0]), 90))
    assert SECRET not in str(told.value)
    assert told.value.__context__ is None  # aiohttp's errors cannot be unpickled
