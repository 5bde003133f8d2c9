"""Semi-supervised discriminant analysis on a large pool, on two workers.

python -m tests.benchmarks.bench_mcpl [--rows 10000000] [--memory-limit 1.5GiB]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from dsel.mcpl import SemiSupervisedLDA
from tests.benchmarks.bench_pool_pass import draw_rows, make_pool
from tests.benchmarks.measuring import two_workers, watch

CENTRES = 0.7 * np.random.default_rng(3).standard_normal((5, 50)).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-limit", default="1.5GiB")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        two_workers(given.memory_limit) as client,
        client.as_current(),
    ):
        pool = make_pool(Path(folder) / "pool.zarr", given.rows, CENTRES)
        with watch(client) as found:
            model = SemiSupervisedLDA(start_rows=20_000)
            model.fit(*draw_rows(250, 0, CENTRES), pool=pool)
    print(
        f"{given.rows} x 50, 2 workers: {found.wall:.1f} s, "
        f"{model.n_passes_} passes, gap {model.duality_gap_:.2e}, "
        f"contrast >= {model.contrast_lower_:.4f}, {found.memory}"
    )


if __name__ == "__main__":
    main()
