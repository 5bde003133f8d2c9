"""Fitted least-squares classifiers of many regularizations that predict together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.eigen import exponentiate
from dsel.kernels.parts import squared_distances
from dsel.models.base import FIT_DONE, FIT_FAILED, FitCounts
from dsel.models.kernel_coefficients import ROUNDING
from dsel.models.kernel_decisions import decide
from dsel.models.kernel_least_squares import KernelLeastSquaresClassifier
from dsel.models.kernel_least_squares_basis import as_floats

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Counting:
    """Counts that can still be written to; the fields of `FitCounts`."""

    test_errors: Codes
    """Candidates x trainings, as the next three."""
    train_errors: Codes
    """-1 where nothing was counted."""
    status: NDArray[np.int8]
    """``FIT_FAILED`` until something was fitted."""
    seconds: Floats
    """0 until measured."""
    messages: dict[tuple[int, int], str]
    """Candidate number and training number to what went wrong."""


def empty_counts(n_candidates: int, n_trainings: int) -> Counting:
    """Return counts that say: nothing was fitted."""
    shape = (n_candidates, n_trainings)
    return Counting(
        np.full(shape, -1, np.int64),
        np.full(shape, -1, np.int64),
        np.full(shape, FIT_FAILED, np.int8),
        np.zeros(shape),
        {},
    )


def copy_counts(counts: Counting, places: Any, part: Counting) -> None:
    """Write the counts of some candidates, or of some cells, to their places."""
    counts.test_errors[places] = part.test_errors
    counts.train_errors[places] = part.train_errors
    counts.status[places] = part.status
    counts.seconds[places] = part.seconds


@dataclass(frozen=True, eq=False)
class Centers:
    """Points at which kernels stand, and what names them by content."""

    points: Any
    """z, shape (n_centers, n_columns)."""
    token: str
    """Equal for equal points."""


@dataclass(frozen=True, eq=False)
class Slab:
    """Models of one width: candidates x trainings over the same centres."""

    key: str
    """Names what the models share by content."""
    width: float
    """c of the kernel."""
    centers: Centers
    """z."""
    estimators: Mapping[int, KernelLeastSquaresClassifier]
    """Unfitted, by candidate number."""
    candidates: tuple[int, ...]
    """Candidate numbers."""
    trainings: tuple[int, ...]
    """Training numbers."""
    coefficients: Floats
    """alpha, shape (n_trainings, n_centers, n_candidates, n_scores)."""
    intercepts: Floats
    """b, shape (n_trainings, n_candidates, n_scores)."""
    seen: NDArray[np.bool_]
    """Classes with training rows, shape (n_trainings, n_classes)."""
    counts: Counting
    """Errors, candidates x trainings."""

    @property
    def nbytes(self) -> int:
        """Memory of coefficients and centres."""
        n_centers, n_columns = self.centers.points.shape
        models = self.coefficients.nbytes + self.intercepts.nbytes
        return int(models + 8 * n_centers * n_columns)

    @cached_property
    def tolerance(self) -> Floats:
        """What rounding may do to the scores; shape of `intercepts`."""
        total = np.abs(self.coefficients).sum(axis=1) + np.abs(self.intercepts)
        return np.asarray(ROUNDING * total)


@dataclass(frozen=True, eq=False)
class FittedLeastSquares:
    """Slabs of several widths; distances to shared centres are computed once."""

    slabs: tuple[Slab, ...]
    """All on the same trainings; those that share centres stand together."""
    classes: NDArray[Any]
    """Label of each class code."""
    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""

    @property
    def trainings(self) -> tuple[int, ...]:
        """Numbers of the trainings."""
        return self.slabs[0].trainings

    @property
    def counts(self) -> FitCounts:
        """Errors of every model on its test and training rows."""
        counts = empty_counts(len(self.candidates), len(self.trainings))
        for slab in self.slabs:
            copy_counts(counts, self._places(slab), slab.counts)
            counts.messages.update(slab.counts.messages)
        return FitCounts(**vars(counts))

    @property
    def nbytes(self) -> int:
        """What moving the models costs."""
        return sum(slab.nbytes for slab in self.slabs)

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

    @property
    def row_nbytes(self) -> int:
        """Distances, kernels, and the scores of a few readings."""
        n_centers = max(slab.centers.points.shape[0] for slab in self.slabs)
        n_scores = max(slab.intercepts[0].size for slab in self.slabs)
        return int(8 * (3 * n_centers + 6 * n_scores))

    def predict(self, X: Any, which: Sequence[Codes]) -> Codes:
        """Return class codes, shape (len(which), n_candidates, n_rows)."""
        codes = np.empty((len(which), len(self.candidates), X.shape[0]), np.int64)
        for slab, kernel in self._kernels(X):
            places = self._places(slab)
            failed = slab.counts.status != FIT_DONE
            axis = np.arange(len(places))[:, np.newaxis]
            for entry, wanted in enumerate(self._broadcast(which, X.shape[0])):
                raw, chosen = _slab_scores(slab, kernel, wanted[places])
                decided = decide(raw, slab.tolerance[chosen, axis])
                codes[entry, places] = np.where(failed[axis, chosen], -1, decided)
        return codes

    def scores(self, X: Any, which: Sequence[Codes]) -> Floats:
        """Return scores, shape (len(which), n_candidates, n_rows, n_classes)."""
        n_classes = len(self.classes)
        shape = (len(which), len(self.candidates), X.shape[0], n_classes)
        scores = np.empty(shape)
        for slab, kernel in self._kernels(X):
            places = self._places(slab)
            for entry, wanted in enumerate(self._broadcast(which, X.shape[0])):
                raw, chosen = _slab_scores(slab, kernel, wanted[places])
                if n_classes == 2:
                    raw = np.concatenate([-raw, raw], axis=-1)
                scores[entry, places] = np.where(slab.seen[chosen], raw, -np.inf)
        return scores

    def model(self, candidate: int, training: int) -> KernelLeastSquaresClassifier:
        """Return the fitted estimator of one candidate and training."""
        slab = next(slab for slab in self.slabs if candidate in slab.candidates)
        place = slab.candidates.index(candidate)
        number = slab.trainings.index(training)
        if slab.counts.status[place, number] != FIT_DONE:
            raise ValueError(
                f"`candidate` {candidate} has no model of training {training}: "
                f"{slab.counts.messages[candidate, training]}"
            )
        dual = slab.coefficients[number, :, place]
        intercept = slab.intercepts[number, place]
        seen = slab.seen[number]
        if len(self.classes) > 2:
            dual, intercept = dual[:, seen], intercept[seen]
        if dual.shape[1] == 2:  # the larger of two scores is the sign of a difference
            dual, intercept = dual[:, 1:] - dual[:, :1], intercept[1:] - intercept[:1]
        is_single = dual.shape[1] == 1
        model = KernelLeastSquaresClassifier(**slab.estimators[candidate].get_params())
        model.classes_ = self.classes[seen]
        model.centers_ = slab.centers.points
        model.dual_coef_ = dual[:, 0].copy() if is_single else dual.copy()
        model.intercept_ = intercept[0] if is_single else intercept.copy()
        model.n_features_in_ = slab.centers.points.shape[1]
        return model

    @cached_property
    def _place_of(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(self.candidates)}

    def _places(self, slab: Slab) -> list[int]:
        return [self._place_of[number] for number in slab.candidates]

    def _broadcast(self, which: Sequence[Codes], n_rows: int) -> Iterator[Codes]:
        for entry in which:
            yield np.broadcast_to(entry, (len(self.candidates), n_rows))

    def _kernels(self, X: Any) -> Iterator[tuple[Slab, Floats]]:
        """Yield each slab with the kernel values of its centres at every row."""
        X = as_floats(X)
        token, distances = "", np.empty((0, 0))
        for slab in self.slabs:
            if slab.centers.token != token:
                token = slab.centers.token
                distances = squared_distances(X, slab.centers.points)
            yield slab, exponentiate(distances.copy(), slab.width)


def join_slabs(slabs: Sequence[Slab], candidates: Sequence[int]) -> Slab:
    """Pack slabs of one key that differ in candidates and trainings.

    Parameters
    ----------
    slabs
        Of the same key; of a pair that several hold the last counts.
    candidates
        Numbers of the candidates to pack.
    """
    first = slabs[0]
    trainings = sorted({number for slab in slabs for number in slab.trainings})
    n_centers, _, n_scores = first.coefficients.shape[1:]
    shape = (len(trainings), n_centers, len(candidates), n_scores)
    coefficients, intercepts = np.zeros(shape), np.zeros((shape[0], *shape[2:]))
    seen = np.zeros((len(trainings), first.seen.shape[1]), bool)
    counts = empty_counts(len(candidates), len(trainings))
    estimators: dict[int, KernelLeastSquaresClassifier] = {}
    for slab in slabs:
        rows = [trainings.index(number) for number in slab.trainings]
        mine = [n for n, number in enumerate(candidates) if number in slab.candidates]
        theirs = [slab.candidates.index(candidates[n]) for n in mine]
        for row, source in enumerate(slab.coefficients):
            coefficients[rows[row]][:, mine] = source[:, theirs]
        intercepts[np.ix_(rows, mine)] = slab.intercepts[:, theirs]
        seen[rows] = slab.seen
        copy_counts(counts, np.ix_(mine, rows), _select(slab.counts, theirs))
        counts.messages.update(slab.counts.messages)
        estimators.update(slab.estimators)
    return Slab(
        first.key,
        first.width,
        first.centers,
        {number: estimators[number] for number in candidates},
        tuple(candidates),
        tuple(trainings),
        coefficients,
        intercepts,
        seen,
        counts,
    )


def _select(counts: Counting, places: list[int]) -> Counting:
    return Counting(
        counts.test_errors[places],
        counts.train_errors[places],
        counts.status[places],
        counts.seconds[places],
        counts.messages,
    )


def _slab_scores(slab: Slab, kernel: Floats, wanted: Codes) -> tuple[Floats, Codes]:
    """Score every row by the wanted trainings.

    Returns
    -------
    tuple
        Scores, shape (n_candidates, n_rows, n_scores), -inf for one of several classes
        without training rows, and the places of the wanted
        trainings in the slab, shape (n_candidates, n_rows).
    """
    n_centers, n_candidates, n_scores = slab.coefficients.shape[1:]
    place_of = np.full(max(slab.trainings) + 1, -1)
    place_of[list(slab.trainings)] = np.arange(len(slab.trainings))
    chosen = place_of[wanted]
    scores = np.empty((n_candidates, len(kernel), n_scores))
    for place in np.unique(chosen):
        mask = chosen == place
        rows, members = mask.any(axis=0), mask.any(axis=1)
        part = slab.coefficients[place][:, members].reshape(n_centers, -1)
        product = (kernel if rows.all() else kernel[rows]) @ part
        values = product.reshape(-1, int(members.sum()), n_scores).swapaxes(0, 1)
        values = values + slab.intercepts[place, members][:, np.newaxis]
        if n_scores > 1:
            values[..., ~slab.seen[place]] = -np.inf
        scores[mask] = values[mask[np.ix_(members, rows)]]
    return scores, chosen
