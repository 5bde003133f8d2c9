"""dsel chooses a model and bounds its error, from few labels and a pool.

Most users call `certify`, with any model or search of scikit-learn; the rows without
labels, the pool, may be left out. This runs as it stands:

>>> import dsel
>>> from sklearn.datasets import load_digits
>>> from sklearn.model_selection import GridSearchCV, train_test_split
>>> from sklearn.svm import SVC
>>> X, y = load_digits(return_X_y=True)
>>> X, pool, y, _ = train_test_split(X, y, train_size=300, random_state=0)
>>> grid = {"C": [1, 10], "gamma": [0.001]}
>>> outcome = dsel.certify(GridSearchCV(SVC(), grid), X, y, pool, random_state=0)
>>> print(outcome.certificate.headline())  # print(outcome) has the choice and the rest
Error at most 11.7% (95% confidence), model trained on 80% of the labels
>>> outcome.predict(pool[:3])
array([2, 8, 2])

A search by dsel itself, in steps; a pool may be a path, such as ``"pool.zarr"``:

>>> plan = dsel.plan_search(SVC(), grid, X, y, pool, random_state=0)
>>> outcome = plan.run()  # before it nothing is fitted: print(plan) says what will be
>>> round(outcome.certificate.bound, 3)
0.116

`SemiSupervisedSearchCV` is the same as a scikit-learn estimator.

Conventions, everywhere: labels of any kind become class codes 0..C-1 at the boundary
and come back as labels at the end; an error rate is in [0, 1]; counts are integers;
`delta` is the probability that a bound *fails*; bounds are upper bounds; logarithms are
natural; every criterion is smaller-is-better; folds are numbered from 0. Arguments come
in the order estimator, grid, X, y, pool, then keywords. `random_state` becomes one
integer seed at once, which is recorded; no count depends on chunks, workers or order.
"""

import sys
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsel import bounds as bounds
    from dsel.auditing.audit import audit
    from dsel.co_validation.covalidate import covalidate
    from dsel.data.open import open_pool
    from dsel.data.write import write_pool
    from dsel.report.page import write_report
    from dsel.results.rows import read_rows
    from dsel.results.run_store import open_results, save_results
    from dsel.search.certifying.certify import certify, certify_selection
    from dsel.search.certifying.compare_models import compare_models
    from dsel.search.facade import SemiSupervisedSearchCV
    from dsel.search.outcomes.open_outcome import open_outcome
    from dsel.search.outcomes.predict_pool import predict_pool
    from dsel.search.planning.plan_bound import plan_bound
    from dsel.search.planning.plan_search import plan_search
    from dsel.search.running.select import select

    __version__: str

_HOMES = {
    "SemiSupervisedSearchCV": "dsel.search.facade",
    "audit": "dsel.auditing.audit",
    "certify": "dsel.search.certifying.certify",
    "certify_selection": "dsel.search.certifying.certify",
    "compare_models": "dsel.search.certifying.compare_models",
    "covalidate": "dsel.co_validation.covalidate",
    "open_outcome": "dsel.search.outcomes.open_outcome",
    "open_pool": "dsel.data.open",
    "open_results": "dsel.results.run_store",
    "plan_bound": "dsel.search.planning.plan_bound",
    "plan_search": "dsel.search.planning.plan_search",
    "predict_pool": "dsel.search.outcomes.predict_pool",
    "read_rows": "dsel.results.rows",
    "save_results": "dsel.results.run_store",
    "select": "dsel.search.running.select",
    "write_pool": "dsel.data.write",
    "write_report": "dsel.report.page",
}
_PACKAGES = (
    "bounds",
    "cluster",
    "co_validation",
    "criteria",
    "data",
    "datasets",
    "errors",
    "families",
    "kernels",
    "least_squares",
    "losses",
    "mcpl",
    "nonconformity",
    "plots",
    "report",
    "results",
    "search",
    "typing",
)
"""Modules that completion offers: those with a page of the reference."""
__all__ = [
    "SemiSupervisedSearchCV",
    "audit",
    "bounds",
    "certify",
    "certify_selection",
    "compare_models",
    "covalidate",
    "open_outcome",
    "open_pool",
    "open_results",
    "plan_bound",
    "plan_search",
    "predict_pool",
    "read_rows",
    "save_results",
    "select",
    "write_pool",
    "write_report",
]

_in_turn = RLock()


def __getattr__(name: str) -> Any:
    # Imports are lazy, since dependencies take seconds to import and `dsel --help`
    # needs none.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value: Any = version("dsel")
        except PackageNotFoundError:  # run from a checkout that is not installed
            value = "unknown"
    elif name in _HOMES:
        value = getattr(_import_in_turn(_HOMES[name]), name)
    elif name in _modules():
        return _import_in_turn(f"dsel.{name}")
    else:
        from dsel.checks import attribute_error

        raise attribute_error("module 'dsel'", name, [*__all__, *_modules()])
    globals()[name] = value
    return value


def _import_in_turn(name: str) -> Any:
    # Python ends with "deadlock detected" where a thread imports a package while
    # another begins with a module of it.
    with _in_turn:
        return import_module(name)


def __dir__() -> list[str]:
    hidden = {name for name in globals() if name[:2] == name[-2:] == "__"}
    return sorted({*hidden, *__all__, *_PACKAGES, "__version__"})


@cache  # tools such as doctest try several names on every module that they find
def _modules() -> set[str]:
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(__path__)} - {"__main__"}


class _AccessorFinder(MetaPathFinder):
    """Finder that registers ``results.dsel`` when xarray is imported.

    Importing xarray here would make `import dsel` slow, and registering it with the
    first name of dsel would be too late for a Dataset of `xarray.open_zarr`. xarray has
    no entry points for accessors.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "xarray":
            return None
        sys.meta_path.remove(self)  # so that the other finders find it
        try:
            spec = find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: Any) -> None:
                load(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                import_module("dsel.accessor")

            vars(spec.loader)["exec_module"] = load_and_register
        return spec


if "xarray" in sys.modules:
    import_module("dsel.accessor")
else:
    sys.meta_path.insert(0, _AccessorFinder())
