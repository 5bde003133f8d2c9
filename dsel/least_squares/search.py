"""Model selection for kernel least squares on rows in memory.

A search makes one record for each width, from which an interrupted run continues. Each
width is one task: a decomposition of its kernel matrix.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import xarray as xr
from dask.base import tokenize
from dask.utils import format_bytes
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from dsel import names
from dsel.arrays import (
    ArrayLike,
    Floats,
    RandomState,
    replaces_earlier_fit,
    validate_data,
)
from dsel.checks import (
    as_array,
    check_choice,
    check_integer,
    check_nonnegative,
    check_positive,
    check_truth,
    show,
)
from dsel.data.frames import has_named_columns
from dsel.data.identity import content_hash
from dsel.data.labeled import check_no_masks
from dsel.data.lazy import LazyScore, takes_dask_arrays
from dsel.data.row_random import seed_from
from dsel.data.splits import OuterNumber, Split, fold_splits, random_folds, splits_of_cv
from dsel.errors import rename_in_errors
from dsel.families.estimator_kinds import FittedAttributes
from dsel.families.predictions import predict_numbers
from dsel.least_squares.certified_choice import (
    AUTO,
    PAIR_LOSSES,
    WORDS_OF_LEAST_SQUARES,
    add_certified_counts,
    certify,
    is_auto,
    mean_squares_of,
    plan_certified_search,
    why_below_rounding,
)
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
from dsel.least_squares.loss_cube import (
    ESTIMATES,
    LossChoice,
    Record,
    make_loss_cube,
    select_least_squares,
    why_unusable,
)
from dsel.least_squares.target_checks import check_targets
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import Choice
from dsel.results.class_report import CertifiedReport
from dsel.results.place import CUBE
from dsel.results.run_store import Store
from dsel.results.tolerances import ToleranceReport
from dsel.rounded_texts import count_of, wrap_line
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import make_executor, run_to_completion
from dsel.runtime.tasks import Inputs, Output, Task
from dsel.runtime.versions import installed_versions
from dsel.search.outcomes.intervals import Tolerance, check_tolerance
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import Plan
from dsel.typing import PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client


NUMERIC: Final = {"dtype": np.float64, "multi_output": True}
"""Options of scikit-learn's checks of rows and targets."""
KIND: Final = "least-squares"
DELTA: Final = 0.05
ESTIMATE_FOLDS: Final = 10
"""Folds of a search without a certificate where `cv` is "auto"."""


