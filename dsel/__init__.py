"""dsel chooses a model and says how wrong it can be, from few labels and a pool.

The whole method is five lines::

    pool = dsel.open_pool("pool.zarr")                  # unlabeled rows, chunked, lazy
    plan = dsel.plan_search(SVC(), grid, X, y, pool, delta=0.05, random_state=7)
    print(plan)                                         # nothing has run yet
    results = plan.run(client)                          # xarray.Dataset: the cube
    choice = dsel.select(results)                       # candidate and certificate

`SemiSupervisedSearchCV` is the same as a scikit-learn estimator.

Conventions, everywhere: labels of any kind become class codes 0..C-1 at the boundary
and come back as labels at the end; an error rate is in [0, 1]; counts are integers;
`delta` is the probability that a bound *fails*; bounds are upper bounds; logarithms are
natural; every criterion is smaller-is-better; folds are numbered from 0. Arguments come
in the order estimator, grid, X, y, pool, then keywords. `random_state` becomes one
integer seed at once, which is recorded; no count depends on chunks, workers or order.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsel import accessor as accessor
    from dsel import bounds as bounds
    from dsel import checks as checks
    from dsel import cli as cli
    from dsel import cluster as cluster
    from dsel import criteria as criteria
    from dsel import data as data
    from dsel import datasets as datasets
    from dsel import errors as errors
    from dsel import kernels as kernels
    from dsel import names as names
    from dsel import plots as plots
    from dsel import report as report
    from dsel import results as results
    from dsel import runtime as runtime
    from dsel import searches as searches
    from dsel import stores as stores
    from dsel.data.open import open_pool
    from dsel.data.write import write_pool
    from dsel.results.files import open_results, save_results
    from dsel.searches.auditing.audit import audit
    from dsel.searches.certify_selection import certify_selection
    from dsel.searches.co_validation.covalidate import covalidate
    from dsel.searches.engine.stages import PoolReading
    from dsel.searches.facade import SemiSupervisedSearchCV
    from dsel.searches.plan import plan_search
    from dsel.searches.plan_bound import plan_bound
    from dsel.searches.select import select

    __version__: str

_HOMES = {
    "audit": "dsel.searches.auditing.audit",
    "PoolReading": "dsel.searches.engine.stages",
    "certify_selection": "dsel.searches.certify_selection",
    "SemiSupervisedSearchCV": "dsel.searches.facade",
    "covalidate": "dsel.searches.co_validation.covalidate",
    "open_pool": "dsel.data.open",
    "open_results": "dsel.results.files",
    "plan_bound": "dsel.searches.plan_bound",
    "plan_search": "dsel.searches.plan",
    "save_results": "dsel.results.files",
    "select": "dsel.searches.select",
    "write_pool": "dsel.data.write",
}

__all__ = [
    "PoolReading",
    "SemiSupervisedSearchCV",
    "audit",
    "bounds",
    "certify_selection",
    "covalidate",
    "open_pool",
    "open_results",
    "plan_bound",
    "plan_search",
    "save_results",
    "select",
    "write_pool",
]


def __getattr__(name: str) -> Any:
    # Dependencies take seconds to import, and `dsel --help` needs none of them.
    if name == "__version__":
        value = _version()
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _modules():
        return import_module(f"dsel.{name}")
    else:
        raise AttributeError(f"module 'dsel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_modules(), "__version__"})


def _modules() -> set[str]:
    from pkgutil import iter_modules

    return {each.name for each in iter_modules(__path__)} - {"__main__"}


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dsel")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


class _AfterXarray:
    """Registers ``results.dsel`` as soon as xarray is loaded, by whomever.

    To load xarray here would cost every command of the shell half a second.
    """

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        """Return where xarray is, with a loader that registers the accessor, too."""
        del path, target
        if name != "xarray":
            return None
        sys.meta_path.remove(cls)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_register(module: Any) -> None:
            load(module)
            import_module("dsel.accessor")

        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "xarray" in sys.modules:
    import_module("dsel.accessor")
else:
    sys.meta_path.insert(0, _AfterXarray)
