"""Clients from configurations: what is refused, what is started, what it listens on."""

import math
import os
import shutil
import socketserver
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import dask.config
import psutil
import pytest
from distributed import Client

from dsel import cluster
from dsel.cluster import (
    Address,
    Gateway,
    Kubernetes,
    Local,
    SchedulerFile,
    Slurm,
    Tls,
    choose_config,
    connect,
    parse_config,
    read_config,
    replacing,
)
from dsel.cluster.slurm import time_limit
from dsel.errors import VersionMismatchError
from dsel.runtime import versions
from dsel.runtime.freed_memory import thresholds_outside
from tests.clusters import ROOT, make_certificates, running_cluster, wait_until

# Configurations


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"local": None}, Local()),
        ({"local": {"workers": 3, "memory": "2 GiB"}}, Local(3, "2 GiB")),
        ({"address": {"address": "tcp://a:1"}}, Address("tcp://a:1")),
        ({"scheduler-file": {"path": "s.json"}}, SchedulerFile("s.json")),
        ({"slurm": {"jobs": 2, "memory": "4 GiB"}}, Slurm(2, "4 GiB")),
        ({"kubernetes": {"image": "dsel", "workers": 2}}, Kubernetes("dsel", 2)),
        ({"gateway": {"address": "https://g", "workers": 2}}, Gateway("https://g", 2)),
    ],
)
def test_parse_config__reads_every_kind(content, expected):
    assert parse_config(content) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "exactly one key"),
        (None, "exactly one key"),
        ({"local": {}, "slurm": {}}, "exactly one key"),
        ({"lokal": {}}, "no kind 'lokal' but: address, gateway"),
        ({"local": {"worker": 2}}, "no field 'worker' but: memory, workers"),
        ({"local": [2]}, "must be a mapping"),
        ({"slurm": {"jobs": 2}}, "`slurm` needs the field `memory`"),
        ({"local": {"workers": 0}}, "`workers` must be >= 1"),
        ({"local": {"memory": "much"}}, "amount such as"),
        ({"slurm": {"jobs": 2, "memory": "auto"}}, "amount such as"),
        ({"address": {"address": "10.0.0.1:8786"}}, "must look like tcp://"),
        ({"gateway": {"address": "host", "workers": 1}}, "URL of a gateway"),
        (
            {"address": {"address": "tls://a:1", "tls": {"ca": "x"}}},
            "field `certificate`",
        ),
    ],
)
def test_parse_config__names_what_is_wrong(content, message):
    with pytest.raises(ValueError, match=message):
        parse_config(content)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("local", {"memory": 4}),
        ("address", {"address": 8786}),
        ("scheduler-file", {"path": 5}),
        ("kubernetes", {"workers": 2, "image": 1.0}),
        ("gateway", {"workers": 2, "address": 1}),
        # Without quotes it is seconds to YAML, and would be minutes to SLURM.
        ("slurm", {"jobs": 1, "memory": "1 GiB", "walltime": 7200}),
        ("slurm", {"jobs": 1, "memory": "1 GiB", "queue": 1}),
    ],
)
def test_parse_config__refuses_numbers_for_text(kind, values):
    with pytest.raises(TypeError, match=f"`{list(values)[-1]}` must be text"):
        parse_config({kind: values})


