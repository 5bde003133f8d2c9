"""Numbered candidates of an estimator and a grid, and their keys.

A key is a hash of everything on which a candidate's counts depend, except rows and
splits. A store finds results by it in another process.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from inspect import signature
from itertools import islice
from numbers import Number
from textwrap import shorten
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import ParameterGrid, ParameterSampler, PredefinedSplit
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.svm import SVC
from sklearn.utils import ClassifierTags, RegressorTags, Tags, get_tags
from typing_extensions import TypeAliasType

from dsel.arrays import Estimator
from dsel.checks import listing, nearest_name, show, show_model
from dsel.data.encoding import find_ways
from dsel.data.frame_columns import NOTHING, TEXT, Column
from dsel.data.frames import Frame
from dsel.data.identity import exact_text
from dsel.errors import rename_in_errors
from dsel.families.estimator_kinds import is_classifier, is_regressor
from dsel.families.family import Candidate
from dsel.families.prefixes import clone_value, first_step, flat_steps
from dsel.results.cube import is_list, product_grids
from dsel.typing import Options, RowsLike

Grid = TypeAliasType("Grid", Mapping[str, Sequence[Any] | NDArray[Any]] | Iterable[Any])
"""A dict of lists, a list of such dicts, or (with no estimator) of estimators; a
`ParameterSampler`, or another iterable of dicts of parameters."""

MOST_CANDIDATES: Final = 100_000
"""Most candidates of a search; the limit also refuses a grid that never ends."""

_OF_CATEGORIES: Final = "sklearn.ensemble._hist_gradient_boosting"
_CATEGORICAL_TYPES: Final = "category", "Categorical", "Enum"
"""First words of the types of categories, in pandas and Polars."""
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
"""Modules whose estimators accept no texts. Gradient boosting with histograms is not
among them: it accepts categories."""

_COMPOSITIONS: Final = (
    (Pipeline, "steps", 2),
    (FeatureUnion, "transformer_list", 2),
    (ColumnTransformer, "transformers", 3),
)
"""Classes of scikit-learn that call transformers, the attribute that lists these, and
the length of an entry."""


def read_grid(grid: Grid, seed: int) -> Any:
    """Return a grid whose candidates are known: an iterable is read, once.

    An iterable of single candidates becomes a list of grids with one candidate each, so
    that the cube has the dimension ``candidate``. The seed is that of a
    `ParameterSampler` without a random state of its own.

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
    entries = [
        dict(entry) if isinstance(entry, Mapping) else entry for entry in entries
    ]
    grids = [entry for entry in entries if isinstance(entry, Mapping)]
    for name, values in [pair for axes in grids for pair in axes.items()]:
        if not isinstance(name, str):
            raise TypeError(
                f"`param_grid` must name parameters by texts, got {show(name)}; write "
                f"it as {{'C': [0.1, 1]}}."
            )
        first_values = islice(values, MOST_CANDIDATES) if is_list(values) else ()
        if any(hasattr(value, "rvs") for value in (values, *first_values)):
            raise TypeError(
                f"`param_grid` must list the values of {name!r}, got a distribution; "
                f"draw candidates from it by sklearn.model_selection."
                f"ParameterSampler(..., n_iter=20) and pass that."
            )
    if is_one:
        # scikit-learn accepts no other mapping than a dict.
        return dict(grid) if isinstance(grid, Mapping) else grid
    values = [value for axes in grids for value in axes.values()]
    # Dicts with lists of values are grids, as for scikit-learn.
    if len(grids) < len(entries) or (
        isinstance(grid, Sequence) and any(map(is_list, values))
    ):
        return entries
    return [{name: [value] for name, value in axes.items()} for axes in grids]


def _refuse_many(number: str) -> NoReturn:
    raise ValueError(
        f"`param_grid` has {number} candidates, and at most {MOST_CANDIDATES:,} are "
        f"taken; draw some by sklearn.model_selection.ParameterSampler(..., n_iter=60)."
    )


