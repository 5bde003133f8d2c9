"""One short run of a search with several random faults after another.

Every run must end with the undisturbed run's cube, bit for bit (where candidates are
pruned, with its winner), nothing that was written lost or counted again.
"""

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

import numpy as np
import psutil
from distributed import Client

from dsel.results.place import Place, read_journal
from tests.clusters import ROOT, RunningCluster, environment, wait_until
from tests.job import make_short_plan

SHARES = {"worker": 0.5, "client": 0.2, "scheduler": 0.1, "stall": 0.15, "sleep": 0.05}
"""What is killed; or a worker is stopped for a while, or all, as by a laptop's lid."""
FAULTS_A_RUN = 4
WORKERS = 2
PATIENCE = 400.0  # seconds in which a disturbed run ends, or it hangs
STALL_SECONDS = (0.2, 3.0)
COUNTED = re.compile(
    r"^(?:fit|span rows=(?P<rows>\S+)) candidates=\((?P<candidates>[\d, ]+)\)"
    r"(?: split=(?P<split>\S+))?"
)


class Job:
    """The digits job on a running cluster, in a folder of its own."""

    def __init__(self, cluster, folder, *options):
        self.folder = Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.out = self.folder / "out"
        self.cluster, self.options, self.starts = cluster, options, 0
        self.plan = make_short_plan(prune=False)

    def start(self):
        """Start it, or start it again on what is stored."""
        self.starts += 1
        self.output = self.folder / f"output-{self.starts}.txt"
        self.log = self.folder / f"log-{self.starts}.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.job", self.cluster.address]
                + [str(self.folder), "--out", str(self.out), "--log", str(self.log)]
                + ["--in-memory", *self.options],
                stdout=output,
                stderr=output,
                env=environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        wait_until(lambda: "connected" in self.output.read_text(), 1800, "the job")

    def send(self, number):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    @property
    def last_line(self):
        return (self.output.read_text().splitlines() or ["no output"])[-1]

    @property
    def cube(self):
        return json.loads((self.folder / "cube.json").read_text())

    def written(self):
        """What is on disk, as (rows of the pool or split, candidate)."""
        numbers = {
            key: candidate.number
            for group in self.plan.work.groups
            for candidate, key in zip(group.candidates, group.keys, strict=True)
        }
        keys = [
            key.split("/")
            for _, records in read_journal(Place(self.out))
            for key in records
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


def undisturbed(cluster, folder):
    """Run the job to its end; return its seconds and its cube."""
    with Client(cluster.address, set_as_default=False, timeout=600) as client:
        client.wait_for_workers(WORKERS, timeout=1200)
    job = Job(cluster, folder)
    job.start()
    began = time.monotonic()
    if job.process.wait() != 0:
        raise RuntimeError(f"the undisturbed job failed: {job.output.read_text()}")
    return time.monotonic() - began, job.cube


@dataclass
class Storm:
    """What one run with several faults came to."""

    faults: list[str] = field(default_factory=list)
    """Kinds, in order."""
    recounted: int = 0
    """What was written and counted again, or counted twice by one start."""
    notes: list[str] = field(default_factory=list)
    """What was unexpected."""
    seconds: float = 0.0


def storms(n_faults, seed, folder, say, minutes=float("inf")):
    """Run until so many faults were made; return whether all was well."""
    cluster = RunningCluster(folder)
    ended, made, until = [], Counter(), time.monotonic() + 60 * minutes
    try:
        start_all(cluster)
        undisturbed(cluster, folder / "warm-up")
        seconds, cube = undisturbed(cluster, folder / "undisturbed")
        say(f"undisturbed: {seconds:.1f} s")
        while made.total() < n_faults and time.monotonic() < until:
            number = len(ended)
            rng = np.random.default_rng([seed, number])
            place = folder / f"storm-{number}"
            ended.append(_storm(cluster, place, rng, seconds, cube))
            made.update(ended[-1].faults)
            say(_line(number, ended[-1]))
    finally:
        cluster.close()
    good = sum(not storm.notes for storm in ended)
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(made.items()))
    say(f"{made.total()} faults ({kinds}) in {len(ended)} runs, {good} of them good")
    return good == len(ended)


def _storm(cluster, folder, rng, seconds, expected):
    options = ["--prune"] * int(rng.integers(2))
    job, storm, began = Job(cluster, folder, *options), Storm(), time.monotonic()
    job.start()
    written, code = set(), None
    while len(storm.faults) < FAULTS_A_RUN and code is None:
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(rng.uniform(0.0, 0.7 * seconds))
        if job.process.poll() is not None:
            break
        kind = str(rng.choice([*SHARES], p=[*SHARES.values()]))
        storm.faults.append(kind)
        code = _disturb(kind, cluster, job, storm, rng)
        if kind in ("client", "scheduler") and code is None:
            found = counted_twice(written, job.counted(), has_ended=False)
            storm.recounted += len(found)
            written = job.written()
            job.start()
    try:
        code = job.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        storm.notes.append(f"hangs: {job.last_line}")
        job.kill()
    # Estimates of all candidates stand one criterion after another.
    best = _winner(job.cube)[0] % job.plan.n_candidates if code == 0 else None
    found = counted_twice(written, job.counted(), handed_over=best)
    storm.recounted += len(found)
    if code != 0:
        storm.notes.append(f"exit code {code}: {job.last_line}")
    elif "--prune" in options and _winner(job.cube) != _winner(expected):
        storm.notes.append("another winner")
    elif "--prune" not in options and job.cube != expected:
        storm.notes.append("another cube")
    if storm.recounted:
        storm.notes.append(f"{storm.recounted} counted twice")
    storm.seconds = time.monotonic() - began
    return storm


def _winner(cube):
    best = int(np.nanargmin([float(text) for text in cube["estimate"]]))
    return best, cube["estimate"][best]


def _disturb(kind, cluster, job, storm, rng):
    """Make a fault; return the job's exit code where it is over by now."""
    if kind == "client":
        job.kill()
        return None
    if kind == "scheduler":
        cluster.kill("scheduler")
        try:
            code = job.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            storm.notes.append("hangs without a scheduler")
            job.kill()
            code = 3
        if code not in (0, 3):
            storm.notes.append(f"exit code {code} after the scheduler was killed")
        elif code == 3 and "Error: " not in job.last_line:
            storm.notes.append(f"no clear line: {job.last_line}")
        # What was left of the cluster is ended, and all of it started anew.
        cluster.close()
        start_all(cluster)
        return code if code == 0 and (job.folder / "cube.json").exists() else None
    if kind == "sleep":
        for number in (signal.SIGSTOP, signal.SIGCONT):
            cluster.send(number)
            job.send(number)
            if number == signal.SIGSTOP:
                time.sleep(rng.uniform(*STALL_SECONDS))
        return None
    name = str(rng.choice([name for name in cluster.processes if name != "scheduler"]))
    for child in psutil.Process(cluster.processes[name].pid).children():
        # A nanny has one worker, or none while it begins anew.
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(child.cmdline()):
                child.send_signal(
                    signal.SIGKILL if kind == "worker" else signal.SIGSTOP
                )
                if kind == "stall":
                    time.sleep(rng.uniform(*STALL_SECONDS))
                    child.send_signal(signal.SIGCONT)
    return None


def _line(number, storm):
    verdict = f"BAD {storm.notes}" if storm.notes else "good"
    faults = " ".join(storm.faults) or "none"
    return f"storm-{number:<4d} {storm.seconds:6.1f} s  {faults}: {verdict}"