@dataclass(eq=False, repr=False)
class BaseSearch(FittedAttributes, LazyScore, RegressorMixin, BaseEstimator):
    """Base of both searches: the grid, the cube and the chosen model."""

    widths: ArrayLike
    regularizations: ArrayLike
    _: KW_ONLY
    penalty: str = "coefficients"
    criterion: str = "loo"
    fit_intercept: bool = False
    random_state: RandomState = None
    n_jobs: int | None = None

    def _check_grid(self, criteria: Sequence[str]) -> tuple[tuple[float, ...], Floats]:
        """Return the distinct widths and regularizations, at least one of each."""
        check_choice(self.penalty, "penalty", PENALTIES)
        check_truth(self.fit_intercept, "fit_intercept")
        check_choice(self.criterion, "criterion", criteria)
        axes = []
        for name, numbers, check in (
            ("regularizations", self.regularizations, check_nonnegative),
            ("widths", self.widths, check_positive),
        ):
            values = np.atleast_1d(as_array(numbers, name, object))
            if values.ndim != 1 or not values.size:
                raise ValueError(
                    f"`{name}` must be a list of at least one number, got "
                    f"{show(numbers)}."
                )
            axes.append(tuple(dict.fromkeys(check(v, name) for v in values.tolist())))
        return axes[1], np.array(axes[0])

    def _identity(self, **identity: Any) -> dict[str, Any]:
        """Return what losses depend on in addition to the grid."""
        return {
            **identity,
            "penalty": self.penalty,
            "fit_intercept": self.fit_intercept,
        }

    def _choose(self, results: xr.Dataset, centers: Any = None) -> KernelLeastSquares:
        """Choose by the cube; return the chosen model, unfitted."""
        self.results_ = results
        choice = select_least_squares(results)
        self.choice_: LossChoice | Choice = choice
        self.best_params_ = dict(choice.params)
        self.best_index_ = choice.candidate
        return KernelLeastSquares(
            *choice.params.values(),
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
            centers=centers,
        )

    @takes_dask_arrays
    def predict(self, X: Any) -> Floats:
        """Predict with the chosen model; lazily for a Dask array.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n_rows, n_columns).
        """
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(self._check_rows(X)))

    def _check_rows(self, X: Any) -> Any:
        """Return rows for the models: a frame stays one, whose names they check."""
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64
        )
        return X if has_named_columns(X) else rows

    def _set_names(self, *models: KernelLeastSquares) -> None:
        """Give models that were fitted to arrays the names of the columns."""
        if hasattr(self, "feature_names_in_"):
            for model in models:
                model.feature_names_in_ = self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def open_store(
    out: PathLike | None, identity: Mapping[str, Any]
) -> AbstractContextManager[Store | None]:
    """Return the store of a search with this identity; nothing where `out` is None.

    Raises StoreMismatchError where it holds a search of other rows or models.
    """
    if out is None:
        return nullcontext()
    with_versions = {**identity, "versions": sorted(installed_versions().items())}
    texts = {name: str(value) for name, value in with_versions.items()}
    return Store(out, kind=KIND, identity=texts)


