"""From a plan to an outcome: the engine is run, a candidate chosen, its bound read.

`execute` opens the store and takes one of two ways: `nested` (both bounds of the
default; `fit_chosen` fits and counts what inner searches have chosen) or `exhaustive`
(every candidate is counted). Both share `run`. `last_step` reads the bounds of what was
chosen by its own counts, `select` those of any candidate by the cube. `procedures` lets
a search fit any function that returns a model, and `keep_models` writes the deployed
models to the store.
"""
