"""Seconds of `import dsel`, alone and with every public name after the dependencies.

Run `python -m tests.benchmarks.bench_import`. The aims are 0.1 s and 0.5 s: below them
nobody waits for `dsel --help`, and dsel adds little to the 2 s of its dependencies.
"""

import subprocess
import sys

ALONE = "import dsel"
EVERY_NAME = "import dsel; [getattr(dsel, name) for name in dsel.__all__]"
DEPENDENCIES = "import numpy, scipy.stats, sklearn.svm, xarray, zarr, dask.array"

TIMED = """
import time
{before}
start = time.process_time()
{timed}
print(time.process_time() - start)
"""


def fastest(timed, before="", runs=5):
    script = TIMED.format(before=before, timed=timed)
    return min(
        float(subprocess.check_output([sys.executable, "-c", script], text=True))
        for _ in range(runs)
    )


if __name__ == "__main__":
    print(f"import dsel:        {fastest(ALONE):.3f} s")
    print(f"every public name:  {fastest(EVERY_NAME, DEPENDENCIES):.3f} s")