@dataclass(frozen=True, repr=False)
class LeastSquaresPlan:
    """A search that has not run; print it to see what it will do."""

    search: "LeastSquaresSearch"
    widths: tuple[float, ...]
    regularizations: Floats
    X: Any
    """Rows, float64, dense or CSR."""
    y: Floats
    """Targets, shape (n, n_outputs)."""
    extra: tuple[Any, Floats] | None
    """Fresh rows and their targets."""
    folds: tuple[Split[int], ...]
    seed: int
    pairs: tuple[Split[int], ...] = ()
    """Trainings without two folds, whose errors the inner searches compare."""
    certified: Plan | None = None
    """Plan of the certified search; None for estimates, and in the copy that is sent to
    workers."""

    @property
    def is_certified(self) -> bool:
        """Whether the search is nested and certifies its choice."""
        return self.search.certificate is not None

    def run(
        self,
        client: "Client | None" = None,
        *,
        out: PathLike | None = None,
        n_jobs: int | None = None,
    ) -> xr.Dataset:
        """Run the search and return its cube.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else this machine.
        out, n_jobs
            As for `LeastSquaresSearch`.
        """
        return self.search_all(client, out=out, n_jobs=n_jobs)[0]

    def search_all(
        self,
        client: "Client | None" = None,
        *,
        out: PathLike | None = None,
        n_jobs: int | None = None,
    ) -> tuple[xr.Dataset, tuple[Outcome, Any] | None]:
        """Run the search; return the cube and, if certified, its outcome.

        The outcome comes with the model of all rows, which it lacks without a pool.

        Arguments are those of `run`.
        """
        client, identity, certified = (
            resolve_client(client),
            self._identity(client),
            None,
        )
        with open_store(out, identity) as store:
            records = self._evaluate_widths(store, client, n_jobs)
            cube = make_loss_cube(
                self.widths,
                self.regularizations,
                # Losses of pairs become `pair_results_`, and are not in the cube.
                [
                    {name: n for name, n in record.items() if name != PAIR_LOSSES}
                    for record in records
                ],
                len(self.y),
                criterion=self.search.criterion,
                folds=self.folds,
                attributes=identity,
            )
            if self.certified is not None:
                losses = np.concatenate([record[PAIR_LOSSES] for record in records])
                reasons = cube.get(
                    names.MESSAGE, xr.full_like(cube[names.STATUS], "", object)
                ).values.ravel()
                certified = certify(self.certified, losses, reasons, client, n_jobs)
                cube = add_certified_counts(cube, certified[0].results)
            if store is not None:
                # The cube is saved last: a killed run continues with the stored widths.
                store.save(CUBE, cube)
        return cube, certified

    def _identity(self, client: "Client | None") -> dict[str, Any]:
        """Return all that the losses depend on in addition to the grid."""
        identity: dict[str, Any] = {
            "labeled": content_hash(self.X),
            "targets": content_hash(self.y),
            "splits": tokenize(self.folds),
            "extra": " ".join(map(content_hash, self.extra or ())),
            "seed": str(self.seed),
        }
        if (plan := self.certified) is not None:
            options = ("certificate", "deploy", "loss", "report")
            identity |= {name: plan.facts.identity[name] for name in options}
            if (pool := plan.search.pool) is not None:
                identity["pool"] = pool.fingerprint(client)
        return self.search._identity(**identity)

    def _evaluate_widths(
        self, store: Store | None, client: "Client | None", n_jobs: int | None
    ) -> list[Record]:
        """Return the records of all widths; those in the store are not made again."""
        grid = content_hash(self.regularizations)
        keys = {f"fit-width={c!r}": f"width/{c!r}/{grid}" for c in self.widths}
        records: dict[str, Record] = {} if store is None else dict(store.records)
        tasks = [
            Task(name, EvaluateWidth(width))
            for width, (name, key) in zip(self.widths, keys.items(), strict=True)
            if key not in records
        ]
        # The plan of the certified search holds the rows, too; without it they are sent
        # to workers once.
        executor = make_executor(replace(self, certified=None), client, n_jobs)
        with closing(executor):
            for done in run_to_completion(executor, tasks):
                key = keys[done.key]
                if done.error is not None:
                    text = f"{type(done.error).__name__}: {done.error}"
                    # If a width were left out, the rows of a fold could decide which
                    # candidates the search without this fold has.
                    if self.certified is not None:
                        raise RuntimeError(
                            f"a width failed, and a certified search leaves out none: "
                            f"{text}"
                        ) from done.error
                    messages = [text] * len(self.regularizations)
                    records[key] = {names.MESSAGE: messages}
                    continue
                records[key] = done.get()
                if store is not None:
                    store.append(key, records[key])
        return [records[key] for key in keys.values()]

    def __repr__(self) -> str:
        n, n_widths, n_lam = len(self.y), len(self.widths), len(self.regularizations)
        name, plan = self.search.criterion, self.certified
        choice = f"  chooses by {name!r}, an estimate; seed {self.seed}"
        if plan is not None:
            nested = plan.search
            lines = [
                f"certificate nested at delta={nested.delta:g}, of "
                f"{nested.context.losses.main!r}; the chosen candidates are fitted "
                f"without each of {nested.scheme.n_folds} folds; seed {self.seed}",
                *map(str, plan.facts.caveats),
            ]
            choice = "\n".join(wrap_line(f"  {line}", 4) for line in lines)
        return (
            f"LeastSquaresPlan: {count_of(n_widths, 'width')} x "
            f"{count_of(n_lam, 'regularization')} "
            f"= {count_of(n_widths * n_lam, 'candidate')}, penalty "
            f"{self.search.penalty!r}\n"
            f"  {count_of(n, 'row')}, {count_of(self.X.shape[1], 'column')}, "
            f"{count_of(self.y.shape[1], 'output')}\n"
            f"  {count_of(n_widths, 'task')}: one decomposition of {n} x {n} each "
            f"({format_bytes(8 * n**2)}; a task holds about {COPIES} of them)\n"
            f"  leave-one-out, GCV and {len(self.folds)} folds in closed form\n"
            f"{choice}"
        )


@dataclass(frozen=True)
class EvaluateWidth:
    """Evaluates all regularizations for one width of the kernel."""

    width: float

    def run(self, plan: LeastSquaresPlan, inputs: Inputs) -> Output[Record]:
        """Return the record of this width."""
        return Output(evaluate_width(plan, self.width))