def make_candidates(
    estimator: Any, grid: Grid, *, allows_regression: bool = False
) -> tuple[Candidate, ...]:
    """Return the candidates, numbered in ``ParameterGrid`` order, parameters set.

    With `allows_regression` they may be regressors, but not of both kinds.

    Raises TypeError if an estimator is neither a classifier nor a regressor, `grid` is
    no grid, or both kinds are there; ValueError if the grid is empty or names a
    parameter that the estimator does not have.
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
        for index, grid_estimator in enumerate(grid):
            _check_learner(grid_estimator, f"`param_grid[{index}]`", allows_regression)
        _check_one_kind(grid)
        listed = [
            Candidate(index, {}, _copy_value(grid_estimator, f"param_grid[{index}]"))
            for index, grid_estimator in enumerate(grid)
        ]
        _check_values(listed)
        return tuple(listed)
    _check_learner(estimator, "`estimator`", allows_regression)
    if not all(product_grids(grid)):
        raise ValueError(
            f"`param_grid` must set at least one parameter, such as {{'C': [1, 10]}}, "
            f"got {show(grid)}; to certify the estimator as it is, write "
            f"dsel.certify(estimator, X, y, pool)."
        )
    table = ParameterGrid(grid)
    if len(table) > MOST_CANDIDATES:
        _refuse_many(f"{len(table):,}")
    settings, known = list(table), frozenset(estimator.get_params(deep=True))
    candidates = []
    for index, params in enumerate(settings):
        # The value is copied, since the caller may change objects of the grid later.
        copied = _copy_value(params, "param_grid")
        model = _with_params(estimator, params, known)
        shown = f"the candidate {shorten(str(params), 60)} of `param_grid`"
        _check_learner(model, shown, allows_regression)
        candidates.append(Candidate(index, copied, model))
    _check_one_kind([candidate.estimator for candidate in candidates])
    _check_values(candidates)
    return tuple(candidates)


def caveats_of_parameters(
    estimator: Estimator | None, candidates: Iterable[Candidate]
) -> list[str]:
    """Return a caveat for each parameter that only `set_params` knows.

    Learners of other libraries accept aliases and options that `get_params` does not
    list; some accept any name, so that a misspelled one has no effect.
    """
    if estimator is None:
        return []
    known, owners = estimator.get_params(deep=True), dict[str, str]()
    for candidate in candidates:
        for name in candidate.params.keys() - known.keys() - owners.keys():
            # The estimator to which it belongs may come from the grid, too.
            other_params = {k: v for k, v in candidate.params.items() if k != name}
            owner, last = _owner(_with_params(estimator, other_params, known), name, {})
            if last not in owner.get_params(deep=True):
                owners[name] = type(owner).__name__
    return [
        f"`{name}` is not listed by get_params of {owner}; it was passed to set_params"
        for name, owner in sorted(owners.items())
    ]


def _with_params(estimator: Estimator, params: Options, known: Collection[str]) -> Any:
    """Return a clone of an estimator with clones of these values set.

    `known` are the names that its `get_params` lists. Parameters of the grid are set
    only here. An estimator among the values is cloned for each candidate, at any depth,
    as scikit-learn does: otherwise candidates would share it, and fits would change the
    caller's.
    """
    model = _copy_value(estimator, "estimator")
    values = _copy_value(params, "param_grid")
    try:
        model.set_params(**values)
        unlisted = sorted(values.keys() - set(known))
        # Every fit uses a clone, which has only the parameters of get_params.
        listed = clone_value(model).get_params(deep=True) if unlisted else {}
    except Exception as error:  # learners of other libraries raise any error
        _check_has_names(estimator, params, error)
        with Candidate(0, params, estimator).name_in_errors():
            raise
    for name in unlisted:
        if name not in listed:
            owner, _ = _owner(model, name, {})
            raise ValueError(
                f"`param_grid` sets {name!r}, which set_params of "
                f"{type(owner).__name__} takes, but a clone of it has lost it; list "
                f"it in get_params."
            )
    return model


NAMES_ELSEWHERE: Final = {
    "n_trees": "n_estimators",
    "num_trees": "n_estimators",
    "ntree": "n_estimators",
    "mtry": "max_features",
    "depth": "max_depth",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "lambda": "alpha",
}
"""Names of parameters in other packages, by which a message finds scikit-learn's."""
_NO_CHOICES: Final = ("cache_size", "copy_X", "n_jobs", "random_state", "verbose")
"""Parameters between whose values no search chooses."""


