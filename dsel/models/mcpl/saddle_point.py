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

from dsel.families.arrays import Floats
from dsel.models.mcpl.gaussian import ClassMoments, Moments, moments_of
from dsel.models.mcpl.pool_passes import (
    ClassScores,
    FirstPass,
    Labeling,
    chunk_lowest,
    read_first_pass,
    read_lowest,
)
from dsel.models.mcpl.whitening import Whitening, log_density_scores
from dsel.solvers.frank_wolfe import (
    CONVERGED,
    Expansion,
    Hull,
    Minimum,
    minimize_over_polytope,
)

_SAMPLE_TOL = 1e-5
_N_SHARES = 8
"""Shares of the pool whose labelings are weighted apart. More take fewer passes and
more work between them: 8 take about half the passes of 1 for the same work."""


class Contrast(Protocol):
    """The contrast of one kind of classifier as a function of the pool's sums.

    A *point* holds the sums of all classes in whitened coordinates, flat.
    """

    @property
    def whitening(self) -> Whitening:
        """Coordinates of its points."""

    @property
    def n_rows(self) -> float:
        """Rows in all, labeled and not."""

    def expand(self, point: Floats) -> Expansion:
        """Return the contrast around a point."""

    def classes(self, point: Floats) -> Any:
        """Return the maximum likelihood estimate, in the original coordinates."""


@dataclass(frozen=True)
class ContrastProblem:
    """One estimate to be made from labeled rows and the pool."""

    labeled: ClassMoments
    """Moments of the labeled rows."""
    supervised: Any
    """The estimate that the result must not fall below, such as `GaussianClasses`."""
    contrast: Callable[[ClassMoments, Moments], Contrast]
    """Makes the contrast from the labeled rows and the pool's moments."""
    tol: float
    """Duality gap per row at which to stop."""
    max_passes: int
    """Vertices to ask for at most; each is a read of the pool."""
    scores: Callable[[Any, Floats], ClassScores] = log_density_scores
    """Log-densities of an estimate as functions of rows about an origin."""


@dataclass(frozen=True)
class ContrastFit:
    """An estimate and the proof that it is no worse than the supervised one."""

    classes: Any
    duality_gap: float
    """Gap per row of labeled data and pool."""
    contrast_lower: float
    """Least contrast under any labeling of the pool, per row; never negative."""
    n_passes: int
    """Times the pool was read."""
    status: str
    """How the solver stopped; ``CONVERGED`` where the gap reached the tolerance."""


@dataclass(frozen=True)
class _WarmStart:
    """Vertices to start from, as labelings of the pool's shares, and their weights."""

    labeling: Labeling
    """Functions that the vertices are found by."""
    places: NDArray[np.intp]
    """Which of the functions labels each vertex, shape (r,)."""
    shares: NDArray[np.intp]
    """Which share of the pool it labels, shape (r,)."""
    weights: Floats
    """Weights, those of each share adding up to 1, shape (r,)."""

    def hull(self, vertices: Floats) -> Hull:
        """Return the hull, given vertices of shape (functions, shares, n)."""
        chosen = vertices[self.places, self.shares]
        return Hull(chosen, self.shares, self.places, self.weights)


@dataclass(frozen=True)
class _Solved:
    """A minimum of one contrast, and how to find its vertices on other rows."""

    minimum: Minimum
    start: _WarmStart


Labeler = Callable[[Sequence[Labeling]], list[list[Floats]]]
Solver = Generator[Labeling, list[Floats], _Solved]


def fit_contrasts(
    problems: Sequence[ContrastProblem], pool: Any, *, start_rows: int
) -> list[ContrastFit]:
    """Solve several problems on one pool, with one read of it for all of them.

    The answer to one problem, such as a split of a cross-validation, does not depend on
    which others there are. A subsample of `start_rows` is solved first (0: none),
    unless the pool has less than twice as many.
    """
    if pool is None:  # the supervised fit maximises the likelihood: nothing to gain
        return [ContrastFit(p.supervised, 0.0, 0.0, 0, CONVERGED) for p in problems]
    # A subsample pays only where it is much smaller than the pool.
    n_sampled = start_rows if pool.n_rows > 2 * start_rows else 0
    cuts = _cuts(int(pool.boundaries[-1]))
    starts = [_supervised_start(problem, cuts) for problem in problems]
    # Without a subsample the first pass finds the first vertices as well.
    labelings = [] if n_sampled else [each.labeling for each in starts]
    first = read_first_pass(pool, labelings, n_sampled=n_sampled)
    if n_sampled:
        starts = _solve_sample(problems, first, cuts)
    contrasts = [each.contrast(each.labeled, first.moments) for each in problems]
    solvers = [
        _solver(problem, contrast, start)
        for problem, contrast, start in zip(problems, contrasts, starts, strict=True)
    ]
    known = None if n_sampled else first.sums
    solved = _run_together(solvers, partial(read_lowest, pool), known=known)
    return [
        _certified(problem, contrast, each, n_before=2 if n_sampled else 1)
        for problem, contrast, each in zip(problems, contrasts, solved, strict=True)
    ]


