"""Model selection for kernel least squares: rows in memory, or streamed in two passes.

Either search makes one `WidthRecord` for each width, which an interrupted run goes on
from. In memory a width is one task, a decomposition. Streamed rows are a pool whose
last columns are the targets; two passes over it for each width add up moments, then
losses, in row order: the sums do not depend on workers or the order of tasks.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from textwrap import shorten
from typing import Any, Final, Self, TypeVar

import numpy as np
import xarray as xr
from dask.utils import format_bytes
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer, check_nonnegative, check_positive
from dsel.data import open_pool
from dsel.data.cache import process_cache
from dsel.data.identity import content_hash
from dsel.data.labeled import check_unmasked
from dsel.data.lazy import lazily
from dsel.data.pool import Pool
from dsel.data.row_random import seed_from
from dsel.data.splits import (
    Split,
    fold_splits,
    given_splits,
    random_folds,
    splits_token,
)
from dsel.kernels.reference_rows import squared_distances
from dsel.least_squares.closed_form import (
    block_residuals,
    gcv_losses,
    leave_one_out_residuals,
    solve_dual,
)
from dsel.least_squares.estimators import PENALTIES, KernelLeastSquares, check_centers
from dsel.least_squares.kernel import (
    check_memory,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    whitening,
)
from dsel.least_squares.losses import (
    ESTIMATES,
    WidthRecord,
    make_loss_cube,
    select_least_squares,
)
from dsel.least_squares.two_passes import (
    Losses,
    Moments,
    count_losses,
    count_moments,
    solve_moments,
)
from dsel.results.store import CUBE, Store, open_store
from dsel.runtime.clients import resolve_client
from dsel.runtime.local import LocalExecutor
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Task, single_threaded
from dsel.runtime.versions import installed_versions

Sum = TypeVar("Sum", Moments, Losses)

BLOCK_NBYTES: Final = 2**24
"""Kernel values of one block of rows; a constant, so that sums are rounded alike."""
STRETCH_ROWS: Final = 2**24
"""Rows whose sum is stored: a run that ends early loses some minutes of work."""


@dataclass(frozen=True)
class Records:
    """Numbers and arrays by key, kept in the store of a search, if it has one."""

    store: Store | None

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the fields that were kept under a key; None for nothing."""
        fields = {} if self.store is None else self.store.records.get(key, {})
        return {name: np.asarray(each)[()] for name, each in fields.items()} or None

    def keep(self, key: str, fields: Mapping[str, Any]) -> None:
        """Keep the fields of what was computed under a key."""
        if self.store is not None:
            self.store.append(key, fields)

    def save_cube(self, cube: xr.Dataset) -> None:
        """Keep the cube, in the place of an earlier one."""
        if self.store is not None:
            self.store.flush()
            self.store.save(CUBE, cube)


@contextmanager
def open_records(out: Any, plan: Mapping[str, str]) -> Iterator[Records]:
    """Open the store of a search at `out`, or none for None; closed at the end.

    Raises StoreMismatchError where it holds a search of other rows or models.
    """
    if out is None:
        yield Records(None)
        return
    plan = {**plan, "versions": str(sorted(installed_versions().items()))}
    with open_store(out, kind="least-squares", plan=plan) as store:
        yield Records(store)


