r"""Estimates of the squared error, their cube, and the choice.

All estimate G + :math:`\sigma^2`, the squared error against the target function plus
the variance of the noise, in squared units of the target. Ties go to the larger
regularization, then to the larger width: the smoother model.

Guarantee: none with a probability. The expectation of an estimate from rows left out is
the expectation of G + :math:`\sigma^2` at the number of training rows that remain.
Assumes: i.i.d. inputs and zero-mean noise of equal variance, independent of all.
Source: M. Sugiyama, Pattern Information Processing: Model Selection by Cross-Validation
(slides), but for `gcv`: G. Golub, M. Heath and G. Wahba, Technometrics 21, 1979.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer, check_string, show
from dsel.criteria.criterion import TIE_TOLERANCE
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results.cube import (
    GridAxes,
    check_cube,
    check_dataset,
    make_cube,
    with_criterion_values,
)
from dsel.typing import Options

Record = Mapping[str, Any]
"""Results of one width: arrays or lists by the name of their variable in the cube, with
regularizations as the first axis. A width that failed has only messages."""


@dataclass(frozen=True)
class LossChoice:
    """The candidate with the smallest estimate of the squared error; not a bound."""

    candidate: int
    params: Mapping[str, float]
    """``width`` and ``regularization``."""
    criterion: str
    """Name of the estimate by which it was chosen."""
    estimate: float
    """Estimated squared error, noise included; nothing is guaranteed."""


def _fold_means(cube: xr.Dataset) -> xr.DataArray:
    return cube[names.FOLD_LOSS_SUM] / cube[names.FOLD_ROWS]


ESTIMATES: Final[Mapping[str, Callable[[xr.Dataset], xr.DataArray]]] = {
    "loo": lambda cube: cube[names.LOO_LOSS_SUM] / cube[names.N_LABELED],
    "gcv": lambda cube: cube[names.GCV_LOSS_SUM] / cube[names.N_LABELED],
    "kfold": lambda cube: _fold_means(cube).mean(names.FOLD),
    "holdout": lambda cube: _fold_means(cube).isel({names.FOLD: 0}, drop=True),
    # The mean is unbiased for the model of all rows if the extra rows are independent
    # of them.
    "extra_sample": lambda cube: cube[names.EXTRA_LOSS_MEAN],
}
"""Functions that compute an estimate from the sums of squares in a cube, by name."""


def why_unusable(
    regularizations: Floats, limit: float, *, is_singular: bool
) -> NDArray[Any]:
    """Return why each regularization cannot be chosen; "" where it can.

    Regularizations up to `limit` are below the rounding of the kernel matrix.
    """
    reasons = np.full(len(regularizations), "", dtype=object)
    reasons[(regularizations > 0) & (regularizations <= limit)] = (
        f"lambda is below the rounding of the kernel matrix, {limit:.1e}"
    )
    if is_singular:
        reasons[regularizations == 0] = (
            "lambda is 0 and the kernel matrix is singular: search above 0"
        )
    return reasons


def axes_of(
    widths: Sequence[float], regularizations: Floats, candidates: Sequence[Options] = ()
) -> GridAxes:
    """Return the axes of a grid, whose candidates are numbered width by width."""
    return GridAxes(
        {names.WIDTH: len(widths), names.REGULARIZATION: len(regularizations)},
        {
            names.WIDTH: (names.WIDTH, np.array(widths), {}),
            names.REGULARIZATION: (names.REGULARIZATION, regularizations, {}),
        },
        tuple(candidates),
    )


def make_loss_cube(
    widths: Sequence[float],
    regularizations: Floats,
    records: Sequence[Record],
    n_rows: int,
    *,
    criterion: str,
    folds: Sequence[Split[int]],
    attributes: Options,
) -> xr.Dataset:
    """Return a cube of the records of all widths, with every estimate they allow.

    The criterion that chooses is the first estimate. Without folds the cube has one
    fold, which stands for leaving out each row in turn. Raises AllFitsFailedError where
    all widths failed.
    """
    usable = next((record for record in records if len(record) > 1), None)
    if usable is None:
        raise AllFitsFailedError(
            f"all {len(widths)} widths failed; the first: "
            f"{records[0][names.MESSAGE][0]}"
        )
    values: dict[str, Any] = {
        name: np.concatenate(
            [record.get(name, np.full(np.shape(like), np.nan)) for record in records]
        )
        for name, like in usable.items()
    }
    reasons = values[names.MESSAGE]
    failed = reasons != ""
    values |= {
        names.STATUS: np.where(failed, names.STATUS_FAILED, names.STATUS_DONE),
        names.FOLD_ROWS: [len(fold.test_rows) for fold in folds] or [n_rows],
        names.TRAIN_ROWS: [len(fold.train_rows) for fold in folds] or [n_rows - 1],
        names.N_LABELED: n_rows,
        names.N_UNLABELED: 0,
    }
    axes = axes_of(widths, regularizations)
    cube = make_cube(axes, {names.FOLD: len(folds) or 1}, values, attributes=attributes)
    if failed.any():
        warn(
            f"{failed.sum()} of {failed.size} candidates cannot be chosen; the first: "
            f"{reasons[failed][0]}. `results.message` has all.",
            FitFailedWarning,
        )
    present = [criterion, "loo", "gcv"]
    if folds:
        present += ["holdout"] if criterion == "holdout" else ["holdout", "kfold"]
    if names.EXTRA_LOSS_MEAN in values:
        present.append("extra_sample")
    order = list(dict.fromkeys(present))  # the criterion first, each once
    is_done = cube[names.STATUS] == names.STATUS_DONE
    estimates = {name: ESTIMATES[name](cube).where(is_done, np.inf) for name in order}
    return with_criterion_values(cube, estimates)


def select_least_squares(
    results: xr.Dataset, criterion: str | None = None, *, fold: int | None = None
) -> LossChoice:
    """Choose width and regularization from the cube of a least-squares search.

    Parameters
    ----------
    results
        Cube of a `LeastSquaresSearch`.
    criterion
        Name of an estimate in the cube; None means the first, the criterion of the
        search.
    fold
        Number of a fold; the choice then uses its held-out rows only. Choices that vary
        over folds show how much of a choice is chance. None chooses by `criterion`.

    Returns
    -------
    LossChoice
        The smallest estimate; ties go to the larger regularization, then to the
        larger width.

    Raises
    ------
    ValueError
        Where the cube lacks the estimate or the fold.
    AllFitsFailedError
        Where no estimate is finite.

    Examples
    --------
    >>> from dsel.least_squares import LeastSquaresSearch
    >>> X = np.linspace(-3, 3, 40)[:, np.newaxis]
    >>> search = LeastSquaresSearch([0.3, 3.0], [1e-6, 1e-3], cv=4, random_state=0)
    >>> cube = search.fit(X, np.sin(4 * X[:, 0])).results_
    >>> [select_least_squares(cube, fold=j).params["width"] for j in range(4)]
    [0.3, 0.3, 0.3, 0.3]
    """
    check_cube(results)
    check_dataset(
        results,
        "results",
        "LeastSquaresSearch",
        *(names.CRITERION, names.CRITERION_VALUE, names.WIDTH, names.REGULARIZATION),
    )
    if criterion is not None:
        check_string(criterion, "criterion")
    present = [str(name) for name in results[names.CRITERION].values]
    if fold is None:
        name = check_choice(criterion or present[0], "criterion", present)
        by_candidate = results[names.CRITERION_VALUE].sel({names.CRITERION: name})
    else:
        if criterion is not None:
            raise ValueError(
                f"`fold` chooses by the held-out rows of one fold, got criterion="
                f"{criterion!r}, too; leave one of them out."
            )
        # In that case the only fold of the cube stands for all rows.
        if "kfold" not in present:
            raise ValueError(
                f"`fold` must be a fold of the search, which has none, got "
                f"{show(fold)}; search with cv=5."
            )
        last = results.sizes[names.FOLD] - 1
        fold = check_integer(fold, "fold", at_least=0, at_most=last)
        name = f"fold={fold}"
        by_candidate = _fold_means(results).isel({names.FOLD: fold}, drop=True)
        by_candidate = by_candidate.where(results[names.STATUS] == names.STATUS_DONE)
    by_candidate = by_candidate.fillna(np.inf)
    axes = names.WIDTH, names.REGULARIZATION
    by_candidate = by_candidate.transpose(*axes, missing_dims="ignore")
    values = by_candidate.values.ravel()
    if not np.isfinite(values).any():
        raise AllFitsFailedError(
            "no candidate has a finite estimate; `results.message` has the reason for "
            "each."
        )
    widths, regularizations = np.meshgrid(
        *(by_candidate[axis] for axis in axes), indexing="ij"
    )
    pairs = list(zip(regularizations.flat, widths.flat, strict=True))
    equal = np.flatnonzero(values <= values.min() * (1.0 + TIE_TOLERANCE)).tolist()
    chosen = max(equal, key=pairs.__getitem__)
    lam, width = map(float, pairs[chosen])
    params = {names.WIDTH: width, names.REGULARIZATION: lam}
    return LossChoice(chosen, params, name, float(values[chosen]))