def evaluate_width(plan: LeastSquaresPlan, width: float) -> Record:
    """Decompose the kernel matrix of one width and evaluate every regularization."""
    X, penalty, fit_intercept = plan.X, plan.search.penalty, plan.search.fit_intercept
    gram = gaussian_gram(X, width=width)
    # The matrix is decomposed once; each regularization, fold and pair of folds then
    # costs products of matrices only.
    spectrum = decompose_gram(gram, penalty=penalty)
    if plan.is_certified:
        reasons = why_below_rounding(plan.regularizations, len(plan.y))
    else:
        reasons = why_unusable(
            plan.regularizations,
            spectrum.rounding_limit() if penalty == "rkhs" else 0.0,
            is_singular=spectrum.is_singular(),
        )
    usable = reasons == ""
    regularizations = plan.regularizations[usable]
    solution = solve_dual(
        spectrum, plan.y, regularizations, fit_intercept=fit_intercept
    )
    loo = np.square(leave_one_out_residuals(solution)).sum(axis=(0, 1))
    every, splits = np.arange(len(plan.y)), (*plan.folds, *plan.pairs)
    # A splitter may test fewer rows than it leaves out of the training.
    left_out = [np.setdiff1d(every, split.train_rows) for split in splits]
    folds = np.empty((len(regularizations), len(plan.folds)))
    pairs = np.empty((len(regularizations), len(plan.pairs), 2))
    for sums, means, residuals in zip(
        folds, pairs, block_residuals(solution, left_out), strict=True
    ):
        trainings = list(zip(splits, left_out, residuals, strict=True))
        # `splits` has the folds first, then the pairs of folds.
        for i, (split, rows, row_residuals) in enumerate(trainings[: len(sums)]):
            sums[i] = np.square(row_residuals[np.isin(rows, split.test_rows)]).sum()
        for i, (split, rows, row_residuals) in enumerate(trainings[len(sums) :]):
            means[i] = mean_squares_of(split, rows, row_residuals)
    variables = {
        names.LOO_LOSS_SUM: loo,
        names.GCV_LOSS_SUM: gcv_losses(solution),
        names.FOLD_LOSS_SUM: folds if plan.folds else loo[:, np.newaxis],
    }
    if plan.is_certified:
        variables[PAIR_LOSSES] = pairs
    if plan.extra is not None:
        rows, targets = plan.extra
        dual = solution.values.reshape(len(gram), -1)
        if penalty == "coefficients":
            # With this penalty the coefficients are K times the dual solution.
            dual = gram @ dual
        fitted = gaussian_kernel(rows, X, width=width) @ dual
        fitted = (
            fitted.reshape(*targets.shape, len(regularizations)) + solution.intercept
        )
        squares = np.square(fitted - targets[:, :, np.newaxis])
        variables[names.EXTRA_LOSS_MEAN] = squares.sum(axis=(0, 1)) / len(targets)
    # Regularizations that cannot be chosen have NaN, and their reason as a message.
    record: dict[str, Any] = {names.MESSAGE: reasons}
    for name, values in variables.items():
        record[name] = np.full((len(reasons), *values.shape[1:]), np.nan)
        record[name][usable] = values
    return record


