"""Freed memory is kept while tasks run, and given back a moment later."""

import json
import os
import platform
import subprocess
import sys

import pytest

from dsel.runtime.freed_memory import FreedMemory, thresholds_outside

NEEDS_GLIBC = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="the C library is not glibc"
)

EVERY_PAGE = 20 * 2**23 // 4096

FAULTS = """
import json, resource
from dsel.runtime import freed_memory
from dsel.runtime.freed_memory import freed_memory_kept

freed_memory.LINGER_SECONDS = 1e6

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
freed_memory.LINGER_SECONDS = 0
with freed_memory_kept():
    pass
if memory := freed_memory._of_this_process():
    memory._restoring.join()
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
    assert found["inside"] < EVERY_PAGE / 20
    assert found["just after"] < EVERY_PAGE / 20
    assert found["before"] > EVERY_PAGE / 2
    assert found["later"] > EVERY_PAGE / 2


@NEEDS_GLIBC
def test_freed_memory_kept__goes_on_where_nobody_asked_to_give_memory_back():
    found = run_with()
    assert found["inside"] < EVERY_PAGE / 20
    assert found["later"] < EVERY_PAGE / 5  # what was kept went back, once


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MALLOC_TRIM_THRESHOLD_": "65536"}, (65536, 2**17)),
        (
            {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_THRESHOLD_": "4096"},
            (0, 4096),
        ),
        ({"MALLOC_TRIM_THRESHOLD_": str(2**25)}, None),
        ({"MALLOC_TRIM_THRESHOLD_": "much"}, (2**25, 2**25)),
        ({}, (2**25, 2**25)),
    ],
)
def test_thresholds_outside__are_those_that_dask_sets(environment, expected):
    assert thresholds_outside(environment) == expected


def test_kept__sets_options_once_for_tasks_that_overlap():
    calls = []
    memory = FreedMemory(lambda *option: calls.append(option), calls.append, (1, 2))
    with memory.kept(), memory.kept():
        pass
    memory._restoring.join()
    assert calls == [(-1, 2**25), (-3, 2**25), (-1, 1), (-3, 2), 0]
    with memory.kept():
        assert calls[5:] == [(-1, 2**25), (-3, 2**25)]
