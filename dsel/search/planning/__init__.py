"""What is decided before anything is fitted.

`plan` checks all options and makes the `Plan`, with `plan_inputs` (pool, candidates,
prior), `plan_checks` (options that contradict each other), `plan_identity` (by which a
store knows its plan), `plan_caveats` and `plan_text`. `plan_bound` says what bound each
certificate is expected to give, before a label is bought.
"""
