"""A bound for the model of any selection procedure: nested cross-validation.

The procedure is run once without each fold, and each of its models is tested on the
fold that it has not seen, so that no number of candidates and no adaptivity has to be
paid for. The best fold's model can be handed over as it is, or the model of all labeled
rows, whose disagreement with that one is counted on the pool.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from math import inf
from typing import Any, Final

import cloudpickle
import numpy as np
import xarray as xr
from scipy import sparse

from dsel import names
from dsel.bounds import best_fold_number
from dsel.checks import check_choice
from dsel.data.content import exact_text
from dsel.data.frames import Frame
from dsel.errors import GuaranteeWarning, warn
from dsel.models.answers import predict_codes
from dsel.results import evidence
from dsel.results.ledger import VIOLATED
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import in_order, make_executor
from dsel.runtime.tasks import Task
from dsel.searches.certify import Certified
from dsel.searches.engine.fit_task import FitJob
from dsel.searches.engine.time_limits import fit_jobs_in_time
from dsel.searches.execute import Outcome, execute
from dsel.searches.plan import Plan, plan_search
from dsel.searches.procedures import Procedure, SelectionAlone, SelectionProcedure

CERTIFICATES: Final = ("best_fold", "best_fold_model")
"""About the model of all labeled rows, and about the best fold's."""

WAYS: Final = (
    "out", "storage_options", "on_failure", "on_progress", "verbose", "n_jobs",
)  # fmt: skip
OPTIONS: Final = (
    "delta", "label_share", "duplicates", "random_state", "fit_params", "fit_timeout",
    "groups", "reading", "pool_labels", "reserve",
)  # fmt: skip

_REFUSED: Final[set[Any]] = set()
"""What was refused in this process, where ``__main__`` may still hold what it kept."""

FEWEST_VALUES: Final = 20
"""Values of labeled rows that are looked for in a procedure."""


def certify_selection(
    procedure: Any,
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    cv: int = 3,
    certificate: str | None = None,
    client: Any = None,
    **options: Any,
) -> Certified:
    """Run any selection procedure k + 1 times and say how wrong its model can be.

    Parameters
    ----------
    procedure
        An unfitted scikit-learn classifier, such as a `GridSearchCV` or a pipeline with
        a feature selection, or a function of features and labels that returns a fitted
        classifier. Whatever it does with the rows that it is given is allowed; it must
        see no others, and give the same model when it is called with the same rows
        again. Each call of a function gets a copy of it, made by cloudpickle: what it
        writes outside of itself is lost.
    X, y
        Labeled rows, shape (n_labeled, n_columns), and their labels.
    pool
        Unlabeled rows, anything that `open_pool` takes; None where the best fold's
        model is handed over.
    cv
        Folds, at least 2: the procedure is run once without each. Few large folds give
        a smaller bound for models that have seen fewer rows.
    certificate
        Which model is handed over: ``"best_fold"`` that of all labeled rows, by way of
        its disagreement with the best fold's; ``"best_fold_model"`` the best fold's
        own, which needs no pool and has the smaller bound. By default the first one
        where there is a pool. To be fixed before any result is seen.
    client
        A `distributed.Client`; None means the current one, else local threads. Each run
        of the procedure is one task. The call of a function whose number is reported is
        made once more, in a process of its own.
    **options
        ``delta``, ``label_share``, ``duplicates``, ``random_state``, ``fit_params``
        (of an estimator), ``fit_timeout``, ``groups``, ``reading``, ``pool_labels``,
        ``reserve`` as `plan_search` takes them; ``out``, ``storage_options``,
        ``on_failure``, ``on_progress``, ``verbose``, ``n_jobs`` as `execute` does.

    Returns
    -------
    Certified
        The model, as the procedure returned it, its certificate, and the cube with
        the errors of each fold.

    Raises
    ------
    TypeError
        Where `procedure` is neither an estimator nor a function, or an option is none
        of these.
    ValueError
        Where `certificate` is none of the two, or is ``"best_fold"`` without a pool.
    AllFitsFailedError
        Where the procedure raises on one of its folds, or returns what is not fitted.
    RuntimeError
        Where it gave another model when it was run again: it draws random numbers
        without a seed, or keeps rows of earlier calls.

    See Also
    --------
    plan_search : The candidates of a grid, with exact pruning.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    error of the model handed over is at most the certificate's bound, whatever and
    however many candidates the procedure has tried.
    Assumes: A1 to A6 of the certificate's ledger; A3 here says that the procedure saw
    only the rows that it was called with.
    Source: the test-set bound for each fold and the union bound over folds;
    :func:`dsel.bounds.best_fold`, :func:`dsel.bounds.best_fold_model`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> procedure = GridSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=3)
    >>> found = certify_selection(procedure, X, y, random_state=0)
    >>> found.certificate  # doctest: +ELLIPSIS
    Certificate(error <= 0.1464, delta=0.05, criterion='best_fold_model', ...)
    >>> type(found.model).__name__
    'GridSearchCV'
    """
    wanted = certificate or ("best_fold" if pool is not None else "best_fold_model")
    check_choice(wanted, "certificate", CERTIFICATES)
    candidate = _as_estimator(procedure)
    _check_options(options, candidate)
    running = {name: options.pop(name) for name in WAYS if name in options}
    plan = plan_search(
        None, [candidate], X, y, pool, cv=cv, criterion=wanted,
        **{**options, "train_errors": True},  # what `_check_same` compares
    )  # fmt: skip
    if candidate is procedure:  # an estimator, which every fit clones
        outcome = execute(plan, client, with_model=True, **running)
        _check_same(plan, outcome)
        return Certified(outcome.model, outcome.choice.certificate, outcome.results)
    plan, kept = _with_copies(plan, procedure)
    try:
        outcome = execute(plan, client, with_model=True, **running)
        _check_same(plan, outcome)
        if kept:
            _check_alone(plan, outcome.results, kept, client)
    except RuntimeError as error:
        if type(error) is RuntimeError:  # another model than before, no lost cluster
            _REFUSED.add(_name_of(procedure))
        raise
    return Certified(outcome.model.model_, outcome.choice.certificate, outcome.results)


