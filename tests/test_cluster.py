"""Clients from configurations: what is refused, what is started, what it listens on."""

import os
import re
import shutil
import socketserver
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from unittest.mock import Mock

import dask.config
import psutil
import pytest
import yaml
from distributed import Client

from dsel.cluster import connect
from dsel.errors import VersionMismatchError
from dsel.runtime import versions
from tests.clusters import (
    ROOT,
    beginning_with,
    make_certificates,
    running_cluster,
    wait_until,
)

# What is refused


def opening(scheduler=None, **options):
    with connect(scheduler, **options):
        raise AssertionError("this opens a cluster")


BOTH = {"class": "distributed.LocalCluster", "workers": 1, "adapt": {}}
NO_CLUSTER = "`class` must be a cluster of Dask"
REFUSED = {
    "no scheduler": ("nonsense", {}, ValueError, "must look like tcp://"),
    "no protocol": ("10.0.0.1:8786", {}, ValueError, "must look like tcp://"),
    "workers beside": ("tcp://a:1", {"workers": 2}, ValueError, "give one of the two"),
    "no workers": (None, {"workers": 0}, ValueError, "`workers` must be >= 1, got 0"),
    "no amount": (None, {"memory": "much"}, ValueError, "amount such as .*'much'"),
    "a number": (None, {"memory": 4}, ValueError, "amount such as .* got 4"),
    "no keys": ({}, {}, ValueError, "must have the key `class`"),
    "other keys": ({"lokal": {}}, {}, ValueError, "got the keys lokal"),
    "no file": (Path("no.yaml"), {}, FileNotFoundError, r"'no\.yaml' does not exist"),
    "two numbers": (BOTH, {}, ValueError, "is a fixed number, but `adapt` is {}"),
    "a function": ({"class": "os.system"}, {}, ValueError, NO_CLUSTER),
    "another class": ({"class": "pathlib.Path"}, {}, ValueError, NO_CLUSTER),
    "no class": ({"class": "os.no_such"}, {}, ValueError, NO_CLUSTER),
    "no module": ({"class": "Local"}, {}, ValueError, NO_CLUSTER),
    "no answer": ("tcp://127.0.0.1:9", {"timeout": 1.0}, ConnectionError, "no sched"),
    "no file yet": (
        "none.json", {"timeout": 0.3}, ConnectionError, "dask scheduler --scheduler-f",
    ),
    "no folder": ("tls://a:1", {"tls": "no"}, FileNotFoundError, "`tls` must be a fo"),
    "no use of it": ("tcp://a:1", {"tls": "."}, ValueError, "is not encrypted"),
    "no certificates": ("tls://a:1", {}, ValueError, "is encrypted and needs `tls`"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("scheduler", "options", "error", "words"), REFUSED.values(), ids=REFUSED
)
def test_connect__refuses(scheduler, options, error, words):
    with pytest.raises(error, match=words):
        opening(scheduler, **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"local: !!python/object/apply:os.getcwd []\n", r"cluster\.yaml' is no YAML"),
        (b"PK\x03\x04\xff\xfe", r"cluster\.yaml' is no YAML"),
        (b"", "must have the key `class`"),
    ],
)
def test_connect__reads_text_and_builds_no_objects(tmp_path, content, words):
    path = tmp_path / "cluster.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        opening(str(path))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, "localhost", "127.0.0.1")
    return folder


@pytest.mark.parametrize("names", ["cert ca key", "ca cert ca", "key cert key"])
def test_connect__says_that_certificates_do_not_fit_together(
    certificates, tmp_path, names
):
    for name, source in zip(("ca", "cert", "key"), names.split(), strict=True):
        shutil.copy(certificates / f"{source}.pem", tmp_path / f"{name}.pem")
    with pytest.raises(ValueError, match=r"`tls` must be a folder .* fit together"):
        opening("tls://127.0.0.1:9", tls=tmp_path)


# Clusters of other packages


OURS = ("class", "workers", "adapt", "patience", "tls")
"""Keys that are no arguments of the class."""


