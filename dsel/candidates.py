"""From an estimator and a grid to numbered candidates and their keys.

A key is a hash of all that a candidate's counts depend on besides rows and splits: by
it a store finds a cell again, in another process.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from textwrap import shorten
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler, PredefinedSplit
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, RegressorTags, Tags, get_tags

from dsel.arrays import Estimator
from dsel.checks import did_you_mean, show
from dsel.data.frames import TEXT, Frame, numbers
from dsel.data.identity import exact_text
from dsel.families.family import Candidate
from dsel.families.kinds import is_classifier, is_regressor
from dsel.families.prefixes import first_step
from dsel.results.cube import is_list, product_grids

Grid = Mapping[str, Sequence[Any] | NDArray[Any]] | Iterable[Any]
"""A dict of lists, a list of such dicts, or (with no estimator) of estimators; a
`ParameterSampler`, or another iterable of dicts of parameters."""

MOST_CANDIDATES: Final = 100_000
"""More than any cluster fits; a grid that never ends is refused by it, too."""

_OF_NUMBERS: Final = tuple(
    f"sklearn.{room}"
    for room in (
        "decomposition",
        "discriminant_analysis",
        "ensemble._forest",
        "ensemble._gb",
        "linear_model",
        "naive_bayes",
        "neighbors",
        "neural_network",
        "preprocessing._data",
        "svm",
        "tree",
    )
)
"""Modules whose estimators take no texts; histograms of gradients take categories."""


def read_grid(grid: Grid, seed: int) -> Any:
    """Return a grid whose candidates are known: an iterable is read, once.

    Candidates that are given one by one become grids of one candidate each, so that
    they stand along ``candidate`` in the cube. The seed draws for a `ParameterSampler`
    that has no random state of its own.

    Examples
    --------
    >>> read_grid([{"C": 1, "gamma": 0.1}, {"C": 8}], seed=0)
    [{'C': [1], 'gamma': [0.1]}, {'C': [8]}]
    """
    if isinstance(grid, ParameterGrid):
        return grid.param_grid
    if isinstance(grid, ParameterSampler) and grid.random_state is None:
        rng = np.random.RandomState(np.random.MT19937(seed))
        grid = ParameterSampler(grid.param_distributions, grid.n_iter, random_state=rng)
    is_one = isinstance(grid, Mapping | str) or not isinstance(grid, Iterable)
    is_one |= getattr(grid, "ndim", 1) == 0
    entries: list[Any] = [grid] if is_one else list(islice(grid, MOST_CANDIDATES + 1))
    if len(entries) > MOST_CANDIDATES:  # some never end, such as a generator
        _refuse_many(f"more than {MOST_CANDIDATES:,}")
    entries = [dict(each) if isinstance(each, Mapping) else each for each in entries]
    grids = [each for each in entries if isinstance(each, Mapping)]
    for name, values in [pair for each in grids for pair in each.items()]:
        if not isinstance(name, str):
            raise TypeError(
                f"`param_grid` must name parameters by texts, got {show(name)}; "
                f"write it "
                f"as {{'C': [0.1, 1]}}."
            )
        if hasattr(values, "rvs"):
            raise TypeError(
                f"`param_grid` must list the values of {name!r}, got a distribution; "
                f"draw candidates from it by sklearn.model_selection."
                f"ParameterSampler(..., n_iter=20) and pass that."
            )
    if is_one:
        # scikit-learn takes no other mapping.
        return dict(grid) if isinstance(grid, Mapping) else grid
    values = [value for each in grids for value in each.values()]
    # With lists of values they are grids, as scikit-learn reads a list.
    if len(grids) < len(entries) or (
        isinstance(grid, Sequence) and any(map(is_list, values))
    ):
        return entries
    return [{name: [value] for name, value in each.items()} for each in grids]


def _refuse_many(number: str) -> NoReturn:
    raise ValueError(
        f"`param_grid` has {number} candidates, and at most {MOST_CANDIDATES:,} are "
        f"taken; draw some by sklearn.model_selection.ParameterSampler(..., n_iter=60)."
    )


def make_candidates(
    estimator: Any, grid: Grid, *, takes_regressors: bool = False
) -> tuple[Candidate, ...]:
    """Return the candidates, numbered in ``ParameterGrid`` order, parameters set.

    Where regressors are taken, all are classifiers or all are regressors.

    Raises TypeError where something is neither classifier nor regressor, or no grid, or
    both kinds are there; ValueError where the grid is empty or names a parameter that
    the estimator lacks.
    """
    if estimator is None:
        if isinstance(grid, Mapping) or not isinstance(grid, Sequence):
            raise TypeError(
                "`param_grid` must be a list of unfitted estimators where `estimator` "
                f"is None, got {type(grid).__name__}."
            )
        if not grid:
            raise ValueError(
                "`param_grid` must hold at least one estimator, got an empty list."
            )
        for number, each in enumerate(grid):
            _check_learner(each, f"param_grid[{number}]", takes_regressors)
        _check_one_kind(grid, "param_grid")
        return tuple(
            Candidate(number, {}, _copy_value(each, f"param_grid[{number}]"))
            for number, each in enumerate(grid)
        )
    _check_learner(estimator, "estimator", takes_regressors)
    if not all(product_grids(grid)):
        raise ValueError(
            f"`param_grid` must set at least one parameter, got {show(grid)}; for one "
            f"candidate as it is pass estimator=None and [estimator]."
        )
    table = ParameterGrid(grid)
    if len(table) > MOST_CANDIDATES:
        _refuse_many(f"{len(table):,}")
    settings, known = list(table), frozenset(estimator.get_params(deep=True))
    candidates = []
    for number, params in enumerate(settings):
        # A copy of its own, since what the grid holds may be changed after this.
        kept = _copy_value(params, "param_grid")
        model = _with_params(estimator, params, known)
        _check_learner(model, "estimator", takes_regressors)
        candidates.append(Candidate(number, kept, model))
    _check_one_kind([each.estimator for each in candidates], "param_grid")
    return tuple(candidates)


def remarks_on_parameters(
    estimator: Estimator, candidates: Iterable[Candidate]
) -> list[str]:
    """Return a remark for each parameter that only `set_params` knows.

    Learners of other libraries take aliases and options that `get_params` does not
    list; some take any name, so that a misspelled one has no effect.
    """
    if estimator is None:
        return []
    known, told = estimator.get_params(deep=True), dict[str, str]()
    for candidate in candidates:
        for name in candidate.params.keys() - known.keys() - told.keys():
            # What it belongs to may come from the grid, too.
            rest = {k: v for k, v in candidate.params.items() if k != name}
            owner, last = _owner(_with_params(estimator, rest, known), name, {})
            if last not in owner.get_params(deep=True):
                told[name] = type(owner).__name__
    return [
        f"`{name}` is not listed by get_params of {owner}; it was set as set_params "
        f"takes it"
        for name, owner in sorted(told.items())
    ]


def _with_params(
    estimator: Estimator, params: Mapping[str, object], known: Collection[str]
) -> Any:
    """Return a clone of an estimator with clones of these values set.

    `known` are the names that its `get_params` lists.
    This is the only place where parameters of the grid are set. An estimator among the
    values is cloned for each candidate, at any depth, as scikit-learn does: else
    candidates would share it, and change the caller's.
    """
    model = _copy_value(estimator, "estimator")
    values = _copy_value(params, "param_grid")
    try:
        model.set_params(**values)
        unlisted = sorted(values.keys() - set(known))
        # Every fit is of a clone, which gets what get_params lists.
        listed = clone(model).get_params(deep=True) if unlisted else {}
    except Exception as error:  # learners of other libraries have errors of their own
        for name in sorted(params):
            owner, last = _owner(estimator, name, params)
            has = owner.get_params(deep=True)
            if last not in has:
                own = sorted(each for each in has if "__" not in each)
                raise ValueError(
                    f"`param_grid` sets {name!r}, which {type(owner).__name__} lacks; "
                    f"it has {', '.join(own) or 'no parameters'}"
                    f"{did_you_mean(last, own)}"
                ) from error
        raise ValueError(
            f"`param_grid` sets {shorten(str(params), 60)}, which "
            f"{type(estimator).__name__} refuses: {shorten(str(error), 200)}"
        ) from error
    for name in unlisted:
        if name not in listed:
            owner, _ = _owner(model, name, {})
            raise ValueError(
                f"`param_grid` sets {name!r}, which set_params of "
                f"{type(owner).__name__} takes, but a clone of it has lost it; list "
                f"it in get_params."
            )
    return model


def _owner(estimator: Any, name: str, params: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the object that a parameter belongs to, and its last name there.

    Estimators of `params` take the place of the estimator's own parts. Where a part
    is lacking, it is the last name.
    """
    *parts, last = name.split("__")
    for depth, part in enumerate(parts, start=1):
        known = estimator.get_params(deep=True)
        inner = params.get("__".join(parts[:depth]), known.get(part))
        if isinstance(inner, type) or not hasattr(inner, "get_params"):
            return estimator, part
        estimator = inner
    return estimator, last


