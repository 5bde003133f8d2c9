"""Time `write_pool` of a large CSV file, over pyarrow's own way from CSV to Parquet.

    python -m tests.benchmarks.bench_pool_build [ROWS] [REPETITIONS] [FOLDER]

The table has 20 columns: short and long floats, whole numbers, and five of text. Each
side is a process of its own, in turn, and streams the file. Prints medians of wall and
processor seconds and of the largest memory, and the ratios.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

ROWS = 250_000  # drawn at once
PYARROW = """
import sys
import pyarrow.csv, pyarrow.parquet
rows = pyarrow.csv.open_csv(sys.argv[1])
with pyarrow.parquet.ParquetWriter(sys.argv[2], rows.schema) as writer:
    for batch in rows:
        writer.write_batch(batch)
"""
DSEL = """
import sys
import dsel
dsel.write_pool(sys.argv[1], sys.argv[2])
"""


def draw_rows(start, n_rows):
    rng = np.random.default_rng([11, start])
    columns = {}
    for n in range(5):
        columns[f"short{n}"] = rng.normal(size=n_rows).round(4)
        columns[f"float{n}"] = rng.normal(size=n_rows)
        columns[f"whole{n}"] = rng.integers(0, 10 ** (n + 1), n_rows)
    columns["town"] = rng.choice([f"Town {n}" for n in range(40)], n_rows)
    columns["yes"] = rng.choice(["yes", "no"], n_rows)
    columns["word"] = rng.choice([f"word{n}" for n in range(5000)], n_rows)
    columns["item"] = [f"item-{n}" for n in range(start, start + n_rows)]
    left, right = rng.integers(10, 99, (2, n_rows)).astype(str)
    columns["code"] = np.char.add(np.char.add(left, "-"), right)
    return pd.DataFrame(columns)


def run(code, source, target):
    """Return wall seconds, processor seconds, and MiB of the largest process."""
    environment = {**os.environ}
    environment.pop("OMP_NUM_THREADS", None)
    began = time.perf_counter()
    words = [sys.executable, "-c", code, str(source), str(target)]
    with subprocess.Popen(words, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{words[:2]} ended with {process.returncode}")
    target.unlink()
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10


def measure(folder, n_rows, n_repetitions):
    source, target = folder / "pool.csv", folder / "pool.parquet"
    for start in range(0, n_rows, ROWS):
        rows = draw_rows(start, min(ROWS, n_rows - start))
        rows.to_csv(source, mode="a", header=not start, index=False)
    print(f"{n_rows:,} rows, {source.stat().st_size / 2**20:,.0f} MiB", flush=True)
    sides = {"pyarrow": PYARROW, "dsel": DSEL}
    runs = {name: [] for name in sides}
    for _ in range(n_repetitions):
        for name, code in sides.items():
            runs[name].append(run(code, source, target))
    medians = {}
    for name, rows in runs.items():
        medians[name] = [statistics.median(each) for each in zip(*rows, strict=True)]
        wall, cpu, memory = medians[name]
        print(f"{name:8} wall {wall:6.1f} s   CPU {cpu:6.1f} s   {memory:6,.0f} MiB")
    wall, cpu, _ = (ours / own for own, ours in zip(*medians.values(), strict=True))
    print(f"dsel over pyarrow: wall {wall:.2f}, CPU {cpu:.2f}")


if __name__ == "__main__":
    given = sys.argv[1:]
    counts = [int(word) for word in given[:2]] + [10_000_000, 2][len(given[:2]) :]
    with TemporaryDirectory(dir=given[2] if len(given) > 2 else None) as name:
        measure(Path(name), *counts)
