"""Random faults under a search of digits, and what survives them.

    python -m tests.chaos [--faults 200] [--seed 0] [--minutes 30]

Workers, clients and schedulers are killed, workers or all stopped for a while, files of
`out` torn or deleted, its disk is filled, or a second driver begins in the same place:
several times in each of many short runs with a pool in memory. In others the pool is in
files, which are written again while the search runs: then it must end with the error
that says so, and leave nothing that is final. Every other run must end with
the undisturbed run's cube, bit for bit (where candidates are pruned exactly, with its
winner), nothing that was written lost or counted again; or with one clear line where
files were damaged. Prints a line for each run and exits 1 if one is bad. Only root can
fill a disk, which is a small one that is mounted.
"""

import argparse
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import psutil
from distributed import Client

from dsel.results.place import CUBE, OUTCOME, Place, read_journal
from tests.clusters import ROOT, RunningCluster, environment, wait_until
from tests.disks import small_disk
from tests.job import PLANS, STORED

SHARES = {
    "worker": 0.3, "client": 0.15, "scheduler": 0.1, "stall": 0.1, "sleep": 0.05,
    "torn": 0.1, "deleted": 0.1, "full": 0.05, "twin": 0.05,
}  # fmt: skip
"""What is killed; or a worker is stopped for a while, or all, as by a laptop's lid; a
file is cut or deleted between two starts; the disk is full; a second driver begins."""
KINDS = ("short", "pruned", "nested")
CAN_MOUNT = os.geteuid() == 0
if not CAN_MOUNT:
    SHARES = {**SHARES, "full": 0.0, "worker": SHARES["worker"] + SHARES["full"]}
ENDING = ("client", "scheduler", "torn", "deleted", "full")
FAULTS_A_RUN = 4
REWRITTEN = 0.25
"""Part of the runs in which the files of the pool are written again: one fault each."""
WORKERS = 2
PATIENCE = 400.0  # seconds in which a disturbed run ends, or it hangs
STALL_SECONDS = (0.2, 3.0)
COUNTED = re.compile(
    r"^(?:fit candidates|slice rows=(?P<rows>\S+) model_sets)="
    r"\((?P<candidates>[\d, ]+)\)"
    r"(?: split=(?P<split>\S+))?"
)


