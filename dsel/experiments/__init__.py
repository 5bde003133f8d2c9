"""The experiments of the papers: each with its protocol, its numbers and its doubts.

One `Experiment` a paper and kind: `hardoon2009` (nonconformity), `kaariainen2005` (the
semi-supervised bound), `loog2015` (semi-supervised discriminant analysis),
`madani2004` (co-validation: estimates, and choices), `sugiyama` (least squares). Each
says how one repetition on one set is measured, and what it is compared with;
`run_experiment` does the rest. A paper is a folder: what it prints is in `numbers`.

Vocabulary: a *piece* is one repetition on one data set, and is kept as soon as it is
there; a *scale* says how much is run; a *comparison* is a number or finding of a paper
beside ours, with a verdict. Data sets are read from the folder that ``DSEL_DATA`` names
or that is passed as ``folder=``.

To add a paper: a folder with a `Scale`, functions that `load`, `measure` and `compare`,
and its `Experiment`, here in `EXPERIMENTS`; data sets and printed numbers in files of
their own; a test at the smallest scale. `dsel reproduce` and its page follow.
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
    loog2015.EXPERIMENT,
    madani2004.ESTIMATION,
    madani2004.SELECTION,
    sugiyama.EXPERIMENT,
)
"""All experiments."""

__all__ = ["EXPERIMENTS", "Comparison", "Experiment", "run_experiment"]