def _copy_value(value: object, name: str) -> Any:
    """Return a clone: of estimators unfitted, of all else a copy, at any depth."""
    try:
        return clone(value, safe=False)
    except Exception as error:  # whatever a class of the user's raises
        raise TypeError(
            f"`{name}` must hold what can be copied for each candidate, as "
            f"sklearn.base.clone does, got {shorten(repr(value), 100)}: "
            f"{shorten(str(error), 200)}"
        ) from error


def takes_nan(estimators: Iterable[Estimator]) -> bool:
    """Whether every estimator, fitted or not, says that it takes missing values.

    A ColumnTransformer may take them in some columns, which it cannot say: fits tell.
    """
    # A pipeline takes what its first step takes; its own tags do not say so.
    return all(
        hasattr(step, "transformers") or get_tags(step).input_tags.allow_nan
        for step in map(first_step, estimators)
    )


def check_text(estimators: Iterable[Estimator], X: Any) -> None:
    """Raise TypeError where an estimator of numbers begins at a table with texts.

    Only scikit-learn's own are known to take none; of others their fits tell.
    """
    if isinstance(X, Frame) and any(each.kind == TEXT for each in X.schema.columns):
        for step in map(first_step, estimators):
            if type(step).__module__.startswith(_OF_NUMBERS):
                numbers(X)


