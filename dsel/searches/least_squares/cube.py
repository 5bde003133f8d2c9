"""The cube of a least-squares search, and the choice made from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.checks import check_choice, check_integer
from dsel.criteria import LOSS_CRITERIA, Criterion, Settings
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results import GridAxes, add_criterion, evidence, fold_axes, make_cube
from dsel.searches.least_squares.tasks import WidthRecord

Floats = NDArray[np.float64]

REFITS = "kfold_refits"
"""The k-fold estimate by split again, to check the closed form."""


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
    status, text = _status(widths, regularizations, records, messages)
    values = _losses(len(widths), len(regularizations), records, len(folds))
    tested = [len(fold.test_rows) for fold in folds] or [n_rows]
    trained = [len(fold.train_rows) for fold in folds] or [n_rows - 1]
    cube = make_cube(
        loss_axes(widths, regularizations),
        fold_axes(len(tested)),
        {
            **values,
            names.STATUS: status,
            names.MESSAGE: text,
            names.FOLD_ROWS: np.array(tested),
            names.TRAIN_ROWS: np.array(trained),
            names.N_LABELED: np.array(n_rows),
            names.N_UNLABELED: np.array(0),
        },
        attributes=attributes,
    )
    if bool(cube[names.EXTRA_LOSS].isnull().all()):
        cube = cube.drop_vars(names.EXTRA_LOSS)
    for name in _estimates(cube, criterion, has_folds=bool(folds)):
        cube = _with_estimate(cube, name)
    _warn_of_failures(status, text)
    return cube


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
    found = _evidence(results)
    if fold is not None:
        found = _held_out(found, name, fold)
    terms = _rule(name).evaluate(found, _no_delta(results))
    chosen = _rule(name).choose(terms, found)
    params = {
        "width": float(found[names.WIDTH][chosen]),
        "regularization": float(found[names.REGULARIZATION][chosen]),
    }
    return LossChoice(chosen, params, name, float(terms.estimate[chosen]))


def _held_out(
    found: dict[str, NDArray[Any]], criterion: str, fold: int
) -> dict[str, NDArray[Any]]:
    """Return the evidence with this fold alone, the one that hold-out reads."""
    if criterion != "holdout":
        raise ValueError(
            f"`fold` is for criterion='holdout', which tests on one fold, not for "
            f"{criterion!r}; leave it out."
        )
    last = len(found[names.FOLD_ROWS]) - 1
    check_integer(fold, "fold", at_least=0, at_most=last)
    one = slice(fold, fold + 1)
    return found | {
        names.FOLD_LOSSES: found[names.FOLD_LOSSES][:, one],
        names.FOLD_ROWS: found[names.FOLD_ROWS][one],
    }


def loss_axes(widths: Sequence[float], regularizations: Floats) -> GridAxes:
    """Return the axes of the grid, width slowest."""
    return GridAxes(
        (names.WIDTH, names.REGULARIZATION),
        (len(widths), len(regularizations)),
        {
            names.WIDTH: (names.WIDTH, np.array(widths)),
            names.REGULARIZATION: (names.REGULARIZATION, regularizations),
        },
        ({"width": tuple(widths), "regularization": tuple(regularizations.tolist())},),
    )


def _status(
    widths: Sequence[float],
    regularizations: Floats,
    records: Mapping[int, WidthRecord],
    messages: Mapping[int, str],
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Say of every cell whether it may be chosen, and why not."""
    shape = (len(widths), len(regularizations))
    text = np.full(shape, "", dtype=object)
    for place, message in messages.items():
        text[place] = message
    for place, record in records.items():
        zero = regularizations == 0
        if record.is_singular:
            text[place][zero] = (
                "lambda is 0 and the kernel matrix is singular: search above 0"
            )
        too_small = ~zero & (regularizations <= record.smallest)
        text[place][too_small] = (
            f"lambda is below the rounding of the kernel matrix, {record.smallest:.1e}"
        )
    failed = text != ""
    status = np.where(failed, names.STATUS_FAILED, names.STATUS_DONE)
    return status.ravel(), text.ravel().astype(str)


def _losses(
    n_widths: int, n_lam: int, records: Mapping[int, WidthRecord], n_folds: int
) -> dict[str, Floats]:
    loo, gcv, extra, seconds = np.full((4, n_widths, n_lam), np.nan)
    folds = np.full((n_widths, n_lam, n_folds or 1), np.nan)
    for place, record in records.items():
        loo[place] = record.loo_losses
        gcv[place] = record.gcv_losses
        extra[place] = record.extra_loss
        seconds[place] = record.seconds / n_lam
        folds[place] = (
            record.fold_losses if n_folds else record.loo_losses[:, np.newaxis]
        )
    return {
        names.LOO_LOSSES: loo.ravel(),
        names.GCV_LOSSES: gcv.ravel(),
        names.EXTRA_LOSS: extra.ravel(),
        names.FULL_FIT_SECONDS: seconds.ravel(),
        names.FOLD_LOSSES: folds.reshape(-1, n_folds or 1),
    }


def _estimates(cube: xr.Dataset, criterion: str, *, has_folds: bool) -> list[str]:
    """Return the estimates that the cube allows, the one that chooses first."""
    present = ["loo", "gcv"]
    if has_folds:
        present.append("holdout")
        if criterion not in ("holdout", REFITS):
            present.append("kfold")
    if names.EXTRA_LOSS in cube:
        present.append("extra_sample")
    return [criterion, *(name for name in present if name != criterion)]


def _rule(name: str) -> Criterion:
    return LOSS_CRITERIA["kfold" if name == REFITS else name]


def _evidence(cube: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return the cube's evidence, and c and lam of every candidate."""
    widths = cube[names.WIDTH].values
    lams = cube[names.REGULARIZATION].values
    return {
        **evidence(cube),
        names.WIDTH: np.repeat(widths, len(lams)),
        names.REGULARIZATION: np.tile(lams, len(widths)),
    }


def _no_delta(cube: xr.Dataset) -> Settings:
    return Settings(np.full(cube[names.STATUS].size, np.nan), np.nan)


def _with_estimate(cube: xr.Dataset, name: str) -> xr.Dataset:
    settings = _no_delta(cube)
    return add_criterion(
        cube,
        name,
        _rule(name).evaluate(_evidence(cube), settings),
        delta_shares=settings.delta_shares,
        delta=np.nan,
        label_share=np.nan,
    )


def _warn_of_failures(status: NDArray[np.int64], text: NDArray[Any]) -> None:
    failed = np.flatnonzero(status == names.STATUS_FAILED)
    if len(failed):
        warn(
            f"{len(failed)} of {len(status)} candidates cannot be chosen; the first: "
            f"{text[failed[0]]}. `results.message` has all.",
            FitFailedWarning,
        )
