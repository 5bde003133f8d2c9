"""Kernel least squares in closed form: every lambda and fold from one decomposition.

`estimators` has the scikit-learn classes, `coefficients` one model's centres,
coefficients and scores. In a search the group of one kernel width is fitted by `fits`
(all regularizations, all fold models) and kept by `fitted` as models that predict from
the same kernel values; `family` is the seam that the search calls.
"""