def _check_has_names(estimator: Estimator, params: Options, error: Exception) -> None:
    """Raise ValueError if `set_params` raised an error since a part lacks a name."""
    for name in sorted(params):
        owner, last = _owner(estimator, name, params)
        parameters = sorted(
            key for key in owner.get_params(deep=True) if "__" not in key
        )
        # CatBoost's clones lose a parameter that is None: no other name would help.
        if last in parameters or isinstance(error, KeyError):
            continue
        known = estimator.get_params(deep=True)
        full_names = sorted(key for key in known if key.endswith(f"__{last}"))
        # `get_params` of CatBoost lists only what was set.
        meant = NAMES_ELSEWHERE.get(last, last)
        near = nearest_name(meant, [*parameters, *signature(type(owner)).parameters])
        end = "."
        if near is not None:  # the whole name, which can be copied into the grid
            path = name.split("__")
            path[path.index(last)] = str(near)
            end = f"; did you mean {'__'.join(path)!r}?"
        if full_names:  # the parameter of a step without the name of the step
            end = f"; did you mean {' or '.join(map(repr, full_names))}?"
        raise ValueError(
            f"`param_grid` sets {name!r}, which {type(owner).__name__} lacks; it has "
            f"{', '.join(n for n in parameters if n not in _NO_CHOICES) or 'none'}{end}"
        ) from error


def check_names_of_search(search: object) -> None:
    """Raise ValueError where the grid of a search has a name its estimator lacks.

    Otherwise each fit of the search would fail, after the plan has been made.
    `set_params` decides which names there are, as for a grid of dsel's own.
    """
    estimator: Any = getattr(search, "estimator", None)
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return
    # Other iterables than lists may be read once only, by the search.
    for grid in grids if isinstance(grids, list | tuple) else [grids]:
        if not isinstance(grid, Mapping):
            return
        params = {
            str(name): values[0] if is_list(values) and len(values) else None
            for name, values in grid.items()
        }
        if params.keys() <= estimator.get_params(deep=True).keys():
            continue
        try:
            model = clone_value(estimator).set_params(**clone_value(params))
            clone_value(model)
        except Exception as error:  # learners of other libraries raise any error
            _check_has_names(estimator, params, error)


