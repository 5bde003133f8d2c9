"""Kernel SVMs of a grid: one kernel for every C and all splits, libsvm's solutions.

`family` is the seam that a search calls, and says which SVCs are taken; `settings` what
their parameters mean; `rows` is the table class by class. `fit` computes the kernel,
solves every pair of classes along the path of C, by the compiled `smo`, and counts
errors. `machines` are what is kept, and makes real SVCs of it; `predict` answers for
many candidates and splits from shared kernel values. `decisions` says which votes
rounding could change; `votes` counts them, compiled. `lanes` are the vector
instructions of both compiled modules, which are imported only inside functions: numba
is slow to load.
"""