class Job:
    """The digits job on a running cluster, in a folder of its own."""

    def __init__(self, cluster, folder, kind="short", out=None):
        self.folder = folder
        self.folder.mkdir(parents=True)
        self.out = out or folder / "out"
        self.cluster, self.kind, self.starts = cluster, kind, 0
        self.plan = PLANS[kind]() if kind in PLANS else None

    def start(self):
        """Start it, or start it again on what is stored."""
        self.starts += 1
        self.output = self.folder / f"output-{self.starts}.txt"
        self.log = self.folder / f"log-{self.starts}.txt"
        words = [self.cluster.address, self.folder, self.kind, self.out, self.log]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.job", *map(str, words)],
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

    def ended(self, notes):
        """Wait for its end; return the exit code, -9 where it had to be killed."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(PATIENCE)
        notes.append(f"hangs: {self.last_line}")
        self.send(signal.SIGKILL)
        return self.process.wait()

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
            for group in self.plan.search.context.candidate_groups
            for candidate, key in zip(
                group.candidates, group.candidate_keys, strict=True
            )
        }
        keys = [
            key.split("/")
            for _, records in read_journal(Place(self.out))
            for key in records
        ]
        return {
            (place, numbers[key])
            for kind, place, key, *_ in (key + ["", ""] for key in keys)
            if kind in ("fit", "slice") and key in numbers  # else a note on the pool
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


def counted_twice(written, counted, *, kind, has_ended=True, handed_over=None):
    """What was counted though it was written; a model that a pass still needs is not.

    Models are not stored: but in nested searches, those of candidates whose pass over
    the pool was not written, or not to its end, are fitted again. Which these were can
    be told only of a start that went on to its end. So are those of the candidate that
    is handed over, where the run was killed after its last pass.
    """

    def read(events):
        return {number for place, number in events if place[0].isdigit()}

    done = read(written) - read(counted) - {handed_over} if has_ended else set()
    again = {
        (place, number)
        for place, number in written & set(counted)
        if kind == "nested" or place[0].isdigit() or number in done
    }
    return again | {e for e, n in counted.items() if n > 1 and e[0][0].isdigit()}


def start_all(cluster):
    cluster.start_scheduler()
    for number in range(WORKERS):
        cluster.start_worker(f"worker-{number}")


def undisturbed(cluster, folder, kind="short"):
    """Run the job to its end; return its seconds and its cube."""
    with Client(cluster.address, set_as_default=False, timeout=600) as client:
        client.wait_for_workers(WORKERS, timeout=1200)
    job = Job(cluster, folder, kind)
    job.start()
    began = time.monotonic()
    if job.process.wait() != 0:
        raise RuntimeError(f"the undisturbed job failed: {job.output.read_text()}")
    return time.monotonic() - began, job.cube


def storm(cluster, folder, rng, runs):
    """Run the job with several faults; return them, and what was unexpected."""
    kind_of_job, twin = str(rng.choice([*KINDS])), None
    seconds, expected = runs[kind_of_job]
    job = Job(cluster, folder / "job", kind_of_job, folder / "disk" / "out")
    faults, notes, written, twice, code = [], [], set(), set(), None
    job.start()
    while len(faults) < FAULTS_A_RUN and code is None:
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(rng.uniform(0.0, 0.5 * seconds))
        if job.process.poll() is not None:
            break
        kind = str(rng.choice([*SHARES], p=[*SHARES.values()]))
        if kind == "twin" and twin is None:
            twin = Job(cluster, folder / "twin", kind_of_job, job.out)
            twin.start()
        elif kind in ENDING:
            code = end(kind, cluster, job, notes, rng)
            if code is None:
                twice |= counted_twice(
                    written, job.counted(), kind=kind_of_job, has_ended=False
                )
                written = job.written()
                job.start()
        elif kind != "twin":
            disturb(kind, cluster, job, rng)
        faults.append(kind)
    code = job.ended(notes)
    best = None
    if code == 0 and kind_of_job != "nested":
        # Estimates of all candidates stand one criterion after another.
        best = winner(job.cube)[0] % job.plan.search.n_candidates
    twice |= counted_twice(written, job.counted(), kind=kind_of_job, handed_over=best)
    if twice and twin is None:  # two drivers do the same work
        notes.append(f"{len(twice)} counted twice")
    for each in filter(None, (job, twin)):
        judge(each, each.ended(notes), faults, expected, notes)
    return faults, notes


def rewrite(cluster, folder, rng, runs):
    """Write the pool again while a search reads it; return faults and notes, as above.

    The search may have compared the files for the last time by then: what it ends with
    is then about the pool that was there.
    """
    kind, notes = str(rng.choice([*STORED])), []
    seconds, expected = runs[kind]
    job = Job(cluster, folder / "job", kind, folder / "disk" / "out")
    job.start()

    def is_under_way():  # the files were stamped before the first fit
        has_fits = job.log.exists() and "fit" in job.log.read_text()
        return has_fits or job.process.poll() is not None

    wait_until(is_under_way, PATIENCE, "the first fit")
    with suppress(subprocess.TimeoutExpired):
        job.process.wait(rng.uniform(0.0, 0.5 * seconds))
    files = [path for path in (job.folder / kind, *(job.folder / kind).rglob("*"))
             if path.is_file() and path.name != "zarr.json"]  # fmt: skip
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    content[-8:] = bytes(8)
    file.write_bytes(content)
    code = job.ended(notes)
    if code == 0:
        if job.cube != expected:
            notes.append("another cube, though the pool was written again")
        return ["late"], notes
    if code != 3 or "PoolChangedError" not in job.last_line:
        notes.append(f"exit code {code}, not the pool's error: {job.last_line}")
    final = [name for name in (CUBE, OUTCOME) if (job.out / name).exists()]
    if final:
        notes.append(f"the pool was written again, and {final} are final")
    job.start()  # the records are of another pool, and stay what they are
    code = job.ended(notes)
    if code != 3 or "Error: " not in job.last_line:
        notes.append(f"exit code {code} with another pool: {job.last_line}")
    return ["rewritten"], notes


def judge(job, code, faults, expected, notes):
    """Note where a run ended without the undisturbed run's result, or a clear line."""
    may_refuse = {"torn", "deleted"} & {*faults}
    if job.folder.name == "twin":  # nobody starts it again
        may_refuse |= {"scheduler", "full"} & {*faults}
    if code == 3 and may_refuse and "Error: " in job.last_line:
        return
    if code != 0:
        notes.append(f"exit code {code}: {job.last_line}")
    elif job.kind == "pruned":
        if winner(job.cube) != winner(expected):
            notes.append("another winner")
    elif job.cube != expected:
        notes.append("another cube")


