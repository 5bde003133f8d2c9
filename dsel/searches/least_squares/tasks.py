"""The task of one kernel width: all regularizations, all estimates."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import process_cache
from dsel.data.identity import content_hash
from dsel.data.splits import Split, splits_token
from dsel.kernels.eigen import decompose_gram, gaussian_kernel, symmetric_gram
from dsel.kernels.reference_rows import squared_distances
from dsel.solvers.least_squares import (
    DualSolution,
    gcv_losses,
    leave_one_out_losses,
    solve_dual,
)
from dsel.solvers.least_squares_blocks import (
    block_residuals,
    dual_models,
    refitted_residuals,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeastSquaresWork:
    """What every width needs; sent to the cluster once."""

    X: Any
    """Rows, float64, dense or CSR, shape (n, n_columns)."""
    y: Floats
    regularizations: Floats
    """lam, shape (n_lam,)."""
    penalty: str
    """``"coefficients"`` or ``"rkhs"``."""
    fit_intercept: bool
    folds: tuple[Split, ...]
    """Splits whose test rows are predicted; may be empty."""
    by_refits: bool = False
    """Whether folds are trained again rather than solved by blocks."""
    extra: tuple[Any, Floats] | None = None

    @property
    def fingerprint(self) -> dict[str, str]:
        """What the losses depend on besides width and regularizations."""
        return {
            "labeled": content_hash(self.X),
            "targets": content_hash(self.y),
            "splits": splits_token(self.folds),
            "folds": "refits" if self.by_refits else "closed form",
            "extra": " ".join(map(content_hash, self.extra or ())),
            "penalty": self.penalty,
            "fit_intercept": str(self.fit_intercept),
        }


@dataclass(frozen=True)
class WidthRecord:
    """Losses of one width."""

    width: float
    loo_losses: Floats
    """Shape (n_lam,)."""
    gcv_losses: Floats
    """Shape (n_lam,)."""
    fold_losses: Floats
    """Shape (n_lam, n_folds)."""
    extra_loss: Floats
    """Mean squared residual on the extra rows, shape (n_lam,); NaN without any."""
    smallest: float
    """Regularizations up to this one are below the rounding of the kernel matrix."""
    is_singular: bool
    """Whether the kernel matrix is singular, to rounding."""
    seconds: float


def evaluate_width(
    work: LeastSquaresWork, payloads: Sequence[Any], width: float
) -> tuple[WidthRecord, None]:
    """Decompose the kernel matrix of one width and evaluate every regularization."""
    del payloads  # no width needs another
    started = time.perf_counter()
    distances = process_cache().get(
        f"distances-{content_hash(work.X)}", lambda: squared_distances(work.X, work.X)
    )
    gram = symmetric_gram(distances, width)
    lams = work.regularizations
    least = float(np.min(lams, where=lams > 0, initial=np.inf))
    spectrum = decompose_gram(gram, penalty=work.penalty, least=least)
    solution = solve_dual(
        spectrum, work.y, work.regularizations, fit_intercept=work.fit_intercept
    )
    limit = spectrum.rounding_limit()
    record = WidthRecord(
        width,
        leave_one_out_losses(solution).sum(axis=0),
        gcv_losses(solution),
        _fold_losses(work, solution, gram),
        _extra_loss(work, solution, gram, width),
        limit if work.penalty == "rkhs" else 0.0,
        bool(spectrum.values.min() <= limit),
        time.perf_counter() - started,
    )
    return record, None


def _fold_losses(
    work: LeastSquaresWork, solution: DualSolution, gram: Floats
) -> Floats:
    losses = np.empty((len(work.regularizations), len(work.folds)))
    matrix = gram
    if work.by_refits and work.penalty == "coefficients":
        matrix = gram @ gram
    for column, fold in enumerate(work.folds):
        left_out = np.setdiff1d(np.arange(len(work.y)), fold.train_rows)
        if work.by_refits:
            residuals = refitted_residuals(
                matrix,
                work.y,
                work.regularizations,
                left_out,
                fit_intercept=work.fit_intercept,
            )
        else:
            residuals = block_residuals(solution, left_out)
        tested = residuals[np.isin(left_out, fold.test_rows)]
        losses[:, column] = np.square(tested).sum(axis=(0, 1))
    return losses


def _extra_loss(
    work: LeastSquaresWork, solution: DualSolution, gram: Floats, width: float
) -> Floats:
    n_lam = len(work.regularizations)
    if work.extra is None:
        return np.full(n_lam, np.nan)
    rows, targets = work.extra
    models = dual_models(solution)
    coefficients = models.dual.reshape(len(work.y), -1)
    if work.penalty == "coefficients":
        coefficients = gram @ coefficients
    fitted = gaussian_kernel(rows, work.X, width=width) @ coefficients
    values = fitted.reshape(len(targets), -1, n_lam) + models.intercept
    squares = np.square(values - targets[:, :, np.newaxis])
    return np.asarray(squares.sum(axis=(0, 1)) / len(targets))
