"""Kääriäinen (2005): C and gamma of an SVM, chosen by the semi-supervised bound.

`experiment` has the protocol of section 4, `tables` what it says, `figures` draws
Figures 1 and 2, `consistency` shows section 5 where the Bayes error is known.
"""

from dsel.experiments.kaariainen2005.consistency import CONSISTENCY
from dsel.experiments.kaariainen2005.experiment import (
    EXPERIMENT,
    SCALES,
    Scale,
    divide,
    plan_division,
    run_division,
)
from dsel.experiments.kaariainen2005.tables import (
    CRITERIA,
    SURFACES,
    agreement,
    pattern,
)

__all__ = [
    "CONSISTENCY",
    "CRITERIA",
    "EXPERIMENT",
    "SCALES",
    "SURFACES",
    "Scale",
    "agreement",
    "divide",
    "pattern",
    "plan_division",
    "run_division",
]