@dataclass(frozen=True, repr=False)
class LeastSquaresPlan:
    """A search that has not run; print it to see what it will do."""

    widths: tuple[float, ...]
    """c of each decomposition."""
    regularizations: Floats
    """lam, shape (n_lam,)."""
    X: Any
    """Rows, float64, dense or CSR, shape (n, n_columns)."""
    y: Floats
    """Targets, shape (n, n_outputs)."""
    extra: tuple[Any, Floats] | None
    """Fresh rows and their targets."""
    folds: tuple[Split, ...]
    """Splits whose test rows are predicted; may be empty."""
    penalty: str
    fit_intercept: bool
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
        # What the losses depend on besides width and regularizations.
        fingerprint = {
            "labeled": content_hash(self.X),
            "targets": content_hash(self.y),
            "splits": splits_token(self.folds),
            "extra": " ".join(map(content_hash, self.extra or ())),
            "penalty": self.penalty,
            "fit_intercept": str(self.fit_intercept),
            "seed": str(self.seed),
        }
        grid = content_hash(self.regularizations)
        places = {f"width/{c!r}/{grid}": place for place, c in enumerate(self.widths)}
        records, messages = {}, {}
        with open_records(out, fingerprint) as kept:
            for key, place in places.items():
                if fields := kept.find(key):
                    records[place] = WidthRecord(**fields)
            tasks = [
                Task(key, evaluate_width, (self.widths[place],))
                for key, place in places.items()
                if place not in records
            ]
            executor = make_executor(self, resolve_client(client), n_jobs)
            with closing(executor):
                for done in completed(executor, tasks):
                    place, error = places[done.key], done.error
                    if error is not None:
                        messages[place] = f"{type(error).__name__}: {error}"
                        continue
                    records[place] = done.record
                    kept.keep(done.key, done.record._asdict())
            cube = make_loss_cube(
                self.widths,
                self.regularizations,
                records,
                messages,
                criterion=self.criterion,
                folds=self.folds,
                n_rows=len(self.y),
                attributes={
                    "penalty": self.penalty,
                    "fit_intercept": self.fit_intercept,
                    "seed": str(self.seed),
                },
            )
            kept.save_cube(cube)
        return cube

    def __repr__(self) -> str:
        n, n_widths, n_lam = len(self.y), len(self.widths), len(self.regularizations)
        lines = [
            f"LeastSquaresPlan: {n_widths} widths x {n_lam} regularizations "
            f"= {n_widths * n_lam} candidates, penalty {self.penalty!r}",
            f"  {n} rows, {self.X.shape[1]} columns, {self.y.shape[1]} outputs",
            f"  {n_widths} tasks: one decomposition of {n} x {n} each "
            f"({format_bytes(8 * n**2)}; a task holds about 4 of them)",
            f"  leave-one-out, GCV and {len(self.folds)} folds in closed form",
            f"  chooses by {self.criterion!r}, an estimate; seed {self.seed}",
        ]
        return "\n".join(lines)


def evaluate_width(
    plan: LeastSquaresPlan, payloads: Sequence[Any], width: float
) -> tuple[WidthRecord, None]:
    """Decompose the kernel matrix of one width and evaluate every regularization."""
    del payloads  # no width needs another
    started = time.perf_counter()
    X, lams = plan.X, plan.regularizations
    distances = process_cache().get(
        f"distances-{content_hash(X)}", lambda: squared_distances(X, X)
    )
    gram = gaussian_gram(distances, width=width)
    spectrum = decompose_gram(gram, penalty=plan.penalty)
    solution = solve_dual(spectrum, plan.y, lams, fit_intercept=plan.fit_intercept)
    folds = np.empty((len(lams), len(plan.folds)))
    for column, fold in enumerate(plan.folds):
        # Splitters need not test all rows that they leave out of the training.
        left_out = np.setdiff1d(np.arange(len(plan.y)), fold.train_rows)
        tested = np.isin(left_out, fold.test_rows)
        residuals = block_residuals(solution, left_out)[tested]
        folds[:, column] = np.square(residuals).sum(axis=(0, 1))
    extra = np.full(len(lams), np.nan)
    if plan.extra is not None:
        rows, targets = plan.extra
        dual = solution.values.reshape(len(gram), -1)
        if plan.penalty == "coefficients":
            dual = gram @ dual
        fitted = gaussian_kernel(rows, X, width=width) @ dual
        fitted = fitted.reshape(len(targets), -1, len(lams)) + solution.intercept
        squares = np.square(fitted - targets[:, :, np.newaxis])
        extra = squares.sum(axis=(0, 1)) / len(targets)
    limit = spectrum.rounding_limit()
    record = WidthRecord(
        loo=np.square(leave_one_out_residuals(solution)).sum(axis=(0, 1)),
        gcv=gcv_losses(solution),
        folds=folds,
        extra=extra,
        smallest=limit if plan.penalty == "rkhs" else 0.0,
        is_singular=bool(spectrum.values.min() <= limit),
        seconds=time.perf_counter() - started,
    )
    return record, None


class Search(RegressorMixin, BaseEstimator):
    """What both searches do with the cube, and with the model that it chose."""

    best_estimator_: KernelLeastSquares

    def _choose(self, results: xr.Dataset) -> None:
        self.results_ = results
        self.choice_ = select_least_squares(results)
        self.best_params_ = dict(self.choice_.params)

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


