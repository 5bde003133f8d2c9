"""Short runs with a pool in memory, each with several random faults after another."""

import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import TimeoutExpired

import numpy as np
import psutil

from tests.chaos.killing import (
    Job,
    check_lost,
    counted_twice,
    restart,
    start_cluster,
    undisturbed,
)

SHARES = {"worker": 0.5, "client": 0.2, "scheduler": 0.1, "stall": 0.2}
FAULTS_A_RUN = 4
PATIENCE = 400.0  # seconds in which a disturbed run ends, or it hangs
STALL_SECONDS = (0.2, 3.0)


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
    """Run until so many faults were made; return how many, and whether all was well."""
    cluster = start_cluster(folder)
    ended, made, until = [], Counter(), time.monotonic() + 60 * minutes
    try:
        undisturbed(cluster, folder / "warm-up", "--in-memory")
        seconds, cube = undisturbed(cluster, folder / "undisturbed", "--in-memory")
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
    options = ["--in-memory"] + ["--prune"] * int(rng.integers(2))
    job, storm, began = Job(cluster, folder, *options), Storm(), time.monotonic()
    job.start()
    written, code = set(), None
    while len(storm.faults) < FAULTS_A_RUN and code is None:
        with suppress(TimeoutExpired):
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
    except TimeoutExpired:
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
        except TimeoutExpired:
            storm.notes.append("hangs without a scheduler")
            job.kill()
            code = 3
        storm.notes += check_lost(job, code)
        restart(cluster)
        return code if job.is_over(code) else None
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
