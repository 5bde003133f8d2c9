"""MCPL at scale. Run by hand:

    python -m tests.benchmarks.bench_mcpl --rows 10000000

Numbers are printed; nothing is asserted, since the machine may be shared.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import zarr

from dsel.mcpl import SemiSupervisedLDA
from tests.benchmarks.measuring import Watch, two_workers

N_FEATURES, N_CLASSES, N_LABELED = 50, 5, 250
CHUNK_ROWS = 100_000


def draw_rows(n_rows, seed, centres):
    rng = np.random.default_rng([7, seed])
    labels = rng.integers(0, len(centres), n_rows)
    noise = rng.standard_normal((n_rows, centres.shape[1]), dtype=np.float32)
    return centres[labels] + noise, labels


def make_centres():
    rng = np.random.default_rng(3)
    return (0.7 * rng.standard_normal((N_CLASSES, N_FEATURES))).astype(np.float32)


def write_rows(path, n_rows, centres):
    """Write the pool chunk by chunk, without a codec."""
    array = zarr.create_array(
        path,
        shape=(n_rows, N_FEATURES),
        chunks=(min(CHUNK_ROWS, n_rows), N_FEATURES),
        dtype="float32",
        compressors=None,
    )
    for number, start in enumerate(range(0, n_rows, CHUNK_ROWS)):
        stop = min(start + CHUNK_ROWS, n_rows)
        array[start:stop] = draw_rows(stop - start, number + 1, centres)[0]


def scale(n_rows, memory_limit, start_rows):
    centres = make_centres()
    X, y = draw_rows(N_LABELED, 0, centres)
    with (
        tempfile.TemporaryDirectory() as folder,
        two_workers(memory_limit) as client,
        client.as_current(),
    ):
        path = Path(folder) / "pool.zarr"
        write_rows(path, n_rows, centres)
        with Watch(client) as watch:
            model = SemiSupervisedLDA(start_rows=start_rows)
            model.fit(X, y, pool=str(path))
    print(
        f"{n_rows} x {N_FEATURES}, 2 workers: {watch.wall:.1f} s, "
        f"{model.n_passes_} passes, gap {model.duality_gap_:.2e}, "
        f"contrast >= {model.contrast_lower_:.4f}, {watch.mebibytes}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-limit", default="1.5GiB")
    parser.add_argument("--start-rows", type=int, default=20_000)
    given = parser.parse_args()
    scale(given.rows, given.memory_limit, given.start_rows)


if __name__ == "__main__":
    main()
