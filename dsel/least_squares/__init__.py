"""Kernel least squares: width and regularization chosen without refits.

One decomposition of the kernel matrix of a width has every regularization,
leave-one-out, generalized cross-validation and all folds in it. `LeastSquaresSearch`
holds the rows in memory, `StreamedLeastSquaresSearch` reads them twice, chunk by chunk,
for a few centers. What they say of the squared error are estimates; none is a bound.
With ``certificate="nested"`` the former also certifies how far off predictions can be:
`nested` gives residuals without pairs of folds to the last steps of `dsel.search`.

Vocabulary: a *width* is c of the kernel and one task, a *regularization* is lambda and
a column of its answer; *losses* are sums of squared residuals; a *record* is what one
task found, by which an interrupted search goes on.

`closed_form` and `two_passes` have the algebra, `losses` what is estimated and chosen,
`estimators` the models, `search` and `streamed` the two searches. To add an estimate of
the error: its value in the records of `search`, its line in `losses`.
"""

from dsel.least_squares.estimators import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
)
from dsel.least_squares.losses import select_least_squares
from dsel.least_squares.search import LeastSquaresSearch
from dsel.least_squares.streamed import StreamedLeastSquaresSearch

__all__ = [
    "KernelLeastSquares",
    "KernelLeastSquaresClassifier",
    "LeastSquaresSearch",
    "StreamedLeastSquaresSearch",
    "select_least_squares",
]
