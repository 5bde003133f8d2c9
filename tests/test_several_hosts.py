"""Scheduler, workers and client on hosts of their own: network namespaces."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.clusters import ROOT, environment, wait_until
from tests.job import counts_of, make_plan

HOSTS = ("scheduler", "one", "two", "client")
# How long a silent peer is waited for; Dask refuses below 11 s.
PATIENCE = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}


def address(host):
    return f"10.77.0.{HOSTS.index(host) + 1}"


class Network:
    """A switch and hosts, each in a network namespace of its own."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.prefix = f"dsel-{os.getpid()}-"

    def ip(self, host, *words):
        """Run a command of iproute2 on a host."""
        command = ["ip", "-n", self.prefix + host, *words]
        subprocess.run(command, check=True, capture_output=True)

    def name(self, word, host):
        """Add or delete a host."""
        command = ["ip", "netns", word, self.prefix + host]
        subprocess.run(command, check=True, capture_output=True)

    def build(self):
        for host in ("switch", *HOSTS):
            self.name("add", host)
            self.ip(host, "link", "set", "lo", "up")
        self.ip("switch", "link", "add", "bridge", "type", "bridge")
        self.ip("switch", "link", "set", "bridge", "up")
        for host in HOSTS:
            port, peer = f"to-{host}", ["eth0", "netns", self.prefix + host]
            self.ip("switch", "link", "add", port, "type", "veth", "peer", *peer)
            self.ip("switch", "link", "set", port, "master", "bridge", "up")
            self.ip(host, "address", "add", f"{address(host)}/24", "dev", "eth0")
            self.ip(host, "link", "set", "eth0", "up")

    def start(self, host, *command):
        inside = ["ip", "netns", "exec", self.prefix + host, sys.executable, *command]
        with (self.folder / f"{host}.log").open("ab") as log:
            self.processes.append(subprocess.Popen(
                inside, stdout=log, stderr=log, env=environment(**PATIENCE), cwd=ROOT,
                start_new_session=True,
            ))  # fmt: skip
        return self.processes[-1]

    def dask(self, kind, host, *options):
        local = ["--host", address(host), "--dashboard-address", "127.0.0.1:0"]
        self.start(host, "-m", "dask", kind, *options, *local)

    def log(self, host):
        path = self.folder / f"{host}.log"
        return path.read_text() if path.exists() else ""

    def close(self):
        """Remove everything, whatever of it is there."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        for host in (*HOSTS, "switch"):
            with suppress(subprocess.CalledProcessError):
                self.name("delete", host)


@pytest.fixture
def network(tmp_path):
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` command (iproute2)")
    built = Network(tmp_path)
    try:
        built.build()
        yield built
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine makes no network namespaces: {error.stderr!r}")
    finally:
        built.close()


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_cut", [False, True], ids=["all", "one is cut off"])
def test_several_hosts__count_what_threads_count(network, is_cut):
    scheduler, log = f"tcp://{address('scheduler')}:8786", network.folder / "log.txt"
    network.dask("scheduler", "scheduler", "--port", "8786")
    for host in ("one", "two"):
        network.dask("worker", host, scheduler, "--name", host, "--nthreads", "1")
    for host in ("one", "two"):
        wait_until(lambda host=host: "Registered to" in network.log(host), 60, host)
    job = network.start("client", "-m", "tests.job", scheduler, str(network.folder))
    if is_cut:
        wait_until(lambda: log.exists() and "fit" in log.read_text(), 120, "a fit")
        network.ip("switch", "link", "set", "to-two", "down")  # pull the plug
    assert job.wait(timeout=240) == 0, network.log("client")
    if is_cut:
        wait_until(lambda: "Remove worker" in network.log("scheduler"), 60, "the loss")
    found = json.loads((network.folder / "cube.json").read_text())
    assert found == counts_of(make_plan().run().results)
