"""Model selection for kernel least squares on rows in memory.

A search makes a record of each width, which an interrupted run goes on from. In memory
a width is one task, a decomposition.
"""

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Self

import numpy as np
import xarray as xr
from dask.base import tokenize
from dask.utils import format_bytes
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from dsel import names
from dsel.arrays import Floats, validate_data
from dsel.checks import (
    as_array,
    check_choice,
    check_integer,
    check_nonnegative,
    check_positive,
    check_truth,
    show,
)
from dsel.data.identity import content_hash
from dsel.data.labeled import check_targets, check_unmasked
from dsel.data.lazy import lazily
from dsel.data.row_random import seed_from
from dsel.data.splits import Split, fold_splits, given_splits, random_folds
from dsel.least_squares.closed_form import (
    COPIES,
    block_residuals,
    check_memory,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    gcv_losses,
    leave_one_out_residuals,
    solve_dual,
)
from dsel.least_squares.estimators import PENALTIES, KernelLeastSquares
from dsel.least_squares.losses import (
    ESTIMATES,
    Record,
    make_loss_cube,
    select_least_squares,
    why_unusable,
)
from dsel.results.place import CUBE
from dsel.results.store import Store
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Inputs, Output, Task
from dsel.runtime.versions import installed_versions

NUMERIC: Final = {"dtype": np.float64, "multi_output": True}
"""How scikit-learn checks rows and their targets."""
KIND: Final = "least-squares"


@dataclass(eq=False, repr=False)
class Search(RegressorMixin, BaseEstimator):
    """Base of both searches: the grid, the cube and the chosen model."""

    widths: ArrayLike
    regularizations: ArrayLike
    _: KW_ONLY
    penalty: str = "coefficients"
    criterion: str = "loo"
    fit_intercept: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    def _checked_grid(
        self, criteria: Sequence[str]
    ) -> tuple[tuple[float, ...], Floats]:
        """Return the distinct widths and regularizations, at least one of each."""
        check_choice(self.penalty, "penalty", PENALTIES)
        check_truth(self.fit_intercept, "fit_intercept")
        check_choice(self.criterion, "criterion", criteria)
        axes = []
        for name, given, check in (
            ("regularizations", self.regularizations, check_nonnegative),
            ("widths", self.widths, check_positive),
        ):
            values = np.atleast_1d(as_array(given, name, object))
            if values.ndim != 1 or not values.size:
                raise ValueError(
                    f"`{name}` must be a list of at least one number, got "
                    f"{show(given)}."
                )
            axes.append(tuple(dict.fromkeys(check(v, name) for v in values.tolist())))
        return axes[1], np.array(axes[0])

    def _run(
        self,
        evaluate: Callable[[Store | None], Sequence[Record]],
        grid: tuple[Sequence[float], Floats],
        n_rows: int,
        *,
        folds: Sequence[Split] = (),
        out: Any,
        **inputs: Any,
    ) -> xr.Dataset:
        """Return the cube of all records, from `evaluate` or from the store.

        `inputs` tell what the losses depend on besides the grid. The store is at `out`,
        where that is not None, and keeps the cube, too. Raises StoreMismatchError where
        it holds a search of other rows or models.
        """
        inputs |= {"penalty": self.penalty, "fit_intercept": self.fit_intercept}
        told = {**inputs, "versions": sorted(installed_versions().items())}
        plan = {name: str(value) for name, value in told.items()}
        opened = nullcontext() if out is None else Store(out, kind=KIND, plan=plan)
        with opened as store:
            cube = make_loss_cube(
                *grid, evaluate(store), n_rows,
                criterion=self.criterion, folds=folds, attributes=inputs,
            )  # fmt: skip
            if store is not None:
                store.save(CUBE, cube)
        return cube

    def _choose(self, results: xr.Dataset, centers: Any = None) -> KernelLeastSquares:
        """Choose by the cube; return the chosen model, unfitted."""
        self.results_ = results
        self.choice_ = select_least_squares(results)
        self.best_params_ = dict(self.choice_.params)
        self.best_index_ = self.choice_.candidate
        return KernelLeastSquares(
            *self.choice_.params.values(),
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
            centers=centers,
        )

    @lazily
    def predict(self, X: Any) -> Floats:
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
        tags.target_tags.multi_output = True
        return tags


