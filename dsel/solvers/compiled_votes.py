"""Compiled part of one-against-one voting; imported only where votes are counted.

Classes i < j of the pair number p: a decision above zero is a vote for i, any other
one for j; the first class with the most votes wins. Both rules are libsvm's.
"""

from typing import Any

import numpy as np

from dsel.solvers.compiled_smo import compiled

EPS = 2.0**-52


@compiled(error_model="numpy")
def vote(
    products: Any,
    largest: Any,
    sums: Any,
    offsets: Any,
    units: Any,
    absolute: Any,
    codes: Any,
    doubtful: Any,
) -> Any:
    """Count votes of many rows and models, and mark what rounding could change.

    Parameters
    ----------
    products
        Part of every decision that comes from the support vectors of a class,
        (n_classes, n_rows, n_classes - 1, n_models).
    largest
        Largest absolute kernel value of a row with each class, (n_classes, n_rows).
    sums
        Sums of absolute dual coefficients, (n_classes, n_classes - 1, n_models).
    offsets
        Constants, (n_pairs, n_models).
    units
        Relative error of a row's terms, (n_rows,).
    absolute
        Absolute error of a row's kernel values, (n_rows,).
    codes, doubtful
        Written: winner's place among the classes, and whether one of the decisions is
        closer to zero than its error bound; (n_rows, n_models).
    """
    n_classes, n_rows, _, n_models = products.shape
    votes = np.empty((n_classes, n_models))
    doubt = np.empty(n_models)
    for r in range(n_rows):
        votes[:] = 0.0
        doubt[:] = 0.0
        p = 0
        for i in range(n_classes - 1):
            scale_i = units[r] * largest[i, r] + absolute[r]
            for j in range(i + 1, n_classes):
                scale_j = units[r] * largest[j, r] + absolute[r]
                for m in range(n_models):
                    decision = products[i, r, j - 1, m] + products[j, r, i, m]
                    decision += offsets[p, m]
                    error = scale_i * sums[i, j - 1, m] + scale_j * sums[j, i, m]
                    error += 8.0 * EPS * abs(offsets[p, m])
                    won = 1.0 if decision > 0.0 else 0.0
                    votes[i, m] += won
                    votes[j, m] += 1.0 - won
                    doubt[m] += 1.0 if abs(decision) <= error else 0.0
                p += 1
        for m in range(n_models):
            winner = 0
            for i in range(1, n_classes):
                if votes[i, m] > votes[winner, m]:
                    winner = i
            codes[r, m] = winner
            doubtful[r, m] = doubt[m] > 0.0


@compiled(error_model="numpy")
def add_terms(values: Any, coefs: Any, model: Any, terms: Any, sizes: Any) -> Any:
    """Add one class's terms of one model in the order of its rows; return their number.

    `values` (n_rows,) are kernel values and `coefs` (n_rows, n_classes - 1, n_models)
    dual coefficients; `terms` and `sizes` (n_classes - 1,) get the sums of the terms
    and of their absolute values.
    """
    count = 0
    for t in range(len(values)):
        some = False
        for q in range(len(terms)):
            term = values[t] * coefs[t, q, model]
            terms[q] += term
            sizes[q] += abs(term)
            some = some or coefs[t, q, model] != 0.0
        count += some
    return count
