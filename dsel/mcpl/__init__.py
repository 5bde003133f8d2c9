"""Maximum contrastive pessimistic likelihood (MCPL): a fit no pool can make worse.

The *contrast* of parameters is their gain in log-likelihood over the supervised fit.
`SemiSupervisedLDA` makes the least contrast over all labelings of the pool as large as
can be, and proves how large it is. It depends on a labeling through the masses and sums
of the classes alone, so that the problem is convex in K (d + 1) numbers:

- `gaussian`: Gaussian classes, the supervised fit, and what a read of the pool returns;
- `frank_wolfe`: the minimum of a convex function over a polytope of class sums;
- `saddle_point`: the contrast as a function of class sums, its minimum and certificate;
- `estimators`: `SemiSupervisedLDA`, and what it is measured against: the fit to the
  labeled rows alone, and to the pool with its true labels.

docs/theory/other_methods.md has the proof.
"""

from dsel.mcpl.estimators import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA

__all__ = ["MaximumLikelihoodLDA", "OracleLDA", "SemiSupervisedLDA"]
