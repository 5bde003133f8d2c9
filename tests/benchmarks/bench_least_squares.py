"""A certified least squares search beside one that has estimates only.

    python tests/benchmarks/bench_least_squares.py [--rows 2000] [--widths 25]
        [--regularizations 30] [--repeat 2] [--intercept]

Both sides search one grid on the same rows, in turn, on one thread: the uncertified
one with its 10 folds in closed form, the certified one without each pair of 5 folds,
with the fits of what was chosen. Printed are seconds of CPU and wall of each turn and
the ratio of the smallest ones, which shall be at most 4; then the largest memory of the
process, and how many matrices of rows x rows that is.
"""

import argparse
import resource
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from dsel.least_squares import LeastSquaresSearch
from tests.benchmarks.measuring import in_turn


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (
        ("rows", 2_000), ("widths", 25), ("regularizations", 30), ("repeat", 2)
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--intercept", action="store_true")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (given.rows, 5))
    noise = 0.3 * rng.standard_normal(given.rows)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    grid = (
        np.geomspace(0.3, 10, given.widths),
        np.geomspace(1e-5, 1e2, given.regularizations),
    )

    def side(certificate, widths=grid[0]):
        def run(turn):
            search = LeastSquaresSearch(
                widths, grid[1], penalty="rkhs", certificate=certificate,
                random_state=turn, n_jobs=1, fit_intercept=given.intercept,
            ).fit(X, y)  # fmt: skip
            print(search.choice_, flush=True)

        return run

    side("nested", grid[0][:1])(0)  # what is imported once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = in_turn(
        {"estimates": side(None), "certified": side("nested")}, given.repeat
    )
    for name, seconds in found.items():
        for cpu, wall in seconds:
            print(f"{name}: {cpu:.1f} s CPU, {wall:.1f} s wall")
    least = {name: seconds.min(axis=0) for name, seconds in found.items()}
    cpu, wall = least["certified"] / least["estimates"]
    print(f"certified over estimates: {cpu:.2f} CPU, {wall:.2f} wall (wanted: 4)")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    matrices = (most - before) * 1024 / (8 * given.rows**2)
    print(
        f"largest memory: {most / 1024:.0f} MiB; certified searches added "
        f"{matrices:.1f} matrices of {given.rows:,} x {given.rows:,}"
    )


if __name__ == "__main__":
    main()