class LeastSquaresSearch(Search):
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
        try:
            y = np.asarray(y, np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`y` must hold numbers, got {shorten(repr(y), 60)}; for classes "
                f"search with KernelLeastSquaresClassifier()."
            ) from error
        if self.fit_intercept and len(y) < 3:
            raise ValueError(f"`fit_intercept` needs at least 3 rows, got {len(y)}.")
        seed = seed_from(self.random_state)
        folds: Sequence[Split] = ()
        if self.cv is None:
            if self.criterion in ("kfold", "holdout"):
                raise ValueError(
                    f"`cv` must be a number of folds for criterion="
                    f"{self.criterion!r}, got None."
                )
        elif hasattr(self.cv, "split") or np.iterable(self.cv):
            folds = given_splits(self.cv, X, y)[:-1]
        else:
            n_folds = check_integer(self.cv, "cv", at_least=2, at_most=len(y))
            folds = fold_splits(random_folds(len(y), n_folds, seed=seed))[:-1]
        if self.criterion == "holdout":
            folds = folds[:1]
        extra = None
        if (X_extra is None) != (y_extra is None):
            raise ValueError("`X_extra` and `y_extra` belong together; pass both.")
        if X_extra is not None:
            rows = validate_data(
                self, X_extra, reset=False, accept_sparse="csr", dtype=np.float64
            )
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
            widths=widths,
            regularizations=lams,
            X=X,
            y=y.reshape(len(y), -1),
            extra=extra,
            folds=tuple(folds),
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
            criterion=self.criterion,
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
        self._choose(plan.run(out=out, n_jobs=self.n_jobs))
        self.best_index_ = self.choice_.candidate
        self.best_estimator_ = KernelLeastSquares(
            self.best_params_["width"],
            self.best_params_["regularization"],
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
        ).fit(plan.X, np.asarray(y))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class StreamedLeastSquaresSearch(Search):
    """Choose width and regularization with few centres and any number of rows.

    Two passes over the rows for each width give the exact leave-one-out error of the
    model with these centres, for every regularization. Memory holds a chunk of rows and
    matrices of centres x centres. Passes run on the current Dask client if there is
    one, else on local threads.

    Parameters
    ----------
    widths
        Values of c > 0.
    regularizations
        Values of lambda >= 0.
    n_centers
        Rows drawn at random as centres, at most all, where `centers` gives none.
    centers
        Points to use as centres, such as those of `kmeans_centers`.
    penalty
        ``"coefficients"`` or ``"rkhs"``.
    criterion
        ``"loo"`` or ``"gcv"``.
    fit_intercept
        Whether the models have an unpenalised constant.
    random_state
        Seed of the draw of centres.
    n_jobs
        Local threads where there is no cluster; None means one for each core.

    Attributes
    ----------
    results_ : xarray.Dataset
        The cube over ``width``, ``regularization``, ``fold`` (one, in which every row
        is held out in its turn) and ``criterion``.
    choice_ : LossChoice
        Candidate, parameters and estimate.
    best_params_ : dict
        ``width`` and ``regularization``.
    best_estimator_ : KernelLeastSquares
        The chosen model.
    centers_ : ndarray
        Centres, shape (n_centers, n_columns).
    n_features_in_ : int
        Columns of the rows.

    See Also
    --------
    LeastSquaresSearch : For rows that fit into memory, with kernels at all rows.

    Notes
    -----
    All criteria are estimates of the squared error, noise included: none is a bound.
    The centres stay where they are when a row is left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (5000, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(5000)
    >>> search = StreamedLeastSquaresSearch(
    ...     [0.3, 1.0], [1e-3, 0.1, 10.0], n_centers=30, random_state=0)
    >>> round(search.fit(X, y).choice_.estimate, 3)
    0.01
    """

    def __init__(
        self,
        widths: ArrayLike,
        regularizations: ArrayLike,
        *,
        n_centers: int = 500,
        centers: Any = None,
        penalty: str = "coefficients",
        criterion: str = "loo",
        fit_intercept: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.widths = widths
        self.regularizations = regularizations
        self.n_centers = n_centers
        self.centers = centers
        self.penalty = penalty
        self.criterion = criterion
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, out: Any = None) -> Self:
        """Search, and keep the chosen model.

        Parameters
        ----------
        X
            Rows, shape (n, n_columns): a Dask or numpy array, or a data frame, of
            numbers, dense.
        y
            Targets, shape (n,) or (n, n_outputs), of the same kind.
        out
            Directory or URL where sums over finished rows are stored, every few
            minutes; the same call continues from them. Needs Dask arrays whose names
            do not change, as of those read from files, and `centers` or an integer
            `random_state`.

        Raises
        ------
        ValueError
            Where the grid or the data are out of range.
        AllFitsFailedError
            Where no candidate has a finite estimate.
        """
        check_choice(self.penalty, "penalty", PENALTIES)
        check_choice(self.criterion, "criterion", ("loo", "gcv"))
        widths, lams = check_grid(self.widths, self.regularizations)
        check_unmasked(y)
        checked: dict[str, Any] = {"skip_check_array": True}
        if not hasattr(X, "dask"):
            checked = {
                "dtype": np.float64, "multi_output": True, "y_numeric": True,
                "ensure_min_samples": 2,
            }  # fmt: skip
        X, y = validate_data(self, X, y, **checked)
        rows, n_targets = labeled_pool(X, y)
        client, seed = resolve_client(), seed_from(self.random_state)
        if client is None:
            client = partial(LocalExecutor, n_threads=self.n_jobs)
        drawn = f"{self.n_centers} of seed {seed}"
        if self.centers is not None:
            given = check_array(self.centers, dtype=np.float64, input_name="`centers`")
            drawn = content_hash(given)
        # What the sums depend on besides width and regularizations.
        fingerprint = {
            "labeled": rows.token if out is None else rows.fingerprint(client),
            "targets": str(n_targets),
            "centers": drawn,
            "penalty": self.penalty,
            "fit_intercept": str(self.fit_intercept),
        }
        with open_records(out, fingerprint) as records:
            kept = records.find("centers")
            if kept is None:
                kept = {"points": self._place_centers(rows, n_targets, seed, client)}
                records.keep("centers", kept)
            self.centers_ = kept["points"]
            add_up = partial(sum_of_rows, rows, client, records)
            evaluated, models = {}, []
            for place, width in enumerate(widths):
                root = None
                # On one thread, else the last digits depend on the machine's cores.
                with single_threaded():
                    if self.penalty == "rkhs":
                        root = whitening(self.centers_, width=width)
                block = partial(sum_of_block, self.centers_, width, root, n_targets)
                key, count = f"moments/{width!r}", partial(block, count_moments)
                moments = add_up(key, Moments, count)
                with single_threaded():
                    b = len(moments.mean) - n_targets
                    solution = solve_moments(
                        moments, b, lams, fit_intercept=self.fit_intercept
                    )
                key = f"losses/{content_hash(lams)}/{width!r}"
                count = partial(block, partial(count_losses, solution))
                losses = add_up(key, Losses, count)
                evaluated[place] = WidthRecord(
                    loo=losses.loo,
                    gcv=solution.gcv_losses(losses),
                    folds=np.empty((len(lams), 0)),
                    extra=np.full(len(lams), np.nan),
                    smallest=solution.rounding_limit,
                    is_singular=False,
                    seconds=np.nan,
                )
                models.append((root, solution))
            cube = make_loss_cube(
                widths,
                lams,
                evaluated,
                {},
                criterion=self.criterion,
                folds=(),
                n_rows=rows.n_rows,
                attributes={
                    "penalty": self.penalty,
                    "fit_intercept": self.fit_intercept,
                    "n_centers": len(self.centers_),
                },
            )
            records.save_cube(cube)
        self._choose(cube)
        place, column = divmod(self.choice_.candidate, len(lams))
        root, solution = models[place]
        slopes = solution.coefficients[:, :, column]
        model = KernelLeastSquares(
            self.best_params_["width"],
            self.best_params_["regularization"],
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
            centers=self.centers_,
        )
        model.n_features_in_ = self.n_features_in_
        dual = slopes if root is None else root @ slopes
        intercept = solution.level - solution.middle @ slopes
        model.centers_ = self.centers_
        model.dual_coef_ = dual[:, 0] if np.ndim(y) == 1 else dual
        model.intercept_ = intercept[0] if np.ndim(y) == 1 else intercept
        self.best_estimator_ = model
        return self

    def _place_centers(
        self, rows: Pool, n_targets: int, seed: int, client: Any
    ) -> Floats:
        if self.centers is not None:
            return check_centers(self.centers, self.n_features_in_)
        wanted = check_integer(self.n_centers, "n_centers", at_least=1)
        n_centers = min(wanted, rows.n_rows)
        generator = np.random.default_rng(seed)
        chosen = np.sort(generator.choice(rows.n_rows, n_centers, replace=False))

        def pick(block: Any, numbers: NDArray[np.int64]) -> Floats:
            return np.asarray(block[np.isin(numbers, chosen), :-n_targets], np.float64)

        def stack(earlier: Floats, later: Floats) -> Floats:
            return np.concatenate([earlier, later])

        picked: Floats = rows.reduce(pick, stack, client=client)
        return picked


