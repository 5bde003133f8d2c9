"""Runs: the way from a plan, a `PlannedSearch`, to an outcome.

`execute` opens the store, in which it keeps the bounded models, and runs one of two
kinds of search. `nested` gives both bounds of the default: `fit_chosen` fits the
candidates that inner searches chose, `count_chosen` counts their models on the pool,
and `bound_chosen` bounds them. `exhaustive` counts every candidate, and `select` reads
the bound from the cube. Both get a `run.Run`, which is a plan with its options, its
store and its `run_progress`, that every loop shows. `pool_check` compares the pool with
the labeled rows, and `run_description` draws the conclusions for a bound. `cube_of_run`
makes a cube from the counts. `cube_caveats` and `chosen_caveats` make the caveats of a
choice, or end a run that has no candidate left. `forecasts` has the expected bounds of
other plans. `procedures` lets a search fit any function that returns a model.
"""