def winner(cube):
    best = int(np.nanargmin([float(text) for text in cube["estimate"]]))
    return best, cube["estimate"][best]


def end(kind, cluster, job, notes, rng):
    """Make a fault that ends the job; return 0 where it was over by then."""
    if kind in ("client", "torn", "deleted"):
        job.send(signal.SIGKILL)
        job.process.wait()
        files = sorted(path for path in job.out.rglob("*") if path.is_file())
        if kind != "client" and files:
            damaged = files[rng.integers(len(files))]
            if kind == "torn":
                os.truncate(damaged, rng.integers(damaged.stat().st_size + 1))
            else:
                damaged.unlink()
        return None
    if kind == "full":
        filler = job.out.parent / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**12))
    else:
        cluster.kill("scheduler")
    code = job.ended(notes)
    if code not in (0, 3):
        notes.append(f"exit code {code} after {kind}")
    elif code == 3 and "Error: " not in job.last_line:
        notes.append(f"no clear line: {job.last_line}")
    if kind == "full":
        filler.unlink()
    else:  # what was left of the cluster is ended, and all of it started anew
        cluster.close()
        start_all(cluster)
    return 0 if code == 0 else None


def disturb(kind, cluster, job, rng):
    """Kill a worker, or stop it or everything for a while."""
    if kind == "sleep":
        sends = [cluster.send, job.send]
    else:
        name = str(rng.choice([name for name in cluster.processes if "worker" in name]))
        # A nanny has one worker, or none while it begins anew.
        sends = []
        for child in psutil.Process(cluster.processes[name].pid).children():
            with suppress(psutil.Error):
                if "spawn_main" in " ".join(child.cmdline()):
                    sends.append(child.send_signal)
    first = signal.SIGKILL if kind == "worker" else signal.SIGSTOP
    for number in (first, signal.SIGCONT):
        for send in sends:
            with suppress(psutil.Error):
                send(number)
        if kind == "worker":
            return
        if number == signal.SIGSTOP:
            time.sleep(rng.uniform(*STALL_SECONDS))


def storms(given, folder):
    """Run until so many faults were made; return whether all was well."""
    cluster, made, n_good = RunningCluster(folder), Counter(), 0
    until, number = time.monotonic() + 60 * given.minutes, 0
    try:
        start_all(cluster)
        undisturbed(cluster, folder / "warm-up")
        kinds = (*KINDS, *STORED)
        runs = {
            kind: undisturbed(cluster, folder / f"of-{kind}", kind) for kind in kinds
        }
        for kind, (seconds, _) in runs.items():
            print(f"undisturbed, {kind}: {seconds:.1f} s", flush=True)
        while made.total() < given.faults and time.monotonic() < until:
            rng, place = np.random.default_rng([given.seed, number]), folder / "storm"
            began = time.monotonic()
            run = rewrite if rng.random() < REWRITTEN else storm
            with small_disk(place / "disk", 4) if CAN_MOUNT else nullcontext():
                faults, notes = run(cluster, place, rng, runs)
            shutil.rmtree(place)
            made.update(each for each in faults if each != "late")
            n_good += not notes
            print(f"{number:4d} {time.monotonic() - began:6.1f} s  {' '.join(faults)}: "
                  f"{f'BAD {notes}' if notes else 'good'}", flush=True)  # fmt: skip
            number += 1
    finally:
        cluster.close()
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(made.items()))
    print(f"{made.total()} faults ({kinds}) in {number} runs, {n_good} of them good")
    return n_good == number


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill parts of a running search.")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as place:
        sys.exit(not storms(parser.parse_args(), Path(place)))
