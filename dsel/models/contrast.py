"""Maximum contrastive pessimistic likelihood: the saddle point and its certificate.

For soft labels q of the pool, g(q) is the best log-likelihood of all rows less that
of the supervised fit. It is convex in q, and its minimum is the saddle value. Since
g depends on q through class sums alone, it is minimised over these. The gap is the
exact duality gap: ``g - gap`` is a lower limit of the contrast of the estimate under
every labeling of the pool.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.models.affine_frame import AffineFrame, log_density_scores
from dsel.models.gaussian import GaussianClasses
from dsel.models.moments import ClassMoments, Moments, moments_of
from dsel.models.pool_passes import (
    ClassScores,
    ClassSums,
    Start,
    chunk_lowest,
    read_lowest,
    read_start,
)
from dsel.solvers.frank_wolfe import (
    Expansion,
    Hull,
    Minimum,
    minimize_over_polytope,
)

_SAMPLE_TOL = 1e-5


class Contrast(Protocol):
    """The contrast of one kind of classifier as a function of the pool's sums."""

    @property
    def frame(self) -> AffineFrame:
        """Coordinates of its points."""

    @property
    def n_rows(self) -> float:
        """Rows in all, labeled and not."""

    def expand(self, point: NDArray[np.float64]) -> Expansion:
        """Return the contrast around a point."""

    def scores(self, gradient: NDArray[np.float64]) -> ClassScores:
        """Return what a row adds to the contrast by going to each class."""

    def point(self, sums: ClassSums) -> NDArray[np.float64]:
        """Return class sums, given in the frame, as a point."""

    def classes(self, point: NDArray[np.float64]) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""


@dataclass(frozen=True)
class ContrastProblem:
    """One estimate to be made from labeled rows and the pool."""

    labeled: ClassMoments
    """Moments of the labeled rows."""
    supervised: GaussianClasses
    """The estimate that must not be undercut."""
    contrast: Callable[[ClassMoments, Moments], Contrast]
    """Makes the contrast from the labeled rows and the pool's moments."""


@dataclass(frozen=True)
class ContrastFit:
    """An estimate and the proof that it is no worse than the supervised one."""

    classes: GaussianClasses
    """The estimate."""
    duality_gap: float
    """Gap per row of labeled data and pool."""
    contrast_lower: float
    """Least contrast under any labeling of the pool, per row; never negative."""
    n_passes: int
    """Times the pool was read."""
    status: str
    """How the solver stopped; ``CONVERGED`` where the gap reached the tolerance."""


@dataclass(frozen=True)
class ContrastLimits:
    """When to stop, and where to start."""

    tol: float
    """Duality gap per row at which to stop."""
    max_passes: int
    """Reads of the pool at most."""
    start_rows: int
    """Rows of a subsample that is solved first; 0 for none."""


@dataclass(frozen=True)
class _Solved:
    """A minimum of one contrast, and how to find its vertices on other rows."""

    minimum: Minimum
    scores: list[ClassScores]
    """One function for each vertex of the hull: each row to its lowest class."""


Labeler = Callable[[Sequence[ClassScores]], list[ClassSums]]
Solver = Generator[list[ClassScores], list[ClassSums], _Solved]


def fit_contrasts(
    problems: Sequence[ContrastProblem], pool: Any, limits: ContrastLimits
) -> list[ContrastFit]:
    """Solve several problems on one pool, with one read of it for all of them.

    Parameters
    ----------
    problems
        Labeled sets, for instance the trainings of a cross-validation.
    pool
        The unlabeled rows, at least one.
    limits
        When to stop.
    """
    n_sampled = limits.start_rows if pool.n_rows > 2 * limits.start_rows else 0
    origin = problems[0].labeled.total.mean
    scores = [
        log_density_scores(problem.supervised, origin).negated for problem in problems
    ]
    start = read_start(pool, [] if n_sampled else scores, origin, n_sampled=n_sampled)
    contrasts = [each.contrast(each.labeled, start.moments) for each in problems]
    if n_sampled:
        asked = _solve_on_sample(problems, scores, start, origin, limits)
    else:
        asked = [[score] for score in scores]
    solvers = [
        _solver(contrast, each, origin, limits)
        for contrast, each in zip(contrasts, asked, strict=True)
    ]
    solved = _run_together(
        solvers,
        lambda scores: read_lowest(pool, scores, origin),
        known=None if n_sampled else start.sums,
    )
    return [
        _certified(
            problem,
            contrast,
            each,
            n_passes=each.minimum.n_passes + 1 + bool(n_sampled),
        )
        for problem, contrast, each in zip(problems, contrasts, solved, strict=True)
    ]


