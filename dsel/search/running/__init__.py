"""Runs: the way from a plan to an outcome.

`execute` opens the store and takes one of two ways: `nested` (both bounds of the
default; `fit_chosen` fits and counts the candidates that inner searches chose) or
`exhaustive` (every candidate is counted). Both share `run`. `last_step` computes the
bounds of chosen candidates from their own counts, `select` those of any candidate from
the cube: `evaluate` has a criterion's numbers for all, and `cube_caveats` what a reader
should know of them. `procedures` lets a search fit any function that returns a model,
and `keep_models` writes the bounded models to the store.
"""
