"""Kääriäinen (2005): the semi-supervised cross-validation bound.

`experiment` has the protocol and what is compared, `numbers` what is printed.
"""

from dsel.experiments.kaariainen2005.experiment import (
    CRITERIA,
    EXPERIMENT,
    SCALES,
    Scale,
    divide,
    pattern,
    plan_division,
)

__all__ = [
    "CRITERIA",
    "EXPERIMENT",
    "SCALES",
    "Scale",
    "divide",
    "pattern",
    "plan_division",
]
