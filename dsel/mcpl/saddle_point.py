"""Maximum contrastive pessimistic likelihood: the saddle point and its certificate.

For soft labels q of the pool, g(q) is the best log-likelihood of all rows less that
of the supervised fit. It is convex in q, and its minimum is the saddle value. Since
g depends on q through class sums alone, it is minimised over these. The gap is the
exact duality gap: ``g - gap`` is a lower limit of the contrast of the estimate under
every labeling of the pool.
"""

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any, Final

import numpy as np

from dsel.arrays import Floats
from dsel.mcpl.contrast import LDAContrast, lda_contrast
from dsel.mcpl.frank_wolfe import CONVERGED, Hull, Minimum, minimize_over_polytope
from dsel.mcpl.gaussian import GaussianClasses, Moments, moments_of, supervised_fit
from dsel.mcpl.pool_passes import chunk_class_sums, read_summary

_SAMPLE_TOL: Final = 1e-5
_N_SHARES: Final = 8
"""Shares of the pool whose labelings are weighted apart. More take fewer passes and
more work between them: 8 take about half the passes of 1 for the same work."""


def fit_contrast(
    labeled: Moments,
    pool: Any,
    *,
    ridge: float,
    tol: float,
    max_passes: int,
    start_rows: int,
) -> tuple[GaussianClasses, float, float, int, str]:
    """Return the estimate for labeled rows and an opened pool, or None for no rows.

    With it come, as `SemiSupervisedLDA` has them, the duality gap and the least
    contrast per row, the reads of the pool, and how the solver stopped. A subsample of
    `start_rows` is solved first (0: none), unless the pool has less than twice as many.
    Raises ValueError where the labeled rows have no supervised fit.
    """
    supervised = supervised_fit(labeled, ridge=ridge)
    if pool is None:  # the supervised fit maximises the likelihood: nothing to gain
        return supervised, 0.0, 0.0, 0, CONVERGED
    origin = labeled.total.means[0]
    # Rows go to the lowest score, so that of the most likely class is its negative.
    functions = [-supervised.scores_about(origin)]
    shares = np.arange(_N_SHARES)
    start = Hull(np.empty((_N_SHARES, 0)), shares, 0 * shares, np.ones(_N_SHARES))
    # A subsample pays only where it is much smaller than the pool.
    n_sampled = start_rows if pool.n_rows > 2 * start_rows else 0
    moments, sample = read_summary(pool, n_sampled=n_sampled)
    contrast_with = partial(lda_contrast, labeled, supervised, ridge=ridge)
    n_rows = len(sample)
    if n_rows:
        # Each sampled row counts for as many, so that labeled rows keep their weight.
        weight, of_sample = moments.count / n_rows, moments_of(sample)
        weighted = Moments(
            weight * of_sample.counts, of_sample.means, weight * of_sample.scatter
        )
        # The sample's solution is a start only: more digits of it are of no use.
        start = _solve(
            contrast_with(weighted), functions, start, origin, n_rows,
            lambda count: weight * count(sample, np.arange(n_rows)),
            tol=max(tol, _SAMPLE_TOL), max_passes=max_passes,
        ).hull  # fmt: skip
    contrast = contrast_with(moments)
    found = _solve(
        contrast, functions, start, origin, int(pool.boundaries[-1]),
        partial(pool.reduce, combine=add, keep=True), tol=tol, max_passes=max_passes,
    )  # fmt: skip
    # Two reads before the solver's: moments, and the labelings to start from.
    n_passes = found.n_passes + 2
    # No gain is certified: the supervised estimate, whose contrast is 0 by definition.
    if found.lower < 0.0:
        return supervised, 0.0, 0.0, n_passes, found.status
    gap, lower = found.gap / contrast.n_rows, found.lower / contrast.n_rows
    return contrast.classes(found.hull.point), gap, lower, n_passes, found.status


def _solve(
    contrast: LDAContrast,
    functions: list[Floats],
    start: Hull,
    origin: Floats,
    n_rows: int,
    read: Callable[[Any], Floats],
    *,
    tol: float,
    max_passes: int,
) -> Minimum:
    """Minimise the contrast over all labelings of some rows.

    `read` adds up what a function of a chunk and its row numbers, below `n_rows`,
    counts. The keys of `start` are places in `functions`, by which these rows are
    labeled anew: its vertices are not read. Those of the minimum are, too.
    """
    # Only functions whose vertices carry weight are evaluated on these rows.
    keys, places = np.unique(start.keys, return_inverse=True)
    functions[:] = [functions[key] for key in keys]
    # Shares are runs of rows, as long as each other.
    cuts = [n_rows * share // _N_SHARES for share in range(1, _N_SHARES)]

    def vertices(wanted: list[Floats]) -> Floats:
        sums = read(
            partial(chunk_class_sums, functions=wanted, origin=origin, cuts=cuts)
        )
        return contrast.whiten_sums(sums, origin).reshape(len(wanted), _N_SHARES, -1)

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
