"""What a search is made of: models, test rows, comparisons, and what a bound assumes.

`certificate_methods` has an object for each certificate, which asks `folds` for a
scheme: which models are trained, and on which rows each is tested. `comparisons` says
which models are compared on pool rows, and `drawn_rows` which of these rows a person
may label. `baseline` is what models are compared with on labeled rows, one of the
`fitted_models`, which were fitted elsewhere. `assumptions` compares the pool with the
labeled rows. Nothing is fitted.
"""
