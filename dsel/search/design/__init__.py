"""The parts of a search: certificates, splits, comparisons, and assumptions.

`certificate_methods` has an object for each certificate, which gets a scheme from
`folds`: the models that are trained, and the rows on which each is tested.
`comparisons` defines which models are compared on pool rows, and draws rows that a
person may label. `baseline` reads models that were fitted elsewhere, and predicts
labeled rows with them. `assumptions` compares the pool with the labeled rows. Nothing
is fitted.
"""
