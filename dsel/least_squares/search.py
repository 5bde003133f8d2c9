"""Model selection for kernel least squares whose rows are in memory."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Self

import numpy as np
import xarray as xr
from dask.utils import format_bytes
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer, check_nonnegative, check_positive
from dsel.data.cache import process_cache
from dsel.data.identity import content_hash
from dsel.data.labeled import check_unmasked
from dsel.data.lazy import lazily
from dsel.data.row_random import seed_from
from dsel.data.splits import (
    Split,
    fold_splits,
    given_splits,
    random_folds,
    splits_token,
)
from dsel.kernels import squared_distances
from dsel.least_squares.closed_form import (
    block_residuals,
    gcv_losses,
    leave_one_out_losses,
    solve_dual,
)
from dsel.least_squares.estimators import PENALTIES, KernelLeastSquares
from dsel.least_squares.kernel import (
    check_memory,
    decompose_gram,
    gaussian_kernel,
    symmetric_gram,
)
from dsel.least_squares.losses import (
    ESTIMATES,
    WidthRecord,
    make_loss_cube,
    select_least_squares,
)
from dsel.least_squares.records import open_records
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Task


@dataclass(frozen=True)
class Work:
    """What every width needs; sent to the cluster once."""

    X: Any
    """Rows, float64, dense or CSR, shape (n, n_columns)."""
    y: Floats
    """Targets, shape (n, n_outputs)."""
    regularizations: Floats
    """lam, shape (n_lam,)."""
    penalty: str
    """``"coefficients"`` or ``"rkhs"``."""
    fit_intercept: bool
    folds: tuple[Split, ...]
    """Splits whose test rows are predicted; may be empty."""
    extra: tuple[Any, Floats] | None = None
    """Fresh rows and their targets."""


def evaluate_width(
    work: Work, payloads: Sequence[Any], width: float
) -> tuple[WidthRecord, None]:
    """Decompose the kernel matrix of one width and evaluate every regularization."""
    del payloads  # no width needs another
    started = time.perf_counter()
    distances = process_cache().get(
        f"distances-{content_hash(work.X)}", lambda: squared_distances(work.X, work.X)
    )
    gram, lams = symmetric_gram(distances, width), work.regularizations
    spectrum = decompose_gram(gram, penalty=work.penalty)
    solution = solve_dual(spectrum, work.y, lams, fit_intercept=work.fit_intercept)
    folds = np.empty((len(lams), len(work.folds)))
    for column, fold in enumerate(work.folds):
        # Splitters need not test all rows that they leave out of the training.
        left_out = np.setdiff1d(np.arange(len(work.y)), fold.train_rows)
        tested = np.isin(left_out, fold.test_rows)
        residuals = block_residuals(solution, left_out)[tested]
        folds[:, column] = np.square(residuals).sum(axis=(0, 1))
    extra = np.full(len(lams), np.nan)
    if work.extra is not None:
        rows, targets = work.extra
        dual = solution.values.reshape(len(gram), -1)
        if work.penalty == "coefficients":
            dual = gram @ dual
        fitted = gaussian_kernel(rows, work.X, width=width) @ dual
        fitted = fitted.reshape(len(targets), -1, len(lams)) + solution.intercept
        squares = np.square(fitted - targets[:, :, np.newaxis])
        extra = squares.sum(axis=(0, 1)) / len(targets)
    limit = spectrum.rounding_limit()
    record = WidthRecord(
        loo=leave_one_out_losses(solution).sum(axis=0),
        gcv=gcv_losses(solution),
        folds=folds,
        extra=extra,
        smallest=limit if work.penalty == "rkhs" else 0.0,
        is_singular=bool(spectrum.values.min() <= limit),
        seconds=time.perf_counter() - started,
    )
    return record, None


@dataclass(frozen=True, repr=False)
class LeastSquaresPlan:
    """A search that has not run; print it to see what it will do."""

    widths: tuple[float, ...]
    """c of each decomposition."""
    work: Work
    """Rows, targets, folds and models."""
    criterion: str
    seed: int
    """That folds were drawn with."""

    def run(
        self, client: Any = None, *, out: Any = None, n_jobs: int | None = None
    ) -> xr.Dataset:
        """Run the search and return its cube.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else local threads.
        out
            Directory or URL of the results store: finished widths are written there,
            and a later run of the same plan continues from them.
        n_jobs
            Local threads; None means one for each core.

        Raises
        ------
        AllFitsFailedError
            Where no width could be evaluated.
        ClusterLostError
            Where the scheduler or all workers are gone.
        StoreMismatchError
            Where `out` holds a run of other rows, folds or models.
        """
        work, records, messages = self.work, {}, {}
        grid = content_hash(work.regularizations)
        places = {f"width/{c!r}/{grid}": place for place, c in enumerate(self.widths)}
        with open_records(out, self._fingerprint()) as kept:
            for key, place in places.items():
                record = kept.find(key, WidthRecord)
                if record is not None:
                    records[place] = record
            tasks = [
                Task(key, evaluate_width, (self.widths[place],))
                for key, place in places.items()
                if place not in records
            ]
            client = resolve_client(client)
            with closing(make_executor(work, client, n_jobs)) as executor:
                for done in completed(executor, tasks):
                    place, error = places[done.key], done.error
                    if error is not None:
                        messages[place] = f"{type(error).__name__}: {error}"
                        continue
                    records[place] = done.record
                    kept.keep(done.key, done.record._asdict())
            cube = make_loss_cube(
                self.widths,
                work.regularizations,
                records,
                messages,
                criterion=self.criterion,
                folds=work.folds,
                n_rows=len(work.y),
                attributes={
                    "penalty": work.penalty,
                    "fit_intercept": work.fit_intercept,
                    "seed": str(self.seed),
                },
            )
            kept.save_cube(cube)
        return cube

    def _fingerprint(self) -> dict[str, str]:
        """Return what the losses depend on besides width and regularizations."""
        work = self.work
        return {
            "labeled": content_hash(work.X),
            "targets": content_hash(work.y),
            "splits": splits_token(work.folds),
            "extra": " ".join(map(content_hash, work.extra or ())),
            "penalty": work.penalty,
            "fit_intercept": str(work.fit_intercept),
            "seed": str(self.seed),
        }

    def __repr__(self) -> str:
        n, n_lam = len(self.work.y), len(self.work.regularizations)
        n_folds = len(self.work.folds)
        size = format_bytes(8 * n**2)
        lines = [
            f"LeastSquaresPlan: {len(self.widths)} widths x {n_lam} regularizations "
            f"= {len(self.widths) * n_lam} candidates, penalty {self.work.penalty!r}",
            f"  {n} rows, {self.work.X.shape[1]} columns, "
            f"{self.work.y.shape[1]} outputs",
            f"  {len(self.widths)} tasks: one decomposition of {n} x {n} each "
            f"({size}; a task holds about 4 of them)",
            f"  leave-one-out, GCV and {n_folds} folds in closed form",
            f"  chooses by {self.criterion!r}, an estimate; seed {self.seed}",
        ]
        return "\n".join(lines)


class LeastSquaresSearch(RegressorMixin, BaseEstimator):
    """Choose width and regularization of `KernelLeastSquares` without refits.

    One eigendecomposition for each width serves every regularization, leave-one-out,
    generalised cross-validation and all folds. Widths are tasks, on the current Dask
    client if there is one, else on local threads.

    Parameters
    ----------
    widths
        Widths c > 0 of the Gaussian kernels.
    regularizations
        Weights lambda >= 0 of the penalty.
    penalty
        ``"coefficients"`` (the centres stay where they are when rows are left out) or
        ``"rkhs"``; see `KernelLeastSquares`.
    criterion
        ``"loo"``, ``"gcv"``, ``"kfold"``, ``"holdout"`` (the first fold only)
        or ``"extra_sample"`` (with fresh rows given to `fit`).
    cv
        Number of random folds, a scikit-learn splitter, or None for no folds. The cube
        then has one fold, which stands for leaving out each row in turn.
    fit_intercept
        Whether the models have an unpenalised constant.
    random_state
        Seed of the folds.
    n_jobs
        Local threads where there is no cluster; None and -1 mean one for each core.

    Attributes
    ----------
    results_ : xarray.Dataset
        The cube over ``width``, ``regularization``, ``fold`` and ``criterion``.
    choice_ : LossChoice
        Candidate, parameters and estimate.
    best_params_ : dict
        ``width`` and ``regularization``.
    best_index_ : int
        Number of the candidate.
    best_estimator_ : KernelLeastSquares
        The chosen model, fitted to all rows.
    n_features_in_ : int
        Columns of the rows.

    See Also
    --------
    StreamedLeastSquaresSearch : For millions of rows.
    select_least_squares : Chooses by another estimate.

    Notes
    -----
    All criteria are estimates of the squared error, noise included: none is a bound.
    The epsilon-insensitive loss and the l1 penalty of Sugiyama's slides have no closed
    form of leave-one-out, so dsel has no solver for them: search over scikit-learn's
    `SVR` or `Lasso` with its `GridSearchCV` instead. Ties go to the larger
    regularization, then to the larger width.

    The closed forms differ from refits by rounding: by some n eps / lambda of each sum
    of squares, eps = 2.2e-16, as refits differ from one another.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (50, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(50)
    >>> search = LeastSquaresSearch([0.3, 1.0], [1e-3, 0.1, 10.0], random_state=0)
    >>> search.fit(X, y).best_params_
    {'width': 1.0, 'regularization': 0.001}
    >>> dict(search.results_.sizes)["regularization"]
    3
    """

    def __init__(
        self,
        widths: ArrayLike,
        regularizations: ArrayLike,
        *,
        penalty: str = "coefficients",
        criterion: str = "loo",
        cv: Any = 10,
        fit_intercept: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.widths = widths
        self.regularizations = regularizations
        self.penalty = penalty
        self.criterion = criterion
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs

    def plan(
        self, X: Any, y: Any, X_extra: Any = None, y_extra: Any = None
    ) -> LeastSquaresPlan:
        """Return the plan of the search without running it.

        Parameters
        ----------
        X, y, X_extra, y_extra
            As for `fit`.
        """
        check_choice(self.penalty, "penalty", PENALTIES)
        check_choice(self.criterion, "criterion", list(ESTIMATES))
        widths, lams = check_grid(self.widths, self.regularizations)
        check_unmasked(y)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True,
            y_numeric=True, ensure_min_samples=2,
        )  # fmt: skip
        check_memory(X.shape[0])
        targets = _columns(y)
        if self.fit_intercept and len(targets) < 3:
            raise ValueError(
                f"`fit_intercept` needs at least 3 rows, got {len(targets)}."
            )
        seed = seed_from(self.random_state)
        work = Work(
            X,
            targets,
            lams,
            self.penalty,
            self.fit_intercept,
            _folds(self.cv, X, y, self.criterion, seed),
            self._extra(X_extra, y_extra, y),
        )
        return LeastSquaresPlan(widths, work, self.criterion, seed)

    def _extra(self, X: Any, targets: Any, y: Any) -> tuple[Any, Floats] | None:
        """Check fresh rows and targets beside the targets `y` of the others."""
        if (X is None) != (targets is None):
            raise ValueError("`X_extra` and `y_extra` belong together; pass both.")
        if X is None:
            if self.criterion == "extra_sample":
                raise ValueError(
                    "`criterion` 'extra_sample' needs fresh labeled rows; pass them to "
                    "`fit` as `X_extra` and `y_extra`, or use criterion='loo'."
                )
            return None
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64
        )
        fresh = check_array(targets, ensure_2d=False, dtype=np.float64)
        wanted = (rows.shape[0], *np.shape(y)[1:])
        if fresh.shape != wanted:
            raise ValueError(
                f"`y_extra` must have the shape {wanted} of `X_extra` and `y`, got "
                f"{fresh.shape}."
            )
        return rows, _columns(fresh)

    def fit(
        self,
        X: Any,
        y: Any,
        X_extra: Any = None,
        y_extra: Any = None,
        *,
        out: Any = None,
    ) -> Self:
        """Search, then fit the chosen model to all rows.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Targets, shape (n,) or (n, n_outputs).
        X_extra, y_extra
            Fresh rows and targets, for the extra-sample estimate; they are not
            trained on.
        out
            Directory or URL where finished widths are stored; the same call, also
            with other widths, continues from them. Needs an integer `random_state`,
            where folds are drawn.

        Raises
        ------
        ValueError
            Where the grid or the data are out of range, or the kernel matrix does
            not fit into memory.
        AllFitsFailedError
            Where no candidate has a finite estimate.
        """
        plan = self.plan(X, y, X_extra, y_extra)
        self.results_ = plan.run(out=out, n_jobs=self.n_jobs)
        self.choice_ = select_least_squares(self.results_)
        self.best_index_ = self.choice_.candidate
        self.best_params_ = dict(self.choice_.params)
        self.best_estimator_ = KernelLeastSquares(
            self.best_params_["width"],
            self.best_params_["regularization"],
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
        ).fit(plan.work.X, np.asarray(y))
        return self

    @lazily
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict with the chosen model; of a Dask array lazily.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n_rows, n_columns).
        """
        check_is_fitted(self, "best_estimator_")
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64
        )
        return np.asarray(self.best_estimator_.predict(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def check_grid(
    widths: ArrayLike, regularizations: ArrayLike
) -> tuple[tuple[float, ...], Floats]:
    """Return the values of both axes of the grid, at least one of each, each once.

    Raises TypeError where a value is no number, ValueError where it is out of range.
    """
    lams = [
        check_nonnegative(value, "regularizations")
        for value in _values(regularizations, "regularizations")
    ]
    checked = (check_positive(c, "widths") for c in _values(widths, "widths"))
    return tuple(dict.fromkeys(checked)), np.array(list(dict.fromkeys(lams)))


def _values(values: ArrayLike, name: str) -> list[Any]:
    array = np.atleast_1d(np.asarray(values, dtype=object))
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"`{name}` must be a list of at least one number, got {values!r}."
        )
    return list(array.tolist())


def _columns(y: Any) -> Floats:
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`y` must hold numbers, got {shorten(repr(y), 60)}; for classes search "
            f"with KernelLeastSquaresClassifier()."
        ) from error
    return values[:, np.newaxis] if values.ndim == 1 else values


def _folds(cv: Any, X: Any, y: Any, criterion: str, seed: int) -> tuple[Split, ...]:
    """Return the fold splits, only the first for a hold-out, none for None."""
    if cv is None:
        if criterion in ("kfold", "holdout"):
            raise ValueError(
                f"`cv` must be a number of folds for criterion={criterion!r}, got None."
            )
        return ()
    if hasattr(cv, "split") or np.iterable(cv):
        splits = given_splits(cv, X, y)
    else:
        n_folds = check_integer(cv, "cv", at_least=2, at_most=X.shape[0])
        splits = fold_splits(random_folds(X.shape[0], n_folds, seed=seed))
    return splits[:1] if criterion == "holdout" else splits[:-1]
