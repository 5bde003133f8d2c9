"""Kernel functions, and the distances or products that all candidates share.

Numbers in, numbers out, on numpy and scipy alone; float64 unless an array says
otherwise.

Vocabulary: the *base* of a kernel is what kernels with other parameters share: squared
distances, inner products, or the kernel values themselves where the user computed them.
*Reference rows* are fixed rows, such as the labeled ones, and the base of other rows is
computed with them.
"""

from dsel.kernels.checking import check_kernel
from dsel.kernels.functions import Kernel

__all__ = ["Kernel", "check_kernel"]
