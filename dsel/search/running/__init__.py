"""Runs: the way from a plan, a `PlannedSearch`, to an outcome.

`execute` opens the store, where it keeps what is bounded, and takes one of two ways:
`nested` (both bounds of the default; `fit_chosen` fits and counts the candidates that
inner searches chose, and `bound_chosen` bounds them) or `exhaustive` (every candidate
is counted, and `select` reads the bound from the cube). Both get a `run`: the plan, its
options, its store and its `run_progress`. `pool_check` compares the pool with the
labeled rows, and `pool_assumptions` says what this means for a bound. `cube_of_run`
makes the cube of the counts; `cube_caveats`, `chosen_caveats` and `class_checks` make
the caveats of a choice, or end a run that has no candidate left; `forecasts` has the
bounds to expect of another plan. `procedures` lets a search fit any function that
returns a model.
"""
