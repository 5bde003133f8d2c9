"""When reading a pool may stop, and the limits of a rate that then hold.

Where reading stops because of what was counted, a limit must hold at every place where
it could have stopped. Bounds of several terms take their limit from here, so that none
of them can be computed with the plain limit after such a stop by mistake.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel import checks
from dsel.bounds.binomial import Floats, bracket_root, upper_limits

Counts = NDArray[np.int64]
JEFFREYS = (0.5, 0.5)


class StoppingRule(Protocol):
    """When reading may stop.

    Notes
    -----
    Guarantee: `limits` fail with probability at most their share, at all places where
    reading may stop taken together.
    Assumes: independent rows, in an order that depends on no model; a schedule that is
    fixed before the pool is read.
    Source: see the members.
    """

    @property
    def n_stages(self) -> int:
        """Number of stages that the share is divided by; 0 where it is not divided."""

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return upper limits of the rate after so many rows, in the broadcast shape.

        Parameters
        ----------
        n_disagreements, n_rows
            Counted so far, and in how many rows.
        share
            Probability with which any of the limits may fail.
        """

    def event(self, name: str) -> str:
        """Return the name of the event that all of these limits hold."""


@dataclass(frozen=True)
class FixedStages:
    """Reading that may stop at some numbers of rows, fixed in advance.

    Notes
    -----
    Guarantee: the limits of all stages hold at once.
    Assumes: as `StoppingRule`.
    Source: the union bound over stages; with one stage it is the plain limit.
    """

    n_stages: int = 1
    """Number of stages; each gets the same part of the share."""

    def __post_init__(self) -> None:
        checks.check_integer(self.n_stages, "n_stages", at_least=1)

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return the binomial limits at each stage's part of the share."""
        # Declared stages count, reached or not: the union is over all of them.
        part = np.asarray(share) / self.n_stages
        return np.asarray(upper_limits(n_disagreements, n_rows, part))

    def event(self, name: str) -> str:
        """Name the stages, if there are several."""
        return (
            name if self.n_stages == 1 else f"{name} at each of {self.n_stages} stages"
        )


def anytime_limit(
    n_disagreements: ArrayLike,
    n_rows: ArrayLike,
    *,
    delta: ArrayLike,
    prior: tuple[float, float] = JEFFREYS,
) -> Floats:
    r"""Upper limit of a rate, valid at every row at once.

    With :math:`s` disagreements in :math:`t` rows and a Beta(:math:`u, v`) prior it
    is the root :math:`q > s/t` of

    .. math::
        \ln\frac{B(u + s, v + t - s)}{B(u, v)} - s \ln q - (t - s) \ln(1 - q)
        = \ln(1/\delta).

    Parameters
    ----------
    n_disagreements
        Disagreements so far, :math:`s`. Integers in ``[0, n_rows]``, any shape.
    n_rows
        Rows read so far, :math:`t`. Integers >= 0, broadcast against `n_disagreements`.
    delta
        Probability with which any of the limits may fail, in ``(0, 1)``; an array is
        broadcast against the counts.
    prior
        Parameters :math:`u, v > 0` of the Beta distribution, fixed in advance. Where
        the rate is expected to be near :math:`d`, ``(1, 1 / d)`` gives small limits.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the broadcast shape; 1 where no row was read or all
        disagree. The smallest of the limits up to a row is valid too.

    Raises
    ------
    TypeError, ValueError
        As :func:`binomial_tail_inversion`, and where a parameter of the prior is not
        positive.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the rate is at most the limit
    at every number of rows, so at any that was picked after looking.
    Assumes: independent rows in an order that does not depend on the models; `prior`
    fixed in advance.
    Source: the Beta-binomial mixture martingale and Ville's inequality (Robbins,
    1970). A repeated :func:`binomial_tail_inversion` has no such guarantee.

    Examples
    --------
    >>> float(anytime_limit(200, 10_000, delta=0.05).round(4))
    0.026
    """
    counts, rows = checks.check_counts_of(
        n_disagreements, n_rows, "n_disagreements", "n_rows"
    )
    shares = checks.check_probabilities(delta, "delta")
    u, v = (checks.check_positive(value, "prior") for value in prior)
    counts, rows, shares = np.broadcast_arrays(counts, rows, shares)
    # Where every row disagrees, and before any row, no rate is too large.
    is_inner = counts < rows
    limits = np.ones(counts.shape)
    s, t = counts[is_inner].astype(np.float64), rows[is_inner].astype(np.float64)
    log_mixture = special.betaln(u + s, v + t - s)
    # The threshold is raised by more than the rounding of these large terms, which
    # are differences of still larger logarithms of factorials.
    rounding = 1e-15 * (1.0 + special.gammaln(u + v + t))
    threshold = -np.log(shares[is_inner]) + rounding
    constant = log_mixture - special.betaln(u, v) - threshold

    def is_unlikely(q: Floats) -> NDArray[np.bool_]:
        # Whether the martingale of rate q has crossed 1 / delta; 0 ln 0 is 0.
        log_likelihood = special.xlogy(s, q) + special.xlog1py(t - s, -q)
        return np.asarray(constant - log_likelihood > 0)

    rate = s / t
    # The martingale rises in q above s/t; the upper end of the bracket is the safe one.
    limits[is_inner] = bracket_root(is_unlikely, rate, np.ones_like(rate))[1]
    return limits[()]


