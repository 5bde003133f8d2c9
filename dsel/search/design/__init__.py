"""The parts of a search: certificates, splits, comparisons, and assumptions.

`certificate_methods` has an object for each certificate, which asks `folds` for a
scheme: which models are trained, and on which rows each is tested. `comparisons`
defines which models are compared on pool rows, and draws those that a person may label.
`baseline` reads models that were fitted elsewhere, and
predicts labeled rows by them. `assumptions` compares the pool with the
labeled rows. Nothing is fitted.
"""
