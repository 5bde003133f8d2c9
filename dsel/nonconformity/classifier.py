"""The nonconformity classifier: calibration, choice of models, p-values."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags, gen_batches, get_tags
from sklearn.utils.validation import check_is_fitted, check_non_negative

from dsel import names
from dsel.arrays import (
    ArrayLike,
    Bools,
    Floats,
    Integers,
    RandomState,
    replaces_earlier_fit,
    validate_data,
)
from dsel.bounds import holdout_bound, threshold_bound
from dsel.bounds.nonconformity import count_not_above, margin_conformity
from dsel.candidates import make_candidates, read_grid, with_learner_tags
from dsel.checks import check_choice, check_delta, check_integer, check_probability
from dsel.data import open_pool
from dsel.data.duplicate_rows import content_random, find_equal, known_hashes
from dsel.data.frames import merge_entries
from dsel.data.labeled import check_labels, code_labels, with_columns
from dsel.data.lazy import LazyScore, takes_dask_arrays
from dsel.data.row_random import TIE_STREAM, seed_from
from dsel.data.splits import holdout_split
from dsel.errors import GuaranteeWarning, warn
from dsel.families.estimator_kinds import FittedAttributes
from dsel.families.fit_arguments import RoutedFit
from dsel.nonconformity.models import Trained, join_models, train_grid
from dsel.results import Certificate
from dsel.results.assumptions import full_list
from dsel.results.cube import GridAxes, grid_axes, make_cube, with_criterion_values
from dsel.results.fit_messages import FitProblem
from dsel.results.rows import write_rows
from dsel.typing import AnyArray, PathLike, PoolLike, RowsLike

if TYPE_CHECKING:
    from distributed import Client


LARGEST_VALIDATION: Final = 50
"""The paper's validation part has min(n / 5, 50) rows."""
EXACT_BITS: Final = 40
"""Bits of a score, relative to its model's median, that count; matrix products are
exact to about 50."""
QUANTILES: Final = (10, 25, 50, 75, 90)
"""Quantiles of the critical epsilon over validation rows in `results_`, in percent."""


class RowChoices(NamedTuple):
    """Predictions of a block of rows; the fields are the arrays written for a pool."""

    label: Integers
    critical_count: Integers
    """Validation rows that conform no better than the runner-up label."""
    model: Integers
    """Index of the chosen model in `params_`."""


