"""Compiled part of one-against-one voting; imported only where votes are counted.

Classes i < j of the pair number p: a decision above zero is a vote for i, any other
one for j; the first class with the most votes wins. Both rules are libsvm's.
"""

from typing import Any

import numpy as np

from dsel.solvers.compiled_smo import compiled

EPS = 2.0**-52


@compiled(error_model="numpy")
def vote(  # noqa: PLR0913
    products: Any,
    peaks: Any,
    errors: Any,
    slack: Any,
    sums: Any,
    fixed: Any,
    offsets: Any,
    codes: Any,
    doubtful: Any,
) -> Any:
    """Count votes of many rows and models, and mark winners that rounding could change.

    Parameters
    ----------
    products
        Part of every decision that comes from the support vectors of a class,
        (n_classes, n_rows, n_classes - 1, n_models).
    peaks, errors
        Largest absolute kernel value of each row and their largest error, (n_rows,).
    slack, sums, fixed
        What they are multiplied by, and what is added, for the error bound of each
        decision, (n_pairs, n_models).
    offsets
        Constants, (n_pairs, n_models).
    codes, doubtful
        Written: winner's place among the classes, and whether decisions closer to
        zero than their error bound could make another one; (n_rows, n_models).
    """
    n_classes, n_rows, _, n_models = products.shape
    # Fewest and most votes that a class can have.
    fewest, most = np.empty((n_classes, n_models)), np.empty((n_classes, n_models))
    votes = np.empty((n_classes, n_models))
    for r in range(n_rows):
        votes[:], fewest[:], most[:] = 0.0, 0.0, 0.0
        p = 0
        for i in range(n_classes - 1):
            for j in range(i + 1, n_classes):
                for m in range(n_models):
                    decision = np.float64(products[i, r, j - 1, m])
                    decision += np.float64(products[j, r, i, m]) + offsets[p, m]
                    error = peaks[r] * slack[p, m] + errors[r] * sums[p, m]
                    error += fixed[p, m]
                    won = 1.0 if decision > 0.0 else 0.0
                    sure = 1.0 if decision > error else 0.0
                    lost = 1.0 if decision < -error else 0.0
                    votes[i, m] += won
                    votes[j, m] += 1.0 - won
                    fewest[i, m] += sure
                    fewest[j, m] += lost
                    most[i, m] += 1.0 - lost
                    most[j, m] += 1.0 - sure
                p += 1
        for m in range(n_models):
            codes[r, m], doubtful[r, m] = winner_of(votes, fewest, most, m)


@compiled(error_model="numpy", inline="always")
def winner_of(votes: Any, fewest: Any, most: Any, m: Any) -> Any:
    """Return the first class with the most votes, and whether it might be another."""
    winner = 0
    for i in range(1, len(votes)):
        if votes[i, m] > votes[winner, m]:
            winner = i
    doubt = False
    for i in range(len(votes)):
        ahead = fewest[winner, m] - most[i, m]
        doubt = doubt or (i < winner and ahead < 1.0) or (i > winner and ahead < 0.0)
    return winner, doubt


@compiled(error_model="numpy")
def add_terms(values: Any, coefs: Any, model: Any, terms: Any, limits: Any) -> Any:
    """Add one class's terms of one model in the order of its rows.

    `values` (n_rows,) are kernel values and `coefs` (n_rows, n_classes - 1, n_models)
    dual coefficients; `terms` and `limits` (n_classes - 1,) get the sums of the terms
    and what adding them may have changed.
    """
    counts, sizes = np.zeros(len(terms)), np.zeros(len(terms))
    for t in range(len(values)):
        for q in range(len(terms)):
            term = values[t] * coefs[t, q, model]
            terms[q] += term
            sizes[q] += abs(term)
            counts[q] += coefs[t, q, model] != 0.0
    limits[:] = EPS * (counts + 8.0) * sizes
