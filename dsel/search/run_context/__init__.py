"""The parts of a run that its steps read: its plan, options, progress and description.

`planned_search` has the two parts of a plan. A `run` is a plan with its options, its
store and its `run_progress`, which every loop shows. `pool_check` compares the pool
with the labeled rows, and `run_description` draws the conclusions for a bound.
"""