def _check_learner(estimator: Estimator, name: str, takes_regressors: bool) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        also = ", or a regressor such as `Ridge()`" * takes_regressors
        raise TypeError(
            f"`{name}` must be an unfitted scikit-learn classifier such as "
            f"`SVC()`{also}, got {show(estimator)}."
        )
    _check_parts(estimator, name)
    if is_classifier(estimator) or (takes_regressors and is_regressor(estimator)):
        return
    kinds, bounds = "classifier", "the bounds are about wrong labels"
    if takes_regressors:
        kinds = "classifier or a regressor"
        bounds += ", or about how far off predictions are"
    raise TypeError(
        f"`{name}` must be a {kinds}, got {type(estimator).__name__}; {bounds}."
    )


def _check_one_kind(estimators: Sequence[Estimator], name: str) -> None:
    """Raise TypeError where some are classifiers and others are regressors."""
    kinds = [is_classifier(each) for each in estimators]
    if any(kinds) and not all(kinds):
        labels, numbers = (
            type(estimators[kinds.index(kind)]).__name__ for kind in (True, False)
        )
        raise TypeError(
            f"`{name}` must list classifiers or regressors, got both: {labels} "
            f"predicts labels, {numbers} predicts numbers; search each kind by itself."
        )


def with_learner_tags(tags: Tags, estimator: Estimator) -> Tags:
    """Return the tags of a search with what its estimator takes."""
    # Something that is not an estimator is refused by `fit`, with a clearer error.
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator)
    if tags.estimator_type is None:  # a search is what it searches
        tags.estimator_type = "regressor" if is_regressor(estimator) else "classifier"
    # Whatever the learner takes, a search counts one label for each row.
    if tags.estimator_type == "classifier":
        classifier_tags = inner.classifier_tags or ClassifierTags()
        tags.classifier_tags = replace(classifier_tags, multi_label=False)
    else:
        tags.regressor_tags = inner.regressor_tags or RegressorTags()
        tags.target_tags = replace(
            inner.target_tags, multi_output=False, single_output=True
        )
    tags.input_tags.sparse = inner.input_tags.sparse
    tags.input_tags.positive_only = inner.input_tags.positive_only
    return tags