def test_slurm__page_has_jobs_with_one_thread_per_process():
    jobqueue = pytest.importorskip("dask_jobqueue")
    options = yaml.safe_load((ROOT / "deploy/slurm/cluster.yaml").read_text())
    assert options["class"] == "dask_jobqueue.SLURMCluster"
    assert options["adapt"] == {"minimum_jobs": 32, "maximum_jobs": 32}
    job = jobqueue.slurm.SLURMJob(
        "tls://10.0.0.1:8786",
        name="test",
        **{k: v for k, v in options.items() if k not in (*OURS, "scheduler_options")},
    )
    script = job.job_script()
    assert "export OMP_NUM_THREADS=1" in script
    assert "--nthreads 1 " in script
    assert "--dashboard-address 127.0.0.1:0" in script
    # As dask-jobqueue's documentation has it: before the hour at which SLURM kills.
    assert "--lifetime 115m --lifetime-stagger 4m" in script
    assert options["scheduler_options"]["dashboard_address"] == "127.0.0.1:0"


def test_kubernetes__page_has_options_of_the_operator():
    operator = pytest.importorskip("dask_kubernetes.operator")
    page = (ROOT / "deploy/kubernetes/README.md").read_text()
    text = re.search(r"```yaml\n(class:.*?)```", page, re.DOTALL)[1]
    options = yaml.safe_load(text)
    others = (*OURS, "namespace", "quiet")
    of_pods = {k: v for k, v in options.items() if k not in others}
    spec = operator.make_cluster_spec(**of_pods)
    worker = spec["spec"]["worker"]["spec"]["containers"][0]
    assert worker["args"][:4] == ["dask", "worker", "--nthreads", "1"]
    assert worker["resources"]["limits"] == {"memory": "4Gi", "cpu": "1"}
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in worker["env"]


