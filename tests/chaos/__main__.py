"""Random faults under a search of digits, and what survives them.

    python -m tests.chaos --faults 200 [--seed 1] [--minutes 30]

Workers, clients and schedulers are killed, workers or all stopped for a while, several
times in each of many short runs with a pool in memory. Prints a line for each run and
exits 1 if one is bad.
"""

import argparse
import logging
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.chaos.storms import storms

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill parts of a running search.")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    say = partial(print, flush=True)
    with tempfile.TemporaryDirectory() as place:
        good = storms(given.faults, given.seed, Path(place), say, given.minutes)
    sys.exit(not good)
