"""Estimators over solvers, and the families by which a grid's candidates are fitted.

A `Family` (see `base.py`) says which candidates share work, fits them together on any
named sets of rows, and packs fitted ones so that they predict in as few matrix products
as can be. The seam knows nothing of folds: cross-validation, halvings and single splits
all hand it trainings. `assign_families` picks the member for each candidate.

Vocabulary: a *candidate* is one model of the grid; a *training* names training and test
rows; a *group* is candidates that share work; a *fitted group* predicts class codes.

To add a family: one file with a frozen dataclass that satisfies `Family`, and its place
in `choosing.py`. Estimators of this room are found by name in their own modules.
"""

from dsel.models.base import Candidate, Family, FitCounts, FittedGroup

__all__ = ["Candidate", "Family", "FitCounts", "FittedGroup"]
