"""Kernel functions, and the distances or products that all candidates share.

Functions take and return arrays, on numpy and scipy alone; numbers are float64 unless
an input array has another type.

Vocabulary: the *base* is the array from which kernels with any parameters are computed:
squared distances, inner products, or the kernel values themselves if the user computed
them. *Reference rows* are fixed rows, such as the labeled ones; the base of other rows
is computed with them.
"""

from dsel.checks import offer_public
from dsel.kernels.functions import KERNELS, Kernel
from dsel.kernels.kernel_checks import check_kernel

__all__ = ["KERNELS", "Kernel", "check_kernel"]

offer_public(globals())
