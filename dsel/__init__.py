"""dsel chooses a model and bounds its error, from few labels and a pool.

Most users call one function, with any model or search of scikit-learn::

    outcome = dsel.certify(GridSearchCV(SVC(), grid), X, y, pool)  # a pool is optional
    print(outcome.choice)                               # the choice and its bounds
    outcome.predict(rows)                               # columns are found by name

A search by dsel itself, in steps::

    pool = dsel.open_pool("pool.zarr")                  # unlabeled rows, chunked, lazy
    plan = dsel.plan_search(SVC(), grid, X, y, pool, delta=0.05, random_state=7)
    print(plan)                                         # nothing has run yet
    outcome = plan.run(client)                          # the cube, certificates, models
    print(outcome.choice)                               # the choice and its error bound

`SemiSupervisedSearchCV` is the same as a scikit-learn estimator.

Conventions, everywhere: labels of any kind become class codes 0..C-1 at the boundary
and come back as labels at the end; an error rate is in [0, 1]; counts are integers;
`delta` is the probability that a bound *fails*; bounds are upper bounds; logarithms are
natural; every criterion is smaller-is-better; folds are numbered from 0, and from 1 in
messages and figures. Arguments come in the order estimator, grid, X, y, pool, then
keywords. `random_state` becomes one integer seed at once, which is recorded; no count
depends on chunks, workers or order.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsel import bounds as bounds
    from dsel.auditing.audit import audit
    from dsel.co_validation.covalidate import covalidate
    from dsel.data.open import open_pool
    from dsel.data.write import write_pool
    from dsel.results.run_store import open_results, save_results
    from dsel.search.certifying.certify import certify, certify_selection
    from dsel.search.certifying.compare_models import compare_models
    from dsel.search.facade import SemiSupervisedSearchCV
    from dsel.search.outcomes.open_outcome import open_outcome
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
    "save_results": "dsel.results.run_store",
    "select": "dsel.search.running.select",
    "write_pool": "dsel.data.write",
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
    "save_results",
    "select",
    "write_pool",
]


def __getattr__(name: str) -> Any:
    # Lazy, since dependencies take seconds to import and `dsel --help` needs none.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value: Any = version("dsel")
        except PackageNotFoundError:  # run from a checkout that is not installed
            value = "unknown"
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _modules():
        return import_module(f"dsel.{name}")
    else:
        end = "."
        if not name.startswith("_"):  # Python looks for names such as __wrapped__
            from dsel.checks import did_you_mean

            end = did_you_mean(name, [*__all__, *_modules()])
        raise AttributeError(f"module 'dsel' has no attribute {name!r}{end}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    hidden = {name for name in globals() if name[:2] == name[-2:] == "__"}
    return sorted({*hidden, *__all__, *_PACKAGES, "__version__"})


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
