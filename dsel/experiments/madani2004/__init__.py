"""Madani, Pennock and Flake (2004): estimates and choices by disagreement.

`experiment` has both experiments, `machines` their learners, `sets` the problems,
`tables` what is printed, and the comparison.
"""

from dsel.experiments.madani2004.experiment import ESTIMATION, SELECTION

__all__ = ["ESTIMATION", "SELECTION"]
