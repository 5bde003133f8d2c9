"""One run of the digits job with something killed, or put to sleep, in its middle."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client

from dsel.results.place import Place, read_journal
from tests.clusters import ROOT, RunningCluster, environment, wait_until
from tests.job import make_plan, make_short_plan

WORKERS = 2
SLEEP_SECONDS = 30.0  # longer than the patience of any writer or comm
COUNTED = re.compile(
    r"^(?:fit|span rows=(?P<rows>\S+)) candidates=\((?P<candidates>[\d, ]+)\)"
    r"(?: split=(?P<split>\S+))?"
)
STALL_SECONDS = 10.0  # a run is over in less


@dataclass
class Outcome:
    """What one disturbed run came to."""

    kind: str
    """What was killed: worker, client or scheduler; or a sleep of all, or a stall."""
    moment: float
    """Seconds after the job had connected."""
    running: str
    """Tasks that were running there, by the scheduler's record."""
    in_time: bool
    """Whether the job was still on its way at that moment."""
    seconds: float = 0.0
    """From the connection to the end, resumption included."""
    same_cube: bool = False
    """Whether the cube is the undisturbed one, bit for bit."""
    written: int = 0
    """Records that were in the journal when the job was started again."""
    recounted: int = 0
    """Of these, how many a later run counted again; or any run counted twice."""
    notes: list[str] = field(default_factory=list)
    """What was unexpected."""

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, changed or counted twice."""
        return self.same_cube and not self.recounted and not self.notes


class Job:
    """The digits job on a running cluster, in a folder of its own."""

    def __init__(self, cluster, folder, *options, asleep=None):
        self.folder = Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.out = self.folder / "out"
        self.cluster, self.options, self.asleep = cluster, options, asleep
        self.starts = 0
        make = make_short_plan if "--in-memory" in options else make_plan
        self.plan = make(prune=False)

    def start(self):
        """Start it, or start it again on what is stored."""
        self.starts += 1
        self.output = self.folder / f"output-{self.starts}.txt"
        self.log = self.folder / f"log-{self.starts}.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.job", self.cluster.address]
                + [str(self.folder), "--out", str(self.out), "--log", str(self.log)]
                + list(self.options),
                stdout=output,
                stderr=output,
                env=environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        wait_until(lambda: "connected" in self.output.read_text(), 1800, "the job")
        self.connected = time.monotonic()

    def wait(self):
        """Return the exit code; the cube is then in `cube`."""
        wait_until(lambda: self.process.poll() is not None, 1800, "the job's end")
        return self.process.returncode

    def kill(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()

    def is_over(self, code):
        return code == 0 and (self.folder / "cube.json").exists()

    @property
    def last_line(self):
        return (self.output.read_text().splitlines() or ["no output"])[-1]

    @property
    def cube(self):
        return json.loads((self.folder / "cube.json").read_text())

    def written(self):
        """What is on disk, as (rows of the pool or split, candidate)."""
        numbers = {key: number for number, key in self.plan.keys.items()}
        keys = [
            json.loads(line)[0].split("/")
            for _, *lines in read_journal(Place(self.out))
            for line in lines
        ]
        return {
            (place, numbers[key])
            for kind, place, key, *_ in (key + ["", ""] for key in keys)
            if kind in ("fit", "span") and key in numbers  # else a note on the pool
        }

    def counted(self):
        """How often the last start counted what, of the same form."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = filter(None, map(COUNTED.search, lines))
        return Counter(
            (event["rows"] or event["split"], int(number))
            for event in found
            for number in re.findall(r"\d+", event["candidates"])
        )


def counted_twice(written, counted, *, has_ended=True, handed_over=None):
    """What was counted though it was written; a model that a pass still needs is not.

    Models are not stored: those of candidates whose pass over the pool was not
    written, or not to its end, are fitted again. Which these were can be told only of
    a start that went on to its end. So are those of the candidate that is handed over,
    where the run was killed after its last pass.
    """
    passes = {number for place, number in written if place[0].isdigit()}
    passes -= {number for place, number in counted if place[0].isdigit()}
    passes = passes - {handed_over} if has_ended else set()
    again = {
        (place, number)
        for place, number in written & set(counted)
        if place[0].isdigit() or number in passes
    }
    twice = {(place, n) for (place, n), times in counted.items() if times > 1}
    return again | {(place, n) for place, n in twice if place[0].isdigit()}


