r"""What is estimated of the squared error, the cube of it, and the choice.

Each estimate is of G + :math:`\sigma^2`, the squared error against the target function
and the noise, in squared units of the target. Ties go to the larger regularization,
then to the larger width: the smoother model.

Guarantee: none with a probability. The expectation of an estimate from rows left out is
the expectation of G + :math:`\sigma^2` at the number of training rows that remain.
Assumes: i.i.d. inputs and zero-mean noise of equal variance, independent of all.
Source: M. Sugiyama, Pattern Information Processing: Model Selection by Cross-Validation
(slides), but for `gcv`: G. Golub, M. Heath and G. Wahba, Technometrics 21, 1979.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results.cube import GridAxes, make_cube

ROUNDING: Final = 1e-12
"""Estimates this close, relative to the smallest, count as equal."""


class WidthRecord(NamedTuple):
    """What was found of one width, for every regularization."""

    loo: Floats
    """Sum of squared leave-one-out residuals, shape (n_lam,)."""
    gcv: Floats
    """Generalised cross-validation score times the rows, shape (n_lam,)."""
    folds: Floats
    """Sum of squared residuals on each fold, shape (n_lam, n_folds)."""
    extra: Floats
    """Mean squared residual on the extra rows, shape (n_lam,); NaN without any."""
    smallest: float
    """Regularizations up to this one are below the rounding of the kernel matrix."""
    is_singular: bool
    """Whether the kernel matrix is singular, to rounding."""
    seconds: float


@dataclass(frozen=True)
class LossChoice:
    """The candidate that an estimate of the squared error chose; no bound."""

    candidate: int
    params: Mapping[str, float]
    """``width`` and ``regularization``."""
    criterion: str
    """What chose it."""
    estimate: float
    """Estimated squared error, noise included; nothing is guaranteed."""


def _fold_means(cube: xr.Dataset) -> xr.DataArray:
    return cube[names.FOLD_LOSS_SUM] / cube[names.FOLD_ROWS]


ESTIMATES: Final[Mapping[str, Callable[[xr.Dataset], xr.DataArray]]] = {
    "loo": lambda cube: cube[names.LOO_LOSS_SUM] / cube[names.N_LABELED],
    "gcv": lambda cube: cube[names.GCV_LOSS_SUM] / cube[names.N_LABELED],
    "kfold": lambda cube: _fold_means(cube).mean(names.FOLD),
    "holdout": lambda cube: _fold_means(cube).isel({names.FOLD: 0}, drop=True),
    # Unbiased for the model of all rows, if the extra rows are independent of them.
    "extra_sample": lambda cube: cube[names.EXTRA_LOSS_MEAN],
}
"""By name, from the sums of squares in a cube."""


def make_loss_cube(
    widths: Sequence[float],
    regularizations: Floats,
    records: Mapping[int, WidthRecord],
    messages: Mapping[int, str],
    *,
    criterion: str,
    folds: Sequence[Split],
    n_rows: int,
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """Put the records of all widths into a cube, with every estimate they allow.

    `records` are by place of the width, and `messages` say why the others failed. The
    criterion that chooses comes first. Without folds, every row is held out in its
    turn. Raises AllFitsFailedError without any record.
    """
    if not records:
        first = next(iter(messages.values()))
        raise AllFitsFailedError(f"all {len(widths)} widths failed; the first: {first}")
    n_widths, n_lam, n_folds = len(widths), len(regularizations), len(folds) or 1
    text = np.full((n_widths, n_lam), "", dtype=object)
    loo, gcv, extra, seconds = np.full((4, n_widths, n_lam), np.nan)
    losses = np.full((n_widths, n_lam, n_folds), np.nan)
    for place, message in messages.items():
        text[place] = message
    for place, record in records.items():
        if record.is_singular:
            text[place, regularizations == 0] = (
                "lambda is 0 and the kernel matrix is singular: search above 0"
            )
        text[place, (regularizations > 0) & (regularizations <= record.smallest)] = (
            f"lambda is below the rounding of the kernel matrix, {record.smallest:.1e}"
        )
        loo[place], gcv[place], extra[place] = record.loo, record.gcv, record.extra
        seconds[place] = record.seconds / n_lam
        losses[place] = record.folds if folds else record.loo[:, np.newaxis]
    reasons = text.ravel()
    failed = reasons != ""
    values: dict[str, NDArray[Any]] = {
        names.LOO_LOSS_SUM: loo.ravel(),
        names.GCV_LOSS_SUM: gcv.ravel(),
        names.FULL_FIT_SECONDS: seconds.ravel(),
        names.FOLD_LOSS_SUM: losses.reshape(-1, n_folds),
        names.MESSAGE: reasons,
        names.STATUS: np.where(failed, names.STATUS_FAILED, names.STATUS_DONE),
        names.FOLD_ROWS: np.array([len(f.test_rows) for f in folds] or [n_rows]),
        names.TRAIN_ROWS: np.array([len(f.train_rows) for f in folds] or [n_rows - 1]),
        names.N_LABELED: np.array(n_rows),
        names.N_UNLABELED: np.array(0),
    }
    present = ["loo", "gcv"]
    if folds:
        present += ["holdout"] if criterion == "holdout" else ["holdout", "kfold"]
    if not np.isnan(extra).all():
        values[names.EXTRA_LOSS_MEAN] = extra.ravel()
        present.append("extra_sample")
    axes = GridAxes(
        {names.WIDTH: n_widths, names.REGULARIZATION: n_lam},
        {
            names.WIDTH: (names.WIDTH, np.array(widths)),
            names.REGULARIZATION: (names.REGULARIZATION, regularizations),
        },
    )
    cube = make_cube(axes, {names.FOLD: n_folds}, values, attributes=attributes)
    if failed.any():
        warn(
            f"{failed.sum()} of {failed.size} candidates cannot be chosen; the first: "
            f"{reasons[failed][0]}. `results.message` has all.",
            FitFailedWarning,
        )
    order = [criterion, *(name for name in present if name != criterion)]
    usable = cube[names.STATUS] == names.STATUS_DONE
    labels = xr.Variable(names.CRITERION, np.array(order, dtype=object))
    estimate = xr.concat(
        [ESTIMATES[name](cube).where(usable, np.inf) for name in order], labels
    ).assign_coords({names.CRITERION: labels})
    attrs = {"long_name": names.BY_NAME[names.ESTIMATE].long_name, "units": "1"}
    return cube.assign({names.ESTIMATE: estimate.assign_attrs(attrs)})


def select_least_squares(
    results: xr.Dataset, criterion: str | None = None, *, fold: int | None = None
) -> LossChoice:
    """Choose width and regularization from the cube of a least-squares search.

    Parameters
    ----------
    results
        Cube of a `LeastSquaresSearch`.
    criterion
        Name of an estimate in the cube; None means the first, by which was searched.
    fold
        Which fold ``"holdout"`` holds out; by default the first. The mean of hold-out
        over all folds is ``"kfold"``.

    Returns
    -------
    LossChoice
        The smallest estimate; ties go to the larger regularization, then to the
        larger width.

    Raises
    ------
    ValueError
        Where the cube lacks the estimate, or `fold` is given for another one.
    AllFitsFailedError
        Where no estimate is finite.
    """
    present = [str(name) for name in results[names.CRITERION].values]
    name = check_choice(criterion or present[0], "criterion", present)
    estimate = results[names.ESTIMATE].sel({names.CRITERION: name})
    if fold is not None:
        if name != "holdout":
            raise ValueError(
                f"`fold` is for criterion='holdout', which tests on one fold, not for "
                f"{name!r}; leave it out."
            )
        last = results.sizes[names.FOLD] - 1
        check_integer(fold, "fold", at_least=0, at_most=last)
        one = _fold_means(results).isel({names.FOLD: fold})
        estimate = one.where(results[names.STATUS] == names.STATUS_DONE, np.inf)
    values = np.where(np.isnan(estimate.values), np.inf, estimate.values).ravel()
    if not np.isfinite(values).any():
        raise AllFitsFailedError(
            "no candidate has a finite estimate; `results.message` says what happened "
            "to each."
        )
    widths, lams = np.meshgrid(
        estimate[names.WIDTH], estimate[names.REGULARIZATION], indexing="ij"
    )
    equal = np.flatnonzero(values <= values.min() * (1.0 + ROUNDING))
    order = np.lexsort((-widths.ravel()[equal], -lams.ravel()[equal]))
    chosen = int(equal[order[0]])
    params = {
        names.WIDTH: float(widths.flat[chosen]),
        names.REGULARIZATION: float(lams.flat[chosen]),
    }
    return LossChoice(chosen, params, name, float(values[chosen]))