@dataclass(eq=False, repr=False)
class NonconformityClassifier(
    FittedAttributes,
    LazyScore,
    RoutedFit,
    ClassifierMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    """Train every model of a grid once, and choose one of them for each test row.

    A part of the rows is held out for validation. A model's p-value for a label at a
    test row is the fraction of validation rows that conform no better to their own
    label. Its second largest p-value at the row (with two labels, the smaller one)
    measures how well the best label other than its prediction conforms. The model with
    the smallest such number predicts the row, by the label that conforms best. Each
    candidate is fitted once, while k-fold cross-validation fits it k times.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier with `decision_function` or `predict_proba`.
    param_grid
        Parameter grid as in `GridSearchCV`, or a ``ParameterSampler``; or, with
        ``estimator=None``, a list of classifiers.
    validation_size
        Rows held out; None for min(n / 5, 50), as Hardoon, Hussain and Shawe-Taylor
        (2009) have it. With few validation rows, or rows of one class only, several
        models tie at most test rows.
    ties
        How to choose among models whose second largest p-values are equally small.
        ``"random"``, the rule in the text of Hardoon, Hussain and Shawe-Taylor (2009),
        draws one of them. ``"literal"`` follows their printed algorithm: where a
        model's labels tie, too, the sign of its score is ignored and a label is drawn.
    random_state
        Seed of split, ties and learners.

    Attributes
    ----------
    classes_
        Labels.
    models_
        The fitted models: ``models_.scores(X)`` returns their scores, shape (n_models,
        n_rows, n_classes), ``models_.models()`` the scikit-learn estimators.
    validation_scores_
        Conformity of the validation rows to their labels, models x rows, ascending.
    params_
        Parameters of each model, in the order of `chosen_model`.
    failures_
        Reasons why candidates could not be used, by candidate number.
    n_candidates_
        Candidates of the grid, failed ones included; bounds divide delta by it.
    results_ : xarray.Dataset
        A cube over the grid and ``criterion``, like that of a search, with the
        validation error of each model, and quantiles over the validation rows of the
        critical epsilon that the model would have alone. None of these numbers affects
        predictions.

    See Also
    --------
    dsel.SemiSupervisedSearchCV : Keeps one model, with a bound.

    Notes
    -----
    A row's prediction depends on its values and the seed alone: where models tie, the
    model is drawn by a hash of the row, so equal rows get equal predictions, alone or
    among others, dense or sparse, in any order and chunking.
    `dsel.results.save_model` keeps a fitted classifier with all its models.

    References
    ----------
    Hardoon, Hussain and Shawe-Taylor (2009), A nonconformity approach to model
    selection for SVMs.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = NonconformityClassifier(
    ...     SVC(), {"C": [1, 10], "gamma": [0.1, 1, 10]}, random_state=0
    ... ).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.8)
    True
    """

    estimator: Any = None
    param_grid: Any = None
    _: KW_ONLY
    validation_size: int | None = None
    ties: str = "random"
    random_state: RandomState = None

    @replaces_earlier_fit
    def fit(
        self, X: Any, y: ArrayLike, *, client: "Client | None" = None, **fit_params: Any
    ) -> Self:
        """Train all models on one part of the rows, and calibrate them on the other.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, n_columns), dense or sparse.
        y
            Their labels, of any kind.
        client
            Dask client; None is the current one, else this machine.
        **fit_params
            Passed to every model's `fit`, by scikit-learn's metadata routing where it
            is enabled.

        Returns
        -------
        self
            The fitted and calibrated classifier.

        Raises
        ------
        AllFitsFailedError
            Where no candidate could be fitted.
        """
        check_choice(self.ties, "ties", ("random", "literal"))
        X, labels = validate_data(
            self, X, check_labels(y), accept_sparse="csr", ensure_min_samples=2
        )
        if get_tags(self).input_tags.positive_only:
            check_non_negative(X, f"{type(self.estimator).__name__}.fit")
        self.classes_, codes = code_labels(labels)
        X = merge_entries(X)
        n = len(codes)
        n_validation = self.validation_size
        if n_validation is None:
            n_validation = max(1, min(n // 5, LARGEST_VALIDATION))
        check_integer(n_validation, "validation_size", at_least=1, at_most=n - 1)
        self.seed_ = seed_from(self.random_state)
        split = holdout_split(n, n_validation, seed=self.seed_)
        grid = read_grid(self.param_grid, self.seed_)
        candidates = make_candidates(self.estimator, grid)
        trained, failures = train_grid(
            candidates,
            X,
            codes,
            [split],
            classes=self.classes_,
            seed=self.seed_,
            fit_params=self.route_fit_params(fit_params),
            client=client,
        )
        fitted = candidates, trained, failures, self.classes_
        axes = grid_axes(grid)
        is_dense = not issparse(X)
        validation, truth = X[split.test_rows], codes[split.test_rows]
        self.known_rows_ = known_hashes(X)
        self.models_ = join_models(*fitted, is_dense=is_dense)
        # A model may fit and still have no scores (25 neighbors of 20 rows); it is
        # left out, too.
        if unscored := self.models_.failures_on(validation):
            failures |= unscored
            self.models_ = join_models(*fitted, is_dense=is_dense)
        scores = self.models_.scores(validation)
        self.params_ = [dict(c.params) for c in self.models_.candidates]
        self.failures_ = failures
        self.n_candidates_ = len(candidates)
        rows = np.arange(len(truth))
        sizes = np.abs(margin_conformity(scores)[:, rows, truth])
        finite = np.ma.masked_invalid(sizes)
        usual = np.ma.median(finite, axis=1).filled(0.0)  # type: ignore[no-untyped-call]
        self.usual_margins_ = np.where(usual == 0.0, 1.0, usual)
        # Rounding depends on how many rows are multiplied at once, so scores that
        # differ by less than a tolerance count as equal. Rounding the scores instead
        # would separate equal ones at the edge of a step.
        self.tolerances_ = np.exp2(np.floor(np.log2(self.usual_margins_)) - EXACT_BITS)
        self.validation_scores_ = np.sort(margin_conformity(scores)[:, rows, truth])
        counts = self._runner_up_counts(scores)
        cube = _grid_cube(axes, trained, failures, counts, n)
        # Plain arrays can be stored in files of models; a Dataset cannot.
        self.results_record_ = cube.to_dict(data="array")
        if not (self.validation_scores_ <= self.tolerances_[:, np.newaxis]).any():
            warn(
                f"no model errs on the {len(truth)} validation rows, so every critical "
                "epsilon is 0 and the tie rule alone decides; hold out more rows.",
                GuaranteeWarning,
            )
        return self

    @property
    def n_validation_(self) -> int:
        """Number of validation rows."""
        return int(self.validation_scores_.shape[1])

    @property
    def results_(self) -> xr.Dataset:
        """Validation errors and quantiles of the critical epsilon over the grid."""
        check_is_fitted(self)
        return xr.Dataset.from_dict(self.results_record_)

    @takes_dask_arrays
    def predict(self, X: Any) -> Any:
        """Predict the label that conforms best under the chosen model.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns); the result is lazy for a Dask array.

        Returns
        -------
        array of shape (n_rows,)
            Labels of `classes_`; a Dask array for a Dask array.
        """
        label = self._choose_models(X).label  # raises where nothing was fitted
        return self.classes_[label]

    @takes_dask_arrays
    def critical_epsilon(self, X: RowsLike) -> Any:
        """Return the smallest epsilon at which the region of a model has one label.

        It is the smallest over models of a row's second largest p-value, with p-values
        as in Hardoon, Hussain and Shawe-Taylor (2009).

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns); the result is lazy for a Dask array.

        Returns
        -------
        array of shape (n_rows,)
            Multiples of ``1 / n_validation_`` in [0, 1].
        """
        return self._choose_models(X).critical_count / self.n_validation_

    @takes_dask_arrays
    def chosen_model(self, X: RowsLike) -> Any:
        """Return the number of the model that predicts each row.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns); the result is lazy for a Dask array.

        Returns
        -------
        array of shape (n_rows,)
            Indices in `params_`.
        """
        return self._choose_models(X).model

    def p_values(self, X: Any, *, model: int | None = None) -> Floats:
        """Return the p-value of every label, shape (n_rows, n_classes).

        The test row is counted together with the n validation rows: where c of these
        conform no better, p = (c + 1) / (n + 1). The paper's p-value is c / n.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).
        model
            Index of a model in `params_`; None for the model chosen for each row.

        Returns
        -------
        ndarray
            Multiples of 1 / (n + 1) in (0, 1]; columns are in the order of `classes_`.

        Raises
        ------
        ValueError
            If `X` has other columns than the rows of `fit`, or there is no such model.

        Notes
        -----
        For a model fixed in advance the p-value of the true label is at most epsilon
        with probability at most epsilon. For the chosen model that is not so.
        """
        X = self._check_rows(X)
        if model is None:
            models = self._choose_models(X).model
        else:
            most = len(self.params_) - 1
            check_integer(model, "model", at_least=0, at_most=most)
            models = np.full(X.shape[0], model)
        counts = np.empty((X.shape[0], len(self.classes_)), np.int64)
        for block_rows in gen_batches(X.shape[0], self.models_.block_rows):
            margins = margin_conformity(self._scores(X[block_rows]))
            chosen = models[block_rows]
            margins = margins[chosen, np.arange(len(chosen))]
            for split_number in np.unique(chosen):
                is_chosen = chosen == split_number
                counts[block_rows][is_chosen] = count_not_above(
                    self.validation_scores_[split_number],
                    margins[is_chosen] + self.tolerances_[split_number],
                )
        return (counts + 1.0) / (self.n_validation_ + 1.0)

    def predict_set(self, X: Any, epsilon: float, *, model: int | None = None) -> Bools:
        """Return a mask of the labels in the prediction region, (n_rows, n_classes).

        Parameters
        ----------
        X, model
            As for `p_values`.
        epsilon
            Level in (0, 1): labels with a p-value of at least this are in the region.

        Returns
        -------
        ndarray
            Booleans; columns are in the order of `classes_`.

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        ValueError
            If `epsilon` is outside ``(0, 1)``.

        Notes
        -----
        With a model fixed in advance the true label is missed with probability at most
        epsilon. The region of the chosen model misses more often.
        """
        check_probability(epsilon, "epsilon")
        return self.p_values(X, model=model) >= epsilon

    def bound_threshold(self, X: RowsLike, *, delta: float = 0.05) -> Floats:
        """Bound the probability of errors with at least a row's margin, by its model.

        With k and m the model and margin of a row, it bounds the probability that model
        k errs on a fresh row with margin m or more, by `dsel.bounds.threshold_bound`.
        This is **not** the error at the row, and its average does not bound the error
        of this classifier; `certify` does.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).
        delta
            Probability with which any of the bounds may fail.

        Returns
        -------
        ndarray
            Bounds in (0, 1], shape (n_rows,).

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        ValueError
            If `delta` is outside ``(0, 0.5]``.

        Notes
        -----
        Guarantee: that of `dsel.bounds.threshold_bound`, for all rows at once.
        Assumes: independent validation rows that no model was trained on; a split at
        random, which `fit` draws.
        Source: see `dsel.bounds.threshold_bound`.
        """
        return threshold_bound(
            self._choose_models(X).critical_count,
            self.n_validation_,
            n_models=self.n_candidates_,
            delta=check_delta(delta),
        )

    def certify(
        self,
        X: Any,
        y: ArrayLike,
        *,
        delta: float = 0.05,
        allow_equal_rows: bool = False,
    ) -> Certificate:
        r"""Bound the error of this classifier by rows that it has never seen.

        It is the hold-out bound of the composite classifier, ties included.

        Parameters
        ----------
        X, y
            Labeled rows that `fit` did not get, drawn like future ones.
        delta
            Probability with which the bound may fail.
        allow_equal_rows
            Whether some of them may equal rows that `fit` got. The bound then counts
            only those equal rows that are errors, and holds whether they are the same
            records or other ones; it is 1 if all rows are equal ones without errors.

        Returns
        -------
        Certificate
            Its `bound` lies in (0, 1].

        Raises
        ------
        ValueError
            Where `X` has rows that equal rows that `fit` got, and this is not allowed.

        Notes
        -----
        Guarantee: with probability at least ``1 - delta`` over the rows, the error of
        this classifier on future rows is at most the bound.
        Assumes: rows that are independent of those that `fit` got, except for those
        that equal some of them. Remove the same records before by their index or
        identifier, never by their values: where columns have few values, different
        records look alike, and removing these would change the distribution.
        Source: Clopper and Pearson (1934). With a of n rows wrong, and e_a of the e
        equal ones among them, :math:`B(a, n - e + e_a, \delta)`: a row that is not new
        is subtracted from errors and rows alike.
        """
        X = self._check_rows(X)
        labels = check_labels(y)
        if len(labels) != X.shape[0]:
            raise ValueError(
                f"`y` must have one label for each of the {X.shape[0]} rows of "
                f"`X`, got {len(labels)}."
            )
        delta = check_delta(delta)
        is_equal = find_equal(X, self.known_rows_)
        n_duplicates = int(is_equal.sum())
        n = len(labels)
        if n_duplicates and not allow_equal_rows:
            raise ValueError(
                f"`X` must hold rows that `fit` did not get, but {n_duplicates:,} of "
                f"{n:,} rows equal rows that it got; hold rows out before `fit` "
                f"(remove the same records by their index, never by their values), or "
                f"pass allow_equal_rows=True if they are other records that look "
                f"alike: the bound then does not rely on them."
            )
        is_wrong = self.predict(X) != labels
        n_rows = n - n_duplicates + int((is_equal & is_wrong).sum())
        n_errors = int(is_wrong.sum())
        bound = float(holdout_bound(n_errors, n_rows, delta=delta)) if n_rows else 1.0
        return Certificate(
            bound,
            delta,
            "holdout",
            "all_rows",
            full_list(has_pool=False),
            n_labeled=n,
            n_duplicates=n_duplicates,
            is_holdout=True,
        )

    def predict_pool(
        self, pool: PoolLike, path: PathLike, *, client: "Client | None" = None
    ) -> None:
        """Predict every row of a pool, chunk by chunk, and write the result as zarr.

        Parameters
        ----------
        pool
            Unlabeled rows: anything that `open_pool` takes.
        path
            Where the group of arrays is written; it must not exist. ``label`` holds
            class codes (-1 for rows that the pool's filters leave out),
            ``critical_count`` the critical epsilon times n, ``model`` the chosen one.
            `dsel.search.read_rows` reads them, and names a chunk that was lost.
        client
            Dask client; None is the current one, else this machine. Tasks return a few
            bytes for each row, which the driver writes.

        Raises
        ------
        NotFittedError
            If `fit` was not called before.
        FileExistsError
            If something is at `path`.
        """
        check_is_fitted(self)
        opened = open_pool(pool)
        names = getattr(self, "feature_names_in_", None)
        opened = with_columns(opened, self.n_features_in_, names)
        write_rows(
            opened,
            path,
            lambda X, _: self._choose_models(X)._asdict(),
            dict.fromkeys(RowChoices._fields, ((), "int32", -1)),
            block_rows=self.models_.block_rows,
            attributes={
                "classes": [str(label) for label in self.classes_],
                "n_validation": self.n_validation_,
            },
            client=client,
        )

    def __sklearn_tags__(self) -> Tags:
        return with_learner_tags(super().__sklearn_tags__(), self.estimator)

    def _choose_models(self, X: Any) -> RowChoices:
        """Choose a model for each row, and predict by it."""
        X = self._check_rows(X)
        blocks = [
            self._choose(
                self._scores(X[block_rows]),
                content_random(X[block_rows], self.seed_, TIE_STREAM),
            )
            for block_rows in gen_batches(X.shape[0], self.models_.block_rows)
        ]
        return RowChoices(*map(np.concatenate, zip(*blocks, strict=True)))

    def _choose(self, scores: Floats, words: NDArray[np.uint64]) -> RowChoices:
        """Choose by the scores, (n_models, n_rows, n_classes): Algorithm 1.

        `words` are random words, one for each row, which break ties.
        """
        # Two independent numbers in [0, 1) for each row, of 53 and of 11 random bits.
        units = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        label_units = (words & np.uint64(2047)).astype(np.float64) * 2.0**-11
        tolerances = self.tolerances_[:, np.newaxis]
        n = len(words)
        if self.ties == "literal":
            margins = margin_conformity(scores).reshape(len(scores), -1)
            counts = count_not_above(self.validation_scores_, margins + tolerances)
            best, second = _two_best(counts.reshape(scores.shape))
            labels = counts.reshape(scores.shape) == best[..., np.newaxis]
            pairs = labels & (second == second.min(axis=0))[..., np.newaxis]
            pick = _pick(np.moveaxis(pairs, 1, 0).reshape(n, -1), units)
            model, label = np.divmod(pick, scores.shape[-1])
            return RowChoices(label, second.min(axis=0), model)
        counts = self._runner_up_counts(scores)
        model = _pick((counts == counts.min(axis=0)).T, units)
        chosen = scores[model, np.arange(n)]
        least = chosen.max(axis=-1, keepdims=True) - self.tolerances_[model, np.newaxis]
        label = _pick(chosen >= least, label_units)
        return RowChoices(label, counts.min(axis=0), model)

    def _runner_up_counts(self, scores: Floats) -> Integers:
        """Count the validation rows that conform no better than each runner-up label.

        A model's region shrinks to one label at the second largest p-value. This is the
        p-value of the runner-up label, whose conformity is minus the gap between the
        two largest scores. Shape (n_models, n_rows).
        """
        best, second = _two_best(scores)
        gaps = second - best + self.tolerances_[:, np.newaxis]
        return count_not_above(self.validation_scores_, gaps)

    def _scores(self, X: Any) -> Floats:
        scores = self.models_.scores(X)
        if np.isnan(scores).any():
            raise ValueError(
                "`X` has rows on which a model scores NaN; look for values that "
                "overflow in the model, or leave that candidate out of the grid."
            )
        return scores

    def _check_rows(self, X: RowsLike) -> Any:
        check_is_fitted(self)
        return merge_entries(validate_data(self, X, accept_sparse="csr", reset=False))


def _grid_cube(
    axes: GridAxes,
    trained: Trained,
    failures: Mapping[int, str],
    counts: Integers,
    n_rows: int,
) -> xr.Dataset:
    """Return the validation statistics of every candidate as a cube over the grid.

    `counts` are the critical counts of usable models x validation rows.
    """
    n = axes.n_candidates
    n_validation = counts.shape[1]
    is_used = np.array([candidate not in failures for candidate in range(n)])
    errors, messages = np.full(n, names.UNCOUNTED), np.full(n, "", dtype=object)
    problems = np.zeros(n, np.int8)
    for fitted_group in (
        fitted_group for _, fitted_groups in trained for fitted_group in fitted_groups
    ):
        errors[list(fitted_group.candidate_numbers)] = fitted_group.fit_counts.errors[
            :, 0, 0
        ]
        for (candidate, _), message in fitted_group.fit_counts.messages.items():
            messages[candidate] = message.text
            problems[candidate] = message.problem.value
    for candidate, reason in failures.items():
        errors[candidate], messages[candidate] = names.UNCOUNTED, reason
        problems[candidate] = FitProblem.FAILED.value
    # "inverted_cdf" returns a value of some row, never an average of two.
    quantiles = np.full((len(QUANTILES), n), np.inf)
    quantiles[:, is_used] = np.quantile(
        counts, np.array(QUANTILES) / 100, axis=1, method="inverted_cdf"
    )
    rates = np.where(is_used, errors, np.inf)
    estimates = {names.VALIDATION_ERROR: rates / n_validation}
    for percent, values in zip(QUANTILES, quantiles, strict=True):
        estimates[f"{names.CRITICAL_EPSILON}_{percent}%"] = values / n_validation
    cube = make_cube(
        axes,
        {},
        {
            names.STATUS: np.where(is_used, names.STATUS_DONE, names.STATUS_FAILED),
            names.MESSAGE: messages,
            names.FIT_PROBLEM: problems,
            names.VALIDATION_ERRORS: errors,
            names.VALIDATION_ROWS: n_validation,
            names.N_LABELED: n_rows,
            names.N_UNLABELED: 0,
        },
    )
    return with_criterion_values(cube, estimates)


def _two_best(values: AnyArray) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest and the second largest value of the last axis."""
    top = np.partition(values, values.shape[-1] - 2, axis=-1)
    return top[..., -1], top[..., -2]


def _pick(allowed: Bools, units: Floats) -> Integers:
    """Pick an allowed position for each row by its random number in [0, 1)."""
    ranks = np.cumsum(allowed, axis=1)
    rank = np.floor(units * ranks[:, -1])[:, np.newaxis]
    return np.asarray(np.argmax(ranks > rank, axis=1))
