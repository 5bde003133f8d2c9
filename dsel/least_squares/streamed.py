"""Model selection for kernel least squares on more rows than memory holds.

The rows are a pool whose last columns are the targets. Two passes over it for each
width add up moments, then leave-one-out losses, in row order: the sums do not depend on
workers or the order of tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dsel.arrays import Floats
from dsel.checks import check_choice, check_integer
from dsel.data import open_pool
from dsel.data.identity import content_hash
from dsel.data.labeled import check_unmasked
from dsel.data.lazy import lazily
from dsel.data.pool import Pool
from dsel.data.row_random import seed_from
from dsel.least_squares.estimators import PENALTIES, KernelLeastSquares
from dsel.least_squares.kernel import gaussian_gram, gaussian_kernel, whitening
from dsel.least_squares.losses import (
    WidthRecord,
    make_loss_cube,
    select_least_squares,
)
from dsel.least_squares.records import Records, open_records
from dsel.least_squares.search import check_grid
from dsel.least_squares.two_passes import (
    Losses,
    Moments,
    ThinSolution,
    count_losses,
    count_moments,
    gcv_losses,
    solve_moments,
)
from dsel.runtime.clients import resolve_client
from dsel.runtime.local import LocalExecutor
from dsel.runtime.threads import single_threaded

Sum = TypeVar("Sum", Moments, Losses)

BLOCK_NBYTES: Final = 2**24
"""Kernel values of one block of rows; a constant, so that sums are rounded alike."""
STRETCH_ROWS: Final = 2**24
"""Rows whose sum is stored: a run that ends early loses some minutes of work."""


@dataclass(frozen=True)
class Basis:
    """The design of one width: X = K(rows, z) W."""

    centers: Floats
    """z, shape (n_centers, n_columns)."""
    width: float
    root: Floats | None
    """W for the RKHS penalty, shape (n_centers, b); None for the identity."""

    def design(self, rows: Floats) -> Floats:
        """Return rows of X."""
        kernel = gaussian_kernel(rows, self.centers, width=self.width)
        return kernel if self.root is None else kernel @ self.root


@dataclass(frozen=True)
class Centers:
    """The centres of a search, as they are kept."""

    points: Floats


@dataclass(frozen=True)
class Passes:
    """Passes over the rows of one search; their sums are kept as they grow."""

    pool: Pool
    """Rows, targets last."""
    n_targets: int
    client: Any
    records: Records

    def sum(
        self,
        name: str,
        kind: type[Sum],
        basis: Basis,
        count: Callable[[Floats, Floats], Sum],
    ) -> Sum:
        """Add up what is counted on design and targets, stretch by stretch."""
        block = partial(sum_of_block, basis, self.n_targets, count)
        stretches = []
        for start in range(0, int(self.pool.boundaries[-1]), STRETCH_ROWS):
            key = f"{name}/{basis.width!r}/{start}"
            found = self.records.find(key, kind)
            if found is None:
                rows = self.pool.between(start, start + STRETCH_ROWS)
                found = rows.reduce(block, add, client=self.client)
                self.records.keep(key, vars(found))
            stretches.append(found)
        return reduce(add, stretches)


def sum_of_block(
    basis: Basis,
    n_targets: int,
    count: Callable[[Floats, Floats], Sum],
    block: Any,
    numbers: NDArray[np.int64],
) -> Sum:
    """Add up what is counted on the design and the targets of a block of rows."""
    del numbers
    step = max(1, BLOCK_NBYTES // (8 * len(basis.centers)))
    sums = []
    for start in range(0, len(block), step):
        parts = np.split(block[start : start + step], [-n_targets], axis=1)
        # Copies are aligned in memory. Rows that came over a network may start at any
        # byte, and sums over such values are rounded otherwise.
        rows, targets = (np.array(part, np.float64, order="C") for part in parts)
        sums.append(count(basis.design(rows), targets))
    return reduce(add, sums)


class StreamedLeastSquaresSearch(RegressorMixin, BaseEstimator):
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
        content = rows.token if out is None else rows.fingerprint(client)
        with open_records(out, self._fingerprint(content, n_targets, seed)) as records:
            kept = records.find("centers", Centers)
            if kept is None:
                kept = Centers(self._place_centers(rows, n_targets, seed, client))
                records.keep("centers", vars(kept))
            self.centers_ = kept.points
            passes = Passes(rows, n_targets, client, records)
            fits = [self._fit_width(passes, c, lams) for c in widths]
            self.results_ = make_loss_cube(
                widths,
                lams,
                {place: record for place, (record, *_) in enumerate(fits)},
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
            records.save_cube(self.results_)
        self.choice_ = select_least_squares(self.results_)
        self.best_params_ = dict(self.choice_.params)
        place, column = divmod(self.choice_.candidate, len(lams))
        self.best_estimator_ = self._model(*fits[place][1:], column, np.ndim(y))
        return self

    @lazily
    def predict(self, X: Any) -> Floats:
        """Predict with the chosen model; of a Dask array lazily.

        Parameters
        ----------
        X
            Rows in memory, shape (n_rows, n_columns).
        """
        check_is_fitted(self, "best_estimator_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.best_estimator_.predict(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fingerprint(self, rows: str, n_targets: int, seed: int) -> dict[str, str]:
        """Return what the sums depend on besides width and regularizations."""
        drawn = f"{self.n_centers} of seed {seed}"
        if self.centers is not None:
            given = check_array(self.centers, dtype=np.float64, input_name="`centers`")
            drawn = content_hash(given)
        return {
            "labeled": rows,
            "targets": str(n_targets),
            "centers": drawn,
            "penalty": self.penalty,
            "fit_intercept": str(self.fit_intercept),
        }

    def _place_centers(
        self, rows: Pool, n_targets: int, seed: int, client: Any
    ) -> Floats:
        if self.centers is not None:
            centers = np.asarray(self.centers, np.float64)
            if centers.ndim != 2 or centers.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"`centers` must have the {self.n_features_in_} columns of `X`, "
                    f"got an array of shape {centers.shape}."
                )
            return centers
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

    def _fit_width(
        self, passes: Passes, width: float, lams: Floats
    ) -> tuple[WidthRecord, Basis, ThinSolution]:
        root = None
        if self.penalty == "rkhs":
            with single_threaded():
                root = whitening(gaussian_gram(self.centers_, width=width))
        basis = Basis(self.centers_, width, root)
        moments = passes.sum("moments", Moments, basis, count_moments)
        with single_threaded():  # else the last digits depend on the machine's cores
            solution = solve_moments(moments, lams, fit_intercept=self.fit_intercept)
        grid = f"losses/{content_hash(lams)}"
        losses = passes.sum(grid, Losses, basis, partial(count_losses, solution))
        record = WidthRecord(
            loo=losses.loo,
            gcv=gcv_losses(solution, losses),
            folds=np.empty((len(lams), 0)),
            extra=np.full(len(lams), np.nan),
            smallest=solution.rounding_limit,
            is_singular=False,
            seconds=np.nan,
        )
        return record, basis, solution

    def _model(
        self, basis: Basis, solution: ThinSolution, column: int, n_dims: int
    ) -> KernelLeastSquares:
        model = KernelLeastSquares(
            self.best_params_["width"],
            self.best_params_["regularization"],
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
            centers=self.centers_,
        )
        dual = solution.coefficients()[:, :, column]
        if basis.root is not None:
            dual = basis.root @ dual
        intercept = solution.intercepts()[:, column]
        model.centers_ = self.centers_
        model.dual_coef_ = dual[:, 0] if n_dims == 1 else dual
        model.intercept_ = intercept[0] if n_dims == 1 else intercept
        model.n_features_in_ = self.n_features_in_
        return model


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
        y = np.asarray(y, np.float64)
    elif not hasattr(y, "dask"):
        y = np.asarray(y)
    if X.ndim != 2 or y.ndim not in (1, 2) or X.shape[0] != y.shape[0]:
        raise ValueError(
            f"`X` must be two-dimensional and `y` must have its rows, got shapes "
            f"{X.shape} and {np.shape(y)}; call compute_chunk_sizes() on Dask arrays "
            f"of unknown length."
        )
    columns = y[:, np.newaxis] if y.ndim == 1 else y
    if not hasattr(X, "dask"):
        return open_pool(np.concatenate([X, columns], axis=1)), columns.shape[1]
    import dask.array as da  # takes a while to import

    chunks = (X.chunks[0], (columns.shape[1],))
    if hasattr(columns, "dask"):
        targets = columns.rechunk(chunks)
    else:
        targets = da.from_array(columns, chunks=chunks)
    joined = da.concatenate([X, targets], axis=1).rechunk({1: -1})
    return open_pool(joined), columns.shape[1]
