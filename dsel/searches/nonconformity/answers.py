"""Predictions of a fitted nonconformity classifier: labels, regions, bounds, pools."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dsel.bounds import (
    SelectiveRisk,
    holdout_bound,
    selective_error_bound,
    selective_risk_bound,
    threshold_bound,
    threshold_bound_dkw,
    threshold_bound_even,
    threshold_bound_vc,
)
from dsel.bounds.nonconformity import count_not_above
from dsel.checks import check_choice, check_integer, check_probability
from dsel.data import open_pool
from dsel.data.blocks import summed
from dsel.data.equal_rows import comparable, row_hashes
from dsel.data.labeled import check_columns, check_labels
from dsel.data.lazy import by_block
from dsel.data.pool import Pool
from dsel.results import Certificate
from dsel.searches.nonconformity.row_choice import (
    ANSWER_FIELDS,
    Answer,
    GapCounter,
    RowChooser,
)
from dsel.searches.pool_rows import write_rows

THRESHOLD_BOUNDS: Final[Mapping[str, Callable[..., NDArray[np.float64]]]] = {
    "dkw": threshold_bound_dkw,
    "even": threshold_bound_even,
    "tail": threshold_bound,
    "vc": threshold_bound_vc,
}
"""By name: Massart's slack, binomial tails with even or falling shares of delta, the
slack that the paper prints."""


class NonconformityAnswers(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Abstract: a classifier whose `fit`, in a subclass, sets the attributes below."""

    classes_: NDArray[Any]
    """Labels."""
    chooser_: RowChooser
    """Models, validation scores, tie rule and seed."""
    params_: list[dict[str, Any]]
    """Parameters of each model."""
    n_candidates_: int
    """Candidates of the grid, failed ones included."""
    n_features_in_: int
    """Columns of the labeled rows."""
    row_hashes_: NDArray[np.uint64]
    """Hash of each row that `fit` got."""

    def predict(self, X: Any) -> Any:
        """Predict the label that the chosen model finds most conforming.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns); of a Dask array the answer is lazy.

        Returns
        -------
        ndarray
            Labels, shape (n_rows,).
        """
        check_is_fitted(self)
        return by_block(lambda X, rows: self.classes_[self._answer(X, rows).label], X)

    def critical_epsilon(self, X: Any) -> Any:
        """Return the smallest epsilon at which some model's region has one label.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).

        Returns
        -------
        ndarray
            Multiples of 1/n_validation in [0, 1], shape (n_rows,): the smallest over
            models of the second largest p-value of a label, without smoothing.
        """
        check_is_fitted(self)
        n = self.chooser_.calibration.n_validation
        return by_block(lambda X, rows: self._answer(X, rows).critical_count / n, X)

    def chosen_model(self, X: Any) -> Any:
        """Return the number of the model that predicts each row; see `params_`."""
        return by_block(lambda X, rows: self._answer(X, rows).model, X)

    def p_values(
        self, X: Any, *, smoothing: bool = True, model: int | None = None
    ) -> NDArray[np.float64]:
        """Return the p-value of every label.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).
        smoothing
            Whether the test row is counted; without it the printed p-value.
        model
            Number of a model, as in `params_`; None for the one that each row chose.

        Returns
        -------
        ndarray
            Shape (n_rows, n_classes).

        Notes
        -----
        For a model fixed in advance the smoothed p-value of the true label is at most
        epsilon with probability at most epsilon. For the chosen model that is not so.
        """
        X = self._checked(X)
        if model is not None:
            self._check_model(model)
        chooser = self.chooser_
        counts = np.concatenate(
            [
                chooser.label_counts(part, rows, model)
                for part, rows in chooser.blocks(X)
            ]
        )
        n = chooser.calibration.n_validation
        return (counts + 1.0) / (n + 1.0) if smoothing else counts / n

    def predict_set(
        self,
        X: Any,
        epsilon: float,
        *,
        smoothing: bool = True,
        model: int | None = None,
    ) -> NDArray[np.bool_]:
        """Return the prediction region: labels whose p-value is large enough.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).
        epsilon
            Level in (0, 1).
        smoothing
            With it the region is p >= epsilon of the smoothed p-value, without it the
            printed p > epsilon.
        model
            Number of a model; None for the one that each row chose.

        Returns
        -------
        ndarray
            Whether each label is in the region, shape (n_rows, n_classes).

        Notes
        -----
        With smoothing and a model fixed in advance the true label is missed with
        probability at most epsilon. The region of the chosen model misses more often.
        """
        check_probability(epsilon, "epsilon")
        p_values = self.p_values(X, smoothing=smoothing, model=model)
        return p_values >= epsilon if smoothing else p_values > epsilon

    def bound_threshold(
        self, X: Any, *, delta: float = 0.05, slack: str = "tail"
    ) -> NDArray[np.float64]:
        """Bound how often a row's model errs on fresh rows with such a margin.

        Parameters
        ----------
        X
            Rows, shape (n_rows, n_columns).
        delta
            Probability with which any of the bounds may fail.
        slack
            ``"tail"`` (recommended), ``"even"``, ``"dkw"`` or ``"vc"`` (as the paper
            prints it): see the functions of `dsel.bounds`.

        Returns
        -------
        ndarray
            With k and m the model and margin of a row: a bound on P(f_k errs on a
            fresh row, with margin m or more). **Not** on the error at this row, and
            its average does not bound the error of this classifier.
        """
        bound = THRESHOLD_BOUNDS[check_choice(slack, "slack", tuple(THRESHOLD_BOUNDS))]
        return bound(
            self._answer(X).critical_count,
            self.chooser_.calibration.n_validation,
            n_models=self.n_candidates_,
            delta=delta,
        )

    def certify(self, X: Any, y: ArrayLike, *, delta: float = 0.05) -> Certificate:
        """Bound the error of this classifier by rows that it has never seen.

        Parameters
        ----------
        X, y
            Labeled rows that `fit` did not get, drawn like future ones.
        delta
            Probability with which the bound may fail.

        Returns
        -------
        Certificate
            The hold-out bound of the composite classifier, ties included.

        Raises
        ------
        ValueError
            Where the rows are those of `fit`, to which this is no bound.
        """
        self._refuse_fitted(X)
        predicted = self.predict(X)
        labels = self._labels_of(y, len(predicted))
        n_errors = int(np.sum(predicted != labels))
        bound = holdout_bound(n_errors, len(labels), delta=delta)
        return Certificate(float(bound), delta, "holdout")

    def selective_risk(
        self, X: Any, y: ArrayLike, epsilons: ArrayLike, *, delta: float = 0.05
    ) -> SelectiveRisk:
        """Bound the errors among rows whose critical epsilon is small, by fresh rows.

        The answer of each row is that of the model it chose; a second split of the
        labeled rows certifies these answers, whatever model gave them.

        Parameters
        ----------
        X, y
            Labeled rows that `fit` did not get, drawn like future ones.
        epsilons
            Critical epsilons up to which answers are kept.
        delta
            Probability with which any of the bounds may fail, at all epsilons.

        Returns
        -------
        SelectiveRisk
            ``joint`` bounds P(error and eps_crit <= epsilon), ``conditional`` the
            error among those kept, and ``coverage`` is their least share.
        """
        self._refuse_fitted(X)
        cuts = np.asarray(epsilons, dtype=np.float64)
        labels, counts, _ = self._answer(X)
        wrong = self.classes_[labels] != self._labels_of(y, len(labels))
        critical = counts / self.chooser_.calibration.n_validation
        # A value that is a quotient of counts, too, is not to be missed by rounding.
        kept = critical <= cuts[..., np.newaxis] + 1e-12
        return selective_risk_bound(
            (kept & wrong).sum(axis=-1), kept.sum(axis=-1), len(labels), delta=delta
        )

    def selective_error(
        self,
        pool: Any,
        margins: ArrayLike,
        *,
        model: int,
        delta: float = 0.04,
        pool_delta: float = 0.01,
        client: Any = None,
    ) -> NDArray[np.float64]:
        """Bound a model's error among rows with large margins, by means of a pool.

        Parameters
        ----------
        pool
            Unlabeled rows: anything that `open_pool` takes.
        margins
            Smallest gaps between the two best scores at which the model predicts.
        model
            Number of the model, as in `params_`.
        delta, pool_delta
            Probabilities with which the labeled and the unlabeled part may fail; the
            bounds hold for all models and margins at once.
        client
            Dask client; None is the current one, else local threads.

        Returns
        -------
        ndarray
            Bounds on P(error | margin at least m), one for each of `margins`.
        """
        check_is_fitted(self)
        self._check_model(model)
        chooser = self.chooser_
        if not chooser.calibration.by_margin:
            raise ValueError('`selective_error` needs `measure="margin"`.')
        cuts = np.asarray(margins, dtype=np.float64)
        opened = self._opened(pool)
        selected = opened.reduce(
            GapCounter(chooser, model, cuts), np.add, client=client
        )
        return selective_error_bound(
            count_not_above(chooser.calibration.ascending[model], -cuts),
            chooser.calibration.n_validation,
            selected,
            opened.n_rows,
            n_models=self.n_candidates_,
            delta=delta,
            pool_delta=pool_delta,
        )

    def predict_pool(self, pool: Any, path: Any, *, client: Any = None) -> None:
        """Predict every row of a pool, chunk by chunk, and write the result as zarr.

        Parameters
        ----------
        pool
            Unlabeled rows: anything that `open_pool` takes.
        path
            Where the group of arrays is written; it must not exist. ``label`` holds
            class codes (-1 for rows that the pool's filters leave out),
            ``critical_count`` the critical epsilon times n, ``model`` the chosen one.
            `dsel.searches.read_rows` reads them, and names a chunk that was lost.
        client
            Dask client; None is the current one, else local threads. Tasks return
            some bytes a row, the driver writes.
        """
        check_is_fitted(self)
        chooser = self.chooser_
        write_rows(
            self._opened(pool),
            path,
            chooser.fields,
            ANSWER_FIELDS,
            block_rows=chooser.reader.models.block_rows,
            attributes={
                "classes": [str(label) for label in self.classes_],
                "n_validation": chooser.calibration.n_validation,
            },
            client=client,
        )

    def _answer(self, X: Any, rows: NDArray[np.int64] | None = None) -> Answer:
        """Answer rows of these numbers, by default from 0 on."""
        X = self._checked(X)
        numbers = np.arange(X.shape[0]) if rows is None else rows
        blocks = self.chooser_.blocks(X)
        answers = [self.chooser_.answer(part, numbers[n]) for part, n in blocks]
        return Answer(*map(np.concatenate, zip(*answers, strict=True)))

    def _check_model(self, model: Any) -> None:
        check_integer(model, "model", at_least=0, at_most=len(self.params_) - 1)

    def _refuse_fitted(self, X: Any) -> None:
        """Raise where rows equal those of `fit` far more often than those each other.

        Fresh rows, drawn like them, would not: of few values rows are equal by chance.
        """
        hashes = hashes_of(self._checked(X))
        _, place, times = np.unique(
            self.row_hashes_, return_inverse=True, return_counts=True
        )
        n_known = int(np.isin(hashes, self.row_hashes_).sum())
        if n_known / len(hashes) > 0.5 + np.mean(times[place] > 1) / 2:
            raise ValueError(
                f"`X` must hold rows that `fit` did not get, but {n_known} of "
                f"{len(hashes)} equal one of them; pass fresh labeled rows."
            )

    @staticmethod
    def _labels_of(y: ArrayLike, n_rows: int) -> NDArray[Any]:
        labels = check_labels(y)
        if len(labels) != n_rows:
            raise ValueError(
                f"`y` must have one label for each of the {n_rows} rows of `X`, got "
                f"{len(labels)}."
            )
        return labels

    def _opened(self, pool: Any) -> Pool:
        opened = open_pool(pool)
        names = getattr(self, "feature_names_in_", None)
        check_columns(opened, self.n_features_in_, names)
        return opened

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return summed(validate_data(self, X, accept_sparse="csr", reset=False))


def hashes_of(X: Any) -> NDArray[np.uint64]:
    """Return a hash of each row, the same where float32 rounds to the same row."""
    with np.errstate(over="ignore"):
        return row_hashes(comparable(X, np.dtype(np.float32)))
