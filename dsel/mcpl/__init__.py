"""Maximum contrastive pessimistic likelihood (MCPL): a fit that no pool makes worse.

The *contrast* of parameters is their gain in log-likelihood over the supervised fit.
`SemiSupervisedLDA` maximizes the smallest contrast over all labelings of the pool, and
proves how large it is. The contrast depends on a labeling only through the masses and
sums of the classes, so the problem is convex in K (d + 1) numbers:

- `gaussian`: Gaussian classes, the supervised fit, and sums over the pool;
- `frank_wolfe`: the minimum of a convex function over a polytope of class sums;
- `saddle_point`: the contrast as a function of class sums, its minimum and certificate;
- `estimators`: `SemiSupervisedLDA`, and for comparison the fit to the labeled rows
  alone and the fit to the pool with its true labels.

docs/theory/other_methods.md has the proof.
"""

from dsel.checks import explain_public
from dsel.mcpl.estimators import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA

__all__ = ["MaximumLikelihoodLDA", "OracleLDA", "SemiSupervisedLDA"]

explain_public(globals())
