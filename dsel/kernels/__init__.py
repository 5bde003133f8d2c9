"""Kernel functions, and what the candidates of a grid can share of them.

Promise: numbers in, numbers out, on numpy and scipy alone. Float64 unless an array
says otherwise.

Vocabulary: the *base* of a kernel is what kernels with other parameters share: squared
distances, inner products, or the kernel values themselves where the user computed them.
*Reference rows* are fixed rows, such as the labeled ones, and the base of other rows is
computed with them.

To add a kernel: a frozen dataclass in `functions` with the methods of `Kernel`, and its
line in `KERNELS` of `dsel.families.svm.settings`.
"""

from dsel.kernels.functions import Kernel

__all__ = ["Kernel"]
