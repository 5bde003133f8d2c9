"""From a plan to an outcome: the engine is run, a candidate chosen, its bound read.

`execute` opens the store and takes one of two ways: `nested` (both bounds of the
default) or `exhaustive` (every candidate is counted). Both share `run`. `select` turns
counts of all candidates into a choice, and `last_step` bounds the models of what was
chosen. `procedures` lets a search fit any function that returns a
model, and `keep_models` writes the deployed models to the store.
"""
