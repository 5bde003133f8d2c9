"""Schedulers and workers as processes of their own, for tests that need real ones."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]


def wait_until(condition, seconds=100.0, what="the condition"):
    """Poll `condition` until it is true and return its value, or fail.

    A round counts as a second at most: whoever was stopped meanwhile waits on.
    """
    waited = 0.0
    while waited < seconds:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        time.sleep(0.05)
        waited += min(1.0, time.monotonic() - began)
    raise AssertionError(f"{what} did not come true within {seconds:g} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificates(folder, *hosts):
    """Run the deployment's own script; return the `--tls` options of dask."""
    script = ROOT / "deploy" / "hosts" / "certificates.py"
    subprocess.run([sys.executable, script, folder, *hosts], check=True)
    return tls_options(folder)


def tls_options(folder):
    files = {
        "--tls-ca-file": "ca.pem",
        "--tls-cert": "cert.pem",
        "--tls-key": "key.pem",
    }
    return [part for name in files for part in (name, f"{folder}/{files[name]}")]


def environment(**changed):
    """Environment of the processes: one thread each, and dsel importable."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **changed}


def beginning_with(code, folder):
    """Return environment variables of a process that runs some code as it begins."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def two_workers(memory_limit="auto"):
    """Return a client of two processes as Dask starts them; not the current client."""
    from distributed import Client

    return Client(
        n_workers=2,
        threads_per_worker=1,
        memory_limit=memory_limit,
        dashboard_address="127.0.0.1:0",
        set_as_default=False,
    )


class RunningCluster:
    """`dask scheduler` and `dask worker` processes, each in its own process group."""

    def __init__(self, folder, tls=(), protocol="tcp"):
        self.folder, self.tls, self.protocol = Path(folder), list(tls), protocol
        self.file = self.folder / "scheduler.json"
        self.processes = {}

    def _start(self, name, kind, *options, **changed):
        command = [kind, "--scheduler-file", self.file, *options, *self.tls]
        command += ["--dashboard-address", "127.0.0.1:0"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                stdout=log,
                stderr=log,
                env=environment(**changed),
                cwd=self.folder,
                start_new_session=True,
            )

    def start_scheduler(self, port=0):
        self.file.unlink(missing_ok=True)
        host = f"{self.protocol}://127.0.0.1"
        self._start("scheduler", "scheduler", "--host", host, "--port", str(port))
        wait_until(lambda: self.address, 300, "the scheduler file")

    def start_worker(self, name, **changed):
        """Start a worker, with environment variables of its own."""
        options = ["--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", "2GiB"]
        self._start(name, "worker", *options, "--name", name, **changed)

    @property
    def address(self):
        try:
            return json.loads(self.file.read_text())["address"]
        except (OSError, ValueError):
            return None

    def kill(self, name):
        """Kill a process and its children with SIGKILL."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()

    def send(self, signal):
        """Send a signal to every process and its children."""
        for process in self.processes.values():
            os.killpg(process.pid, signal)

    def close(self):
        for name in list(self.processes):
            self.kill(name)


@contextmanager
def running_cluster(folder, workers=2, tls=(), protocol="tcp"):
    """Start a scheduler and workers from the command line; stop them in the end."""
    cluster = RunningCluster(folder, tls, protocol)
    try:
        cluster.start_scheduler()
        for number in range(workers):
            cluster.start_worker(f"worker-{number}")
        yield cluster
    finally:
        cluster.close()