@dataclass(frozen=True, repr=False)
class LeastSquaresPlan:
    """A search that has not run; print it to see what it will do."""

    search: Search
    widths: tuple[float, ...]
    regularizations: Floats
    X: Any
    """Rows, float64, dense or CSR."""
    y: Floats
    """Targets, shape (n, n_outputs)."""
    extra: tuple[Any, Floats] | None
    """Fresh rows and their targets."""
    folds: tuple[Split, ...]
    seed: int

    def run(
        self, client: Any = None, *, out: Any = None, n_jobs: int | None = None
    ) -> xr.Dataset:
        """Run the search and return its cube.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else local threads.
        out, n_jobs
            As for `LeastSquaresSearch`.
        """
        grid = content_hash(self.regularizations)
        keys = {f"fit-width={c!r}": f"width/{c!r}/{grid}" for c in self.widths}

        def evaluate(store: Store | None) -> list[Record]:
            found: dict[str, Record] = {} if store is None else dict(store.records)
            tasks = [
                Task(name, WidthJob(width))
                for width, (name, key) in zip(self.widths, keys.items(), strict=True)
                if key not in found
            ]
            executor = make_executor(self, resolve_client(client), n_jobs)
            with closing(executor):
                for done in completed(executor, tasks):
                    key = keys[done.key]
                    if done.error is not None:
                        text = f"{type(done.error).__name__}: {done.error}"
                        texts = [text] * len(self.regularizations)
                        found[key] = {names.MESSAGE: texts}
                        continue
                    found[key] = done.result
                    if store is not None:
                        store.append(key, done.result)
            return [found[key] for key in keys.values()]

        return self.search._run(
            evaluate,
            (self.widths, self.regularizations),
            len(self.y),
            folds=self.folds,
            out=out,
            labeled=content_hash(self.X),
            targets=content_hash(self.y),
            splits=tokenize(self.folds),
            extra=" ".join(map(content_hash, self.extra or ())),
            seed=str(self.seed),
        )

    def __repr__(self) -> str:
        n, n_widths, n_lam = len(self.y), len(self.widths), len(self.regularizations)
        return (
            f"LeastSquaresPlan: {n_widths} widths x {n_lam} regularizations "
            f"= {n_widths * n_lam} candidates, penalty {self.search.penalty!r}\n"
            f"  {n} rows, {self.X.shape[1]} columns, {self.y.shape[1]} outputs\n"
            f"  {n_widths} tasks: one decomposition of {n} x {n} each "
            f"({format_bytes(8 * n**2)}; a task holds about {COPIES} of them)\n"
            f"  leave-one-out, GCV and {len(self.folds)} folds in closed form\n"
            f"  chooses by {self.search.criterion!r}, an estimate; seed {self.seed}"
        )


@dataclass(frozen=True)
class WidthJob:
    """A task that evaluates all regularizations at one width of the kernel."""

    width: float

    def run(self, context: LeastSquaresPlan, inputs: Inputs) -> Output:
        """Return the record of this width."""
        return Output(evaluate_width(context, self.width))


def evaluate_width(plan: LeastSquaresPlan, width: float) -> Record:
    """Decompose the kernel matrix of one width and evaluate every regularization."""
    X, penalty, fit_intercept = plan.X, plan.search.penalty, plan.search.fit_intercept
    gram = gaussian_gram(X, width=width)
    spectrum = decompose_gram(gram, penalty=penalty)
    reasons = why_unusable(
        plan.regularizations,
        spectrum.rounding_limit() if penalty == "rkhs" else 0.0,
        is_singular=spectrum.is_singular(),
    )
    usable = reasons == ""
    lams = plan.regularizations[usable]
    solution = solve_dual(spectrum, plan.y, lams, fit_intercept=fit_intercept)
    loo = np.square(leave_one_out_residuals(solution)).sum(axis=(0, 1))
    every = np.arange(len(plan.y))
    # Splitters need not test all rows that they leave out of the training.
    left_out = [np.setdiff1d(every, fold.train_rows) for fold in plan.folds]
    tested = [
        np.isin(rows, fold.test_rows)
        for rows, fold in zip(left_out, plan.folds, strict=True)
    ]
    folds = np.empty((len(lams), len(left_out)))
    for losses, residuals in zip(
        folds, block_residuals(solution, left_out), strict=True
    ):
        for place, (found_rows, of_rows) in enumerate(
            zip(tested, residuals, strict=True)
        ):
            losses[place] = np.square(of_rows[found_rows]).sum()
    found = {
        names.LOO_LOSS_SUM: loo,
        names.GCV_LOSS_SUM: gcv_losses(solution),
        names.FOLD_LOSS_SUM: folds if plan.folds else loo[:, np.newaxis],
    }
    if plan.extra is not None:
        rows, targets = plan.extra
        dual = solution.values.reshape(len(gram), -1)
        if penalty == "coefficients":
            dual = gram @ dual
        fitted = gaussian_kernel(rows, X, width=width) @ dual
        fitted = fitted.reshape(*targets.shape, len(lams)) + solution.intercept
        squares = np.square(fitted - targets[:, :, np.newaxis])
        found[names.EXTRA_LOSS_MEAN] = squares.sum(axis=(0, 1)) / len(targets)
    record: dict[str, Any] = {names.MESSAGE: reasons}
    for name, values in found.items():
        record[name] = np.full((len(reasons), *values.shape[1:]), np.nan)
        record[name][usable] = values
    return record


