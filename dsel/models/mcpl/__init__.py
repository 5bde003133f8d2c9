"""Maximum contrastive pessimistic likelihood (MCPL): fits a pool cannot make worse.

The *contrast* is the gain in log-likelihood over the supervised fit; the estimate makes
its least value over all labelings of the pool as large as can be. That is one convex
problem in the pool's class sums (`saddle_point`), whose value, gradient and curvature
differ by classifier (`linear_contrasts`, `quadratic_contrast`), in coordinates in which
all rows have covariance 1 (`whitening`). A step costs one pass over the pool
(`pool_passes`). `estimators` are the scikit-learn classes; `family` fits those of a
grid in the same passes. `gaussian` and `discriminant` are what the baselines share.
"""
