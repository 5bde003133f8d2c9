"""Rivals of MCPL that experiments and comparisons need; none carries its guarantee.

`supervised` has the fits to labeled rows alone and to all labels, the two ends of the
scale; `self_training` self-learning and expectation maximisation; `moment_constrained`
the moment constraints of Loog; `alternating_gradient` the paper's own heuristic.
"""