class Recording:
    """A cluster as other packages have them; notes what is done with it."""

    calls: ClassVar = []

    def __init__(self, **options):
        self.calls.append(options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.calls.append("close cluster")

    def scale(self, n):
        self.calls.append(f"scale {n}")

    def adapt(self, **options):
        self.calls.append(f"adapt {options}")

    @contextmanager
    def get_client(self):
        yield Mock(spec=["wait_for_workers"])
        self.calls.append("close client")


@pytest.mark.parametrize(
    ("asked", "done"),
    [({"workers": 2}, "scale 2"), ({"adapt": {"minimum": 3}}, "adapt {'minimum': 3}")],
)
def test_class__is_started_with_its_options_and_closed(monkeypatch, asked, done):
    monkeypatch.setattr(Recording, "calls", [])
    monkeypatch.setattr("dsel.cluster.check_versions", lambda client: None)
    with connect({"class": f"{__name__}.Recording", "image": "a", **asked}):
        pass
    assert Recording.calls == [{"image": "a"}, done, "close client", "close cluster"]


def test_class__that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_gateway", None)
    with pytest.raises(ModuleNotFoundError, match="pip install dask_gateway"):
        opening({"class": "dask_gateway.GatewayCluster"})


SBATCH = """#!/bin/bash
setsid bash -c "$(cat "$1")" >> jobs.log 2>&1 &
echo $! >> jobs.txt
echo "Submitted batch job $!"
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A SLURM that runs jobs here; returns what lists those that were submitted."""
    scancel = "#!/bin/sh\nkill -9 -- -$1\n"
    for name, content in (("sbatch", SBATCH), ("scancel", scancel)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    return lambda: [int(line) for line in (tmp_path / "jobs.txt").read_text().split()]


@pytest.mark.cluster
def test_slurm__replaces_a_job_that_ended(site):
    pytest.importorskip("dask_jobqueue")
    specification = {
        "class": "dask_jobqueue.SLURMCluster",
        "adapt": {"minimum_jobs": 1, "maximum_jobs": 1},
        **{"cores": 1, "processes": 1, "memory": "2 GiB", "interface": "lo"},
        "scheduler_options": {"dashboard_address": "127.0.0.1:0"},
    }
    with connect(specification) as client:
        for n_jobs in (1, 2):
            wait_until(lambda: len(client.nthreads()) == 1, what="a worker")
            assert len(site()) == n_jobs
            os.killpg(site()[-1], 9)
            wait_until(lambda: not client.nthreads(), what="its end")


# Real processes


@pytest.fixture(scope="module")
def local_client():
    with connect(workers=2, memory="1 GiB") as client:
        yield client


@pytest.mark.cluster
def test_local__has_one_thread_per_process_and_keeps_freed_memory(local_client):
    assert set(local_client.nthreads().values()) == {1}
    names = ("OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    found = local_client.run(lambda: [os.environ[name] for name in names])
    assert list(found.values()) == [["1", str(2**25), str(2**25)]] * 2


@pytest.mark.cluster
def test_local__listens_on_loopback_only(local_client):
    pids = [os.getpid(), *local_client.run(os.getpid).values()]
    assert len(set(pids)) == 3
    listening = [
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.cluster
def test_connect__puts_environment_and_settings_back():
    setting = "distributed.deploy.lost-worker-timeout"
    before = {**os.environ}, dask.config.get(setting)
    with connect(workers=1) as client:
        assert os.environ["NUMBA_NUM_THREADS"] == "1"
        assert client.submit(sum, [1, 2]).result() == 3
    changed = {
        name for name, value in os.environ.items() if before[0].get(name) != value
    }
    assert changed <= {"PYTHONHASHSEED"}  # which Dask sets
    assert dask.config.get(setting) == before[1]


@pytest.mark.parametrize("who", ["the scheduler", "worker tcp://a:1"])
def test_check_versions__names_package_and_versions_that_differ(who):
    ours = versions.versions_here()
    other = ours | {"scikit-learn": "0.1"}
    client = Mock(spec=Client)
    client.run_on_scheduler.return_value = other if who == "the scheduler" else ours
    client.run.return_value = {"tcp://a:1": other}
    expected = rf"{who} .* scikit-learn 0\.1 \(client [\d.]+\); install"
    with pytest.raises(VersionMismatchError, match=expected):
        versions.check_versions(client)


NO_DSEL = "import sys; sys.modules['dsel'] = None"
DIES_WHEN_ASKED = """
import os
from importlib import metadata
there = metadata.version
metadata.version = lambda name: os._exit(9) if name == "xarray" else there(name)
"""


@pytest.mark.cluster
def test_connect__names_a_worker_of_other_code_and_not_one_that_dies(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ROOT / "dsel", other / "dsel")
    with (other / "dsel" / "names.py").open("a") as file:
        file.write("# changed\n")
    workers = {
        "dies": (beginning_with(DIES_WHEN_ASKED, tmp_path / "one"), None),
        "none": (
            beginning_with(NO_DSEL, tmp_path / "two"),
            "worker tcp.* cannot run this",
        ),
        "other": (
            {"PYTHONPATH": str(other)},
            r"worker tcp.* code of dsel \w{12} \(client \w{12}\); install",
        ),
    }
    with (
        running_cluster(tmp_path, workers=0) as running,
        Client(running.address, timeout=60) as client,
    ):
        for name, (changed, expected) in workers.items():
            running.start_worker(name, **changed)
            wait_until(client.nthreads, 60, "a worker")
            if expected is None:
                versions.check_versions(client)
            else:
                with pytest.raises(VersionMismatchError, match=expected):
                    versions.check_versions(client)
            running.kill(name)
            wait_until(lambda: not client.nthreads(), 60, "its end")


def test_own_code__of_a_copy_is_the_same_and_of_a_zip_unknown(tmp_path):
    shutil.copytree(ROOT / "dsel", tmp_path / "copy" / "dsel")
    archive = shutil.make_archive(tmp_path / "dsel", "zip", tmp_path / "copy")
    command = "from dsel.runtime.versions import hash_code; print(hash_code())"
    for path, expected in ((tmp_path / "copy", versions.hash_code()), (archive, "")):
        told = subprocess.check_output(
            [sys.executable, "-c", command], cwd=tmp_path, text=True,
            env={**os.environ, "PYTHONPATH": str(path)},
        )  # fmt: skip
        assert told.strip() == expected


def test_check_here__takes_code_that_is_unknown_and_no_other():
    ours = versions.versions_here()
    versions.check_here(tuple({**ours, versions.CODE: ""}.items()))
    other = {**ours, versions.CODE: "0" * 12}
    with pytest.raises(VersionMismatchError, match=r"code of dsel \w{12}"):
        versions.check_here(tuple(other.items()))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9])
def test_connect__says_that_something_else_listens_there(answer):
    class Answering(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(answer)
            while self.request.recv(2**16):
                pass

    with socketserver.TCPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address
        with pytest.raises(ConnectionError, match="no scheduler answered at"):
            opening(f"tcp://{host}:{port}", timeout=1.0)
        server.shutdown()


@pytest.mark.cluster
def test_connect__reaches_running_workers_by_file_and_by_address(tmp_path):
    with running_cluster(tmp_path) as running:
        with connect(str(running.file)) as client:
            wait_until(lambda: len(client.nthreads()) == 2, what="two workers")
            versions.check_versions(client)
        with connect(running.address) as client:
            pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids
