"""Kill workers, clients and schedulers under the digits job, and count what survives.

    python -m tests.chaos --workers 20 --clients 5 --schedulers 5 --sleeps 3 --stalls 3

Every run must end with the undisturbed run's cube, bit for bit, nothing that was
written lost or counted again. Prints a line for each run and exits 1 if one is bad.
With ``--log FILE`` runs are remembered there, one JSON object a line, and those that
are there are not repeated. Takes about ten seconds a run on two cores; with
``--asleep 370`` sleeps and stalls outlast the silence that Dask allows a worker.

    python -m tests.chaos --faults 200 [--seed 1] [--minutes 30]

makes random faults of mixed kinds, several in each of many short runs with a pool in
memory: workers, clients and schedulers killed, workers stopped for a while.
"""

import argparse
import json
import logging
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tests.chaos.killing import KILLS, disturb, start_cluster, undisturbed
from tests.chaos.storms import storms

ATTEMPTS = 5  # at a run whose job was over before its moment came


def main():
    parser = argparse.ArgumentParser(description="Kill parts of a running search.")
    for kind, default in zip(KILLS, (20, 5, 5, 0, 0), strict=True):
        parser.add_argument(f"--{kind}s", type=int, default=default)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--asleep", type=float, help="seconds of sleeps and stalls")
    parser.add_argument("--prune", action="store_true")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--faults", type=int, help="mixed, in short runs")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if given.faults is not None:
        with tempfile.TemporaryDirectory() as place:
            made = storms(given.faults, given.seed, Path(place), _say, given.minutes)
        sys.exit(0 if made else 1)
    runs = [(kind, n) for kind in KILLS for n in range(getattr(given, f"{kind}s"))]
    ended = _remembered(given.log)
    missing = [(kind, n) for kind, n in runs if f"{kind}-{n}" not in ended]
    if missing:
        ended.update(_go_on(missing, given))
    good = sum(ended[f"{kind}-{n}"]["is_good"] for kind, n in runs)
    _say(f"{good} of {len(runs)} runs ended with the undisturbed cube")
    sys.exit(0 if good == len(runs) else 1)


def _go_on(missing, given):
    """Run what is missing; return a record for each by its name."""
    options = ["--prune"] if given.prune else []
    ended = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cluster = start_cluster(folder)
        try:
            undisturbed(cluster, folder / "warm-up", *options)
            seconds, cube = undisturbed(cluster, folder / "undisturbed", *options)
            _say(f"undisturbed: {seconds:.1f} s")
            for kind, number in missing:
                name = f"{kind}-{number}"
                rng = np.random.default_rng([given.seed, [*KILLS].index(kind), number])
                part, latest = rng.uniform(), seconds
                for _ in range(ATTEMPTS):
                    outcome = disturb(
                        kind, cluster, folder / name, options, part * latest, cube,
                        asleep=given.asleep,
                    )  # fmt: skip
                    _say(_line(name, outcome))
                    if outcome.in_time or not outcome.is_good:
                        break
                    latest = 0.9 * min(latest, outcome.seconds)
                ended[name] = asdict(outcome) | {"is_good": outcome.is_good}
                if given.log is not None:
                    with given.log.open("a") as log:
                        log.write(json.dumps({"run": name, **ended[name]}) + "\n")
        finally:
            cluster.close()
    return ended


def _remembered(log):
    if log is None or not log.exists():
        return {}
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return {record["run"]: record for record in records}


def _line(name, outcome):
    verdict = "good" if outcome.is_good else f"BAD {outcome.notes}"
    late = "" if outcome.in_time else " (too late)"
    return (
        f"{name:12s} at {outcome.moment:5.1f} s{late} while [{outcome.running}] ran; "
        f"over after {outcome.seconds:5.1f} s, {outcome.written} written, "
        f"{outcome.recounted} counted twice, same cube {outcome.same_cube}: {verdict}"
    )


def _say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
