"""Kill workers, clients and schedulers under the digits job, and count what survives.

    python -m tests.chaos --workers 20 --clients 5 --schedulers 5

Every run must end with the undisturbed run's cube, bit for bit, nothing that was
written lost or counted again. Prints a line for each run and exits 1 if one is bad.
Takes about ten seconds a run on two cores.
"""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.chaos.killing import disturb, start_cluster, undisturbed


def main():
    parser = argparse.ArgumentParser(description="Kill parts of a running search.")
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--schedulers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prune", action="store_true")
    given = parser.parse_args()
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    options = ["--prune"] if given.prune else []
    kinds = (
        ["worker"] * given.workers
        + ["client"] * given.clients
        + ["scheduler"] * given.schedulers
    )
    rng = np.random.default_rng(given.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cluster = start_cluster(folder)
        try:
            undisturbed(cluster, folder / "warm-up", *options)
            seconds, cube = undisturbed(cluster, folder / "undisturbed", *options)
            _say(f"undisturbed: {seconds:.1f} s")
            for number, kind in enumerate(kinds):
                moment = rng.uniform(0.0, seconds)
                run = folder / f"run-{number}"
                outcome = disturb(kind, cluster, run, moment, cube, *options)
                bad += not outcome.is_good
                _say(_line(number, outcome))
        finally:
            cluster.close()
    _say(f"{len(kinds) - bad} of {len(kinds)} runs ended with the undisturbed cube")
    sys.exit(1 if bad else 0)


def _line(number, outcome):
    verdict = "good" if outcome.is_good else f"BAD {outcome.notes}"
    return (
        f"{number:3d} {outcome.kind:9s} killed at {outcome.moment:5.1f} s while "
        f"[{outcome.running}] ran; over after {outcome.seconds:5.1f} s, "
        f"{outcome.written} written, {outcome.recounted} counted twice, "
        f"same cube {outcome.same_cube}: {verdict}"
    )


def _say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
