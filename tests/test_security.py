"""Who gets into a cluster, and what files can make dsel do."""

import json
import os
import pickle
import re
import socket
import ssl
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numcodecs.pickles
import numpy as np
import pytest
import zarr
from sklearn.svm import SVC
from zarr.codecs import Crc32cCodec

import dsel
from dsel.cluster import connect
from dsel.data.tables import read_table
from dsel.results.place import seal, unseal
from dsel.search import read_rows
from tests.clusters import make_certificates, running_cluster, tls_options

ROOT = Path(__file__).parents[1]
UNSEEN = r"(allow_pickle|trusted)=True|(?<![\w.])(compile|__import__)\("
"""What would run something, and ruff's rules do not find; they find all else."""


def test_sources__have_no_way_to_run_what_they_read():
    sources = (ROOT / "dsel").rglob("*.py")
    assert [p.name for p in sources if re.search(UNSEEN, p.read_text())] == []


# Files made to run something


class _Touches:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.fixture
def ran(tmp_path, monkeypatch):
    # Older ones unpickle unasked, and these do where a user told them to.
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    with zarr.config.set({"array.allow_unsafe_pickle_decode": True}):
        yield tmp_path / "something-ran"


PICKLE = {"id": "pickle", "protocol": 4}
PICKLED = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, PICKLE]}


def _pickled_array(folder, ran, shape, head=PICKLED):
    """An array of format 2 whose only chunk is a pickle."""
    head = {"filters": None, "compressor": None} | head
    head |= {"zarr_format": 2, "shape": shape, "chunks": shape}
    head |= {"order": "C", "fill_value": 0}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zarr.json").unlink(missing_ok=True)
    (folder / ".zarray").write_text(json.dumps(head))
    (folder / ".".join("0" * len(shape))).write_bytes(pickle.dumps(_Touches(ran)))


def test_ran__zarr_by_itself_runs_what_is_in_such_a_chunk(tmp_path, ran):
    _pickled_array(tmp_path / "pool.zarr", ran, [10, 3])
    with suppress(AttributeError, TypeError, ValueError):
        zarr.open_array(tmp_path / "pool.zarr", mode="r")[:]
    assert ran.exists()


TABLE = {"X": [10, 3], "y": [10], "columns": [3]}
NUMBERS = [
    {"dtype": "<f8", "filters": [PICKLE]},
    {"dtype": "<f8", "compressor": PICKLE},
]


@pytest.mark.parametrize(
    ("name", "head", "read", "words"),
    [
        *[("", head, dsel.open_pool, "is no pool") for head in NUMBERS],
        ("", PICKLED, dsel.open_pool, "`pool` must be|never decodes"),
        ("", PICKLED, lambda at: dsel.open_pool(zarr.open(at, mode="r")),
         "`pool` must be|never decodes"),
        *[(name, PICKLED, read_table, "never decodes") for name in TABLE],
        ("label", PICKLED, lambda at: list(read_rows(at, "label")), "no results for"),
    ],
)  # fmt: skip
def test_readers__refuse_chunks_that_are_pickled(
    tmp_path, ran, name, head, read, words
):
    place = tmp_path / "table.zarr"
    if name:
        group = zarr.open_group(place, mode="w", zarr_format=2)
        for other in sorted({*TABLE} - {name}):
            group.create_array(other, data=np.zeros(TABLE[other]))
    shape = TABLE.get(name, [10] if name else [10, 3])
    _pickled_array(place / name, ran, shape, head)
    with pytest.raises((OSError, TypeError, ValueError), match=words):
        read(str(place))
    assert not ran.exists()


class Strange(Crc32cCodec):
    """What somebody's package may add to zarr."""

    @classmethod
    def from_dict(cls, data):
        return cls()

    def to_dict(self):
        return {"name": "strange"}