@dataclass(eq=False, repr=False)
class LeastSquaresSearch(BaseSearch):
    """Choose width and regularization of `KernelLeastSquares` without refits.

    One eigendecomposition for each width serves every regularization, leave-one-out,
    generalized cross-validation and all folds. Widths are tasks, on the current Dask
    client if there is one, else on this machine.

    With ``certificate="nested"`` it also certifies how far off predictions can be, with
    the same folds, choices and numbers as `dsel.SemiSupervisedSearchCV`; only the
    chosen candidates are fitted.

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
        or ``"extra_sample"`` (with fresh rows given to `fit`). A certified search ranks
        by the mean squared error of inner folds instead.
    cv
        Number of random folds, a scikit-learn splitter, or None for no folds. The cube
        then has one fold, which stands for leaving out each row in turn. ``"auto"``
        means 10 folds, and 5 where they are certified.
    fit_intercept
        Whether the models have an unpenalised constant.
    certificate
        None for estimates, or ``"nested"``, which needs ``penalty="rkhs"`` and random
        folds.
    loss
        The certified loss: ``dsel.losses.error_quantile(0.9)``, the default, or
        ``dsel.losses.beyond(tolerance)``.
    report
        A list of fractions of the predictions whose tolerances are certified, too, or
        True for the usual ones; see `dsel.plan_search`.
    delta
        Probability with which the certificate may fail, in (0, 0.5].
    deploy
        Which model of a certified search is `best_estimator_`: ``"one_fold"``, the
        default, or ``"all_rows"``, which needs a pool. Both are in `models_`.
    random_state
        Seed of the folds.
    n_jobs
        Local threads where there is no cluster; None and -1 mean one for each core.

    Attributes
    ----------
    results_ : xarray.Dataset
        The cube over ``width``, ``regularization``, ``fold`` and ``criterion``. With a
        certificate it also has the counts of the chosen models, such as
        ``outer_residuals``.
    choice_ : LossChoice or Choice
        Candidate, parameters and estimate; with a certificate the choice and how far
        off it can be: ``print(search.choice_)``.
    best_index_, best_params_
        The candidate's number, and its ``width`` and ``regularization``.
    best_estimator_ : KernelLeastSquares
        The chosen model, fitted to all rows; with a certificate the model that `deploy`
        names.
    certificate_, certificates_, models_, pair_results_
        With a certificate, as in `dsel.SemiSupervisedSearchCV`. `models_` has the model
        of all rows also without a pool.

    See Also
    --------
    StreamedLeastSquaresSearch : For millions of rows.
    select_least_squares : Chooses by another estimate.
    dsel.SemiSupervisedSearchCV : Certifies every other regressor.

    Notes
    -----
    All criteria are estimates of the squared error, noise included: none is a bound.
    The epsilon-insensitive loss and the l1 penalty of Sugiyama's slides have no closed
    form of leave-one-out: search over scikit-learn's `SVR` or `Lasso` with its
    `GridSearchCV` instead. Ties go to the larger regularization, then to the larger
    width. The closed forms differ from refits by rounding: by some n eps / lambda of
    each sum of squares, eps = 2.2e-16, as refits differ from one another.

    Guarantee: with ``certificate="nested"`` and probability at least ``1 - delta``, at
    most 10% of new rows (or the share that `loss` names) are off by more than the
    certified tolerance.
    Assumes: what the certificate lists. In particular widths and features must not be
    computed from all labeled rows, for example by a scaler that was fitted before: put
    the scaler into a pipeline with `KernelLeastSquares`, and search this with
    `dsel.SemiSupervisedSearchCV`.
    Source: :func:`dsel.bounds.tolerance_limit` for each fold; residuals without pairs
    of folds are those of block-wise leave-one-out, see the page on other methods.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (50, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(50)
    >>> search = LeastSquaresSearch([0.3, 1.0], [1e-3, 0.1, 10.0], random_state=0)
    >>> search.fit(X, y).best_params_
    {'width': 1.0, 'regularization': 0.001}

    >>> X = rng.uniform(-3, 3, (300, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(300)
    >>> search = LeastSquaresSearch(
    ...     [0.3, 1.0], [1e-3, 0.1, 10.0], penalty="rkhs", certificate="nested",
    ...     random_state=0)
    >>> print(search.fit(X, y).choice_)  # doctest: +NORMALIZE_WHITESPACE
    90% of predictions are off by at most 0.194 (95% confidence), model trained on 80%
    of the labels
    Chosen    regularization=0.1, width=1.0
    Estimate  90% of predictions are off by about 0.167 (cross-validated, no guarantee)
    Compare   a 20% hold-out set would give a bound of about 0.227 on average; always
    predicting the median, 0.0856819: 90% of predictions are off by at most 0.720
    Assumes   labeled rows and the rows that the model will meet are independent draws
    from one population; nothing tests this without a pool; the attribute
    `certificates` lists all
    """

    _: KW_ONLY
    cv: Any = AUTO
    certificate: str | None = None
    loss: Any = None
    report: Any = False
    delta: float = DELTA
    deploy: str | None = None

    def plan(
        self,
        X: Any,
        y: Any,
        X_extra: Any = None,
        y_extra: Any = None,
        *,
        pool: Any = None,
    ) -> LeastSquaresPlan:
        """Return the plan of the search without running it.

        Parameters
        ----------
        X, y, X_extra, y_extra, pool
            As for `fit`.

        Returns
        -------
        LeastSquaresPlan
            Its print shows what `fit` will do.

        Raises
        ------
        TypeError, ValueError
            As `fit` does, for all but failures of fits.
        """
        widths, regularizations = self._check_grid(list(ESTIMATES))
        check_targets(X, y)
        least = 2 + bool(self.fit_intercept)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", ensure_min_samples=least, **NUMERIC
        )
        check_memory(X.shape[0])
        y = np.asarray(y, np.float64)
        seed = seed_from(self.random_state)
        certified = None
        if self.certificate is not None:
            certified = plan_certified_search(
                self, (widths, regularizations), X, y, pool, seed
            )
            folds = certified.search.scheme.fold_splits
        else:
            self._check_no_certificate_options(pool)
            folds = self._folds(X, y, seed)
        extra = None
        if (X_extra is None) != (y_extra is None):
            raise ValueError("`X_extra` and `y_extra` belong together; pass both.")
        if X_extra is not None:
            rows = self._check_rows(X_extra)
            check_no_masks(y_extra)
            fresh = check_array(y_extra, ensure_2d=False, dtype=np.float64)
            shape = (rows.shape[0], *y.shape[1:])
            if fresh.shape != shape:
                raise ValueError(
                    f"`y_extra` must have the shape {shape} of `X_extra` and `y`, got "
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
            regularizations=regularizations,
            X=X,
            y=y.reshape(len(y), -1),
            extra=extra,
            folds=folds[:1] if self.criterion == "holdout" else folds,
            seed=seed,
            pairs=() if certified is None else certified.search.scheme.splits,
            certified=certified,
        )

    def _check_no_certificate_options(self, pool: PoolLike) -> None:
        """Raise ValueError where an option needs `certificate="nested"`."""
        for name, value, is_default in (
            ("loss", self.loss, self.loss is None),
            ("report", self.report, self.report is False),
            ("deploy", self.deploy, self.deploy is None),
            ("delta", self.delta, self.delta == DELTA),
            ("pool", pool, pool is None),
        ):
            if not is_default:
                raise ValueError(
                    f"`{name}` is for certificate='nested', got {show(value)} without "
                    f"one; leave it out, or search with penalty='rkhs' and "
                    f"certificate='nested'."
                )

    def _folds(self, X: Any, y: Floats, seed: int) -> tuple[Split[OuterNumber], ...]:
        """Return the folds of a search without a certificate."""
        cv = ESTIMATE_FOLDS if is_auto(self.cv) else self.cv
        if not isinstance(cv, str) and (hasattr(cv, "split") or np.iterable(cv)):
            splits = rename_in_errors(WORDS_OF_LEAST_SQUARES)(splits_of_cv)(cv, X, y)
            return tuple(split for split in splits if not split.is_all_rows)
        if cv is not None:
            n_folds = check_integer(cv, "cv", at_least=2, at_most=len(y))
            splits = fold_splits(random_folds(len(y), n_folds, seed=seed))
            return tuple(split for split in splits if not split.is_all_rows)
        if self.criterion in ("kfold", "holdout"):
            raise ValueError(
                f"`cv` must be a number of folds for criterion={self.criterion!r}, "
                f"got None."
            )
        return ()

    @replaces_earlier_fit
    def fit(
        self,
        X: Any,
        y: Any,
        X_extra: Any = None,
        y_extra: Any = None,
        *,
        pool: Any = None,
        out: Any = None,
    ) -> Self:
        """Search, and fit the chosen model.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Targets, shape (n,) or (n, n_outputs).
        X_extra, y_extra
            Fresh rows and targets, for the extra-sample estimate; they are not
            trained on.
        pool
            For certificate="nested": unlabeled rows, anything that `dsel.open_pool`
            takes. With them the model of all rows gets a tolerance, too.
        out
            Directory or URL where finished widths are stored; the same call, also
            with other widths, continues from them. It must have an integer
            `random_state`: without one each call draws a seed, and a second one
            raises StoreMismatchError, which names the seed of the first.

        Returns
        -------
        self
            The fitted search; `choice_` is the chosen candidate.

        Raises
        ------
        ValueError
            Where the grid or the data are out of range, or the kernel matrix does
            not fit into memory.
        AllFitsFailedError
            Where no candidate has a finite estimate.
        """
        plan = self.plan(X, y, X_extra, y_extra, pool=pool)
        cube, certified = plan.search_all(out=out, n_jobs=self.n_jobs)
        if certified is None:
            self.best_estimator_ = self._choose(cube).fit(plan.X, np.asarray(y))
            self._set_names(self.best_estimator_)
            return self
        outcome, all_rows = certified
        self.results_, self.choice_ = cube, outcome.choice
        self.pair_results_ = outcome.pair_results
        self.certificates_ = dict(outcome.certificates)
        self.certificate_ = outcome.certificate
        self.models_ = {**outcome.models, ALL_ROWS: all_rows}
        self._set_names(*self.models_.values())
        self.best_estimator_ = outcome.model
        self.best_index_ = self.choice_.candidate
        self.best_params_ = dict(self.choice_.params)
        return self

    def predict_interval(self, X: RowsLike, deploy: str | None = None) -> Floats:
        """Return the lower and upper end of the certified interval of each row.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n_rows, n_columns).
        deploy
            ``"one_fold"`` or ``"all_rows"``; by default the model that `predict` uses.

        Returns
        -------
        ndarray
            Prediction minus and plus its tolerance, shape (n_rows, 2). For the model of
            all rows this is the tolerance of the fold's model plus the distance of both
            predictions for the row, which needs no pool.

        Raises
        ------
        ValueError
            Where no tolerance was certified.

        Notes
        -----
        Guarantee: with probability at least ``1 - delta`` the targets of at most 10% of
        new rows (or the share that `loss` names) lie outside of their interval.
        Assumes: what the certificate lists.
        Source: :func:`dsel.bounds.tolerance_limit`. A row is off by more than the sum
        only if the fold's model is off by more than its tolerance.
        """
        choice = self._certified_choice()
        model = check_choice(deploy or choice.deploy, "deploy", (ONE_FOLD, ALL_ROWS))
        check_tolerance(choice, ONE_FOLD)
        rows = self._check_rows(X)
        tolerance = Tolerance.of(choice.certificates, model, self.models_.__getitem__)
        return tolerance.interval(rows, predict_numbers(self.models_[model], rows))

    def certified_report(
        self, deploy: str | None = None
    ) -> CertifiedReport | ToleranceReport:
        """Return tolerances of several fractions, as `Outcome.certified_report` does.

        Parameters
        ----------
        deploy
            ``"one_fold"`` or ``"all_rows"``; by default the deployed model.

        Returns
        -------
        ToleranceReport
            Distances that stated fractions of the predictions keep, in units of the
            target.
        """
        return self._certified_choice().report(deploy)

    def _certified_choice(self) -> Choice:
        check_is_fitted(self, "choice_")
        if isinstance(self.choice_, Choice):
            return self.choice_
        raise ValueError(
            "the search has estimates only, which bound nothing; search with "
            "penalty='rkhs' and certificate='nested'."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