def _name_of(procedure: Procedure) -> Any:
    """Return what tells a procedure from others, whatever it has kept elsewhere."""
    code = getattr(procedure, "__code__", None)
    return code or (type(procedure), exact_text(getattr(procedure, "__dict__", {})))


def _with_copies(plan: Plan, procedure: Procedure) -> tuple[Plan, bytes]:
    """Return the plan, whose A3 says what calls share, and the pickled procedure.

    No bytes where it cannot be pickled. Raises RuntimeError where it was refused.
    """
    if _name_of(procedure) in _REFUSED:
        raise RuntimeError(
            f"`procedure` {procedure!r} gave another model when it was run again, in "
            f"this process, which may hold rows that it kept; mend it and start anew."
        )
    try:
        kept = cloudpickle.dumps(procedure)  # before any call can change it
        said = "each call of `procedure` gets a copy"
    except Exception as error:  # whatever an object raises that cannot be pickled
        kept = b""
        said = (
            f"`procedure` keeps no rows of earlier calls, which cannot be seen: it "
            f"cannot be pickled ({type(error).__name__}: {error})"
        )
    if holds := _holds_rows(kept, plan.work.X):
        said = "`procedure` holds labeled rows, in a closure, an attribute or a global"
        said += ": it may use those only that it is called with"
    ledger = tuple(
        replace(each, state=VIOLATED, reason=said)
        if each.name == "A3" and holds and not each.is_violated
        else replace(each, reason=f"{each.reason}; {said}")
        if each.name == "A3"
        else each
        for each in plan.assumptions
    )
    return replace(plan, assumptions=ledger), kept


