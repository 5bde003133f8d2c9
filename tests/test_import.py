"""What `import dsel` costs and what it leaves unloaded."""

import json
import subprocess
import sys

import pytest

import dsel

HEAVY = ["distributed", "matplotlib", "numba"]
DEPENDENCIES = "numpy, scipy.stats, sklearn.svm, xarray, zarr, dask.array"

ALONE = """
import json, sys, time
start = time.process_time()
import dsel
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "loaded": sorted(sys.modules)}))
"""

EVERY_NAME = f"""
import json, sys, time
import {DEPENDENCIES}
start = time.process_time()
import dsel
for name in dsel.__all__:
    getattr(dsel, name)
seconds = time.process_time() - start
print(json.dumps({{"seconds": seconds, "loaded": sorted(sys.modules)}}))
"""


def _run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _fastest(script, runs=3):
    return min(_run(script)["seconds"] for _ in range(runs))


def test_import__takes_below_a_tenth_of_a_second():
    assert _fastest(ALONE) < 0.1


def test_import__loads_no_dependency():
    loaded = set(_run(ALONE)["loaded"])
    assert not loaded & {"numpy", "scipy", "sklearn", "xarray", "zarr", "dask"}


def test_public_names__add_below_half_a_second_to_the_dependencies():
    assert _fastest(EVERY_NAME) < 0.5


@pytest.mark.parametrize("package", HEAVY)
def test_public_names__leave_the_heavy_packages_unloaded(package):
    assert package not in _run(EVERY_NAME)["loaded"]


def test_public_names__are_sorted_few_and_listed_by_dir():
    assert list(dsel.__all__) == sorted(dsel.__all__)
    assert len(dsel.__all__) <= 15
    assert set(dsel.__all__) <= set(dir(dsel))


def test_public_names__that_do_not_exist_raise_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dsel.no_such_name


def test_help__of_the_command_line_loads_no_dependency():
    script = (
        "import json, sys, dsel.cli; print(json.dumps({'loaded': sorted(sys.modules)}))"
    )
    assert not set(_run(script)["loaded"]) & {"scipy", "sklearn", "xarray", "zarr"}


@pytest.mark.parametrize("room", ["bounds", "cluster", "data", "models", "searches"])
def test_rooms__are_there_without_an_import_of_their_own(room):
    script = f"import json, dsel; print(json.dumps(dsel.{room}.__name__))"
    assert _run(script) == f"dsel.{room}"
    assert room in dir(dsel)
