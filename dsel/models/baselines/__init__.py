"""Other methods for experiments and comparisons; none has the guarantee of MCPL.

`supervised` has the fits to labeled rows alone and to all labels; `self_training`
self-learning and expectation maximisation; `moment_constrained` the moment constraints
of Loog; `density_ratio` weighted labeled rows; `implicitly_constrained` the fit of some
labeling that suits the labeled rows best; `alternating_gradient` the paper's own
heuristic for MCPL.
"""
