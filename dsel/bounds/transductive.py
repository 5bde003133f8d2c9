"""The bound on the error rate of a model on the rows of the pool itself."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel import checks
from dsel.bounds.best_fold import at_fold
from dsel.bounds.binomial import Floats, distinct
from dsel.bounds.semi_supervised import BoundTerms, check_folds

_BLOCK = 64


def transductive(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    fold_disagreements: ArrayLike,
    n_unlabeled: int,
    *,
    delta: ArrayLike,
) -> BoundTerms:
    r"""Error bound on the counted pool rows, through the fold where it is smallest.

    With :math:`c_i` errors of fold model :math:`i` on its :math:`n_i` held-out rows,
    the largest number of its errors on these and on the pool together that is not
    rejected at :math:`\delta / k` is

    .. math::
        E_i = \max\{E : P(\mathrm{Hyp}(n_i + m, E, n_i) \le c_i) \ge \delta / k\},

    with :math:`\mathrm{Hyp}` the hypergeometric law of the errors among :math:`n_i` of
    all rows. The error rate of the full model on the :math:`m` counted pool rows is at
    most

    .. math:: \min_i \frac{E_i - c_i}{m} + \frac{a_i}{m}.

    Parameters
    ----------
    fold_errors, fold_rows, delta
        As :func:`cv_bound` takes them, with the same errors.
    fold_disagreements
        Pool rows on which the full model differs from each fold's model,
        :math:`a_i`, counted on the same rows for every fold. Folds on the last axis.
    n_unlabeled
        Pool rows that were counted, and that the bound is about, :math:`m`. At least 1.

    Returns
    -------
    BoundTerms
        `bound`, `label_term` and `disagreement_term` of the best fold. The
        disagreement is exact and costs no delta.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over which rows are labeled and
    which are in the pool, the full model errs on at most that share of those rows. With
    one share for each candidate, summing to at most delta, all bounds hold at once.
    Assumes: labeled rows and pool are exchangeable draws; folds drawn at random,
    never stratified; fold models that saw nothing of their fold; models that do not
    depend on the pool.
    Source: exact hypergeometric tails, given all rows but not which of them are
    labeled. It says nothing about rows that were not counted. These can be in the pool
    too: where a `PoolReading` took a part of it, where a learner was trained on another
    part, or where rows equal to labeled ones were left out.

    Examples
    --------
    >>> terms = transductive([4, 6], [100, 100], [30, 20], 1_000, delta=0.05)
    >>> [round(float(term), 4) for term in terms]
    [0.132, 0.102, 0.03]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    pool = checks.check_integer(n_unlabeled, "n_unlabeled", at_least=1)
    differing, _ = checks.check_counts_of(
        fold_disagreements, pool, "fold_disagreements", "n_unlabeled"
    )
    shares = checks.check_probabilities(delta, "delta")
    # Union bound over folds: the bounds of all hold at once, so the smallest may be
    # taken.
    per_fold = shares[..., np.newaxis] / errors.shape[-1]
    errors, rows, differing, per_fold = np.broadcast_arrays(
        errors, rows, differing, per_fold
    )
    most = most_errors(errors, rows, pool, per_fold)
    # E_i errors in fold and pool together, c_i of them in the fold: the rest is in the
    # pool.
    label_terms, disagreement_terms = (most - errors) / pool, differing / pool
    number = (label_terms + disagreement_terms).argmin(axis=-1)[..., np.newaxis]
    label_term = at_fold(label_terms, number)
    disagreement_term = at_fold(disagreement_terms, number)
    return BoundTerms(label_term + disagreement_term, label_term, disagreement_term)


def most_errors(
    errors: NDArray[np.int64], rows: NDArray[np.int64], pool: int, share: Floats
) -> NDArray[np.int64]:
    """Return the largest total of errors under which so few of them are likely enough.

    The probability falls as the total grows, so the total is found by bisection.
    """
    columns = [np.asarray(each, np.float64).ravel() for each in (errors, rows, share)]
    triples, inverse = distinct(*columns)
    c, n, a = triples
    found = _bisect(c, n, a, pool)
    return found[inverse].astype(np.int64).reshape(errors.shape)


def _bisect(c: Floats, n: Floats, a: Floats, pool: int) -> Floats:
    # Sums of logarithms of factorials round by less than this.
    slack = 2e-15 * special.gammaln(n + pool + 1.0)
    log_share = np.log(a) - slack
    # At least the c errors seen; at most these and every pool row.
    low, high = c.copy(), c + pool + 1.0
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            is_likely = _log_lower_tail(c, n, n + pool, middle) >= log_share
        low = np.where(is_likely, middle, low)
        high = np.where(is_likely, high, middle)
    return low


def _log_lower_tail(c: Floats, n: Floats, total: Floats, marked: Floats) -> Floats:
    """Ln P(X <= c) for the number X of marked among n rows drawn from all."""
    # `scipy.stats.hypergeom` agrees to 5e-10 and takes some 20 times as long.
    plain = total - marked
    log_last = (
        _log_choose(marked, c) + _log_choose(plain, n - c) - _log_choose(total, n)
    )
    term = sum_of_terms = np.ones_like(c)
    for first in range(0, int(c.max(initial=0.0)), _BLOCK):
        # Terms from the last, P(X = c), downwards: each is the one before times a
        # ratio.
        x = np.maximum(c[:, np.newaxis] - first - np.arange(_BLOCK), 0.0)
        ratios = x * np.maximum((plain - n)[:, np.newaxis] + x, 0.0)
        ratios /= (marked[:, np.newaxis] - x + 1) * (n[:, np.newaxis] - x + 1)
        terms = term[:, np.newaxis] * ratios.cumprod(axis=1)
        sum_of_terms = sum_of_terms + terms.sum(axis=1)
        term = terms[:, -1]
        if (term <= 1e-17 * sum_of_terms).all():
            break
    # Far above the mode the sum overflows, and the tail is as good as 1.
    total_mass = np.where(np.isfinite(sum_of_terms), sum_of_terms, np.inf)
    return np.asarray(log_last + np.log(total_mass))


def _log_choose(n: Floats, k: Floats) -> Floats:
    return np.asarray(
        special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    )
