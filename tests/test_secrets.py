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
OPTIONS = {"params": {"sig": SECRET}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    dsel.write_pool(rng.normal(size=(90, 3)), place / "pool.zarr", chunk_rows=30)
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
        yield f"http://127.0.0.1:{server.server_address[1]}/pool.zarr"
        server.shutdown()
        thread.join()


PLACES = {
    "a query": [
        "https://host/pool.zarr?X-Amz-Signature={}",
        "https://host?sig={}",
        "simplecache::https://host/pool.zarr?token={}",
        "zip://pool.zarr::https://host/pool.zip?sig={}",
        "s3://bucket/pool.zarr?secret_key={}",
        "nothing://host/pool.zarr?sig={}",
    ],
    "a password": [
        "https://{}@host/pool.zarr",
        "https://user:{}@host/pool.zarr",
        "s3://user:with/{}@bucket/pool.zarr",
        "zip://pool.zarr::https://user:{}@host/pool.zip",
    ],
}
SELECT = "select table.npz --workers 1 --cv 3"
COMMANDS = ["pool build table.npz", "report", f"{SELECT} --pool", f"{SELECT} --out"]
CASES = [("pool info", place, held) for held in PLACES for place in PLACES[held]]
CASES += [(words, PLACES["a query"][0], "a query") for words in COMMANDS]


@pytest.mark.parametrize(("words", "place", "held"), CASES)
def test_commands__take_no_secret_in_a_url_and_show_none(
    folder, words, place, held, monkeypatch
):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, [*words.split(), place.format(SECRET)])
    assert done.exit_code == 1
    assert f"must not hold {held}" in done.output
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


def test_pool__sends_a_query_that_its_options_hold_and_shows_it_in_no_error(url):
    pool = dsel.open_pool(url, storage_options=OPTIONS)
    assert pool.n_rows == 90
    assert SECRET not in f"{pool!r} {pool.token}"
    with pytest.raises(ConnectionError, match=r"403.*zarr.*\?\.\.\.") as told:
        list(read_blocks(pool.sources(pool.slices(90)[0]), 90))
    assert SECRET not in str(told.value)
    assert told.value.__context__ is None  # aiohttp's errors cannot be unpickled