def _owner(estimator: Any, name: str, params: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the object to which a parameter belongs, and the parameter's name there.

    Estimators in `params` replace parts of the estimator. If a part is missing, its
    name is returned.
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
    """Return a copy, in which estimators at any depth are unfitted clones."""
    try:
        return clone_value(value)
    except Exception as error:  # a user's class may raise any error
        raise TypeError(
            f"`{name}` must hold what can be copied for each candidate, as "
            f"sklearn.base.clone does, got {shorten(repr(value), 100)}: "
            f"{shorten(str(error), 200)}"
        ) from error


def takes_nan(estimators: Iterable[Estimator]) -> bool:
    """Return whether every estimator, fitted or not, declares to accept missing values.

    A ColumnTransformer may accept them in some columns, which its tags cannot declare:
    it counts as accepting, and its fits raise if it does not.
    """
    return all(
        hasattr(step, "transformers")
        # A class is refused where steps are checked, by its name.
        or (not isinstance(step, type) and get_tags(step).input_tags.allow_nan)
        for estimator in estimators
        for step in _readers_of_gaps(estimator)
    )


_LEAVE_GAPS: Final = "sklearn.preprocessing._data", "sklearn.feature_selection"
"""Modules of transformers, such as StandardScaler, that leave missing values there."""


def _readers_of_gaps(estimator: Any) -> Iterator[Any]:
    """Yield the steps of an estimator that get the missing values of its rows.

    The tags of a pipeline do not show what its later steps accept.
    """
    step = first_step(estimator)
    yield step
    if not isinstance(estimator, Pipeline):
        return
    steps = [
        transformer
        for _, transformer in estimator.steps
        if transformer not in (None, "passthrough")
    ]
    if len(steps) > 1 and type(step).__module__.startswith(_LEAVE_GAPS):
        later_steps = Pipeline(
            [(str(n), transformer) for n, transformer in enumerate(steps[1:])]
        )
        yield from _readers_of_gaps(later_steps)


def _is_number(value: object) -> bool:
    return isinstance(value, Number | np.bool_)


def check_text(estimators: Iterable[Estimator], X: RowsLike) -> None:
    """Raise TypeError if a table with other values goes to an estimator of numbers.

    Only estimators of scikit-learn are checked; others raise in their fits.
    """
    if not isinstance(X, Frame):
        return
    # scikit-learn takes columns of gaps, and mixed ones of numbers, for numbers.
    others = [
        column
        for column in X.schema.columns
        if not column.is_number
        and column.kind != NOTHING
        and not (
            column.kind.startswith("mixed")
            and X.given[column.name].dropna().map(_is_number).all()
        )
    ]
    passed_on = dict[str, list[str]]()
    for estimator in estimators if others else ():
        step, *later_steps = flat_steps(estimator)
        if type(step) is ColumnTransformer and later_steps:
            key = repr((step.transformers, step.remainder))
            if key not in passed_on:  # most candidates have the same transformer
                passed_on[key] = _columns_passed_on(step, X)
            columns = [c for c in others if c.name in passed_on[key]]
            _check_step(
                later_steps[0], X, columns, ", which ColumnTransformer passes on"
            )
        else:
            _check_step(step, X, others)


def _check_step(step: Any, X: Frame, others: Sequence[Column], way: str = "") -> None:
    """Raise TypeError if a step gets columns of other kinds than it takes.

    `others` are columns that it gets and that are no numbers; `way` says how it gets
    them.
    """
    module = type(step).__module__
    takes_numbers = module.startswith(_OF_NUMBERS)
    if module.startswith("sklearn.impute"):
        takes_numbers = getattr(step, "strategy", "mean") in ("mean", "median")
    if takes_numbers and others:
        raise X.encoding_error(others, way)
    if module.startswith(_OF_CATEGORIES):
        _check_categories(step, X, others, way)


def _check_categories(
    step: Estimator, X: Frame, others: Sequence[Column], way: str
) -> None:
    """Raise TypeError for columns that are no categories which an estimator takes."""
    options = step.get_params()
    n_values = {column.name: X.given[column.name].nunique() for column in others}
    are_categories = {
        column.name: str(X.given[column.name].dtype).startswith(_CATEGORICAL_TYPES)
        for column in others
    }
    if options["categorical_features"] != "from_dtype":
        wrong = [column for column in others if column.is_time]
    else:
        wrong = [
            column
            for column in others
            if not are_categories[column.name]
            or n_values[column.name] > options["max_bins"]
        ]
    if not wrong:
        return
    names = [column.name for column in wrong]
    are_texts = all(c.kind == TEXT and not are_categories[c.name] for c in wrong)
    # Of categories it makes better use than of a column for each value.
    ways = find_ways(X.given[names])
    if are_texts and not way and ways.is_ready and not ways.owners:
        types = ", ".join(f"{name!r}: 'category'" for name in names)
        raise TypeError(
            f"`X` holds text in {listing([*map(repr, names)], 5)}, of which "
            f"{type(step).__name__} takes categories only; pass columns of this type, "
            f"in pandas X.astype({{{types}}}), and the pool likewise."
        )
    most = f"numbers, and categories of at most {options['max_bins']} values,"
    raise X.encoding_error(wrong, way, most)


def _columns_passed_on(step: ColumnTransformer, X: Frame) -> list[str]:
    """Return the columns that a transformer leaves as they are."""
    parts = [
        (name, part if part == "passthrough" else "drop", columns)
        for name, part, columns in step.transformers
    ]
    rest = step.remainder if step.remainder == "passthrough" else "drop"
    passing = ColumnTransformer(parts, remainder=rest, verbose_feature_names_out=False)
    passing.set_output(transform="pandas")
    try:
        return [*passing.fit_transform(X.given.head(1)).columns]
    # Columns that are not there, or a function that chooses them; its fits say why.
    except Exception:
        return []


def _check_learner(estimator: Estimator, name: str, allows_regression: bool) -> None:
    """Raise TypeError where an estimator is no learner that the bounds are about."""
    needed = "fit", "get_params", "set_params"
    if isinstance(estimator, type) or not all(hasattr(estimator, n) for n in needed):
        also = ", or a regressor such as `Ridge()`" if allows_regression else ""
        raise TypeError(
            f"{name} must be an unfitted scikit-learn classifier such as "
            f"`SVC()`{also}, got {show_model(estimator)}."
        )
    if not hasattr(estimator, "__sklearn_tags__"):
        raise TypeError(
            f"{name} must be an estimator of scikit-learn, and "
            f"{type(estimator).__name__} has no tags; inherit from "
            f"sklearn.base.BaseEstimator, too."
        )
    _check_parts(estimator, name)
    if is_classifier(estimator) or (allows_regression and is_regressor(estimator)):
        return
    kinds, bounds = "classifier", "the bounds are about wrong labels"
    if allows_regression:
        kinds = "classifier or a regressor"
        bounds += ", or about how far off predictions are"
    raise TypeError(
        f"{name} must be a {kinds}, got {type(estimator).__name__}; {bounds}."
    )


def _check_one_kind(estimators: Sequence[Estimator]) -> None:
    """Raise TypeError if some are classifiers and others are regressors."""
    kinds = [is_classifier(estimator) for estimator in estimators]
    if any(kinds) and not all(kinds):
        labels, numbers = (
            type(estimators[kinds.index(kind)]).__name__ for kind in (True, False)
        )
        raise TypeError(
            f"`param_grid` must list classifiers or regressors, got both: {labels} "
            f"predicts labels, {numbers} predicts numbers; search each kind by itself."
        )


def with_learner_tags(tags: Tags, estimator: Estimator | None) -> Tags:
    """Return the tags of a search, with the input and target tags of its estimator."""
    if estimator is None:
        return tags
    # `fit` refuses an object that is no estimator, with a clearer error.
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator)
    if tags.estimator_type is None:  # a search of regressors is a regressor
        tags.estimator_type = "regressor" if is_regressor(estimator) else "classifier"
    # A search counts one label for each row, even if the learner accepts several.
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
    """Raise if a part of the estimator would fail in every fit."""
    try:
        params: Any = estimator.get_params(deep=True)
    except Exception as error:  # learners of other libraries raise any error
        class_in_value = _class_in(estimator)
        why = f"has parameters that cannot be read: {shorten(str(error), 200)}"
        if class_in_value is not None:
            kind = class_in_value.__name__
            why = (
                f"holds the class {kind} in the place of an estimator; write {kind}()."
            )
        raise TypeError(f"{name} {why}") from error
    if not isinstance(params, Mapping):  # Dask's delayed objects have any method
        raise TypeError(
            f"{name} must be an estimator of scikit-learn, got "
            f"{type(estimator).__name__}; pass the estimator itself."
        )
    # Numbers and texts have no parts; this is asked for each candidate.
    plain = (type, bool, int, float, str, type(None))
    for instance in (
        value for value in (estimator, *params.values()) if not isinstance(value, plain)
    ):
        _check_steps(instance, name)
        if getattr(instance, "refit", True) is False and hasattr(instance, "fit"):
            raise ValueError(
                f"{name} holds {type(instance).__name__}(refit=False), which cannot "
                f"predict; leave `refit` out."
            )
        grid = f"the grid of the {type(instance).__name__} of {name}"
        with rename_in_errors({"`param_grid`": grid}):
            check_names_of_search(instance)
        cv = getattr(instance, "cv", None) if hasattr(instance, "fit") else None
        cv = getattr(cv, "cv", cv)  # scikit-learn's wrapper of a list
        is_list = isinstance(cv, Iterable) and not isinstance(cv, str)
        if is_list or isinstance(cv, PredefinedSplit):
            kind = type(cv).__name__
            raise ValueError(
                f"{name} holds {type(instance).__name__}(cv=...) with row numbers of "
                f"all labeled rows ({kind}), but it is fitted on fewer of them; give "
                f"its `cv` as a number or as a splitter such as StratifiedKFold(5)."
            )


