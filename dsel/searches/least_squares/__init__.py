"""Searches over kernel least squares: the grid of widths and regularizations.

A task decomposes the kernel of one width, and has every regularization, leave-one-out
and all folds from it. `LeastSquaresSearch` holds the rows in memory,
`StreamedLeastSquaresSearch` reads them twice, chunk by chunk, for a few centres.

Vocabulary: a *width* is a task, a *regularization* a column of its answer; *losses* are
squared errors and are never called a bound. To add an estimate of the generalisation
error: its column in `tasks`, its name in `cube`.
"""