def test_read_config__never_builds_objects_from_yaml(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("local: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(ValueError, match="is no YAML"):
        read_config(path)


def test_read_config__names_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "table.npz"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(ValueError, match=r"table\.npz' is no YAML"):
        read_config(path)


def test_choose_config__reads_yaml_json_and_addresses(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("local: {workers: 2}\n")
    assert choose_config(str(path)) == Local(workers=2)
    assert choose_config("run/scheduler.json") == SchedulerFile("run/scheduler.json")
    assert choose_config("tcp://[::1]:8786") == Address("tcp://[::1]:8786")
    assert choose_config(None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheduler": "tcp://a:1", "workers": 2}, "give one of the two"),
        ({"scheduler": "nonsense"}, "must look like tcp://"),
    ],
)
def test_choose_config__refuses_what_excludes_each_other(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_config(**arguments)


def test_tls__names_the_file_that_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`ca`.*does not exist"):
        Tls(ca="no.pem", certificate="no.pem", key="no.pem")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, "localhost", "127.0.0.1")
    return folder


def test_address__refuses_certificates_for_an_unencrypted_one(certificates):
    with pytest.raises(ValueError, match="is not encrypted"):
        Address("tcp://127.0.0.1:1", Tls.in_folder(certificates))


@pytest.mark.parametrize("names", ["cert ca key", "ca cert ca", "key cert key"])
def test_address__says_that_certificates_do_not_fit_together(certificates, names):
    tls = Tls(*(str(certificates / f"{name}.pem") for name in names.split()))
    with (
        pytest.raises(ValueError, match="`tls` must name the authority's certificate"),
        connect(Address("tls://127.0.0.1:9", tls), timeout=1.0),
    ):
        pass


# Kinds whose service is not here


def test_slurm__writes_a_job_script_with_one_thread_per_process(certificates):
    jobqueue = pytest.importorskip("dask_jobqueue")
    config = Slurm(
        2, "8 GiB", processes=4, queue="night", tls=Tls.in_folder(certificates)
    )
    job = jobqueue.slurm.SLURMJob(
        "tls://10.0.0.1:8786",
        name="test",
        **{
            key: value
            for key, value in config.cluster_options().items()
            if key != "scheduler_options"
        },
    )
    script = job.job_script()
    assert "#SBATCH -p night" in script
    assert "#SBATCH --mem=8G" in script
    assert "export OMP_NUM_THREADS=1" in script
    assert "--nthreads 1 " in script
    assert "--nworkers 4 " in script
    assert "--dashboard-address 127.0.0.1:0" in script
    # As dask-jobqueue's documentation has it: before the hour at which SLURM kills.
    assert "--lifetime 3300s --lifetime-stagger 240s" in script


@pytest.mark.parametrize(
    ("walltime", "seconds", "options"),
    [
        ("10", 600, ["450s", "120s"]),
        ("90:30", 90.5 * 60, ["5130s", "240s"]),
        ("2:00:00", 7200, ["6900s", "240s"]),
        ("1-12", 36 * 3600, ["129300s", "240s"]),
        ("1-12:30", 36.5 * 3600, ["131100s", "240s"]),
        ("1-00:00:30", 86430, ["86130s", "240s"]),
        ("0", math.inf, []),
        ("UNLIMITED", math.inf, []),
    ],
)
def test_slurm__has_workers_leave_before_their_job_is_killed(
    walltime, seconds, options
):
    config = Slurm(1, "1 GiB", walltime=walltime)
    assert time_limit(walltime) == seconds
    assert config.cluster_options()["worker_extra_args"][3::2] == options


@pytest.mark.parametrize("walltime", ["", "2h", "1-", "02:00:00:00", "-5"])
def test_slurm__refuses_a_wall_time_that_slurm_would(walltime):
    with pytest.raises(ValueError, match="`walltime` must be a time limit as SLURM"):
        Slurm(1, "1 GiB", walltime=walltime)


def test_kubernetes__options_are_those_of_the_operator():
    operator = pytest.importorskip("dask_kubernetes.operator")
    options = Kubernetes("dsel:1", 3, memory="4 Gi").cluster_options()
    spec = operator.make_cluster_spec(
        **{
            key: value
            for key, value in options.items()
            if key not in {"namespace", "resource_timeout", "quiet"}
        }
    )
    worker = spec["spec"]["worker"]["spec"]["containers"][0]
    assert spec["spec"]["worker"]["replicas"] == 3
    assert worker["resources"]["limits"] == {"memory": "4Gi", "cpu": "1"}
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in worker["env"]


@contextmanager
def _closing(calls, name, value):
    calls.append(name)
    yield value
    calls.append(f"close {name}")


def test_gateway__asks_for_workers_and_closes_in_order(monkeypatch):
    calls = []
    client = SimpleNamespace(wait_for_workers=lambda n, timeout: calls.append("wait"))

    class Cluster:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            calls.append("close cluster")

        def scale(self, n):
            calls.append(f"scale {n}")

        def get_client(self):
            return _closing(calls, "client", client)

    gateway = SimpleNamespace(new_cluster=lambda **options: Cluster())
    package = SimpleNamespace(Gateway=lambda url: _closing(calls, url, gateway))
    monkeypatch.setitem(sys.modules, "dask_gateway", package)
    with ExitStack() as stack:
        assert Gateway("https://g", 2).open(stack, 1.0) is client
    assert calls[:4] == ["https://g", "scale 2", "client", "wait"]
    assert calls[4:] == ["close client", "close cluster", "close https://g"]


def test_slurm__says_that_this_is_no_node_of_a_site(monkeypatch):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="needs the command sbatch"):
        Slurm(1, "1 GiB").open(ExitStack(), 1.0)


SBATCH = """#!{python}
import pathlib, subprocess, sys
script = pathlib.Path(sys.argv[1]).read_text()
with open("{folder}/jobs.log", "ab") as log:
    job = subprocess.Popen(["bash", "-c", script], stdout=log, stderr=log,
                           start_new_session=True)
with open("{folder}/jobs.txt", "a") as jobs:
    print(job.pid, file=jobs)
print("Submitted batch job", job.pid)
"""
SCANCEL = """#!/bin/sh
kill -9 -- -$1
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A SLURM that runs jobs here; returns what lists those that were submitted."""
    text = SBATCH.format(python=sys.executable, folder=tmp_path)
    for name, content in (("sbatch", text), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jobs.txt"
    return lambda: [int(line) for line in path.read_text().split()]


@pytest.mark.cluster
@pytest.mark.parametrize("processes", [1, 2])
def test_slurm__replaces_a_job_that_ended(site, monkeypatch, processes):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setattr(replacing, "ENDED_SECONDS", 3.0)
    config = Slurm(1, "2 GiB", processes=processes, interface="lo", patience=60)
    with connect(config) as client:
        for n_jobs in (1, 2, 3):
            wait_until(lambda: len(client.nthreads()) == processes, 60, "workers")
            time.sleep(2)  # it looks once a second
            assert len(site()) == n_jobs
            os.killpg(site()[-1], 9)
            wait_until(lambda: not client.nthreads(), 30, "their end")


@pytest.mark.parametrize(
    ("module", "config"),
    [
        ("dask_jobqueue", Slurm(1, "1 GiB")),
        ("dask_kubernetes.operator", Kubernetes("dsel", 1)),
        ("dask_gateway", Gateway("https://g", 1)),
    ],
)
def test_open__says_what_to_install(monkeypatch, module, config):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dsel\["):
        config.open(ExitStack(), 1.0)


# Real processes


@pytest.fixture(scope="module")
def local_client():
    with connect(Local(workers=2, memory="1 GiB")) as client:
        yield client


@pytest.mark.cluster
def test_local__has_one_thread_per_process_and_one_blas_thread(local_client):
    assert set(local_client.nthreads().values()) == {1}
    found = local_client.run(lambda: (os.getpid(), os.environ["OMP_NUM_THREADS"]))
    assert {threads for _, threads in found.values()} == {"1"}
    assert os.getpid() not in {pid for pid, _ in found.values()}


@pytest.mark.cluster
def test_local__workers_give_back_memory_between_searches(local_client):
    found = local_client.run(lambda: thresholds_outside(os.environ))
    assert all(trim < 2**20 for trim, _ in found.values())


@pytest.mark.cluster
def test_local__listens_on_loopback_only(local_client):
    pids = [os.getpid(), *local_client.run(os.getpid).values()]
    listening = [
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.cluster
def test_connect__puts_environment_and_settings_back(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    import distributed  # noqa: F401

    before = dask.config.get("distributed.deploy.lost-worker-timeout")
    with connect(Local(workers=1)) as client:
        assert os.environ["NUMBA_NUM_THREADS"] == "1"
        assert client.submit(sum, [1, 2]).result() == 3
    assert "NUMBA_NUM_THREADS" not in os.environ
    assert dask.config.get("distributed.deploy.lost-worker-timeout") == before


@pytest.mark.cluster
def test_connect__names_package_and_versions_that_differ(monkeypatch, local_client):
    ours = {**versions.installed_versions(), "scikit-learn": "0.1"}
    monkeypatch.setattr(versions, "installed_versions", lambda: ours)
    expected = r"the scheduler .* scikit-learn [\d.]+ \(client 0\.1\)"
    with pytest.raises(VersionMismatchError, match=expected):
        versions.check_versions(local_client)


@pytest.mark.cluster
def test_connect__names_a_worker_with_other_code_of_the_same_version(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ROOT / "dsel", other / "dsel")
    with (other / "dsel" / "names.py").open("a") as file:
        file.write("# changed\n")
    with running_cluster(tmp_path, workers=0) as running:
        running.start_worker("other", PYTHONPATH=str(other))
        expected = r"worker tcp.* code of dsel \w{12} \(client \w{12}\); install"
        with Client(running.address) as client:
            wait_until(client.nthreads, 60, "a worker")
            with pytest.raises(VersionMismatchError, match=expected):
                versions.check_versions(client)


DIES_WHEN_ASKED = """
import os
from importlib import metadata
there = metadata.version
metadata.version = lambda name: os._exit(9) if name == "xarray" else there(name)
"""


@pytest.mark.cluster
def test_connect__does_without_the_answer_of_a_worker_that_dies(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(DIES_WHEN_ASKED)
    with running_cluster(tmp_path, workers=0) as running:
        path = os.pathsep.join([str(other), str(ROOT)])
        running.start_worker("dies", PYTHONPATH=path)
        with Client(running.address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            assert versions.check_versions(client)["xarray"]


def test_code_reader__reads_a_copy_alike_and_no_zip(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "dsel", tmp_path / "dsel")
    code = versions._code_reader()
    ours = code()
    copy = SimpleNamespace(submodule_search_locations=[str(tmp_path / "dsel")])
    monkeypatch.setattr(versions, "find_spec", lambda name: copy)
    assert code() == ours
    copy.submodule_search_locations = [str(tmp_path / "dsel.zip" / "dsel")]
    assert code() == ""
    versions._compare({versions.CODE: ours}, {versions.CODE: ""}, "a worker from a zip")


@pytest.mark.cluster
@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_connect__says_that_nobody_answers(protocol, certificates):
    tls = Tls.in_folder(certificates) if protocol == "tls" else None
    config = Address(f"{protocol}://127.0.0.1:9", tls)
    with (
        pytest.raises(ConnectionError, match="no scheduler answered at"),
        connect(config, timeout=1.0),
    ):
        pass


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9])
def test_connect__says_that_something_else_listens_there(answer):
    with socketserver.TCPServer(("127.0.0.1", 0), _Answering) as server:
        server.answer = answer
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address
        with (
            pytest.raises(ConnectionError, match="no scheduler answered at"),
            connect(Address(f"tcp://{host}:{port}"), timeout=1.0),
        ):
            pass
        server.shutdown()


class _Answering(socketserver.BaseRequestHandler):
    """Answers whoever connects, reads on, and says nothing more."""

    def handle(self):
        self.request.sendall(self.server.answer)
        while self.request.recv(2**16):
            pass


def test_scheduler_file__that_never_comes_is_an_error_with_the_command(tmp_path):
    config = SchedulerFile(str(tmp_path / "none.json"))
    with (
        pytest.raises(ConnectionError, match="dask scheduler --scheduler-file"),
        connect(config, timeout=0.3),
    ):
        pass


@pytest.mark.cluster
def test_connect__reaches_running_workers_by_file_and_by_address(tmp_path):
    with running_cluster(tmp_path) as running:
        with connect(SchedulerFile(str(running.file))) as client:
            wait_until(lambda: len(client.nthreads()) == 2, what="two workers")
            versions.check_versions(client)
        with connect(Address(running.address)) as client:
            pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_room__lists_its_kinds():
    assert list(cluster.__all__) == sorted(cluster.__all__, key=str)


def test_tls__refuses_a_file_that_is_no_certificate(tmp_path):
    (tmp_path / "ca.pem").write_text("hello")
    with pytest.raises(ValueError, match=r"`ca` must be a PEM file, but .*ca\.pem"):
        Tls(*[str(tmp_path / "ca.pem")] * 3)