def _check_values(candidates: Sequence[Candidate]) -> None:
    """Raise ValueError where scikit-learn would refuse every fit of every candidate.

    Some candidates may fail, as in `GridSearchCV`: the others go on.
    """
    errors = []
    for candidate in candidates:
        try:
            _check_constraints(candidate.estimator)
            return
        except ValueError as error:
            errors.append(error)
    with candidates[0].name_in_errors():
        raise errors[0]


def _check_constraints(estimator: Any) -> None:
    """Raise ValueError for values with which scikit-learn refuses every fit.

    Parts that are not fitted as they are, such as the estimator of an inner search, are
    not checked, nor is an SVC: its family takes more values than scikit-learn does.
    """
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            _check_constraints(step)
    is_theirs = type(estimator).__module__.startswith("sklearn.")
    has_rules = is_theirs and hasattr(estimator, "_parameter_constraints")
    is_wanted = not get_config()["skip_parameter_validation"]
    if has_rules and is_wanted and type(estimator) is not SVC:
        estimator._validate_params()


def _class_in(value: Any) -> type | None:
    """Return the first class of estimators in an estimator's parts and steps."""
    if isinstance(value, type):
        return value if hasattr(value, "get_params") else None
    if hasattr(value, "get_params"):
        value = list(value.get_params(deep=False).values())
    classes = map(_class_in, value) if isinstance(value, list | tuple) else ()
    return next((known for known in classes if known is not None), None)


