"""Kernel functions, and what the candidates of a grid can share of them.

Promise: numbers in, numbers out, on numpy and scipy alone. Float64 unless an array
says otherwise.

Vocabulary: the *part* of a kernel is what kernels with other parameters share: squared
distances, inner products, or the values themselves where the user computed them.
*Anchors* are rows that stay (the labeled ones) and that other rows make a part with. A
*spectrum* is the factorisation that all regularizations of least squares share.

To add a kernel: one frozen dataclass with the methods of `base.Kernel` in a file of its
own, and a line in `dsel.models.svm.settings`.
"""

from dsel.kernels.linear import Linear
from dsel.kernels.parts import squared_distances
from dsel.kernels.polynomial import Polynomial
from dsel.kernels.precomputed import Precomputed
from dsel.kernels.rbf import Rbf
from dsel.kernels.sigmoid import Sigmoid

__all__ = [
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rbf",
    "Sigmoid",
    "squared_distances",
]
