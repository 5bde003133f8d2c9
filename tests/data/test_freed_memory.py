"""Freed memory is kept while tasks run, and given back a moment later."""

import json
import os
import platform
import subprocess
import sys

import pytest

from dsel.data.freed_memory import FreedMemory, thresholds_of

NEEDS_GLIBC = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="the C library is not glibc"
)

FAULTS = """
import json, resource, threading, time
from dsel.data import freed_memory
from dsel.data.freed_memory import freed_memory_kept

freed_memory.LINGER_SECONDS = 0.2

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(2**23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

found = {"before": faults()}
with freed_memory_kept():
    faults()
    with freed_memory_kept():
        found["inside"] = faults()
found["just after"] = faults()
time.sleep(1)
found["later"] = faults()
print(json.dumps(found))
"""


def run_with(**environment):
    """Return page faults of 20 arrays of 8 MiB, around and inside of tasks."""
    code = [sys.executable, "-c", FAULTS]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    ended = subprocess.run(
        code, env=kept | environment, capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)


@NEEDS_GLIBC
def test_freed_memory_kept__costs_no_new_pages_until_a_moment_after_the_last_task():
    found = run_with(MALLOC_TRIM_THRESHOLD_="65536")
    every_page = 20 * 2**23 // 4096
    assert found["inside"] < every_page / 20
    assert found["just after"] < every_page / 20
    assert found["before"] > every_page / 2
    assert found["later"] > every_page / 2


@NEEDS_GLIBC
def test_freed_memory_kept__leaves_glibc_alone_where_nobody_set_a_threshold():
    found = run_with()
    assert found["later"] <= found["before"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MALLOC_TRIM_THRESHOLD_": "65536"}, (65536, 2**17)),
        (
            {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_THRESHOLD_": "4096"},
            (0, 4096),
        ),
        ({"MALLOC_TRIM_THRESHOLD_": str(2**25)}, None),
        ({"MALLOC_TRIM_THRESHOLD_": "much"}, None),
        ({}, None),
    ],
)
def test_thresholds_of__reads_what_dask_sets(environment, expected):
    assert thresholds_of(environment) == expected


def test_kept__sets_options_once_for_tasks_that_overlap():
    calls = []
    memory = FreedMemory(lambda *option: calls.append(option), calls.append, (1, 2))
    with memory.kept(), memory.kept():
        pass
    memory._restoring.join()
    assert calls == [(-1, 2**25), (-3, 2**25), (-1, 1), (-3, 2), 0]
    with memory.kept():
        assert calls[5:] == [(-1, 2**25), (-3, 2**25)]
