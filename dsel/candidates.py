"""From an estimator and a grid to numbered candidates and their keys.

A key is a hash of all that a candidate's counts depend on besides rows and splits: by
it a store finds a cell again, in another process.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import ClassifierTags, Tags, get_tags

from dsel.data.frames import TEXT, Frame, numbers
from dsel.data.identity import exact_text
from dsel.families.family import Candidate
from dsel.families.prefixes import first_step
from dsel.results.cube import is_list, product_grids

Grid = Mapping[str, Sequence[Any] | NDArray[Any]] | Iterable[Any]
"""A dict of lists, a list of such dicts, or (with no estimator) of estimators; a
`ParameterSampler`, or another iterable of dicts of parameters."""

_OF_NUMBERS: Final = tuple(
    f"sklearn.{room}"
    for room in (
        "decomposition", "discriminant_analysis", "ensemble._forest", "ensemble._gb",
        "linear_model", "naive_bayes", "neighbors", "neural_network",
        "preprocessing._data", "svm", "tree",
    )
)  # fmt: skip
"""Modules whose estimators take no texts; histograms of gradients take categories."""


def drawn(grid: Grid, seed: int) -> Any:
    """Return a grid whose candidates are known: an iterable is read, once.

    Candidates that are given one by one become grids of one candidate each, so that
    they stand along ``candidate`` in the cube. The seed draws for a `ParameterSampler`
    that has no random state of its own.

    Examples
    --------
    >>> drawn([{"C": 1, "gamma": 0.1}, {"C": 8}], seed=0)
    [{'C': [1], 'gamma': [0.1]}, {'C': [8]}]
    """
    if isinstance(grid, ParameterGrid):
        return grid.param_grid
    if isinstance(grid, ParameterSampler) and grid.random_state is None:
        rng = np.random.RandomState(np.random.MT19937(seed))
        grid = ParameterSampler(grid.param_distributions, grid.n_iter, random_state=rng)
    is_one = isinstance(grid, Mapping | str) or not isinstance(grid, Iterable)
    entries: list[Any] = [grid] if is_one else list(grid)
    grids = [each for each in entries if isinstance(each, Mapping)]
    for name, values in [pair for each in grids for pair in each.items()]:
        if hasattr(values, "rvs"):
            raise TypeError(
                f"`param_grid` must list the values of {name!r}, got a distribution; "
                f"draw candidates from it by sklearn.model_selection."
                f"ParameterSampler(..., n_iter=20) and pass that."
            )
    if is_one:
        return grid
    values = [value for each in grids for value in each.values()]
    # With lists of values they are grids, as scikit-learn reads a list.
    if len(grids) < len(entries) or (
        isinstance(grid, Sequence) and any(map(is_list, values))
    ):
        return entries
    return [{name: [value] for name, value in each.items()} for each in grids]


def make_candidates(estimator: Any, grid: Grid) -> tuple[Candidate, ...]:
    """Return the candidates, numbered in ``ParameterGrid`` order, parameters set.

    Raises TypeError where something is no classifier or no grid, ValueError where the
    grid is empty or names a parameter that the estimator lacks.
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
            _check_classifier(each, f"param_grid[{number}]")
        return tuple(Candidate(at, {}, clone(each)) for at, each in enumerate(grid))
    _check_classifier(estimator, "estimator")
    known = estimator.get_params(deep=True)
    if not all(product_grids(grid)):
        raise ValueError(
            f"`param_grid` must set at least one parameter, got {grid!r}; for one "
            f"candidate as it is pass estimator=None and [estimator]."
        )
    settings = list(ParameterGrid(grid))
    for name in sorted({name for params in settings for name in params}):
        if name not in known and name.partition("__")[0] not in known:
            near = ", ".join(sorted(name for name in known if "__" not in name))
            raise ValueError(
                f"`param_grid` sets {name!r}, which {type(estimator).__name__} lacks; "
                f"it has {near}."
            )
    return tuple(
        Candidate(number, params, clone(estimator).set_params(**params))
        for number, params in enumerate(settings)
    )


def takes_nan(estimators: Iterable[Any]) -> bool:
    """Whether every estimator, fitted or not, says that it takes missing values.

    A ColumnTransformer may take them in some columns, which it cannot say: fits tell.
    """
    # A pipeline takes what its first step takes; its own tags do not say so.
    return all(
        hasattr(step, "transformers") or get_tags(step).input_tags.allow_nan
        for step in map(first_step, estimators)
    )


def check_text(estimators: Iterable[Any], X: Any) -> None:
    """Raise TypeError where an estimator of numbers begins at a table with texts.

    Only scikit-learn's own are known to take none; of others their fits tell.
    """
    if isinstance(X, Frame) and any(each.kind == TEXT for each in X.schema.columns):
        for step in map(first_step, estimators):
            if type(step).__module__.startswith(_OF_NUMBERS):
                numbers(X)


def _check_classifier(estimator: Any, name: str) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"`{name}` must be an unfitted scikit-learn classifier such as `SVC()`, "
            f"got {estimator!r}."
        )
    if not is_classifier(estimator):
        why, last = "the bounds are about wrong labels", estimator
        while hasattr(last, "steps"):
            last = last.steps[-1][1]
        if get_tags(estimator).estimator_type is None and hasattr(estimator, "predict"):
            why = (
                f"its class does not say first that it is one: write "
                f"class {type(last).__name__}(ClassifierMixin, BaseEstimator)"
            )
        raise TypeError(
            f"`{name}` must be a classifier, got {type(estimator).__name__}; {why}."
        )


def with_learner_tags(tags: Tags, estimator: Any) -> Tags:
    """Return the tags of a search with what its estimator takes."""
    # Something that is not an estimator is refused by `fit`, with a clearer error.
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator)
    # Whatever the learner takes, a search counts one label for each row.
    classifier_tags = inner.classifier_tags or ClassifierTags()
    tags.classifier_tags = replace(classifier_tags, multi_label=False)
    tags.input_tags.sparse = inner.input_tags.sparse
    tags.input_tags.positive_only = inner.input_tags.positive_only
    return tags


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