def _cuts(n_rows: int) -> tuple[int, ...]:
    """Return where rows are cut into shares: runs of rows, as long as each other."""
    return tuple(n_rows * share // _N_SHARES for share in range(1, _N_SHARES))


def _supervised_start(problem: ContrastProblem, cuts: tuple[int, ...]) -> _WarmStart:
    origin = problem.labeled.total.mean
    # Rows go to the lowest score, so that of the most likely class is its negative.
    scores = problem.scores(problem.supervised, origin).negated
    shares = np.arange(_N_SHARES)
    labeling = Labeling((scores,), origin, cuts)
    return _WarmStart(labeling, np.zeros_like(shares), shares, np.ones(_N_SHARES))


def _solve_sample(
    problems: Sequence[ContrastProblem], first: FirstPass, cuts: tuple[int, ...]
) -> list[_WarmStart]:
    """Solve on some rows, each weighted as many; return the labelings with weight.

    One read of the pool, cut as given, turns them into vertices of the whole problem.
    """
    numbers = np.arange(len(first.sample))
    sample_cuts = _cuts(len(numbers))
    # Each sampled row counts for as many, so that labeled rows keep their weight.
    weight = first.moments.count / len(numbers)
    within = moments_of(first.sample).weighted(weight)

    def label(labelings: Sequence[Labeling]) -> list[list[Floats]]:
        found = chunk_lowest(first.sample, numbers, labelings=labelings)
        return [[weight * sums for sums in each] for each in found]

    solvers = [
        _solver(
            # The sample's solution is a start only: more digits of it are of no use.
            replace(problem, tol=max(problem.tol, _SAMPLE_TOL)),
            problem.contrast(problem.labeled, within),
            _supervised_start(problem, sample_cuts),
        )
        for problem in problems
    ]
    starts = [each.start for each in _run_together(solvers, label)]
    # The same functions, for the shares of all rows.
    return [replace(s, labeling=replace(s.labeling, cuts=cuts)) for s in starts]


def _solver(problem: ContrastProblem, contrast: Contrast, start: _WarmStart) -> Solver:
    """Yield labelings of the pool; their sums, share by share, are to be sent."""
    first = start.labeling
    shape = first.scores[0].linear.shape

    def vertices(sums: Floats) -> Floats:
        whitened = contrast.whitening.whiten_sums(sums, first.origin)
        return whitened.reshape(first.n_shares, -1)

    found = yield first
    # Vertices are kept by the function that labels them: on other rows the same
    # functions find the vertices anew.
    functions = list(first.scores)
    inner = minimize_over_polytope(
        contrast,
        start.hull(np.array([vertices(sums) for sums in found])),
        tol=problem.tol * contrast.n_rows,
        max_passes=problem.max_passes,
    )
    gradient = next(inner)
    while True:
        # The gradient is linear in sums over rows, so the lowest class of each row
        # minimises it over all labelings: the vertex that Frank-Wolfe needs.
        scores = ClassScores.from_flat(gradient, *shape)
        functions.append(contrast.whitening.scores_about(scores, first.origin))
        found = yield replace(first, scores=(functions[-1],))
        try:
            gradient = inner.send(vertices(found[0]))
        except StopIteration as stop:
            minimum: Minimum = stop.value
            hull = minimum.hull
            # Only functions whose vertices carry weight are evaluated on the next rows.
            keys, places = np.unique(hull.keys, return_inverse=True)
            kept = replace(first, scores=tuple(functions[key] for key in keys))
            return _Solved(minimum, _WarmStart(kept, places, hull.parts, hull.weights))


def _run_together(
    solvers: Sequence[Solver],
    label: Labeler,
    known: list[list[Floats]] | None = None,
) -> list[_Solved]:
    """Advance all solvers in step, so that one pass answers all of them.

    `known` holds the first answers where there is no need to ask for them.
    """
    waiting = {place: next(solver) for place, solver in enumerate(solvers)}
    solved: dict[int, _Solved] = {}
    while waiting:
        answers = label(list(waiting.values())) if known is None else known
        known = None
        for place, answer in zip(list(waiting), answers, strict=True):
            try:
                waiting[place] = solvers[place].send(answer)
            except StopIteration as stop:
                solved[place] = stop.value
                del waiting[place]
    return [solved[place] for place in range(len(solvers))]


def _certified(
    problem: ContrastProblem, contrast: Contrast, solved: _Solved, *, n_before: int
) -> ContrastFit:
    """Return the estimate with its certificate, or the supervised one without."""
    minimum = solved.minimum
    n_passes = n_before + minimum.n_passes
    # No gain is certified: the supervised estimate, whose contrast is 0 by definition.
    if minimum.lower < 0.0:
        return ContrastFit(problem.supervised, 0.0, 0.0, n_passes, minimum.status)
    return ContrastFit(
        contrast.classes(minimum.hull.point),
        minimum.gap / contrast.n_rows,
        minimum.lower / contrast.n_rows,
        n_passes,
        minimum.status,
    )
