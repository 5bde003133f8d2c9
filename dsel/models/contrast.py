"""Maximum contrastive pessimistic likelihood: the saddle point and its certificate.

For soft labels q of the pool, g(q) is the best log-likelihood of all rows less that
of the supervised fit. It is convex in q, and its minimum is the saddle value. Since
g depends on q through class sums alone, it is minimised over these. The gap is the
exact duality gap: ``g - gap`` is a lower limit of the contrast of the estimate under
every labeling of the pool.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.models.affine_frame import AffineFrame, log_density_scores
from dsel.models.gaussian import GaussianClasses
from dsel.models.moments import ClassMoments, Moments, moments_of
from dsel.models.pool_passes import (
    ClassScores,
    ClassSums,
    Labeling,
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
    tol: float
    """Duality gap per row at which to stop."""
    max_passes: int
    """Vertices to ask for at most; each is a read of the pool."""


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
class _Solved:
    """A minimum of one contrast, and how to find its vertices on other rows."""

    minimum: Minimum
    labeling: Labeling
    """One function for each vertex of the hull."""


Labeler = Callable[[Sequence[Labeling]], list[list[ClassSums]]]
Solver = Generator[Labeling, list[ClassSums], _Solved]


def fit_contrasts(
    problems: Sequence[ContrastProblem], pool: Any, *, start_rows: int
) -> list[ContrastFit]:
    """Solve several problems on one pool, with one read of it for all of them.

    The answer to one problem does not depend on which others there are.

    Parameters
    ----------
    problems
        Labeled sets, for instance the trainings of a cross-validation.
    pool
        The unlabeled rows, at least one.
    start_rows
        Rows of a subsample that is solved first; 0 for none. Pools of up to twice as
        many rows are solved at once.
    """
    n_sampled = start_rows if pool.n_rows > 2 * start_rows else 0
    firsts = [_supervised_labeling(problem) for problem in problems]
    start = read_start(pool, [] if n_sampled else firsts, n_sampled=n_sampled)
    labelings = _label_sample(problems, firsts, start) if n_sampled else firsts
    contrasts = [each.contrast(each.labeled, start.moments) for each in problems]
    solvers = [
        _solver(problem, contrast, labeling)
        for problem, contrast, labeling in zip(
            problems, contrasts, labelings, strict=True
        )
    ]
    known = None if n_sampled else start.sums
    solved = _run_together(solvers, partial(read_lowest, pool), known=known)
    return [
        _certified(problem, contrast, each, n_before=2 if n_sampled else 1)
        for problem, contrast, each in zip(problems, contrasts, solved, strict=True)
    ]


def _supervised_labeling(problem: ContrastProblem) -> Labeling:
    origin = problem.labeled.total.mean
    return Labeling((log_density_scores(problem.supervised, origin).negated,), origin)


def _label_sample(
    problems: Sequence[ContrastProblem], firsts: Sequence[Labeling], start: Start
) -> list[Labeling]:
    """Solve on some rows, each standing for many; return the labelings that mattered.

    One read of the pool turns them into vertices of the whole problem.
    """
    weight = start.moments.count / len(start.sample)
    within = moments_of(start.sample).weighted(weight)

    def label(labelings: Sequence[Labeling]) -> list[list[ClassSums]]:
        found = chunk_lowest(start.sample, labelings=labelings)
        return [[sums.times(weight) for sums in each] for each in found]

    solvers = [
        _solver(
            replace(problem, tol=max(problem.tol, _SAMPLE_TOL)),
            problem.contrast(problem.labeled, within),
            first,
        )
        for problem, first in zip(problems, firsts, strict=True)
    ]
    return [each.labeling for each in _run_together(solvers, label)]


def _solver(problem: ContrastProblem, contrast: Contrast, start: Labeling) -> Solver:
    """Yield labelings of the pool, want their sums; begin with those of `start`."""
    origin = start.origin

    def vertex(sums: ClassSums) -> NDArray[np.float64]:
        return contrast.point(contrast.frame.whiten_sums(sums, origin))

    found = yield start
    size = len(found)
    hull = Hull(
        np.array([vertex(sums) for sums in found]),
        np.arange(size),
        np.full(size, 1.0 / size),
    )
    asked = list(start.scores)
    inner = minimize_over_polytope(
        contrast,
        hull,
        tol=problem.tol * contrast.n_rows,
        max_passes=problem.max_passes,
    )
    gradient = next(inner)
    while True:
        asked.append(contrast.frame.scores_about(contrast.scores(gradient), origin))
        found = yield Labeling((asked[-1],), origin)
        try:
            gradient = inner.send(vertex(found[0]))
        except StopIteration as stop:
            minimum: Minimum = stop.value
            kept = tuple(asked[key] for key in minimum.hull.keys)
            return _Solved(minimum, Labeling(kept, origin))


def _run_together(
    solvers: Sequence[Solver],
    label: Labeler,
    known: list[list[ClassSums]] | None = None,
) -> list[_Solved]:
    """Advance all solvers in step, so that one pass answers all of them.

    `known` holds the first answers where there is no need to ask for them.
    """
    asked = {place: next(solver) for place, solver in enumerate(solvers)}
    solved: dict[int, _Solved] = {}
    while asked:
        answers = label(list(asked.values())) if known is None else known
        known = None
        for place, answer in zip(list(asked), answers, strict=True):
            try:
                asked[place] = solvers[place].send(answer)
            except StopIteration as stop:
                solved[place] = stop.value
                del asked[place]
    return [solved[place] for place in range(len(solvers))]


def _certified(
    problem: ContrastProblem, contrast: Contrast, solved: _Solved, *, n_before: int
) -> ContrastFit:
    """Return the estimate with its certificate, or the supervised one without."""
    minimum = solved.minimum
    n_passes = n_before + minimum.n_passes
    if minimum.lower < 0.0:
        return ContrastFit(problem.supervised, 0.0, 0.0, n_passes, minimum.status)
    return ContrastFit(
        contrast.classes(minimum.hull.point),
        minimum.gap / contrast.n_rows,
        minimum.lower / contrast.n_rows,
        n_passes,
        minimum.status,
    )