def sum_of_rows(
    rows: Pool,
    client: Any,
    records: Records,
    key: str,
    kind: type[Sum],
    count: Callable[[Any, NDArray[np.int64]], Sum],
) -> Sum:
    """Add up what is counted of all blocks; the sums of stretches are kept."""
    sums = []
    for start in range(0, int(rows.boundaries[-1]), STRETCH_ROWS):
        fields = records.find(f"{key}/{start}")
        if fields is None:
            stretch = rows.between(start, start + STRETCH_ROWS)
            fields = vars(stretch.reduce(count, add, client=client))
            records.keep(f"{key}/{start}", fields)
        sums.append(kind(**fields))
    return reduce(add, sums)


def sum_of_block(
    centers: Floats,
    width: float,
    root: Floats | None,
    n_targets: int,
    count: Callable[[Floats, Floats], Sum],
    block: Any,
    numbers: NDArray[np.int64],
) -> Sum:
    """Add up what is counted on the design K(rows, z) W and the targets of a block.

    `root` is W for the RKHS penalty, None for the identity.
    """
    del numbers
    step = max(1, BLOCK_NBYTES // (8 * len(centers)))
    sums = []
    for start in range(0, len(block), step):
        parts = np.split(block[start : start + step], [-n_targets], axis=1)
        # Copies are aligned in memory. Rows that came over a network may start at any
        # byte, and sums over such values are rounded otherwise.
        rows, targets = (np.array(part, np.float64, order="C") for part in parts)
        kernel = gaussian_kernel(rows, centers, width=width)
        sums.append(count(kernel if root is None else kernel @ root, targets))
    return reduce(add, sums)


def labeled_pool(X: Any, y: Any) -> tuple[Pool, int]:
    """Return rows with their targets as last columns, and how many these are.

    Both are Dask collections or of numpy; a numpy `y` goes along with a Dask `X`.
    """
    X, y = (
        each.to_dask_array(lengths=True) if hasattr(each, "to_dask_array") else each
        for each in (X, y)
    )
    if not hasattr(X, "dask"):
        X = np.asarray(X, np.float64)
    if not hasattr(X, "dask") or not hasattr(y, "dask"):
        y = np.asarray(y, np.float64)
    if X.ndim != 2 or y.ndim not in (1, 2) or X.shape[0] != y.shape[0]:
        raise ValueError(
            f"`X` must be two-dimensional and `y` must have its rows, got shapes "
            f"{X.shape} and {np.shape(y)}; call compute_chunk_sizes() on Dask arrays "
            f"of unknown length."
        )
    targets = y[:, np.newaxis] if y.ndim == 1 else y
    if not hasattr(X, "dask"):
        return open_pool(np.concatenate([X, targets], axis=1)), targets.shape[1]
    import dask.array as da  # takes a while to import

    targets = da.asarray(targets).rechunk((X.chunks[0], -1))
    joined = da.concatenate([X, targets], axis=1).rechunk({1: -1})
    return open_pool(joined), targets.shape[1]


def check_grid(
    widths: ArrayLike, regularizations: ArrayLike
) -> tuple[tuple[float, ...], Floats]:
    """Return the values of both axes of the grid, at least one of each, each once.

    Raises TypeError where a value is no number, ValueError where it is out of range.
    """
    axes = []
    for name, given, check in (
        ("regularizations", regularizations, check_nonnegative),
        ("widths", widths, check_positive),
    ):
        values = np.atleast_1d(np.asarray(given, dtype=object))
        if values.ndim != 1 or not values.size:
            raise ValueError(
                f"`{name}` must be a list of at least one number, got {given!r}."
            )
        axes.append(tuple(dict.fromkeys(check(v, name) for v in values.tolist())))
    return axes[1], np.array(axes[0])