def test_open_results__refuses_codecs_that_are_not_known(tmp_path):
    zarr.registry.register_codec("strange", Strange)
    X = np.random.default_rng(0).normal(size=(40, 2))
    plan = dsel.plan_search(SVC(), {"C": [1, 10]}, X, X[:, 0] > 0, cv=2)
    dsel.save_results(plan.run().results, tmp_path)
    (listed,) = (tmp_path / "cube").glob("*.json")
    sums = json.loads(unseal(listed.read_bytes()))
    head = listed.with_suffix(".zarr") / "fold_errors" / "zarr.json"
    content = json.loads(head.read_text())
    content["codecs"].append({"name": "strange"})
    head.write_text(json.dumps(content))
    # Whoever writes a store knows how its checksums are made.
    sums["fold_errors/zarr.json"] = zlib.crc32(head.read_bytes())
    listed.write_bytes(seal(json.dumps(sums).encode()))
    with pytest.raises(ValueError, match="strange, which dsel never decodes"):
        dsel.open_results(tmp_path)


def test_tables__of_objects_are_refused(tmp_path, ran):
    X = np.array([[_Touches(ran), 1.0]] * 10, dtype=object)
    np.savez(tmp_path / "table.npz", X=X, y=np.arange(10) % 2)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        read_table(str(tmp_path / "table.npz"))
    assert not ran.exists()


# TLS


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    make_certificates(folder, "127.0.0.1")
    with running_cluster(folder, tls=tls_options(folder), protocol="tls") as running:
        running.trusted = folder
        with connect(running.address, tls=running.trusted, timeout=60) as client:
            client.wait_for_workers(2, timeout=120)
        yield running


@pytest.mark.cluster
def test_tls__lets_the_holder_of_a_certificate_in_and_nobody_else(secured, tmp_path):
    with connect(secured.address, tls=secured.trusted) as client:
        assert client.submit(sum, [1, 2]).result() == 3
    make_certificates(tmp_path, "127.0.0.1")  # of another authority
    plain = secured.address.replace("tls:", "tcp:")
    for address, tls, error, words in [
        (secured.address, None, ValueError, "is encrypted and needs `tls`"),
        (plain, None, ConnectionError, "no scheduler answered"),
        (secured.address, tmp_path, ConnectionError, "no scheduler answered"),
    ]:
        with pytest.raises(error, match=words), connect(address, tls=tls, timeout=3):
            pass


@pytest.mark.cluster
def test_tls__says_nothing_to_whoever_shows_no_certificate(secured):
    context = ssl.create_default_context(cafile=secured.trusted / "ca.pem")
    context.check_hostname = False
    host, port = secured.address.removeprefix("tls://").split(":")
    answer = b""
    with (
        suppress(ssl.SSLError, ConnectionError),  # an alert, or a reset
        socket.create_connection((host, int(port)), timeout=60) as raw,
        context.wrap_socket(raw) as wrapped,
    ):
        wrapped.send(b"hello")
        answer = wrapped.recv(1)
    assert answer == b""


STRANGER = """
import asyncio, os, sys
from distributed import Security, rpc

async def ask(address, security):
    ways = security.get_connection_args("client")
    async with rpc(address, connection_args=ways, timeout=2) as there:
        await asyncio.wait_for(there.identity(), 2)
        return address

async def ask_all(places):
    mine = Security.temporary()
    asked = [ask(each.replace("tls:", "tcp:"), Security()) for each in places]
    asked += [ask(each, mine) for each in places if each.startswith("tls:")]
    said = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, str | OSError) for each in said), said
    print(os.getuid(), "hears", [each for each in said if isinstance(each, str)])

asyncio.run(ask_all(sys.argv[1:]))
if os.getuid() == 0:
    os.setuid(65534)
    asyncio.run(ask_all(sys.argv[1:]))
"""


@pytest.mark.cluster
def test_local__answers_nobody_who_only_knows_the_addresses():
    with connect(workers=1) as client:
        workers = client.scheduler_info()["workers"]
        nannies = [worker["nanny"] for worker in workers.values()]
        places = [client.scheduler.address, *workers, *nannies]
        command = [sys.executable, "-c", STRANGER, *places]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    users = [0, 65534] if os.getuid() == 0 else [os.getuid()]
    assert done.stdout.splitlines() == [f"{user} hears []" for user in users]
    assert len(places) == 3


def test_certificates__key_is_readable_by_its_owner_only(tmp_path):
    make_certificates(tmp_path / "made", "127.0.0.1")
    assert (tmp_path / "made" / "key.pem").stat().st_mode & 0o077 == 0
    assert (tmp_path / "made").stat().st_mode & 0o077 == 0
