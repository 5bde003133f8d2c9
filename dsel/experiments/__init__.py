"""The experiments of the papers: what was run, what is printed, what is in doubt.

One `Experiment` a paper and kind: `hardoon2009` (nonconformity), `kaariainen2005` (the
semi-supervised bound), `loog2015` (semi-supervised discriminant analysis),
`madani2004` (co-validation: estimates, and choices), `sugiyama` (least squares). Each
says how one repetition on one set is measured, what it is compared with and how it is
drawn; `run_experiment` does the rest.

Vocabulary: a *piece* is one repetition on one data set, and is kept as soon as it is
there; a *scale* says how much is run; a *comparison* is a number or finding of a paper
beside ours, with a verdict. Data sets are read from the folder that ``DSEL_DATA`` names
or that is passed as ``folder=``.

To add a paper: a file, or a folder, with a `Scale`, what is printed, functions that
`load`, `measure` and `compare`, and its `Experiment`, here in `EXPERIMENTS`; a test at
the smallest scale. `dsel reproduce` and its page follow.
"""

from typing import Final

from dsel.experiments import (
    hardoon2009,
    kaariainen2005,
    loog2015,
    madani2004,
    sugiyama,
)
from dsel.experiments.base import Experiment
from dsel.experiments.comparison import Comparison
from dsel.experiments.pieces import run_experiment

EXPERIMENTS: Final = (
    hardoon2009.EXPERIMENT,
    kaariainen2005.EXPERIMENT,
    kaariainen2005.CONSISTENCY,
    loog2015.EXPERIMENT,
    madani2004.ESTIMATION,
    madani2004.SELECTION,
    sugiyama.EXPERIMENT,
)

__all__ = ["EXPERIMENTS", "Comparison", "Experiment", "run_experiment"]
