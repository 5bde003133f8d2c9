"""Fitted models in the store of a run, and checks of whether they can be stored.

A model that cannot be stored does not end a run, but its user is warned before hours of
fits, since without the model nothing can be predicted later.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from sklearn.base import clone

from dsel.arrays import Estimator, Features
from dsel.data.frames import native
from dsel.errors import DselWarning, warn
from dsel.results.models import (
    IMPORTABLE,
    dump_model,
    script_types,
    untrusted_types,
)
from dsel.results.run_store import Store
from dsel.search.running.procedures import FunctionEstimator, returned_model

CHECK_ROWS: Final = 200
"""Labeled rows for which a model must predict the same after it was read back."""
MOST_TRIED: Final = 16
"""Most estimators that are written and read back before a run, one of each kind."""


def check_estimators(estimators: Iterable[Estimator], place: object) -> str:
    """Return why models cannot be stored, "" if no reason is known; warn of it.

    Estimators are written before they are fitted. This finds functions without a name
    and classes of a script; objects that only a fit makes are checked after the run.
    """
    for estimator in _one_of_each(estimators):
        try:
            content = dump_model(clone(estimator))
        except ValueError as error:
            _warn_of_models(str(error), place)
            return str(error)
        except Exception:  # it cannot be cloned, which its fit will report
            continue
        if own := script_types(content):
            warn(
                f"models with {own[0]} are kept in `out` {place}, but no other process "
                f"finds what a script or notebook defines; {IMPORTABLE}.",
                DselWarning,
            )
            break
    return ""


def keep_models(
    models: Mapping[str, Any], store: Store, X: Features, known: str
) -> dict[str, str]:
    """Write models to a store; return, by name, why one could not be stored.

    `known` is the reason of which `check_estimators` has warned already.
    """
    reasons, rows = {}, native(X[:CHECK_ROWS])
    for name, model in models.items():
        try:
            store.save_model(name, dump_model(returned_model(model), rows))
        except ValueError as error:
            reasons[name] = str(error)
    if reasons and not known:
        _warn_of_models(next(iter(reasons.values())), store.place)
    return reasons


def trusted_types(estimators: Iterable[Estimator]) -> list[str]:
    """Return the types that a user trusts by searching with these estimators."""
    types: set[str] = set()
    for estimator in _one_of_each(estimators):
        with suppress(Exception):  # one that cannot be written has no kept model
            types |= {*untrusted_types(estimator)}
    return sorted(types)


def _one_of_each(estimators: Iterable[Estimator]) -> list[Any]:
    """Return one estimator of each kind, by the types of its steps."""
    kinds: dict[str, Any] = {}
    for estimator in estimators:
        if isinstance(estimator, FunctionEstimator):
            continue  # what its function returns is kept, not the function
        steps = getattr(estimator, "steps", None) or [("", estimator)]
        kinds.setdefault(str([type(step) for _, step in steps]), estimator)
    return list(kinds.values())[:MOST_TRIED]


def _warn_of_models(reason: str, place: object) -> None:
    warn(
        f"models cannot be kept in `out` {place}: {reason}. Results and certificates "
        f"are kept; predict before this process ends, or change the estimator and "
        f"search in another `out`.",
        DselWarning,
    )
