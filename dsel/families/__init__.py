"""Families: how groups of candidates are fitted, and how their models predict.

A `Family` (see `family.py`) groups candidates that share work, fits a group on any
list of splits, and packs fitted groups so that they predict in as few matrix products
as possible. A family receives splits and knows nothing else of cross-validation, so
folds, halvings and single splits are fitted alike. `assign_families` finds the family
of each candidate: `svm/` has one, `ensembles.py` takes ensembles that differ in size,
`generic.py` any other classifier or regressor.

Vocabulary: a *candidate* is one setting of the grid; a *split* names training and test
rows; a *group* is a set of candidates that share work; a *fitted group* predicts class
codes, or numbers for regressors.
"""

from dsel.checks import offer_public
from dsel.families.family import Family
from dsel.families.family_checks import check_family

__all__ = ["Family", "check_family"]

offer_public(globals())
