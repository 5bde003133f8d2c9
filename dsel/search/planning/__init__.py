"""Plans: decisions about a search before anything is fitted.

`plan_search` reads labeled rows, candidates and pool (`plan_inputs`), checks options
and chooses the design by them (`plan_design`), and returns a `Plan` (`plan`).
`plan_caveats` has the caveats of its numbers, and `plan_text` prints it. `plan_bound`
predicts the bound of each certificate, before a label is bought.
"""
