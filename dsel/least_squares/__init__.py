"""Kernel least squares: width and regularization chosen without refits.

One decomposition of the kernel matrix of a width gives the results of every
regularization, of leave-one-out, of generalized cross-validation and of all folds.
`LeastSquaresSearch` holds the rows in memory; `StreamedLeastSquaresSearch` reads them
twice, chunk by chunk, for a few centers. Their squared errors are estimates, not
bounds. With ``certificate="nested"`` the former also certifies how far off predictions
can be: `certified_choice` passes residuals without pairs of folds to a nested search,
which chooses candidates by them.

Vocabulary: a *width* is c of the kernel and one task; a *regularization* is lambda and
a column of its result; *losses* are sums of squared residuals; a *record* is the result
of one task, from which an interrupted search continues.

`closed_form` and `two_passes` have the algebra, `loss_cube` the estimates and the
choice, `estimators` the models, `search` and `streamed` the two searches. To add an
estimate of the error, put its value into the records of `search` and list it in
`loss_cube`.
"""

from dsel.checks import explain_public
from dsel.least_squares.estimators import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
)
from dsel.least_squares.loss_cube import select_least_squares
from dsel.least_squares.search import LeastSquaresSearch
from dsel.least_squares.streamed import StreamedLeastSquaresSearch

__all__ = [
    "KernelLeastSquares",
    "KernelLeastSquaresClassifier",
    "LeastSquaresSearch",
    "StreamedLeastSquaresSearch",
    "select_least_squares",
]

explain_public(globals())