def start_all(cluster):
    cluster.start_scheduler()
    for number in range(WORKERS):
        cluster.start_worker(f"worker-{number}")


def start_cluster(folder):
    cluster = RunningCluster(folder)
    start_all(cluster)
    return cluster


def undisturbed(cluster, folder, *options):
    """Run the job to its end; return its seconds and its cube."""
    with _monitor(cluster) as client:
        client.wait_for_workers(WORKERS, timeout=1200)
    job = Job(cluster, folder, *options)
    job.start()
    code = job.wait()
    if code != 0:
        raise RuntimeError(f"the undisturbed job failed: {job.output.read_text()}")
    return time.monotonic() - job.connected, job.cube


def disturb(kind, cluster, folder, options, moment, expected, asleep=None):
    """Run the job, kill something at `moment`, resume it; say what came of it.

    What is stopped instead is so for `asleep` seconds.
    """
    with _monitor(cluster) as client:
        client.wait_for_workers(WORKERS, timeout=1200)
        job = Job(cluster, folder, *options, asleep=asleep)
        job.start()
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(max(0.0, moment - (time.monotonic() - job.connected)))
        in_time = job.process.poll() is None
        running = {address: list(keys) for address, keys in client.processing().items()}
        hit = KILLS[kind](client, cluster, job, running)
        keys = [str(key) for address in hit for key in running.get(address, ())]
        outcome = Outcome(kind, moment, ",".join(keys) or "nothing", in_time)
    code = job.wait()
    if kind == "scheduler":
        outcome.notes += check_lost(job, code)
        restart(cluster)
    written = set()
    if kind in ("client", "scheduler") and not job.is_over(code):
        written = job.written()
        job.start()
        code = job.wait()
    outcome.written = len(written)
    outcome.recounted = len(counted_twice(written, job.counted()))
    if code != 0:
        outcome.notes.append(f"exit code {code}: {job.last_line}")
    else:
        outcome.same_cube = job.cube == expected
    outcome.seconds = time.monotonic() - job.connected
    return outcome


# What each kind does; it returns the workers that it hits.


def _kill_worker(client, cluster, job, running):
    pids = client.run(os.getpid)
    address = max(running, key=lambda a: len(running[a]), default=None)
    address = address if address in pids else next(iter(pids))
    os.kill(pids[address], signal.SIGKILL)
    return [address]


def _kill_client(client, cluster, job, running):
    job.kill()
    return running


def _kill_scheduler(client, cluster, job, running):
    cluster.kill("scheduler")
    return running


def _sleep(client, cluster, job, running):
    """Stop everything but this process for a while, as a laptop's lid does."""
    for number in (signal.SIGSTOP, signal.SIGCONT):
        cluster.send(number)
        with suppress(ProcessLookupError):
            os.killpg(job.process.pid, number)
        if number == signal.SIGSTOP:
            time.sleep(job.asleep or SLEEP_SECONDS)
    return running


def _stall(client, cluster, job, running):
    """Stop one worker for a while: slow, but not dead."""
    pids = client.run(os.getpid)
    address = next((a for a in running if running[a] and a in pids), next(iter(pids)))
    os.kill(pids[address], signal.SIGSTOP)
    time.sleep(job.asleep or STALL_SECONDS)
    os.kill(pids[address], signal.SIGCONT)
    return [address]


KILLS = {
    "worker": _kill_worker,
    "client": _kill_client,
    "scheduler": _kill_scheduler,
    "sleep": _sleep,
    "stall": _stall,
}


def check_lost(job, code):
    """Return what is wrong: without a scheduler the job ends with one line."""
    if code not in (0, 3):
        return [f"exit code {code} after the scheduler was killed"]
    if code == 3 and "Error: " not in job.last_line:
        return [f"no clear line: {job.last_line}"]
    return []


def restart(cluster):
    """Supervise: what was left of the cluster is ended, and all of it started anew."""
    for name in [name for name in cluster.processes if name != "scheduler"]:
        cluster.kill(name)
    start_all(cluster)


def _monitor(cluster):
    return Client(cluster.address, set_as_default=False, timeout=600)
