"""Lower limits of rates where some rows may be copies of training rows."""

import numpy as np

from dsel.arrays import ArrayLike, Floats
from dsel.bounds.binomial import lower_limits
from dsel.checks import check_counts_of, check_probability


def lower_rate_limits(
    counts: ArrayLike, counted_duplicates: ArrayLike, n_rows: ArrayLike, delta: float
) -> Floats:
    r"""Return lower limits of rates; NaN where there are no rows.

    Of :math:`v` counted rows :math:`e_v` equal labeled rows. These are subtracted from
    the count and from its total, :math:`b(v - e_v, m - e_v, \delta)`. Whichever of the
    rows that equal labeled ones are fresh draws, the limit of the fresh rows is no
    smaller: a row that was counted raises it, any other one lowers it.

    Guarantee: each rate is at least its limit with probability at least ``1 - delta``.
    Assumes: rows that equal no labeled row are independent draws, and so are those that
    equal one but are other records.
    Source: :func:`dsel.bounds.binomial_tail_inversion_lower`.

    Examples
    --------
    >>> lower_rate_limits([30, 30], [0, 10], 300, 0.01).round(4).tolist()
    [0.0636, 0.0388]
    """
    v, m = check_counts_of(counts, n_rows, "counts", "n_rows")
    e, v = check_counts_of(counted_duplicates, v, "counted_duplicates", "counts")
    deltas = np.full(v.shape, check_probability(delta, "delta"))
    # Duplicates leave count and total together: taken off the count alone, limits would
    # be valid, too, and smaller than needed.
    fresh = np.maximum(m - e, 1)  # where m is 0, the limit becomes NaN below
    limits = lower_limits(v - e, fresh, deltas)
    return np.where(m > 0, limits, np.nan)
