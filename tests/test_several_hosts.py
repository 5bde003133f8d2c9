"""Scheduler, workers and client on hosts of their own: network namespaces."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.clusters import environment, wait_until
from tests.job import counts_of, make_plan

ROOT = Path(__file__).parents[1]
HOSTS = {
    "scheduler": "10.77.0.1",
    "one": "10.77.0.2",
    "two": "10.77.0.3",
    "client": "10.77.0.4",
}
# How long a silent peer is waited for; Dask refuses below 11 s.
PATIENCE = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """A switch and hosts, each in a network namespace of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = f"dsel-{os.getpid()}-"
        self.processes = []

    def build(self):
        for host in ("switch", *HOSTS):
            _ip("netns", "add", self.prefix + host)
            _ip("-n", self.prefix + host, "link", "set", "lo", "up")
        switch = self.prefix + "switch"
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for host, address in HOSTS.items():
            name, port = self.prefix + host, f"to-{host}"
            peer = ["peer", "eth0", "netns", name]
            _ip("-n", switch, "link", "add", port, "type", "veth", *peer)
            _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")

    def cut(self, host):
        """Pull the plug of a host."""
        _ip("-n", self.prefix + "switch", "link", "set", f"to-{host}", "down")

    def start(self, host, *command):
        with (self.folder / f"{host}.log").open("ab") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.prefix + host, sys.executable, *command],
                stdout=log, stderr=log, env=environment(**PATIENCE), cwd=ROOT,
                start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def log(self, host):
        with suppress(FileNotFoundError):
            return (self.folder / f"{host}.log").read_text()
        return ""

    def close(self):
        """Remove everything, whatever of it is there."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        for host in [*HOSTS, "switch"]:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", self.prefix + host)


@pytest.fixture
def network(tmp_path):
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` command (iproute2)")
    built = Network(tmp_path)
    try:
        built.build()
    except subprocess.CalledProcessError as error:
        built.close()
        pytest.skip(
            f"this machine makes no network namespaces: {error.stderr.decode()}"
        )
    try:
        yield built
    finally:
        built.close()


@pytest.fixture
def running(network):
    scheduler = f"tcp://{HOSTS['scheduler']}:8786"
    network.start(
        "scheduler", "-m", "dask", "scheduler", "--host", HOSTS["scheduler"],
        "--port", "8786", "--dashboard-address", "127.0.0.1:0",
    )  # fmt: skip
    for host in ("one", "two"):
        network.start(
            host, "-m", "dask", "worker", scheduler, "--host", HOSTS[host], "--name",
            host, "--nthreads", "1", "--dashboard-address", "127.0.0.1:0",
        )  # fmt: skip
    for host in ("one", "two"):
        wait_until(lambda host=host: "Registered to" in network.log(host), 60, host)
    network.scheduler = scheduler
    return network


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_cut", [False, True], ids=["all", "one is cut off"])
def test_several_hosts__count_what_threads_count(running, is_cut):
    log = running.folder / "log.txt"
    command = ("-m", "tests.job", running.scheduler, str(running.folder))
    job = running.start("client", *command)
    if is_cut:
        wait_until(lambda: log.exists() and "fit" in log.read_text(), 120, "a fit")
        running.cut("two")
    assert job.wait(timeout=240) == 0, running.log("client")
    if is_cut:
        wait_until(lambda: "Remove worker" in running.log("scheduler"), 60, "the loss")
    found = json.loads((running.folder / "cube.json").read_text())
    assert found == counts_of(make_plan().run().results)
