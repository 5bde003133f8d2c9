"""Kernel SVMs of a grid: one kernel for every C and all splits, libsvm's solutions.

`settings` says which SVCs are taken and what their parameters mean; `labeled_rows` is
the table class by class, through a pipeline's steps; `labeled_kernel` its kernel
matrix. `fit` solves every pair of classes along the path of C and counts errors;
`decisions` keeps the machines and bounds what rounding can do to a vote. `fitted`
predicts many candidates and splits from shared kernel values, by the blocks of
`scoring`, for the `queries` (which split answers which row); `estimators` makes real
SVCs of them. `family` is the seam that a search calls.
"""
