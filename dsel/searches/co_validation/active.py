"""Uncertainty sampling: label the rows next that the model is least sure of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

from dsel.checks import check_integer, check_probability
from dsel.data.blocks import summed
from dsel.data.row_random import seed_from
from dsel.families.answers import class_scores
from dsel.families.prefixes import with_seeds


@dataclass(frozen=True)
class ActiveRun:
    """Rows in the order in which they were picked."""

    rows: NDArray[np.int64]
    """Row numbers, those of the random start first."""
    n_start: int
    query_probabilities: NDArray[np.float64]
    """Chance with which each was picked when it was; NaN for the greedy ones."""

    def prefix(self, n_rows: int) -> NDArray[np.int64]:
        """Return the first rows that were picked."""
        check_integer(n_rows, "n_rows", at_least=1, at_most=len(self.rows))
        return self.rows[:n_rows]


def sure_margins(model: Any, X: Any) -> NDArray[np.float64]:
    """Return the gap of the two best scores: how sure a classifier is of each row.

    Gaps are >= 0, shape (n_rows,); 0 is least sure, inf where one class is known.
    """
    if hasattr(model, "coef_") and model.coef_.shape[0] == 1:
        # One product, where a linear SVC would go through its support vectors.
        # Dense, since products with a sparse vector take many times as long.
        coef = model.coef_
        coef = np.ravel(coef.toarray() if hasattr(coef, "toarray") else coef)
        return np.asarray(2.0 * np.abs(X @ coef + model.intercept_))
    scores = class_scores(model, X, model.classes_)
    if scores.shape[1] < 2:
        return np.full(X.shape[0], np.inf)
    top = np.partition(scores, scores.shape[1] - 2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def sample_uncertain(
    estimator: Any,
    X: Any,
    label_of: Callable[[NDArray[np.int64]], ArrayLike],
    *,
    n_rows: int,
    n_start: int = 10,
    batch: int = 1,
    random_state: Any = 0,
) -> ActiveRun:
    """Pick rows to label by uncertainty sampling.

    After a random start the model is trained on what is labeled, and the rows with
    the smallest gap between the two best scores are labeled next.

    Parameters
    ----------
    estimator
        Unfitted classifier with `decision_function` or `predict_proba`.
    X
        Rows to pick from, shape (n, n_columns), of numbers: dense, CSR or a data frame.
    label_of
        Called with the numbers of picked rows; returns their labels.
    n_rows
        Rows to pick, the start included.
    n_start
        Random rows to start with. While they have one class only, rows are drawn at
        random until a second one appears.
    batch
        Rows to label before the model is trained again.
    random_state
        Seed of the start, of ties and of the learner.

    Returns
    -------
    ActiveRun
        The rows in their order; every prefix is a run of its own length where
        ``batch`` divides it. Labels so picked are no random sample: no certificate
        holds for what is trained on them.

    Raises
    ------
    ValueError
        Where `n_rows` is larger than the number of rows.
    """
    check_asked(estimator, label_of)
    X = summed(check_array(X, accept_sparse="csr", ensure_all_finite=False))
    check_integer(n_rows, "n_rows", at_least=1, at_most=X.shape[0])
    check_integer(n_start, "n_start", at_least=1, at_most=n_rows)
    check_integer(batch, "batch", at_least=1)
    seed = seed_from(random_state)
    order = np.random.Generator(np.random.Philox(seed)).permutation(X.shape[0])
    place = np.argsort(order)
    picked = order[:n_start]
    labels = list(labels_of(label_of, picked))
    while len(picked) < n_rows:
        gaps = np.zeros(X.shape[0])
        if len(set(labels)) > 1:
            model = fitted_on(estimator, X[picked], np.array(labels), seed)
            gaps = sure_margins(model, X)
        free = np.setdiff1d(order, picked, assume_unique=True)
        # Equal gaps are ordered at random, not as the rows of the table are.
        best = free[np.lexsort((place[free], gaps[free]))]
        chosen = best[: min(batch, n_rows - len(picked))]
        picked = np.concatenate([picked, chosen])
        labels.extend(labels_of(label_of, chosen))
    chances = np.full(n_rows, np.nan)
    chances[:n_start] = n_start / X.shape[0]
    return ActiveRun(picked, n_start, chances)


def check_asked(estimator: Any, label_of: Any) -> None:
    """Raise TypeError where rows cannot be picked or labeled by these."""
    ways = ("decision_function", "predict_proba")
    if isinstance(estimator, type) or not any(hasattr(estimator, way) for way in ways):
        raise TypeError(
            f"`estimator` must be an unfitted classifier with `decision_function` or "
            f"`predict_proba`, such as SVC(), got {estimator!r}."
        )
    if not callable(label_of):
        raise TypeError(
            f"`label_of` must be a function of row numbers that returns their labels, "
            f"such as y.__getitem__, got {type(label_of).__name__}."
        )


def labels_of(
    label_of: Callable[[NDArray[np.int64]], ArrayLike], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Ask for the labels of some rows; raise where it is not one for each."""
    labels = np.asarray(label_of(rows))
    if labels.shape != rows.shape:
        raise ValueError(
            f"`label_of` must return one label for each of the {len(rows)} rows that "
            f"it is asked for, got shape {labels.shape}."
        )
    if (missing := np.flatnonzero(pd.isna(labels))).size:
        raise ValueError(
            f"`label_of` must return a label for each row that it is asked for, but "
            f"that of row {rows[missing[0]]} is missing; leave such rows out of the "
            f"pool."
        )
    return labels


