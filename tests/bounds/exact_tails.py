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
        p, n = Decimal(rate), n_samples
        if n_errors <= n // 2:
            tail = 1 - _sum_of_terms(n_errors - 1, n, p)
        else:
            tail = _sum_of_terms(n - n_errors, n, 1 - p)
        return float(tail / Decimal(delta))


def log_factorial(n):
    """Return ln n! for n >= 10,000 to 28 digits, by Stirling's series."""
    n = Decimal(n)
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5)
    return n * n.ln() - n + (2 * pi * n).ln() / 2 + series


def _sum_of_terms(last, n, p):
    term = total = (n * (1 - p).ln()).exp()
    odds = p / (1 - p)
    for j in range(1, last + 1):
        term = term * (n - j + 1) / j * odds
        total += term
    return total
