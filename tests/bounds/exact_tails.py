"""Binomial tails to 60 digits, by adding terms; the reference for the inversions."""

from decimal import Decimal, localcontext


def lower_tail_ratio(n_errors, n_samples, rate, delta):
    """Return P(Bin(n_samples, rate) <= n_errors) / delta as a float."""
    with localcontext() as context:
        context.prec = 60
        p, n = Decimal(rate), n_samples
        if n_errors <= n // 2:
            tail = _sum_of_terms(n_errors, n, p)
        else:
            tail = 1 - _sum_of_terms(n - n_errors - 1, n, 1 - p)
        return float(tail / Decimal(delta))


def upper_tail_ratio(n_errors, n_samples, rate, delta):
    """Return P(Bin(n_samples, rate) >= n_errors) / delta as a float."""
    with localcontext() as context:
        context.prec = 60
        right = 1 - Decimal(rate)
    return lower_tail_ratio(n_samples - n_errors, n_samples, right, delta)


def _sum_of_terms(last, n, p):
    term = total = (n * (1 - p).ln()).exp()
    odds = p / (1 - p)
    for j in range(1, last + 1):
        term = term * (n - j + 1) / j * odds
        total += term
    return total
