"""Comparison of two fitted models: one pass over the pool, then a few labels."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dsel.arrays import ArrayLike, Features, Integers, RandomState
from dsel.candidates import takes_nan
from dsel.checks import (
    as_array,
    check_delta,
    check_integer,
    explain_unknown,
    listing,
    show,
)
from dsel.data.duplicate_rows import FindDuplicates, duplicate_finder
from dsel.data.labeled import (
    LabeledRows,
    match_pool,
    names_of_columns,
    with_columns,
    wrap_unlabeled_rows,
)
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.query_rows import (
    frame_for_labeling,
    merge_smallest,
    query_words,
    read_pool_rows,
    smallest_rows,
    with_pool_index,
)
from dsel.data.row_random import seed_from
from dsel.families.family import error_line
from dsel.results.comparison import ModelComparison
from dsel.results.row_hashes import load_row_hashes
from dsel.search.design.baseline import (
    ConvertingModel,
    PredictedShapeError,
    describe_sources,
    fitted_model,
)
from dsel.typing import AnyArray, Model, PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client


class _Queried(NamedTuple):
    """Rows on which the models differ, those with the smallest random words so far."""

    words: NDArray[np.uint64]
    rows: Integers
    old: NDArray[Any]
    new: NDArray[Any]
    X: Any
    """The rows; None if they have columns that no model uses."""


@dataclass(frozen=True)
class _PoolDifferences:
    """Counts of one pass over the pool; those of blocks add up in any order."""

    n_differ: int
    n_duplicates: int
    n_duplicates_differ: int
    queried: _Queried

    def merge(self, other: "_PoolDifferences", n_queries: int) -> "_PoolDifferences":
        """Return the counts of both parts, with the rows of the smallest words."""
        return _PoolDifferences(
            self.n_differ + other.n_differ,
            self.n_duplicates + other.n_duplicates,
            self.n_duplicates_differ + other.n_duplicates_differ,
            _Queried._make(merge_smallest(self.queried, other.queried, n_queries)),
        )


@dataclass(frozen=True, kw_only=True)
class PoolCounter:
    """Counts the rows of a block on which two models differ, and draws some of them."""

    old: ConvertingModel
    new: ConvertingModel
    find_duplicates: FindDuplicates | None
    """Function that finds rows on which one of the models was trained; None if there
    are none."""
    n_queries: int
    seed: int
    keeps_rows: bool
    """Whether queried rows are kept, so that they need not be read again."""

    def count(self, X: Features, row_numbers: Integers) -> _PoolDifferences:
        """Return the counts of a block with these row numbers."""
        before, after = _predict(self.old, X), _predict(self.new, X)
        _check_types(before, after)
        differs = np.asarray(before != after)
        duplicates = np.zeros(len(row_numbers), np.bool_)
        if self.find_duplicates is not None:
            duplicates = self.find_duplicates(X)
        # The models may have memorized duplicates, so labels of these show nothing.
        fresh = np.flatnonzero(differs & ~duplicates)
        columns = query_words(self.seed, row_numbers[fresh]), row_numbers[fresh], fresh
        words, queried_rows, positions = smallest_rows(columns, self.n_queries)
        X_queried = X[positions] if self.keeps_rows else None
        return _PoolDifferences(
            len(fresh),
            int(duplicates.sum()),
            int((duplicates & differs).sum()),
            _Queried(
                words, queried_rows, before[positions], after[positions], X_queried
            ),
        )


def _predict(model: ConvertingModel, X: Features) -> AnyArray:
    """Return the predictions of one of the models; errors name its argument."""
    try:
        return model.predict(X)
    except PredictedShapeError:
        raise
    except Exception as error:  # models of users may raise any error
        raise ValueError(
            f"`{model.name}` {type(model.model).__name__} cannot predict the rows of "
            f"`pool`: {error_line(error).rstrip('.')}; pass a pool of rows such as it "
            f"was fitted to, or mend its `predict`."
        ) from error


@explain_unknown()
def compare_models(
    old: Model | PathLike,
    new: Model | PathLike,
    pool: PoolLike,
    *,
    n_queries: int = 0,
    classes: ArrayLike | None = None,
    X_seen: RowsLike | None = None,
    delta: float = 0.05,
    random_state: RandomState = None,
    client: "Client | None" = None,
) -> ModelComparison:
    """Compare the errors of two models on the pool rows where they differ.

    One pass counts the pool rows on which the models differ, and draws some of them for
    labeling. Their labels show which model is right there; on all other rows both
    models make the same errors.

    Parameters
    ----------
    old, new
        Fitted models with `predict`, or places that `open_model` opens. A model of a
        place finds its columns in a pool by their names. A fitted model that learned
        from an array has no names: it gets all columns of the pool, by position.
    pool
        Unlabeled rows that neither model was trained on: anything that `open_pool`
        takes. Columns that no model uses are shown to the person who labels.
    n_queries
        Number of rows to label, among those on which the models differ; with 0 the
        limits come from the pool alone. Part of the plan: decide before any label is
        known.
    classes
        All labels of the target; by default those that both models know. If they know
        none, every label counts as a class.
    X_seen
        Rows that one of the models was trained on. Pool rows that equal one of them
        are never queried. Those of a place of results need not be passed: it has
        hashes of them.
    delta
        Probability that an end of the interval fails, in ``(0, 0.5]``.
    random_state
        Seed of the draw of rows.
    client
        Dask client; None is the current one, else this machine.

    Returns
    -------
    ModelComparison
        Its print is the verdict; `query_rows` has the rows to label, and
        `certify_with_labels` takes the labels.

    Raises
    ------
    TypeError
        If a model predicts numbers, or both predict labels of different types.
    ValueError
        If a model is not fitted, or does not accept the pool's columns, or the models
        have no class in common and `classes` does not declare them.

    Notes
    -----
    Guarantee: see `ModelComparison`.
    Assumes: A1 for the pool and the rows that the models will get; A4, that neither
    model depends on pool rows, labeled or not, except duplicates of `X_seen`; A7.
    Source: co-validation [1]_, whose disagreement on unlabeled rows shows which labels
    are worth their cost; the limits of :mod:`dsel.bounds.queried_differences`.

    References
    ----------
    .. [1] O. Madani, D. Pennock and G. Flake, "Co-Validation: Using Model Disagreement
       on Unlabeled Data to Validate Classification Algorithms", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> old = LogisticRegression(C=1e-4, max_iter=500).fit(X[:200], y[:200])
    >>> new = SVC().fit(X[:200], y[:200])
    >>> question = compare_models(old, new, X[200:], n_queries=60, random_state=0)
    >>> rows = question.query_rows()  # to be labeled; here the labels are known
    >>> answer = question.certify_with_labels(y[200:][rows.index])
    >>> answer.is_better, round(answer.lower, 3), round(answer.upper, 3)
    (True, -0.138, -0.028)
    """
    places = [place for place in (old, new) if isinstance(place, (str, os.PathLike))]
    return compare_fitted_models(
        fitted_model(old, "old"),
        fitted_model(new, "new"),
        pool,
        places=places,
        n_queries=n_queries,
        classes=classes,
        X_seen=X_seen,
        delta=delta,
        random_state=random_state,
        client=client,
    )


def compare_fitted_models(
    old: Model,
    new: Model,
    pool: PoolLike,
    *,
    places: Sequence[PathLike],
    n_queries: int = 0,
    classes: ArrayLike | None = None,
    X_seen: RowsLike | None = None,
    delta: float = 0.05,
    random_state: RandomState = None,
    client: "Client | None" = None,
) -> ModelComparison:
    """Compare models that were opened from `places`, as `compare_models` does."""
    delta = check_delta(delta)
    n_queries = check_integer(n_queries, "n_queries", at_least=0)
    seed = seed_from(random_state)
    models = {"old": old, "new": new}
    known = _known_classes(models, classes)
    full = open_pool(pool)
    seen_labeled_rows = None if X_seen is None else wrap_unlabeled_rows(X_seen)
    counted, (old_model, new_model) = _match_columns(models, full, seen_labeled_rows)
    allow_nan = takes_nan([m for m in models.values() if isinstance(m, BaseEstimator)])
    counter = PoolCounter(
        old=old_model,
        new=new_model,
        find_duplicates=_make_row_finder(counted, seen_labeled_rows, places),
        n_queries=n_queries,
        seed=seed,
        # Drawn rows lie in nearly all blocks of the pool, so that reading them again
        # would take a second pass: they are kept where the pass reads all columns.
        keeps_rows=counted.dtype.kind != "O" and counted.columns == full.columns,
    )
    # One row is predicted first, so that an unfitted model or wrong columns raise here
    # at once.
    counted.reduce(
        lambda X, rows: counter.count(X[:1], rows[:1]),
        lambda first, _: first,
        slices=counted.slices(1)[:1],
        client=client,
        allow_nan=allow_nan,
    )
    counts = counted.reduce(
        counter.count,
        lambda before, after: before.merge(after, n_queries),
        client=client,
        allow_nan=allow_nan,
    )
    queried = counts.queried
    order = np.argsort(queried.rows)
    rows = tuple(queried.rows[order].tolist())
    shown = None
    if rows and counter.keeps_rows:
        shown = frame_for_labeling(queried.X[order], queried.rows[order], full.columns)
    elif rows:
        shown = read_pool_rows(full, rows, client=client)
    return ModelComparison(
        delta=delta,
        n_unlabeled=counted.n_rows,
        n_differ=counts.n_differ,
        n_queries=n_queries,
        n_duplicates=None if counter.find_duplicates is None else counts.n_duplicates,
        n_duplicates_differ=counts.n_duplicates_differ,
        classes=known,
        rows=rows,
        old_predictions=tuple(queried.old[order].tolist()),
        new_predictions=tuple(queried.new[order].tolist()),
        seed=seed,
        sources=describe_sources({f"{name} model": m for name, m in models.items()}),
        pool_rows=None if shown is None else with_pool_index(shown, full),
    )


def _make_row_finder(
    pool: Pool, seen_labeled_rows: LabeledRows | None, places: Iterable[PathLike]
) -> FindDuplicates | None:
    """Return a function that finds pool rows on which a model was trained.

    These are `seen_labeled_rows` and the labeled rows of the runs that stored the
    models; None where neither is known. A pool that is declared to hold other records
    has none of them.
    """
    if pool.other_records:
        return lambda X: np.zeros(X.shape[0], np.bool_)
    finders = (
        [] if seen_labeled_rows is None else [duplicate_finder(pool, seen_labeled_rows)]
    )
    finders += [
        partial(known.find, names=pool.columns)
        for known in map(load_row_hashes, places)
        if known is not None
    ]
    if not finders:
        return None
    return lambda X: np.logical_or.reduce([find(X) for find in finders])


def _known_classes(
    models: Mapping[str, Model], classes: ArrayLike | None
) -> tuple[Any, ...] | None:
    """Return the classes that are declared or that both models know, else None."""
    if classes is not None:
        given_labels = np.atleast_1d(as_array(classes, "classes"))
        # Python cannot order `None` and other objects.
        is_sorted = given_labels.dtype.kind in "biufU" or all(
            isinstance(label, str) for label in given_labels.flat
        )
        listed = np.unique(given_labels) if is_sorted else given_labels[:0]
        if listed.size < 2 or given_labels.ndim != 1:
            raise ValueError(
                f"`classes` must list at least two labels, got {show(classes)}."
            )
        return tuple(listed.tolist())
    known = [getattr(model, "classes_", None) for model in models.values()]
    if any(labels is None for labels in known):
        return None
    old, new = map(np.asarray, known)
    _check_types(old, new)
    if len(old) and len(new) and not np.isin(old, new).any():
        raise ValueError(
            f"`old` predicts {', '.join(map(str, old[:8]))}; `new` predicts "
            f"{', '.join(map(str, new[:8]))}: they answer different questions; "
            f"train one of them on the labels of the other."
        )
    return tuple(np.unique(np.concatenate([old, new])).tolist())


def _fractions(labels: AnyArray) -> list[Any]:
    """Return the labels that are fractions, as no class is."""
    if labels.dtype.kind == "f":
        return list(labels[np.isfinite(labels) & (labels % 1 != 0)].tolist())
    if labels.dtype.kind == "O":
        return [
            label
            for label in labels
            if isinstance(label, Real) and isfinite(label) and label % 1 != 0
        ]
    return []


def _check_types(old: AnyArray, new: AnyArray) -> None:
    """Raise if one model predicts texts and the other does not, or one scores."""
    if not (len(old) and len(new)):
        return
    for name, labels in (("old", old), ("new", new)):
        scores = _fractions(labels)
        if len(scores):
            raise ValueError(
                f"`{name}` must predict labels, got {show(scores[0])}: "
                f"regressors are not compared here; a model that predicts scores of "
                f"classes needs a `predict` that returns labels, such as "
                f"classes_[scores.argmax(axis=1)]."
            )
    samples = old[0], new[0]
    if isinstance(samples[0], str) != isinstance(samples[1], str):
        raise TypeError(
            f"`old` and `new` must predict labels of one type, got "
            f"{samples[0].item() if hasattr(samples[0], 'item') else samples[0]!r} and "
            f"{samples[1].item() if hasattr(samples[1], 'item') else samples[1]!r}; "
            f"train one of them on the labels of the other."
        )


def _match_columns(
    models: Mapping[str, Model], pool: Pool, seen_labeled_rows: LabeledRows | None
) -> tuple[Pool, list[ConvertingModel]]:
    """Return the pool with the needed columns, and models that convert its rows."""
    named = {
        name: names_of_columns(model) if pool.columns else None
        for name, model in models.items()
    }
    if seen_labeled_rows is not None:
        # Rows are compared in the columns and types that were trained on.
        pool = match_pool(pool, seen_labeled_rows)
    elif all(named.values()):
        union = dict.fromkeys(
            column for columns in named.values() for column in columns or ()
        )
        pool = pool.with_columns(union, "the models")
    # A model without feature names gets rows as they are stored.
    takes_frame = {
        name: pool.frames is not None
        and (columns is not None or not hasattr(models[name], "n_features_in_"))
        for name, columns in named.items()
    }
    if seen_labeled_rows is None:
        schema = pool.frames if any(takes_frame.values()) else None
        pool = pool.with_schema(schema)
    for name, model in models.items():
        columns = named[name]
        if columns is not None:
            missing = [c for c in columns if c not in (pool.columns or ())]
            if missing:
                raise ValueError(
                    f"`{name}` was fitted with the column {missing[0]!r}, which the "
                    f"pool or `X_seen` lacks; give all columns of both models."
                )
        else:
            n_columns = getattr(model, "n_features_in_", pool.n_columns)
            with_columns(pool, n_columns, None)  # raises where their number differs
            order = pool.columns or ()
            known = next(filter(None, named.values()), order)
            is_other = known != order and {*known} == {*order}
            if is_other and not takes_frame[name]:
                raise ValueError(
                    f"`{name}` was fitted to rows without names of columns, and would "
                    f"get those of `pool` in their order, {listing(order, 10)}, but "
                    f"the other model has them in the order {listing(known, 10)}; "
                    f"bring the columns of `pool` into that order, if `{name}` was "
                    f"fitted in it."
                )
    return pool, [
        ConvertingModel(model, name, named[name], takes_frame[name])
        for name, model in models.items()
    ]
