"""Hardoon, Hussain and Shawe-Taylor (2009): choosing a model for each row.

`experiment` has the protocol, `tables` Tables 1 to 3 and Figure 2, `sets` the data,
`numbers` what is printed.
"""

from dsel.experiments.hardoon2009.experiment import (
    EXPERIMENT,
    SCALES,
    cross_validation,
    run_fold,
)
from dsel.experiments.hardoon2009.tables import error_by_bound, summary

__all__ = [
    "EXPERIMENT",
    "SCALES",
    "cross_validation",
    "error_by_bound",
    "run_fold",
    "summary",
]