def fitted_on(estimator: Any, X: Any, y: NDArray[Any], seed: int) -> Any:
    """Return a fitted clone whose randomness is set by the seed and the rows."""
    return with_seeds(clone(estimator), seed, len(y)).fit(X, y)


def sample_logged(
    model: Any, X: Any, *, n_rows: int, least: float = 0.2, random_state: Any = 0
) -> ActiveRun:
    """Pick rows to test a fixed model, uncertain ones more often, with probabilities.

    Each row is drawn among those that are left: with probability `least` all of them
    have the same weight, else a row has the weight 1 / (1 + gap / median gap), where
    its gap is that between the model's two best scores.

    Parameters
    ----------
    model
        Fitted classifier with `decision_function` or `predict_proba`.
    X
        Rows to pick from, shape (n, n_columns), dense or CSR; not those it was
        trained on.
    n_rows
        Rows to pick.
    least
        Probability with which all rows that are left have the same weight, in (0, 1];
        `dsel.bounds.leveled_risk` takes it.
    random_state
        Seed of the draws.

    Returns
    -------
    ActiveRun
        Rows in order with their probabilities. From the labels of these rows
        `dsel.bounds.leveled_risk` makes an estimate of the model's error and an
        interval.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from dsel.bounds import leveled_risk
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier().fit(X[::2], y[::2])
    >>> run = sample_logged(model, X[1::2], n_rows=40, least=0.5)
    >>> wrong = model.predict(X[1::2][run.rows]) != y[1::2][run.rows]
    >>> found = leveled_risk(
    ...     wrong, run.query_probabilities, 75, least=0.5, delta=0.1)
    >>> truth = float(np.mean(model.predict(X[1::2]) != y[1::2]))
    >>> found.lower <= truth <= found.upper
    True
    """
    check_is_fitted(model)
    X = summed(X)
    size = X.shape[0]
    check_integer(n_rows, "n_rows", at_least=1, at_most=size)
    share = 1.0 if least == 1 else check_probability(least, "least")
    rng = np.random.Generator(np.random.Philox(seed_from(random_state)))
    gaps = sure_margins(model, X)
    finite = gaps[np.isfinite(gaps)]
    usual = float(np.median(finite)) if len(finite) else 1.0
    unsure = 1.0 / (1.0 + gaps / (usual or 1.0))
    free = np.ones(size, dtype=bool)
    rows, chances = np.empty(n_rows, np.int64), np.empty(n_rows)
    for place in range(n_rows):
        weights = np.where(free, unsure, 0.0)
        total = weights.sum()
        drawn = weights / total if total > 0 else free / free.sum()
        each = share * free / free.sum() + (1.0 - share) * drawn
        rows[place] = rng.choice(size, p=each / each.sum())
        chances[place] = each[rows[place]]
        free[rows[place]] = False
    return ActiveRun(rows, 0, chances)
