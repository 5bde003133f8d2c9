"""Fitted least-squares classifiers of many regularizations that predict together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import numbers
from dsel.data.identity import content_hash
from dsel.data.splits import Split
from dsel.families.arrays import Bools, Floats, Integers, as_floats
from dsel.families.family import FIT_DONE, Candidate, FitCounts
from dsel.kernels.eigen import exponentiate
from dsel.kernels.reference_rows import squared_distances
from dsel.models.least_squares.coefficients import decide, rounding_of_scores
from dsel.models.least_squares.estimators import KernelLeastSquaresClassifier


@dataclass(frozen=True, eq=False)
class WidthModels:
    """Models of one width: candidates x splits over the same centres."""

    key: str
    """Equal for models that can be joined: all parameters but `regularization`."""
    width: float
    centers: Any
    """z, shape (n_centers, n_columns)."""
    centers_token: str
    estimators: Mapping[int, KernelLeastSquaresClassifier]
    """Unfitted, by candidate number."""
    candidates: tuple[int, ...]
    splits: tuple[int, ...]
    coefficients: Floats
    """alpha, shape (n_splits, n_centers, n_candidates, n_scores)."""
    intercepts: Floats
    """b, shape (n_splits, n_candidates, n_scores)."""
    seen: Bools
    """Classes with training rows, shape (n_splits, n_classes)."""
    counts: FitCounts
    """Errors, candidates x splits."""

    @property
    def nbytes(self) -> int:
        """Memory of coefficients and centres."""
        n_centers, n_columns = self.centers.shape
        models = self.coefficients.nbytes + self.intercepts.nbytes
        return int(models + 8 * n_centers * n_columns)

    @cached_property
    def tolerance(self) -> Floats:
        """What rounding may do to the scores; shape of `intercepts`."""
        return rounding_of_scores(self.coefficients.swapaxes(0, 1), self.intercepts)


@dataclass(frozen=True, eq=False)
class FittedLeastSquares:
    """Models of several widths; distances to shared centres are computed once."""

    widths: tuple[WidthModels, ...]
    """All on the same splits; those that share centres stand together."""
    classes: NDArray[Any]
    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""

    @property
    def splits(self) -> tuple[int, ...]:
        """Numbers of the splits."""
        return self.widths[0].splits

    @property
    def counts(self) -> FitCounts:
        """Errors of every model on its test and training rows."""
        counts = FitCounts.empty(len(self.candidates), len(self.splits))
        for models in self.widths:
            counts.copy(self._places(models), models.counts)
        return counts

    @property
    def nbytes(self) -> int:
        """What moving the models costs."""
        return sum(models.nbytes for models in self.widths)

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

    @property
    def row_nbytes(self) -> int:
        """Distances, kernels, and the scores of a few queries."""
        n_centers = max(models.centers.shape[0] for models in self.widths)
        n_scores = max(models.intercepts[0].size for models in self.widths)
        return int(8 * (3 * n_centers + 6 * n_scores))

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes, shape (len(which), n_candidates, n_rows)."""
        codes = np.empty((len(which), len(self.candidates), X.shape[0]), np.int64)
        for place, models, raw, chosen in self._answers(X, which):
            axis = np.arange(len(chosen))[:, np.newaxis]
            decided = decide(raw, models.tolerance[chosen, axis])
            failed = models.counts.status[axis, chosen] != FIT_DONE
            codes[place] = np.where(failed, -1, decided)
        return codes

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Return scores, shape (len(which), n_candidates, n_rows, n_classes)."""
        n_classes = len(self.classes)
        shape = (len(which), len(self.candidates), X.shape[0], n_classes)
        scores = np.empty(shape)
        for place, models, raw, chosen in self._answers(X, which):
            if n_classes == 2:
                raw = np.concatenate([-raw, raw], axis=-1)
            scores[place] = np.where(models.seen[chosen], raw, -np.inf)
        return scores

    def model(self, candidate: int, split: int) -> KernelLeastSquaresClassifier:
        """Return the fitted estimator of one candidate and split."""
        models = next(
            models for models in self.widths if candidate in models.candidates
        )
        place = models.candidates.index(candidate)
        number = models.splits.index(split)
        if models.counts.status[place, number] != FIT_DONE:
            raise ValueError(
                f"`candidate` {candidate} has no model of split {split}: "
                f"{models.counts.messages[candidate, split]}"
            )
        dual = models.coefficients[number, :, place]
        intercept = models.intercepts[number, place]
        seen = models.seen[number]
        if len(self.classes) > 2:
            # An estimator has columns of the classes that it has seen only.
            dual, intercept = dual[:, seen], intercept[seen]
        if dual.shape[1] == 2:  # the larger of two scores is the sign of a difference
            dual, intercept = dual[:, 1:] - dual[:, :1], intercept[1:] - intercept[:1]
        is_single = dual.shape[1] == 1
        model = KernelLeastSquaresClassifier(
            **models.estimators[candidate].get_params()
        )
        model.classes_ = self.classes[seen]
        model.centers_ = models.centers
        model.dual_coef_ = dual[:, 0].copy() if is_single else dual.copy()
        model.intercept_ = intercept[0] if is_single else intercept.copy()
        model.n_features_in_ = models.centers.shape[1]
        return model

    def _places(self, models: WidthModels) -> list[int]:
        place_of = {number: place for place, number in enumerate(self.candidates)}
        return [place_of[number] for number in models.candidates]

    def _answers(
        self, X: Any, which: Sequence[Integers]
    ) -> Iterator[tuple[tuple[int, list[int]], WidthModels, Floats, Integers]]:
        """Yield query and places of candidates, their models, scores and splits."""
        X = as_floats(numbers(X))
        token, distances = "", np.empty((0, 0))
        for models in self.widths:
            if models.centers_token != token:
                token = models.centers_token
                distances = squared_distances(X, models.centers)
            kernel, places = exponentiate(distances, models.width), self._places(models)
            for query, each in enumerate(which):
                wanted = np.broadcast_to(each, (len(self.candidates), X.shape[0]))
                raw, chosen = _scores_of(models, kernel, wanted[places])
                yield (query, places), models, raw, chosen


def empty_models(
    key: str,
    width: float,
    centers: Any,
    group: Sequence[Candidate],
    splits: Sequence[Split],
    n_classes: int,
) -> WidthModels:
    """Return models of a width of which every fit has failed, so far."""
    n_scores = n_classes if n_classes > 2 else 1
    shape = (len(splits), centers.shape[0], len(group), n_scores)
    return WidthModels(
        key,
        width,
        centers,
        content_hash(centers),
        {candidate.number: candidate.estimator for candidate in group},
        tuple(candidate.number for candidate in group),
        tuple(split.number for split in splits),
        np.zeros(shape),
        np.zeros((shape[0], *shape[2:])),
        np.zeros((len(splits), n_classes), bool),
        FitCounts.empty(len(group), len(splits)),
    )


def join_models(
    pieces: Sequence[WidthModels], candidates: Sequence[int]
) -> WidthModels:
    """Pack models of one key that differ in candidates and splits.

    Of a pair that several pieces hold the last one counts.
    """
    # A group that failed as a whole has no centres; those of the others are the same.
    first = max(pieces, key=lambda models: (models.counts.status == FIT_DONE).any())
    splits = sorted({number for models in pieces for number in models.splits})
    n_centers, _, n_scores = first.coefficients.shape[1:]
    shape = (len(splits), n_centers, len(candidates), n_scores)
    coefficients, intercepts = np.zeros(shape), np.zeros((shape[0], *shape[2:]))
    seen = np.zeros((len(splits), first.seen.shape[1]), bool)
    counts = FitCounts.empty(len(candidates), len(splits))
    estimators: dict[int, KernelLeastSquaresClassifier] = {}
    for models in pieces:
        rows = [splits.index(number) for number in models.splits]
        mine = [n for n, number in enumerate(candidates) if number in models.candidates]
        theirs = [models.candidates.index(candidates[n]) for n in mine]
        for row, source in enumerate(models.coefficients):
            coefficients[rows[row]][:, mine] = source[:, theirs]
        intercepts[np.ix_(rows, mine)] = models.intercepts[:, theirs]
        seen[rows] = models.seen
        counts.copy(np.ix_(mine, rows), models.counts.select(theirs))
        estimators.update(models.estimators)
    return replace(
        first,
        estimators={number: estimators[number] for number in candidates},
        candidates=tuple(candidates),
        splits=tuple(splits),
        coefficients=coefficients,
        intercepts=intercepts,
        seen=seen,
        counts=counts,
    )


def _scores_of(
    models: WidthModels, kernel: Floats, wanted: Integers
) -> tuple[Floats, Integers]:
    """Score every row by the wanted splits, and return the places of these splits.

    Scores are of shape (n_candidates, n_rows, n_scores), -inf for one of several
    classes without training rows; places of shape (n_candidates, n_rows).
    """
    n_centers, n_candidates, n_scores = models.coefficients.shape[1:]
    # Split numbers to places by indexing: faster than a search per row.
    place_of = np.full(max(models.splits) + 1, -1)
    place_of[list(models.splits)] = np.arange(len(models.splits))
    chosen = place_of[wanted]
    scores = np.empty((n_candidates, len(kernel), n_scores))
    for place in np.unique(chosen):
        # Rows and candidates that this split answers: one product for all of them.
        mask = chosen == place
        rows, members = mask.any(axis=0), mask.any(axis=1)
        part = models.coefficients[place][:, members].reshape(n_centers, -1)
        product = (kernel if rows.all() else kernel[rows]) @ part
        values = product.reshape(-1, int(members.sum()), n_scores).swapaxes(0, 1)
        values = values + models.intercepts[place, members][:, np.newaxis]
        if n_scores > 1:
            values[..., ~models.seen[place]] = -np.inf
        scores[mask] = values[mask[np.ix_(members, rows)]]
    return scores, chosen
