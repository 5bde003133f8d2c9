"""MCPL for LDA written down from its definition, with soft labels: slow and plain."""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multivariate_normal


def weighted_fit(X, weights):
    """Weighted maximum likelihood: priors, means, and the covariance of the classes."""
    masses = weights.sum(axis=0)
    means = weights.T @ X / masses[:, None]
    scatter = sum(
        ((X - mean) * w[:, None]).T @ (X - mean)
        for mean, w in zip(means, weights.T, strict=True)
    )
    return masses / weights.sum(), means, scatter / weights.sum()


def log_joint(theta, X):
    priors, means, covariance = theta
    columns = [
        np.log(prior) + np.atleast_1d(multivariate_normal.logpdf(X, mean, covariance))
        for prior, mean in zip(priors, means, strict=True)
    ]
    return np.column_stack(columns)


def contrast(theta, supervised, X, weights):
    """Gain in log-likelihood under soft labels."""
    return float(np.sum(weights * (log_joint(theta, X) - log_joint(supervised, X))))


def saddle_value(X, y, U):
    """Minimise the best contrast over stored soft labels with a generic solver."""
    n_classes = y.max() + 1
    hard = np.eye(n_classes)[y]
    supervised = weighted_fit(X, hard)
    everything = np.vstack([X, U])

    def weights_of(free):
        return np.vstack([hard, free.reshape(len(U), n_classes)])

    def value(free):
        theta = weighted_fit(everything, weights_of(free))
        return contrast(theta, supervised, everything, weights_of(free))

    def slope(free):
        theta = weighted_fit(everything, weights_of(free))
        return (log_joint(theta, U) - log_joint(supervised, U)).ravel()

    start = np.full(len(U) * n_classes, 1 / n_classes)
    sums = np.kron(np.eye(len(U)), np.ones(n_classes))
    found = minimize(
        value, start, jac=slope, method="SLSQP", bounds=[(0, 1)] * len(start),
        constraints={"type": "eq", "fun": lambda free: sums @ free - 1},
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    return found.fun