def _solve_on_sample(
    problems: Sequence[ContrastProblem],
    scores: Sequence[ClassScores],
    start: Start,
    origin: NDArray[np.float64],
    limits: ContrastLimits,
) -> list[list[ClassScores]]:
    """Solve on some rows, each standing for many; return the functions that mattered.

    One read of the pool turns them into vertices of the whole problem.
    """
    weight = start.moments.count / len(start.sample)
    within = moments_of(start.sample).weighted(weight)
    loose = replace(limits, tol=max(limits.tol, _SAMPLE_TOL))

    def label(asked: Sequence[ClassScores]) -> list[ClassSums]:
        found = chunk_lowest(start.sample, scores=asked, origin=origin)
        return [sums.times(weight) for sums in found]

    solvers = [
        _solver(problem.contrast(problem.labeled, within), [score], origin, loose)
        for problem, score in zip(problems, scores, strict=True)
    ]
    return [each.scores for each in _run_together(solvers, label)]


def _solver(
    contrast: Contrast,
    start: list[ClassScores],
    origin: NDArray[np.float64],
    limits: ContrastLimits,
) -> Solver:
    """Yield functions of ``x - origin``, want the sums of each row's lowest class."""

    def vertex(sums: ClassSums) -> NDArray[np.float64]:
        return contrast.point(contrast.frame.whiten_sums(sums, origin))

    found = yield start
    size = len(start)
    hull = Hull(
        np.array([vertex(sums) for sums in found]),
        np.arange(size),
        np.full(size, 1.0 / size),
    )
    asked = list(start)
    inner = minimize_over_polytope(
        contrast,
        hull,
        tol=limits.tol * contrast.n_rows,
        max_passes=limits.max_passes,
    )
    gradient = next(inner)
    while True:
        asked.append(contrast.frame.scores_about(contrast.scores(gradient), origin))
        found = yield asked[-1:]
        try:
            gradient = inner.send(vertex(found[0]))
        except StopIteration as stop:
            minimum: Minimum = stop.value
            return _Solved(minimum, [asked[key] for key in minimum.hull.keys])


def _run_together(
    solvers: Sequence[Solver], label: Labeler, known: list[ClassSums] | None = None
) -> list[_Solved]:
    """Advance all solvers in step, so that one pass answers all of them.

    `known` holds the first answers where there is no need to ask for them.
    """
    asked = {place: next(solver) for place, solver in enumerate(solvers)}
    solved: dict[int, _Solved] = {}
    while asked:
        wanted = [scores for each in asked.values() for scores in each]
        found = iter(label(wanted) if known is None else known)
        known = None
        for place, scores in list(asked.items()):
            answers = [next(found) for _ in scores]
            try:
                asked[place] = solvers[place].send(answers)
            except StopIteration as stop:
                solved[place] = stop.value
                del asked[place]
    return [solved[place] for place in range(len(solvers))]


def _certified(
    problem: ContrastProblem, contrast: Contrast, solved: _Solved, *, n_passes: int
) -> ContrastFit:
    """Return the estimate with its certificate, or the supervised one without."""
    minimum = solved.minimum
    lower = minimum.value - minimum.gap
    if lower < 0.0:
        return ContrastFit(problem.supervised, 0.0, 0.0, n_passes, minimum.status)
    return ContrastFit(
        contrast.classes(minimum.hull.point),
        minimum.gap / contrast.n_rows,
        lower / contrast.n_rows,
        n_passes,
        minimum.status,
    )