def _check_parts(estimator: Estimator, name: str) -> None:
    """Raise where a part can work in no fit, whatever the rows are."""
    params: Any = estimator.get_params(deep=True)
    if not isinstance(params, Mapping):  # Dask's delayed objects have any method
        raise TypeError(
            f"`{name}` must be an estimator of scikit-learn, got "
            f"{type(estimator).__name__}; pass the estimator itself."
        )
    parts = [*params.values()]
    for part in (each for each in (estimator, *parts) if not isinstance(each, type)):
        if isinstance(part, Pipeline):
            _check_steps(part, name)
        if getattr(part, "refit", True) is False and hasattr(part, "fit"):
            raise ValueError(
                f"`{name}` holds {type(part).__name__}(refit=False), which cannot "
                f"predict; leave `refit` out."
            )
        cv = getattr(part, "cv", None) if hasattr(part, "fit") else None
        cv = getattr(cv, "cv", cv)  # scikit-learn's wrapper of a list
        is_list = isinstance(cv, Iterable) and not isinstance(cv, str)
        if is_list or isinstance(cv, PredefinedSplit):
            kind = type(cv).__name__
            raise ValueError(
                f"`{name}` holds {type(part).__name__}(cv=...) with row numbers of all "
                f"labeled rows ({kind}), but it is fitted on fewer of them; give its "
                f"`cv` as a number or as a splitter such as StratifiedKFold(5)."
            )


def _check_steps(pipeline: Pipeline, name: str) -> None:
    """Raise where a step before the last one is none that the pipeline can call."""
    # That of imbalanced-learn, or a class made of it.
    takes_samplers = any(
        base.__module__.startswith("imblearn.") for base in type(pipeline).__mro__
    )
    for step, transformer in pipeline.steps[:-1]:
        is_left_out = transformer is None or isinstance(transformer, str)
        if is_left_out or hasattr(transformer, "transform"):
            continue
        kind = type(transformer).__name__
        if not hasattr(transformer, "fit_resample"):
            raise TypeError(
                f"`{name}` has the step {step!r} ({kind}) before its last one, which "
                f"is no transformer: it has no `transform`."
            )
        if not takes_samplers:
            raise TypeError(
                f"`{name}` has the step {step!r} ({kind}), a sampler, which "
                f"scikit-learn's Pipeline cannot use; build it with "
                f"imblearn.pipeline.Pipeline instead, with the same steps."
            )


def candidate_texts(candidates: Iterable[Candidate]) -> dict[int, str]:
    """Return a text for each candidate number that no other candidate has.

    Candidates with equal texts are numbered in their order.
    """
    seen: Counter[str] = Counter()
    texts = {}
    for candidate in candidates:
        text = exact_text([candidate.params or candidate.estimator])
        seen[text] += 1
        texts[candidate.number] = f"{text}#{seen[text]}" if seen[text] > 1 else text
    return texts


def candidate_key(family: str, candidate: Candidate, text: str) -> str:
    """Return the path of a candidate that no other of its plan has the text of."""
    what = f"{type(candidate.estimator).__qualname__} {text}"
    return blake2b(f"{family} {what}".encode(), digest_size=12).hexdigest()
