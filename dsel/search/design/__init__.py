"""The parts of a search: certificates, splits, comparisons, and assumptions.

`certificate_methods` has an object for each certificate, which asks `folds` for a
scheme: which models are trained, and on which rows each is tested. `comparisons`
defines which models are compared on pool rows, and draws those that a person may label.
`baseline` has predictions of a model for labeled rows, one of the
`fitted_models`, which were fitted elsewhere. `assumptions` compares the pool with the
labeled rows. Nothing is fitted.
"""