def _check_steps(estimator: Estimator, name: str) -> None:
    """Raise if a pipeline, a union or columns cannot call one of their transformers."""
    known = [entry for entry in _COMPOSITIONS if isinstance(estimator, entry[0])]
    if not known:
        return
    [(_, attribute, size)] = known
    steps, owner = getattr(estimator, attribute), type(estimator).__name__
    is_pipeline = isinstance(estimator, Pipeline)
    are_named = isinstance(steps, list | tuple) and all(
        isinstance(step, tuple | list) and len(step) == size for step in steps
    )
    if not are_named or (is_pipeline and not steps):
        shape = "('name', step)" if size == 2 else "('name', transformer, columns)"
        raise TypeError(
            f"{name} must list the steps of its {owner} as {shape}, got {show(steps)}."
        )
    # Pipelines are fitted in two parts, so scikit-learn does not compare all names.
    for step, n_times in Counter(str(step[0]) for step in steps).items():
        if n_times > 1:
            raise ValueError(
                f"{name} has the step {step!r} twice in its {owner}; rename one."
            )
    # This also finds the pipeline of imbalanced-learn, or a subclass of it.
    takes_samplers = any(
        base.__module__.startswith("imblearn.") for base in type(estimator).__mro__
    )
    for step, transformer, *_ in steps[:-1] if is_pipeline else steps:
        kind = type(transformer).__name__
        if takes_samplers and isinstance(transformer, Pipeline):
            raise TypeError(
                f"{name} has the step {step!r}, a pipeline, before the last one of "
                f"imbalanced-learn's {owner}; put the steps of it in its place."
            )
        is_left_out = transformer is None or transformer in ("drop", "passthrough")
        if is_left_out or hasattr(transformer, "transform"):
            continue
        if not hasattr(transformer, "fit_resample"):
            raise TypeError(
                f"{name} has the step {step!r} ({kind}) in the place of a "
                f"transformer of its {owner}: it has no `transform`."
            )
        if not takes_samplers:
            way = "build it with" if is_pipeline else "make it a step of"
            raise TypeError(
                f"{name} has the step {step!r} ({kind}), a sampler, which "
                f"scikit-learn's {owner} cannot use; {way} imblearn.pipeline.Pipeline "
                f"instead, with the same steps."
            )


def candidate_texts(candidates: Iterable[Candidate]) -> dict[int, str]:
    """Return a unique text for each candidate, by candidate number.

    Candidates with equal texts are numbered in their order.
    """
    counts: Counter[str] = Counter()
    texts = {}
    for candidate in candidates:
        text = exact_text([candidate.params or candidate.estimator])
        counts[text] += 1
        texts[candidate.number] = f"{text}#{counts[text]}" if counts[text] > 1 else text
    return texts


def candidate_key(family_name: str, candidate: Candidate, text: str) -> str:
    """Return the key of a candidate, whose text is unique in its plan."""
    what = f"{type(candidate.estimator).__qualname__} {text}"
    return blake2b(f"{family_name} {what}".encode(), digest_size=12).hexdigest()
