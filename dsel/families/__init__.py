"""Families: how groups of candidates are fitted, and how their models predict.

A `Family` (see `family.py`) says which candidates share work, fits them together on any
named sets of rows, and packs fitted ones so that they predict in as few matrix products
as can be. A family is given splits and nothing else of cross-validation, so folds,
halvings and single splits are fitted alike. `assign_families` finds the family of each
candidate: `svm/` has one, `generic.py` takes any other classifier.

Vocabulary: a *candidate* is one model of the grid; a *split* names training and test
rows; a *group* is candidates that share work; a *fitted group* predicts class codes.
"""

from dsel.families.checking import check_family
from dsel.families.family import Family

__all__ = ["Family", "check_family"]
