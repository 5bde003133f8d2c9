"""Maximum contrastive pessimistic likelihood: the saddle point and its certificate.

For soft labels q of the pool, g(q) is the best log-likelihood of all rows less that
of the supervised fit. It is convex in q, and its minimum is the saddle value. Since
g depends on q through class sums alone, it is minimised over these. The gap is the
exact duality gap: ``g - gap`` is a lower limit of the contrast of the estimate under
every labeling of the pool.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from dsel.arrays import Floats
from dsel.mcpl.contrast import LDAContrast, lda_contrast
from dsel.mcpl.frank_wolfe import CONVERGED, Hull, Minimum, minimize_over_polytope
from dsel.mcpl.gaussian import (
    GaussianClasses,
    LinearScores,
    Moments,
    moments_of,
    supervised_fit,
)
from dsel.mcpl.pool_passes import chunk_class_sums, read_summary

_SAMPLE_TOL = 1e-5
_N_SHARES = 8
"""Shares of the pool whose labelings are weighted apart. More take fewer passes and
more work between them: 8 take about half the passes of 1 for the same work."""


@dataclass(frozen=True)
class ContrastFit:
    """An estimate and the proof that it is no worse than the supervised one."""

    classes: GaussianClasses
    duality_gap: float
    """Gap per row of labeled data and pool."""
    contrast_lower: float
    """Least contrast under any labeling of the pool, per row; never negative."""
    n_passes: int
    """Times the pool was read, for its moments too."""
    status: str
    """How the solver stopped; ``CONVERGED`` where the gap reached the tolerance."""


Label = Callable[[Sequence[LinearScores]], Floats]
"""Returns the class sums of rows labeled by each function, share by share."""


def fit_contrast(
    labeled: Moments,
    pool: Any,
    *,
    ridge: float,
    tol: float,
    max_passes: int,
    start_rows: int,
) -> ContrastFit:
    """Return the estimate for labeled rows and an opened pool, or None for no rows.

    A subsample of `start_rows` is solved first (0: none), unless the pool has less
    than twice as many. Raises ValueError where the labeled rows have no supervised fit.
    """
    supervised = supervised_fit(labeled, ridge=ridge)
    if pool is None:  # the supervised fit maximises the likelihood: nothing to gain
        return ContrastFit(supervised, 0.0, 0.0, 0, CONVERGED)
    origin = labeled.total.means[0]
    # Rows go to the lowest score, so that of the most likely class is its negative.
    likeliest = supervised.scores_about(origin)
    functions = [LinearScores(-likeliest.constants, -likeliest.linear)]
    shares = np.arange(_N_SHARES)
    start = Hull(np.empty((_N_SHARES, 0)), shares, 0 * shares, np.ones(_N_SHARES))
    # A subsample pays only where it is much smaller than the pool.
    n_sampled = start_rows if pool.n_rows > 2 * start_rows else 0
    summary = read_summary(pool, n_sampled=n_sampled)
    contrast_with = partial(lda_contrast, labeled, supervised, ridge=ridge)
    if len(summary.sample):
        sample, numbers = summary.sample, np.arange(len(summary.sample))
        # Each sampled row counts for as many, so that labeled rows keep their weight.
        weight = summary.moments.count / len(sample)
        moments = moments_of(sample).weighted(weight)

        def label_sample(functions: Sequence[LinearScores]) -> Floats:
            cuts = _cuts(len(sample))
            return weight * chunk_class_sums(
                sample, numbers, functions=functions, origin=origin, cuts=cuts
            )

        # The sample's solution is a start only: more digits of it are of no use.
        sample_tol = max(tol, _SAMPLE_TOL)
        start = _solve(
            contrast_with(moments), functions, start, label_sample, origin,
            sample_tol, max_passes,
        ).hull  # fmt: skip

    def label_pool(functions: Sequence[LinearScores]) -> Floats:
        cuts = _cuts(int(pool.boundaries[-1]))
        count = partial(chunk_class_sums, functions=functions, origin=origin, cuts=cuts)
        sums: Floats = pool.reduce(count, add, keep=True)
        return sums

    contrast = contrast_with(summary.moments)
    found = _solve(contrast, functions, start, label_pool, origin, tol, max_passes)
    # Two reads before the solver's: moments, and the labelings to start from.
    n_passes = found.n_passes + 2
    # No gain is certified: the supervised estimate, whose contrast is 0 by definition.
    if found.lower < 0.0:
        return ContrastFit(supervised, 0.0, 0.0, n_passes, found.status)
    return ContrastFit(
        contrast.classes(found.hull.point),
        found.gap / contrast.n_rows,
        found.lower / contrast.n_rows,
        n_passes,
        found.status,
    )


def _cuts(n_rows: int) -> list[int]:
    """Return where rows are cut into shares: runs of rows, as long as each other."""
    return [n_rows * share // _N_SHARES for share in range(1, _N_SHARES)]


def _solve(
    contrast: LDAContrast,
    functions: list[LinearScores],
    start: Hull,
    label: Label,
    origin: Floats,
    tol: float,
    max_passes: int,
) -> Minimum:
    """Minimise the contrast over all labelings of some rows.

    The keys of `start` are places in `functions`, by which these rows are labeled anew:
    its vertices are not read. Those of the minimum are, too.
    """
    # Only functions whose vertices carry weight are evaluated on these rows.
    keys, places = np.unique(start.keys, return_inverse=True)
    functions[:] = [functions[key] for key in keys]

    def vertices(wanted: Sequence[LinearScores]) -> Floats:
        sums = contrast.whiten_sums(label(wanted), origin)
        return sums.reshape(len(wanted), _N_SHARES, -1)

    def lowest(gradient: Floats) -> Floats:
        # The gradient is linear in sums over rows, so the lowest class of each row
        # minimises it over all labelings: the vertex that Frank-Wolfe needs.
        functions.append(contrast.scores_about(gradient, origin))
        return np.asarray(vertices(functions[-1:])[0])

    known = vertices(functions)[places, start.parts]
    return minimize_over_polytope(
        contrast,
        Hull(known, start.parts, places, start.weights),
        lowest,
        tol=tol * contrast.n_rows,
        max_passes=max_passes,
    )
