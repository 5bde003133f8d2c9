"""Kernel SVMs of a grid: one kernel matrix for every C, libsvm's solutions.

- `family` is the interface that a search calls, and decides which SVCs it takes
- `fit` computes the kernel, solves every pair of classes for every C, and counts errors
- `smo` is the compiled solver
- `machines` holds labeled rows by class and the fitted binary SVMs, and makes
  scikit-learn SVCs from them
- `predict` predicts for many candidates and splits from shared kernel values
- `decisions` finds the votes that rounding could change; `votes` counts votes, compiled
- `lanes` has the vector instructions of both compiled modules

Compiled modules are imported only inside functions, because numba is slow to load.
"""
