"""The family of any scikit-learn estimator, each candidate fitted by itself."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing, get_tags

from dsel.arrays import Features, Integers
from dsel.data.frames import native
from dsel.data.identity import content_hash
from dsel.data.labeled import labels_of
from dsel.data.pool import Pool
from dsel.data.row_random import canonical_text, derive_seed
from dsel.data.splits import Split
from dsel.families.ensemble_sizes import size_parameter
from dsel.families.estimator_kinds import reads_marks
from dsel.families.family import (
    Cache,
    Candidate,
    Family,
    FitCounts,
    FitId,
    FittedGroup,
    join_order,
)
from dsel.families.fit_arguments import groups_arguments, takes_pool
from dsel.families.linear import LINEAR, stack_linear
from dsel.families.predictions import FittedEstimators, predict_codes_or_numbers
from dsel.families.prefixes import (
    clone_with_seeds,
    fit_prefix,
    has_prefix,
    names_of_missing_seeds,
    split_params,
)
from dsel.results.fit_messages import FitMessage, FitProblem, collect_warnings
from dsel.typing import AnyArray

BY_ROW: Final = frozenset(("sklearn.ensemble._forest", "sklearn.tree._classes"))
"""Modules of scikit-learn whose models predict each row by itself."""
# libsvm has one random generator for all threads: fits that draw from it take turns.
_LIBSVM_DRAWS = threading.Lock()


def predicts_by_row(model: Any) -> bool:
    """Return whether a model is known to predict each row by itself.

    These are the linear models and trees of scikit-learn. A subclass may predict in
    another way, so the type must be exactly one of them.
    """
    kind = type(model)
    return kind in LINEAR or kind.__module__ in BY_ROW


@dataclass(frozen=True)
class Fit:
    """A fitted candidate, with what its predictions for the test rows need."""

    model: Any
    last: Any
    """Last step of a pipeline whose other steps are shared; else the model."""
    tests: Sequence[Any]
    """Each part of the test rows, as input of `last`, or an exception."""
    message: FitMessage | None = None
    """Warning of a fit that ended before it converged, or failed in part."""

    @classmethod
    def of(cls, model: Any, X: Features, split: Split[int]) -> Self:
        """Return the fit of a model that shares no steps with others."""
        return cls(model, model, [X[test_rows] for test_rows in split.row_parts])


def fit_or_error(
    fit_one: Callable[[Candidate], Fit], candidate: Candidate
) -> Fit | Exception:
    """Fit a candidate; return what was raised instead, and warnings with the fit."""
    try:
        with collect_warnings() as messages:
            fit = fit_one(candidate)
    except Exception as error:
        return error
    # An inner search may have both kinds; fits that failed are the more serious one.
    graver = sorted(messages, key=lambda message: -message.problem.value)
    return replace(fit, message=graver[0]) if graver else fit


@dataclass(frozen=True)
class ScikitLearnFamily(Family):
    """Any classifier, regressor or pipeline, used through its public methods.

    Linear classifiers are an exception when they predict: the models of all candidates
    and splits are stacked into one matrix product.
    """

    name: ClassVar[str] = "scikit-learn"

    def check(self, candidates: Sequence[Candidate], X: Features) -> None:
        """Raise ValueError for estimators that need a square matrix."""
        for candidate in candidates:
            with candidate.name_in_errors():
                tags = get_tags(candidate.estimator)
            if tags.input_tags.pairwise:
                raise ValueError(
                    f"`estimator` must take features, but {candidate.estimator!r} "
                    f"takes kernel values or distances between labeled rows; these are "
                    f"cut to folds for SVC(kernel='precomputed') alone, without a "
                    f"pipeline, `break_ties` and `probability`."
                )

    def fit(
        self,
        candidates: Sequence[Candidate],
        X: Features,
        y: NDArray[Any],
        splits: Sequence[Split[int]],
        *,
        pool: Pool | None = None,
        cache: Cache,
    ) -> FittedGroup:
        """Fit every candidate on every split; see `Family.fit`.

        Where `predict` raises on a part of the test rows, all rows of this part count
        as errors, and the fit does not. If it failed, the rows of a fold would decide
        whether a candidate is counted elsewhere, and the search without this fold would
        depend on it.
        """
        models: dict[FitId[int], Any] = {}
        tested: dict[tuple[int, int, int], NDArray[Any]] = {}
        fit_counts = FitCounts.empty(len(candidates), len(splits))
        hash_rows = lru_cache(lambda: content_hash(X, y))
        for j, split in enumerate(splits):
            started = time.perf_counter()
            fit_one = partial(
                self._fit_one,
                X=X,
                y=y,
                split=split,
                pool=pool,
                cache=cache,
                hash_rows=hash_rows,
            )
            fits = self._fit_candidates(candidates, fit_one)
            for i, (candidate, fit) in enumerate(zip(candidates, fits, strict=True)):
                key = FitId(candidate.number, split.number)
                if isinstance(fit, Exception):
                    fit_counts.record_error(*key, fit)
                    continue
                models[key] = fit.model
                if fit.message is not None:
                    fit_counts.record_message(key, fit.message)
                # All rows are errors until they are predicted: `predict` may raise.
                errors = [len(rows) for rows in split.row_parts]
                predictions = self._predict_parts(fit.last, fit.tests)
                parts = zip(split.row_parts, predictions, strict=True)
                for part_number, (rows, predicted) in enumerate(parts):
                    if isinstance(predicted, Exception):
                        fit_counts.record_error(*key, predicted, FitProblem.UNPREDICTED)
                    elif predicted is not None:
                        tested[*key, part_number] = predicted
                        is_wrong = ~np.isfinite(predicted)  # numbers of regressors
                        if len(self.classes):
                            is_wrong = predicted != y[rows]
                        errors[part_number] = int(np.sum(is_wrong))
                fit_counts.record((i, j), *errors)
            seconds = (time.perf_counter() - started) / len(candidates)
            fit_counts.record_seconds(j, seconds)
        return FittedEstimators(
            tuple(candidate.number for candidate in candidates),
            tuple(split.number for split in splits),
            fit_counts,
            models,
            self.classes,
            not sparse.issparse(X),
            tested,
        )

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Pack groups into one that predicts together; see `Family.join`."""
        candidate_numbers, splits = join_order(fitted, candidates)
        models = {
            key: model
            for fitted_group in fitted
            for key, model in fitted_group.models.items()
            if key[0] in candidate_numbers
        }
        fit_counts = FitCounts.empty(len(candidate_numbers), len(splits))
        is_dense = any(fitted_group.is_dense for fitted_group in fitted)
        joined = FittedEstimators(
            candidate_numbers, splits, fit_counts, models, self.classes, is_dense
        )
        return (stack_linear(joined) if len(self.classes) else None) or joined

    def _fit_candidates(
        self, candidates: Sequence[Candidate], fit_one: Callable[[Candidate], "Fit"]
    ) -> list["Fit | Exception"]:
        """Fit the candidates of a group on a split; an exception is a result."""
        return [fit_or_error(fit_one, candidate) for candidate in candidates]

    def _predict_parts(
        self, model: Any, test_parts: Sequence[Any]
    ) -> list[NDArray[Any] | Exception | None]:
        """Predict each part of the test rows; None for one without rows.

        An exception is a result, that of a part from the steps before, too.
        """
        are_matrices = all(
            type(part) is np.ndarray and len(part) for part in test_parts
        )
        types = {part.dtype for part in test_parts} if are_matrices else set()
        if len(test_parts) > 1 and len(types) == 1 and predicts_by_row(model):
            # One call predicts both parts, since a call costs as much as some hundred
            # rows. Models that may look at other rows of a call get each part by
            # itself.
            with suppress(Exception):  # predicting part by part shows which one raises
                together = predict_codes_or_numbers(
                    model, np.concatenate(test_parts), self.classes
                )
                return [
                    *np.split(together, np.cumsum([len(p) for p in test_parts])[:-1])
                ]
        predictions: list[NDArray[Any] | Exception | None] = []
        for part in test_parts:
            if part is None or isinstance(part, Exception):
                predictions.append(part)
            elif not part.shape[0]:
                predictions.append(None)
            else:
                try:
                    codes = predict_codes_or_numbers(model, part, self.classes)
                    predictions.append(codes)
                except Exception as error:
                    predictions.append(error)
        return predictions

    def _fit_one(
        self,
        candidate: Candidate,
        X: Features,
        y: AnyArray,
        split: Split[int],
        pool: Pool | None,
        cache: Cache,
        hash_rows: Callable[[], str],
    ) -> "Fit":
        """Fit a candidate on a split.

        `hash_rows` returns the `content_hash` of all labeled rows, made once for many
        fits.
        """
        rows = split.train_rows
        labels = labels_of(y[rows], self.classes)
        if len(self.classes) and np.all(y[rows] == y[rows[0]]):
            # Some learners refuse a single class, others predict it. A constant model
            # treats all learners and folds alike.
            model: Any = DummyClassifier(strategy="most_frequent")
            model.fit(native(X[rows]), labels)
            return Fit.of(model, X, split)
        estimator, seeds = (
            candidate.estimator,
            self._derive_missing_seeds(candidate, split),
        )
        if labels.dtype.kind == "U" and reads_marks(estimator):
            labels = labels.astype(object)  # an array of texts cannot hold the mark
        arguments = self._fit_arguments(estimator, rows, len(y), pool)
        # Libsvm draws folds for its probabilities from one generator of the process,
        # which each fit seeds anew. A lock keeps out fits on other threads.
        draws = any(
            name.rpartition("__")[2] == "probability" and value is True
            for name, value in candidate.all_params.items()
        )
        with _LIBSVM_DRAWS if draws else nullcontext():
            if arguments or not has_prefix(estimator):
                model = clone_with_seeds(estimator, seeds, candidate.all_params)
                model.fit(native(X[rows]), labels, **arguments)
                return Fit.of(model, X, split)
            front_seeds, last_seeds = split_params(estimator, seeds)
            # A clone takes a tenth of a small fit, so the first steps are cloned only
            # where they are fitted.
            last = clone_with_seeds(estimator[-1], last_seeds, candidate.last_params)
            prefix = fit_prefix(
                lambda: clone_with_seeds(estimator[:-1], front_seeds),
                X,
                y,
                self.classes,
                split,
                content=hash_rows(),
                text=f"{candidate.steps_text} {front_seeds}",
                cache=cache,
            )
            last.fit(prefix.train_rows, labels)
            # The candidate's pipeline is shared by its fits: each has a copy of it.
            model = copy(estimator)
            model.steps = [*prefix.steps, (estimator.steps[-1][0], last)]
            return Fit(model, last, prefix.tests)

    def _fit_arguments(
        self, estimator: Any, rows: Integers, n_rows: int, pool: Pool | None
    ) -> dict[str, Any]:
        """Return the keyword arguments of `fit` on some of `n_rows` labeled rows."""
        arguments = dict(self.fit_params)
        if self.group_by_row is not None:
            # Groups that the user passed by `fit_params` win over those of the search.
            groups = dict.fromkeys(groups_arguments(estimator), self.group_by_row)
            arguments = {**groups, **arguments}
        for name, value in arguments.items():
            is_list = hasattr(value, "__len__") and not isinstance(value, str | dict)
            if is_list and len(value) == n_rows:
                arguments[name] = _safe_indexing(value, rows)
        if pool is not None and takes_pool(estimator):
            arguments["pool"] = pool
        return arguments

    def _derive_missing_seeds(
        self, candidate: Candidate, split: Split[int]
    ) -> dict[str, int]:
        """Return a seed for each `random_state` of a candidate that is None.

        Candidates share the steps before the last one, so the seeds of these do not
        depend on the candidate. Other seeds come from the parameters, not from the
        candidate's number: adding a candidate to the grid changes no other fit.
        """
        names = names_of_missing_seeds(candidate.all_params)
        if not names:
            return {}
        shared, _ = split_params(candidate.estimator, dict.fromkeys(names))
        identity = self.seed_text(candidate)
        return {
            name: derive_seed(self.seed, name, split.name)
            if name in shared
            else derive_seed(self.seed, identity, split.name, name)
            for name in names
        }

    def seed_text(self, candidate: Candidate) -> str:
        """Return a text to derive the seeds of the last step from; "" if there is none.

        The size of an ensemble is left out where a larger fit contains a smaller one,
        so that ensembles of all sizes draw alike, in one fit or in several.
        """
        if not names_of_missing_seeds(candidate.all_params):
            return ""
        params: Mapping[str, Any] = candidate.all_params
        if candidate.params:
            size = size_parameter(candidate.estimator)
            params = {k: v for k, v in candidate.params.items() if k != size}
        return f"{type(candidate.estimator).__name__}{canonical_text(params)}"
