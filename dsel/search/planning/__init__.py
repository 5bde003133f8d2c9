"""What is decided before anything is fitted.

`plan_search` reads the options (`plan_options`), labeled rows, candidates and pool
(`plan_inputs`), chooses how the search is made (`plan_design`), and returns a `Plan`
(`plan`). `plan_caveats` says what is known against its numbers, `plan_identity` by
what a store knows it, and `plan_text` prints it. `plan_bound` says what bound each
certificate is expected to give, before a label is bought.
"""
