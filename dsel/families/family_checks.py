"""A check for families that users add."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Estimator, Integers
from dsel.checks import show
from dsel.data.cache import process_cache
from dsel.data.splits import fold_splits, random_folds
from dsel.families.family import N_PARTS, Candidate, Family, FittedGroup
from dsel.results.fit_messages import FitMessage


def check_family(
    family: Family,
    estimators: Sequence[Estimator],
    X: NDArray[np.generic],
    y: NDArray[np.generic],
) -> None:
    """Raise where a family's counts for one fit depend on the other fits of a call.

    Parameters
    ----------
    family
        A member of `Family`.
    estimators
        Unfitted candidates that the family takes, with several that share work if the
        family shares any.
    X, y
        Rows, (n_rows, n_columns), and labels. Three folds are fitted.

    Raises
    ------
    TypeError, ValueError
        With the method of `Family` or `FittedGroup` that breaks the interface.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from dsel.families.generic import ScikitLearnFamily
    >>> X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    >>> family = ScikitLearnFamily(np.array([0, 1]), seed=0)
    >>> check_family(family, [DecisionTreeClassifier(max_depth=2)], X, y)
    """
    name = type(family).__name__
    candidates = [Candidate(n, {}, estimator) for n, estimator in enumerate(estimators)]
    for candidate in candidates:
        if (refusal := family.refusal(candidate.estimator)) is not None:
            raise ValueError(
                f"{name} must take {candidate.estimator!r}, but refuses it"
                f"{refusal and f': {refusal}'}."
            )
    family = deepcopy(family)
    codes = np.searchsorted(family.classes, y)
    splits = fold_splits(random_folds(len(y), 3, seed=0))
    candidate_groups = family.group_candidates(candidates)
    if sorted(
        c.number for candidate_group in candidate_groups for c in candidate_group
    ) != [*range(len(candidates))]:
        raise ValueError(f"{name}.group_candidates must have each candidate once.")

    def fit(
        candidates: Sequence[Candidate], splits_to_fit: Sequence[Any]
    ) -> FittedGroup:
        return family.fit(candidates, X, codes, splits_to_fit, cache=process_cache())

    predictions: dict[str, bytes] = {}
    fitted = [fit(candidate_group, splits) for candidate_group in candidate_groups]
    for candidate_group, together in zip(candidate_groups, fitted, strict=True):
        shape = len(candidate_group), len(splits), N_PARTS
        if together.fit_counts.errors.shape != shape:
            raise ValueError(
                f"{name}.fit must count candidates x splits x parts, {shape}."
            )
        for message in together.fit_counts.messages.values():
            if not isinstance(message, FitMessage):
                raise TypeError(
                    f"{name}.fit must write a FitMessage, which says what its text is "
                    f"about, to `fit_counts.messages`, got {show(message)}."
                )
        for row, candidate in enumerate(candidate_group):
            for column, split in enumerate(splits):
                # A resumed or retried run fits what is missing together with other
                # candidates, and its counts must be the same.
                alone = fit([candidate], [split])
                _compare(family, alone, together, row, column, X, predictions)
                _check_model(family, alone, candidate.number, split, X, codes)
    joined = family.join(fitted)
    for together in fitted:
        split_numbers = [np.array(split.number) for split in splits]
        for i, candidate_number in enumerate(together.candidate_numbers):
            j = joined.candidate_numbers.index(candidate_number)
            if not np.array_equal(
                joined.predict(X, split_numbers)[:, j],
                together.predict(X, split_numbers)[:, i],
            ):
                raise ValueError(
                    f"{name}.join must predict what the packed groups predict."
                )


def _compare(
    family: Family,
    alone: FittedGroup,
    together: FittedGroup,
    row: int,
    column_number: int,
    X: NDArray[np.generic],
    predictions: dict[str, bytes],
) -> None:
    """Raise if a model has other counts, predictions or tokens when it is fitted alone.

    `predictions` has the predictions of each token.
    """
    counts = [
        (fitted.fit_counts.errors[index].tolist(), fitted.fit_counts.has_failed[index])
        for fitted, index in ((alone, (0, 0)), (together, (row, column_number)))
    ]
    split_numbers = [np.array(alone.split_numbers[0])]
    prediction_alone = alone.predict(X, split_numbers)[0, 0]
    if counts[0] != counts[1] or not np.array_equal(
        prediction_alone, together.predict(X, split_numbers)[0, row]
    ):
        raise ValueError(
            f"{type(family).__name__}.fit must give the same model alone and together."
        )
    fit, prediction = (
        (alone.candidate_numbers[0], alone.split_numbers[0]),
        prediction_alone.tobytes(),
    )
    token = alone.token(*fit)
    if (
        token != together.token(*fit)
        or predictions.setdefault(token, prediction) != prediction
    ):
        raise ValueError(
            f"{type(family).__name__}: `token` must be the same for a model fitted "
            f"alone and together, and differ between models that predict differently."
        )
    # Pools are read in blocks of any size.
    halves = [alone.predict(half, split_numbers)[0, 0] for half in np.array_split(X, 2)]
    if not np.array_equal(np.concatenate(halves), prediction_alone):
        raise ValueError(
            f"{type(family).__name__}: `predict` must not depend on the other rows."
        )


def _check_model(
    family: Family,
    fitted: FittedGroup,
    candidate: int,
    split: Any,
    X: NDArray[np.generic],
    codes: Integers,
) -> None:
    """Raise where errors or the estimator do not match the predictions."""
    name, rows = type(family).__name__, split.test_rows
    predicted = fitted.predict(X, [np.array(split.number)])[0, 0]
    if len(rows):
        n_errors = int((predicted[rows] != codes[rows]).sum())
        if n_errors != fitted.fit_counts.errors[0, 0, 0]:
            raise ValueError(f"{name}.fit must count the errors of its predictions.")
    labels = fitted.model(candidate, split.number).predict(X)
    if not np.array_equal(np.searchsorted(family.classes, labels), predicted):
        raise ValueError(f"{name}: `model` must predict what its group predicts.")
