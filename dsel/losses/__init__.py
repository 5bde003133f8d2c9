"""Losses that a search ranks by and bounds: errors, missed rows, costs, tolerances.

A loss is fixed before the run, with the classes that it names. It ranks the candidates
of every inner search, and it is what the certificate bounds:

>>> import dsel
>>> dsel.losses.recall("fraud")
recall('fraud')

Vocabulary: a *statistic* defines counts, such as a table of true class and prediction;
a *loss* computes bounds from counts; *shares* are fractions of delta.

To add a loss, write a class with the members of `protocols.Loss`, and one with those of
`protocols.Statistic` if it needs other counts; `check_loss` reports what is missing.
See "Add a loss" on the page for contributors.
"""

from dsel.checks import explain_public
from dsel.losses.loss_checks import check_loss
from dsel.losses.makers import balanced, beyond, cost, error_quantile, precision, recall
from dsel.losses.texts import why_no_loss

__all__ = [
    "balanced",
    "beyond",
    "check_loss",
    "cost",
    "error_quantile",
    "precision",
    "recall",
]

explain_public(globals(), why_no_loss)
