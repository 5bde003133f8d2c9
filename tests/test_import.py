"""What `import dsel` costs and what it leaves unloaded."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

import dsel

ALONE = """
import json, sys
before = set(sys.modules)
import dsel
print(json.dumps(sorted(set(sys.modules) - before)))
"""

HAS_ACCESSOR = """
import json, {first}
import xarray as xr
print(json.dumps(hasattr(xr.Dataset, "dsel")))
"""

EVERY_NAME = """
import json, sys
import numpy, scipy.stats, sklearn.svm, xarray, zarr, dask.array
before = set(sys.modules)
import dsel
for name in dsel.__all__:
    getattr(dsel, name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _packages(script):
    """Return what a script loads besides the standard library."""
    return {name.partition(".")[0] for name in _run(script)} - sys.stdlib_module_names


def test_import__loads_no_dependency():
    assert _packages(ALONE) == {"dsel"}


def test_public_names__load_no_package_but_the_dependencies():
    # Not distributed, matplotlib or numba, each of which takes longer than dsel.
    assert _packages(EVERY_NAME) <= {"dsel", "sklearn"}


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


EVERY_MODULE = """
import json, pkgutil, dsel
names = [each.name for each in pkgutil.iter_modules(dsel.__path__)]
found = {name: getattr(dsel, name).__name__ for name in names if name != "__main__"}
print(json.dumps([found, dir(dsel), dsel.__version__]))
"""


def test_modules__are_there_without_an_import_of_their_own():
    found, listed, version = _run(EVERY_MODULE)
    assert found["criteria"] == "dsel.criteria"
    assert all(found[name] == f"dsel.{name}" for name in found)
    assert {*found, "__version__"} <= set(listed)
    assert version == importlib.metadata.version("dsel")


def test_accessor__is_there_with_the_first_name_of_dsel():
    first = "xarray, dsel; dsel.plan_search"
    assert _run(HAS_ACCESSOR.format(first=first))
    assert _run(HAS_ACCESSOR.format(first="dsel; dsel.open_results"))
