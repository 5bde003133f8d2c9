"""What `import dsel` costs and what it leaves unloaded."""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dsel


def _printed(expression, first="import dsel"):
    """Return what a new process says of an expression, after some lines."""
    script = f"import json, pkgutil, sys\nbefore = {{*sys.modules}}\n{first}\n"
    script += f"print(json.dumps({expression}))"
    command = [sys.executable, "-c", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _loaded(first):
    """Return the packages that lines load besides the standard library."""
    names = _printed("[*{*sys.modules} - before]", first)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def test_import__loads_no_dependency():
    assert _loaded("import dsel") == {"dsel"}
    shown = "from click.testing import CliRunner; from dsel.cli import main; "
    some = _loaded(
        f"{shown}assert 'select' in CliRunner().invoke(main, '--help').output"
    )
    assert not some & {"dask", "scipy", "sklearn", "xarray", "zarr"}


def test_public_names__load_no_package_but_the_dependencies():
    # Not distributed, matplotlib or numba, each of which takes longer than dsel.
    dependencies = "import numpy, scipy.stats, sklearn.svm, xarray, zarr, dask.array"
    before = f"{dependencies}\nbefore = {{*sys.modules}}\nimport dsel\n"
    names = "[getattr(dsel, name) for name in dsel.__all__]"
    assert _loaded(before + names) <= {"dsel", "narwhals", "pyarrow", "sklearn"}


def test_public_names__may_be_used_first_in_several_threads_at_once():
    first = """
import numpy, scipy.stats, sklearn, xarray
from concurrent.futures import ThreadPoolExecutor
import dsel
names = ["select", "certify", "bounds", "compare_models", "covalidate"]
with ThreadPoolExecutor(5) as threads:
    found = list(threads.map(lambda name: getattr(dsel, name), names))
"""
    names = "[each.__name__.rpartition('.')[2] for each in found]"
    assert _printed(f"{names} == names", first)


def test_modules__are_there_without_an_import_of_their_own():
    names = "[each.name for each in pkgutil.iter_modules(dsel.__path__)]"
    found = (
        f"{{name: getattr(dsel, name).__name__ for name in {names} if name[0] > '_'}}"
    )
    found, listed, version = _printed(f"[{found}, dir(dsel), dsel.__version__]")
    assert "criteria" in found
    assert all(found[name] == f"dsel.{name}" for name in found)
    page = (Path(__file__).parents[1] / "docs/api/index.md").read_text("utf-8")
    packages = {*re.findall(r"   dsel\.([a-z_]+)\n", page)} & {*found}
    public = {*packages, *dsel.__all__, "errors", "typing"}
    assert {name for name in listed if name[:2] != "__"} == public
    assert "__version__" in listed
    assert version == importlib.metadata.version("dsel")


@pytest.mark.parametrize("name", [n for n in dir(dsel) if n in dsel._PACKAGES])
def test_package__lists_its_public_names_alone(name):
    package = getattr(dsel, name)
    listed = {each for each in dir(package) if each[:2] != "__"}
    assert listed == {*package.__all__}


@pytest.mark.parametrize(
    "first",
    [
        "import xarray, dsel",
        "import dsel; dsel.open_results",
        "import dsel; from importlib.util import find_spec; find_spec('xarray')",
        "import dsel; import dsel.bounds, xarray; del dsel",
        "from dsel.search.facade import SemiSupervisedSearchCV",
        *(f"import dsel.{name}" for name in ("accessor", "bounds", "errors")),
    ],
)
def test_accessor__is_there_with_any_import_of_dsel(first):
    then = "import warnings; warnings.simplefilter('error'); import xarray"
    assert _printed("hasattr(xarray.Dataset, 'dsel')", f"{first}\n{then}")


def test_accessor__of_a_dataset_that_xarray_opened(tmp_path):
    make_cube = "from dsel.results.cube import grid_axes, make_cube"
    cube = 'make_cube(grid_axes({"C": [1, 10]}), {"fold": 5}, {})'
    save = f'import dsel\n{make_cube}\ndsel.save_results({cube}, "{tmp_path}")'
    assert _printed("True", save)
    (kept,) = tmp_path.glob("cube/*.zarr")
    opened = f'import dsel\nimport xarray as xr\nresults = xr.open_zarr("{kept}")'
    assert _printed("len(results.dsel.table())", opened) == 2


def test_a_misspelled_name__gets_the_one_that_was_meant():
    with pytest.raises(AttributeError, match=r"'certfy'; did you mean 'certify'\?"):
        _ = dsel.certfy
    assert not hasattr(dsel, "__wrapped__")


@pytest.mark.parametrize(
    "function",
    # The old name of `certify` and `covalidate` pass their options on.
    [
        n
        for n in dsel.__all__
        if callable(getattr(dsel, n)) and n not in ("certify_selection", "covalidate")
    ],
)
def test_an_unknown_argument__is_named_with_those_that_there_are(function):
    with pytest.raises(TypeError, match=r"has no (argument|parameter)"):
        getattr(dsel, function)(unknown_argument=1)


def test_help__begins_with_what_most_users_call():
    assert dsel.__doc__.index("dsel.certify(") < dsel.__doc__.index("dsel.plan_search(")