@dataclass(eq=False, repr=False)
class LeastSquaresSearch(Search):
    """Choose width and regularization of `KernelLeastSquares` without refits.

    One eigendecomposition for each width serves every regularization, leave-one-out,
    generalized cross-validation and all folds. Widths are tasks, on the current Dask
    client if there is one, else on local threads.

    Parameters
    ----------
    widths
        Widths c > 0 of the Gaussian kernels.
    regularizations
        Weights lambda >= 0 of the penalty.
    penalty
        ``"coefficients"`` (the centers stay where they are when rows are left out) or
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
    best_index_, best_params_
        The candidate's number, and its ``width`` and ``regularization``.
    best_estimator_ : KernelLeastSquares
        The chosen model, fitted to all rows.

    See Also
    --------
    StreamedLeastSquaresSearch : For millions of rows.
    select_least_squares : Chooses by another estimate.

    Notes
    -----
    All criteria are estimates of the squared error, noise included: none is a bound.
    The epsilon-insensitive loss and the l1 penalty of Sugiyama's slides have no closed
    form of leave-one-out: search over scikit-learn's `SVR` or `Lasso` with its
    `GridSearchCV` instead. Ties go to the larger regularization, then to the larger
    width. The closed forms differ from refits by rounding: by some n eps / lambda of
    each sum of squares, eps = 2.2e-16, as refits differ from one another.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (50, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(50)
    >>> search = LeastSquaresSearch([0.3, 1.0], [1e-3, 0.1, 10.0], random_state=0)
    >>> search.fit(X, y).best_params_
    {'width': 1.0, 'regularization': 0.001}
    """

    _: KW_ONLY
    cv: Any = 10

    def plan(
        self, X: Any, y: Any, X_extra: Any = None, y_extra: Any = None
    ) -> LeastSquaresPlan:
        """Return the plan of the search without running it.

        Parameters
        ----------
        X, y, X_extra, y_extra
            As for `fit`.
        """
        widths, lams = self._checked_grid(list(ESTIMATES))
        check_targets(X, y)
        least = 2 + bool(self.fit_intercept)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", ensure_min_samples=least, **NUMERIC
        )
        check_memory(X.shape[0])
        y = np.asarray(y, np.float64)
        seed = seed_from(self.random_state)
        folds: tuple[Split, ...] = ()
        if hasattr(self.cv, "split") or np.iterable(self.cv):
            folds = given_splits(self.cv, X, y)[:-1]
        elif self.cv is not None:
            n_folds = check_integer(self.cv, "cv", at_least=2, at_most=len(y))
            folds = fold_splits(random_folds(len(y), n_folds, seed=seed))[:-1]
        elif self.criterion in ("kfold", "holdout"):
            raise ValueError(
                f"`cv` must be a number of folds for criterion={self.criterion!r}, "
                f"got None."
            )
        extra = None
        if (X_extra is None) != (y_extra is None):
            raise ValueError("`X_extra` and `y_extra` belong together; pass both.")
        if X_extra is not None:
            rows = validate_data(
                self, X_extra, reset=False, accept_sparse="csr", dtype=np.float64
            )
            check_unmasked(y_extra)
            fresh = check_array(y_extra, ensure_2d=False, dtype=np.float64)
            wanted = (rows.shape[0], *y.shape[1:])
            if fresh.shape != wanted:
                raise ValueError(
                    f"`y_extra` must have the shape {wanted} of `X_extra` and `y`, got "
                    f"{fresh.shape}."
                )
            extra = rows, fresh.reshape(len(fresh), -1)
        elif self.criterion == "extra_sample":
            raise ValueError(
                "`criterion` 'extra_sample' needs fresh labeled rows; pass them to "
                "`fit` as `X_extra` and `y_extra`, or use criterion='loo'."
            )
        return LeastSquaresPlan(
            search=clone(self),
            widths=widths,
            regularizations=lams,
            X=X,
            y=y.reshape(len(y), -1),
            extra=extra,
            folds=folds[:1] if self.criterion == "holdout" else folds,
            seed=seed,
        )

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
        chosen = self._choose(plan.run(out=out, n_jobs=self.n_jobs))
        self.best_estimator_ = chosen.fit(plan.X, np.asarray(y))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
