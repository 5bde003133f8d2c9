"""An estimate of the error on rows of another population, by a critic of the model."""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dsel.checks import check_probability
from dsel.data.blocks import stacked, summed
from dsel.data.labeled import check_labels
from dsel.data.row_random import seed_from


class ShiftedError(NamedTuple):
    """What a model's error on other rows may be; an estimate, no bound."""

    error: float
    """Sum of the other three, at most 1."""
    labeled_error: float
    """Error on the labeled rows that the critic did not see."""
    discrepancy: float
    """How much more often the critic differs on the other rows than on these."""
    room: float
    """For the chance in both rates."""


def estimate_under_shift(
    model: Any,
    X: Any,
    y: ArrayLike,
    others: Any,
    *,
    critic: Any = None,
    delta: float = 0.05,
    random_state: Any = None,
) -> ShiftedError:
    r"""Estimate a model's error on unlabeled rows of another population.

    A critic is trained to agree with the model on half of the labeled rows and to
    differ from it on half of the others. On the other halves, with :math:`\hat e` the
    model's error, :math:`\hat a` the rate at which both differ on :math:`n` labeled
    rows, and :math:`\hat d` that on :math:`m` others, the estimate is

    .. math:: \hat e + \max(\hat d - \hat a, 0)
              + \sqrt{\frac{n + 4m}{2nm} \ln\frac1\delta}.

    Parameters
    ----------
    model
        Fitted classifier.
    X, y
        Labeled rows that the model was not trained on.
    others
        Rows of the other population, such as some thousands of a pool.
    critic
        Unfitted classifier; by default a random forest. One that can learn more gives
        a larger estimate.
    delta
        Probability for the last term, in (0, 1).
    random_state
        Seed of the halves.

    Returns
    -------
    ShiftedError
        The estimate and its terms.

    Raises
    ------
    ValueError
        Where there are fewer than four rows of a kind, the model knows one class, or a
        row of `X` has no label.

    Notes
    -----
    Guarantee: none. It is a bound with probability ``1 - delta`` only if the critic
    differs from the model at least as much more on the other rows as the truth does,
    which nothing can check.
    Assumes: labeled rows from the population that the model was trained on.
    Source: E. Rosenfeld and S. Garg, (Almost) provable error bounds under distribution
    shift via disagreement discrepancy, NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 2))
    >>> y = X.sum(axis=1) > 0
    >>> model = LogisticRegression().fit(X[:300], y[:300])
    >>> found = estimate_under_shift(model, X[300:], y[300:], X + 1, random_state=0)
    >>> found.labeled_error < 0.02 < found.error < 1.0
    True
    """
    rng = np.random.default_rng(seed_from(random_state))
    share = check_probability(delta, "delta")
    X, others = summed(X), summed(others)
    labels = check_labels(y)
    given, there = (np.asarray(model.predict(rows)) for rows in (X, others))
    if len(labels) != len(given):
        raise ValueError(
            f"`y` must have a label for each of the {len(given)} rows of `X`, got "
            f"{len(labels)}."
        )
    classes = np.unique(np.concatenate([given, there, labels]))
    if min(len(given), len(there)) < 4 or len(classes) < 2:
        raise ValueError(
            f"`X` and `others` must have four rows or more, of two classes or more, "
            f"got {len(given)} and {len(there)} rows of {len(classes)} classes."
        )
    kept, held = np.array_split(rng.permutation(len(given)), 2)
    far, test = np.array_split(rng.permutation(len(there)), 2)
    n_each = min(len(kept), len(far))
    kept, far = kept[:n_each], far[:n_each]
    codes = np.searchsorted(classes, there[far])
    away = classes[(codes + rng.integers(1, len(classes), n_each)) % len(classes)]
    if critic is None:
        from sklearn.ensemble import RandomForestClassifier  # takes a while to import
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        # A forest takes values that differ by less than 1e-7 for equal.
        critic = make_pipeline(
            StandardScaler(with_mean=False),
            RandomForestClassifier(min_samples_leaf=5, random_state=0),
        )
    rows = [_safe_indexing(X, kept), _safe_indexing(others, far)]
    fitted = clone(critic).fit(stacked(rows), np.concatenate([given[kept], away]))
    agrees = fitted.predict(_safe_indexing(X, held)) == given[held]
    differs = fitted.predict(_safe_indexing(others, test)) != there[test]
    n, m = len(held), len(test)
    labeled = float(np.mean(given[held] != labels[held]))
    discrepancy = max(float(np.mean(differs)) - float(np.mean(~agrees)), 0.0)
    room = sqrt((n + 4 * m) / (2 * n * m) * log(1.0 / share))
    total = min(labeled + discrepancy + room, 1.0)
    return ShiftedError(total, labeled, discrepancy, room)
