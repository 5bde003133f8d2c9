"""Model selection for kernel least squares with few centers, in passes over the rows.

Rows are a pool whose last columns are the targets. Two passes over it for each width
add up moments, then losses. Sums are merged in row order, so they do not depend on
workers or on the order of tasks.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial, reduce
from typing import Any, Final, Self

import numpy as np

from dsel import names
from dsel.arrays import (
    Floats,
    Integers,
    check_rows,
    replaces_earlier_fit,
    validate_data,
)
from dsel.checks import as_array, check_integer, explain_unknown
from dsel.data import open_pool
from dsel.data.identity import content_hash
from dsel.data.pool import Pool
from dsel.data.row_random import seed_from
from dsel.least_squares.closed_form import gaussian_kernel, whitening
from dsel.least_squares.estimators import check_centers
from dsel.least_squares.loss_cube import Record, make_loss_cube, why_unusable
from dsel.least_squares.search import NUMERIC, BaseSearch, open_store
from dsel.least_squares.target_checks import check_targets
from dsel.least_squares.two_passes import (
    Sums,
    ThinSolution,
    count_losses,
    count_moments,
    merge_moments,
    solve_moments,
)
from dsel.results.place import CUBE
from dsel.results.run_store import Store
from dsel.runtime.clients import resolve_client
from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.tasks import limit_threads

STREAM_BLOCK_NBYTES: Final = 2**24
"""Bytes of the kernel values of one block of rows. It does not depend on free memory,
because the size of blocks changes the rounding of sums."""
ESTIMATES_ONLY: Final = dict.fromkeys(
    ("certificate", "loss", "report", "delta", "deploy"),
    "it has estimates only, since centers that are drawn among all rows are rows of "
    "every fold; for a certificate search KernelLeastSquares(n_centers=500) with "
    "SemiSupervisedSearchCV, or use LeastSquaresSearch",
)
"""Why this search lacks options of `LeastSquaresSearch`."""


@explain_unknown(ESTIMATES_ONLY)
@dataclass(eq=False, repr=False)
class StreamedLeastSquaresSearch(BaseSearch):
    """Choose width and regularization with few centers and any number of rows.

    Two passes over the rows for each width give the exact leave-one-out error of the
    model with these centers, for every regularization. Memory holds a chunk of rows and
    matrices of centers x centers. Passes run on the current Dask client if there is
    one, else on this machine.

    Parameters
    ----------
    widths, regularizations, penalty, fit_intercept, n_jobs
        As in `LeastSquaresSearch`.
    n_centers
        Rows drawn at random as centers, at most all, where `centers` gives none.
    centers
        Points to use as centers, such as the means of clusters.
    criterion
        ``"loo"`` or ``"gcv"``.
    random_state
        Seed of the draw of centers.

    Attributes
    ----------
    results_, choice_, best_index_, best_params_, best_estimator_
        As in `LeastSquaresSearch`; the cube has one fold, which stands for leaving out
        each row in turn.
    centers_ : ndarray
        Centers, shape (n_centers, n_columns).

    See Also
    --------
    LeastSquaresSearch : For rows that fit into memory, with kernels at all rows.

    Notes
    -----
    No estimate is a bound, and there is no ``certificate``, because centers drawn from
    all rows make every model depend on rows of every fold.
    `dsel.SemiSupervisedSearchCV` certifies `KernelLeastSquares` with `n_centers`, or
    with `centers` that are other rows. Leave-one-out leaves out rows, not centers.

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

    _: KW_ONLY
    n_centers: int = 500
    centers: Any = None

    @replaces_earlier_fit
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
            Directory or URL where the sums of finished passes are stored; the same call
            continues from them. Needs Dask arrays whose names do not change, as of
            those read from files, and `centers` or an integer `random_state`.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        ValueError
            Where the grid or the data are out of range.
        AllFitsFailedError
            Where no candidate has a finite estimate.
        """
        widths, regularizations = self._check_grid(("loo", "gcv"))
        check_targets(X, y)
        options: dict[str, Any] = {"ensure_min_samples": 2, **NUMERIC}
        if hasattr(X, "dask"):
            check_rows(X)
            options = {"skip_check_array": True}
        X, y = validate_data(self, X, y, **options)
        rows, n_targets = labeled_pool(X, y)
        # A pass takes a client, or a function that makes an executor.
        client: Any = resolve_client()
        client = client or partial(LocalExecutor, n_threads=self.n_jobs)
        seed = seed_from(self.random_state)
        if self.centers is None:
            n_centers = check_integer(self.n_centers, "n_centers", at_least=1)
            n_centers, identity = min(n_centers, rows.n_rows), f"of seed {seed}"
            make_centers = partial(draw_rows, rows, n_targets, n_centers, seed, client)
        else:
            centers = check_centers(self.centers, self.n_features_in_)
            n_centers, identity = len(centers), content_hash(centers)
            make_centers = partial(dict, points=centers)
        inputs = self._identity(
            labeled=rows.token if out is None else rows.fingerprint(client),
            targets=n_targets,
            centers=identity,
            n_centers=n_centers,
        )
        with open_store(out, inputs) as store:
            self.centers_ = get_or_store(store, "centers", make_centers)["points"]
            passes = partial(
                self._stream, regularizations, rows, n_targets, client, store
            )
            # BLAS on several threads sums in another order, so that the last digits
            # would depend on the machine's cores.
            with limit_threads():
                models = list(map(passes, widths))
            cube = make_loss_cube(
                widths,
                regularizations,
                [record for record, _, _ in models],
                rows.n_rows,
                criterion=self.criterion,
                folds=(),
                attributes=inputs,
            )
            if store is not None:
                store.save(CUBE, cube)
        model = self._choose(cube, self.centers_)
        width_index, column = divmod(self.best_index_, len(regularizations))
        _, root, solution = models[width_index]
        slopes = solution.coefficients[:, :, column]
        model.n_features_in_ = self.n_features_in_
        model.set_model(
            self.centers_,
            slopes if root is None else root @ slopes,
            solution.y_mean - solution.X_mean @ slopes,
            np.ndim(y),
        )
        self._set_names(model)
        self.best_estimator_ = model
        return self

    def _stream(
        self,
        regularizations: Floats,
        rows: Pool,
        n_targets: int,
        client: Any,
        store: Store | None,
        width: float,
    ) -> tuple[Record, Floats | None, ThinSolution]:
        """Make the two passes of a width; return the record, W and all models.

        W is None for the identity.
        """
        centers = self.centers_
        root = whitening(centers, width=width) if self.penalty == "rkhs" else None

        def add_up(key: str, count: Any, merge: Callable[[Sums, Sums], Sums]) -> Sums:
            """Return sums over all rows, from the store if an earlier run made them."""
            step = max(1, STREAM_BLOCK_NBYTES // (8 * len(centers)))

            def count_block(block: Any, numbers: Integers) -> Sums:
                sums = []
                for start in range(0, len(block), step):
                    parts = np.split(block[start : start + step], [-n_targets], axis=1)
                    # Copies are aligned in memory. Rows from a network may start at
                    # any byte, and vectorized sums over them are rounded differently.
                    X, y = (np.array(part, np.float64, order="C") for part in parts)
                    design = gaussian_kernel(X, centers, width=width)
                    design = design if root is None else design @ root
                    sums.append(count(design, y))
                return reduce(merge, sums)

            name = f"{key.partition('/')[0]}-width={width!r}"
            make = partial(rows.reduce, count_block, merge, client=client, name=name)
            return get_or_store(store, key, make)

        moments = add_up(f"moments/{width!r}", count_moments, merge_moments)
        solution = solve_moments(
            moments, n_targets, regularizations, fit_intercept=self.fit_intercept
        )
        key, count = content_hash(regularizations), partial(count_losses, solution)
        losses = add_up(
            f"losses/{key}/{width!r}",
            count,
            lambda these, later: {name: these[name] + later[name] for name in these},
        )
        record = {
            names.LOO_LOSS_SUM: losses["loo"],
            names.GCV_LOSS_SUM: solution.gcv_factor * losses["train"],
            names.FOLD_LOSS_SUM: losses["loo"][:, np.newaxis],
            names.MESSAGE: why_unusable(
                regularizations, solution.rounding_limit, is_singular=False
            ),
        }
        return record, root, solution


def labeled_pool(X: Any, y: Any) -> tuple[Pool, int]:
    """Return rows with their targets as last columns, and the number of targets.

    Both are Dask collections or numpy arrays; a numpy `y` may come with a Dask `X`.
    """
    X, y = (
        table.to_dask_array(lengths=True) if hasattr(table, "to_dask_array") else table
        for table in (X, y)
    )
    is_lazy = hasattr(X, "dask")
    X = X if is_lazy else as_array(X, "X", np.float64)
    y = y if is_lazy and hasattr(y, "dask") else as_array(y, "y", np.float64)
    if not all(isinstance(getattr(table, "ndim", None), int) for table in (X, y)):
        raise TypeError(
            f"`X` and `y` must be arrays or frames, of Dask or in memory, got "
            f"{type(X).__name__} and {type(y).__name__}."
        )
    if X.ndim != 2 or y.ndim not in (1, 2) or X.shape[0] != y.shape[0]:
        raise ValueError(
            f"`X` must be two-dimensional and `y` must have its rows, got shapes "
            f"{X.shape} and {np.shape(y)}; call compute_chunk_sizes() on Dask arrays "
            f"of unknown length."
        )
    targets = y[:, np.newaxis] if y.ndim == 1 else y
    if not targets.shape[1]:
        raise ValueError("`y` must have a target for each row of `X`, got no column.")
    if not is_lazy:
        return open_pool(np.concatenate([X, targets], axis=1)), targets.shape[1]
    import dask.array as da  # takes a while to import

    targets = da.asarray(targets).rechunk((X.chunks[0], -1))
    joined = da.concatenate([X, targets], axis=1).rechunk({1: -1})
    return open_pool(joined), targets.shape[1]


def get_or_store(store: Store | None, key: str, make: Callable[[], Sums]) -> Sums:
    """Return the stored value of a key, or compute and store it."""
    if store is None:
        return make()
    if key not in store.records:
        store.append(key, make())
    fields = store.records[key].items()
    return {name: np.asarray(value)[()] for name, value in fields}


def draw_rows(rows: Pool, n_targets: int, n_drawn: int, seed: int, client: Any) -> Sums:
    """Return random rows without their targets, as ``points``."""
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(rows.n_rows, n_drawn, replace=False))

    def pick(block: Any, numbers: Integers) -> Floats:
        return np.asarray(block[np.isin(numbers, chosen), :-n_targets], np.float64)

    points = rows.reduce(
        pick, lambda *parts: np.concatenate(parts), client=client, name="centers"
    )
    return {"points": points}