@dataclass(frozen=True)
class AnyTime:
    """Reading that may stop after any row.

    Its limits are larger than those of a few fixed stages, but the places where reading
    may stop need not be fixed in advance.

    Notes
    -----
    Guarantee: the limits after every number of rows hold at once.
    Assumes: as `StoppingRule`, without a schedule.
    Source: :func:`anytime_limit`.
    """

    prior: tuple[float, float] = JEFFREYS
    """Parameters of its Beta prior."""
    n_stages: int = 0
    """No stages divide the share."""

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return the limits of the confidence sequence."""
        return np.asarray(
            anytime_limit(n_disagreements, n_rows, delta=share, prior=self.prior)
        )

    def event(self, name: str) -> str:
        """Say that it holds at every row."""
        return f"{name} at every row"


WHOLE_POOL = FixedStages()
"""All of the pool is read, whatever it says: the plain limit."""


def stopping_rule(n_stages: int) -> StoppingRule:
    """Return the rule of so many stages, 0 standing for `AnyTime`."""
    return FixedStages(n_stages) if n_stages else AnyTime()


def stage_schedule(n_unlabeled: int, n_stages: int) -> Counts:
    """Return numbers of rows at which reading may stop, in about equal ratios.

    Parameters
    ----------
    n_unlabeled
        Pool rows in all; the last stage. At least 1.
    n_stages
        Number of stages, fixed in advance. Short pools get fewer.

    Returns
    -------
    ndarray
        Rows read at each stage, strictly increasing: from about the square root of
        `n_unlabeled`, or with one stage from `n_unlabeled` itself, up to `n_unlabeled`.

    Raises
    ------
    ValueError
        Where there is no row or no stage.

    Notes
    -----
    Guarantee: none of its own; :class:`FixedStages` gives the limits.
    Assumes: it is computed before the pool is read.
    Source: a geometric schedule, since a limit's distance from the rate falls with the
    square root of the rows.

    Examples
    --------
    >>> stage_schedule(10_000, 3).tolist()
    [100, 1000, 10000]
    """
    rows = checks.check_integer(n_unlabeled, "n_unlabeled", at_least=1)
    stages = checks.check_integer(n_stages, "n_stages", at_least=1)
    first = rows if stages == 1 else rows**0.5
    # Rounded stages of a short pool may coincide; fewer than declared is conservative.
    sizes = np.unique(np.rint(np.geomspace(first, rows, stages)).astype(np.int64))
    sizes[-1] = rows
    return sizes