def _holds_rows(kept: bytes, X: Any) -> bool:
    """Whether bytes hold values of labeled rows, one in six of those with many digits.

    So few, since a procedure may have kept one column of some of the rows.
    """
    values = X.float_columns if isinstance(X, Frame) else X
    values = values.data if sparse.issparse(values) else values.ravel()
    values = np.asarray(values, dtype=np.float64)
    values = np.unique(values[np.isfinite(values)])
    values = values[np.abs(values * 1e4 - np.rint(values * 1e4)) > 1e-3]
    if len(values) < FEWEST_VALUES:
        return False
    looked_for = values[:: len(values) // FEWEST_VALUES]
    kinds = ("<f8", ">f8", "<f4")  # of arrays, of Python's floats
    found = [
        sum(np.array([v], kind).tobytes() in kept for v in looked_for) for kind in kinds
    ]
    return max(found) > len(looked_for) / 6


def _check_alone(plan: Plan, results: xr.Dataset, kept: bytes, client: Any) -> None:
    """Raise RuntimeError where the certified fold's call errs otherwise when alone.

    In a process of its own nothing is left of earlier calls, whether they kept it in a
    class or in a module; and the number rests on the errors of this one fold.
    """
    counts = evidence(results)
    errors = counts[names.FOLD_ERRORS][0]
    fold = int(best_fold_number(errors, counts[names.FOLD_ROWS]))
    (group,) = plan.work.groups
    alone = replace(group.candidates[0], estimator=SelectionAlone(kept))
    work = replace(plan.work, groups=(replace(group, candidates=(alone,)),))
    job, seconds = FitJob(0, (0,), fold), plan.fit_timeout or inf
    task = Task("alone", fit_jobs_in_time, ([job], False, seconds))
    try:
        with closing(make_executor(work, resolve_client(client), 1)) as executor:
            [[record]] = in_order(executor, [task])
    except (OSError, RuntimeError) as error:
        warn(
            f"`procedure` could not be called in a process of its own ({error}), so "
            f"it was not seen whether it keeps rows of earlier calls.",
            GuaranteeWarning,
        )
        return
    n_errors = int(record.counts.test_errors.item())
    if n_errors != errors[fold]:
        wrong = record.counts.messages.get((0, fold), f"{n_errors} errors")
        raise RuntimeError(
            f"`procedure` gave another model when it was called again without fold "
            f"{fold}, in a process of its own: {wrong} on this fold where "
            f"{errors[fold]} errors were counted. Either it keeps rows of earlier "
            f"calls, and must use those of its call only; or it draws random numbers, "
            f"and needs a fixed seed."
        )


def _as_estimator(procedure: Any) -> Any:
    """Return an estimator as it is, a function as one."""
    is_estimator = callable(getattr(procedure, "fit", None))
    if isinstance(procedure, type) or not (is_estimator or callable(procedure)):
        raise TypeError(
            f"`procedure` must be an unfitted classifier or a function of features and "
            f"labels that returns a fitted one, got {procedure!r}."
        )
    return procedure if is_estimator else SelectionProcedure(procedure)


def _check_options(options: Mapping[str, Any], candidate: Any) -> None:
    """Raise where there is no such option, or a function is to take more."""
    if unknown := sorted(set(options) - {*OPTIONS, *WAYS}):
        raise TypeError(
            f"certify_selection has no option `{unknown[0]}`: `certificate` says which "
            f"model is handed over, `procedure` selects it, and beside `cv` and "
            f"`client` there are {', '.join((*OPTIONS, *WAYS))}."
        )
    if options.get("fit_params") and isinstance(candidate, SelectionProcedure):
        raise TypeError(
            f"`fit_params` {sorted(options['fit_params'])} cannot be passed to a "
            f"function, which gets features and labels only; pass an estimator, or put "
            f"them into columns of `X`."
        )


def _check_same(plan: Plan, outcome: Outcome) -> None:
    """Raise where the model that is handed over does not err as it was counted.

    It is fitted again where it was not kept: after a worker died, or where a run goes
    on from its `out`. And what it answers may depend on later calls.
    """
    fold, counted = outcome.choice.fold, outcome.results[names.FULL_TRAIN_ERRORS]
    number = plan.scheme.full if fold is None else fold
    assert number is not None, "a certificate of the full model has one"
    split = plan.work.splits[number]
    rows = split.train_rows if fold is None else split.test_rows
    if fold is not None:
        counted = outcome.results[names.FOLD_ERRORS].isel({names.FOLD: fold})
    codes = predict_codes(outcome.model, plan.work.X[rows], plan.classes)
    n_errors = int(np.sum(codes != plan.work.y[rows]))
    if n_errors != int(counted.item()):
        raise RuntimeError(
            f"`procedure` gave another model when it was run again on the same rows: "
            f"{n_errors} errors where {int(counted.item())} were counted. Give it a "
            f"fixed seed, and let it use the rows of its call only."
        )
