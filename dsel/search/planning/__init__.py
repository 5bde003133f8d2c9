"""Plans: decisions about a search before anything is fitted.

`plan_search` reads the options (`plan_options`), labeled rows, candidates and pool
(`plan_inputs`), chooses the design (`plan_design`), and returns a `Plan` (`plan`).
`plan_caveats` has the caveats of its numbers, `plan_identity` its identity in a store,
and `plan_text` prints it. `plan_bound` predicts the bound of each certificate, before a
label is bought.
"""
