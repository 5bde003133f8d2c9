"""Kernel functions, and what the candidates of a grid can share of them.

Promise: numbers in, numbers out, on numpy and scipy alone. Float64 unless an array
says otherwise.

Vocabulary: the *base* of a kernel is what kernels with other parameters share: squared
distances, inner products, or the values themselves where the user computed them.
*Reference rows* are fixed ones (the labeled rows, say) with which other rows have a
base. A *spectrum* is the factorisation that all regularizations of least squares share.

To add a kernel: see `functions`.
"""

from dsel.kernels.functions import Linear, Polynomial, Precomputed, Rbf, Sigmoid
from dsel.kernels.reference_rows import squared_distances

__all__ = [
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rbf",
    "Sigmoid",
    "squared_distances",
]
