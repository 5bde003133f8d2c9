"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

`experiment` has data, estimates and what the slides say of them, `figures` the curves,
choices and spreads.
"""

from dsel.experiments.sugiyama.experiment import (
    EXPERIMENT,
    SCALES,
    TARGETS,
    Scale,
    dense_grid,
    draw,
    holdout_estimates,
    search_once,
)

__all__ = [
    "EXPERIMENT",
    "SCALES",
    "TARGETS",
    "Scale",
    "dense_grid",
    "draw",
    "holdout_estimates",
    "search_once",
]
