"""Co-validation: error estimates from the disagreement of models on unlabeled rows.

`covalidate` halves the labeled rows at random, many times, trains every candidate on
both halves and compares the two models on the pool. It uses the plan, the driver and
the store of all searches.

Vocabulary: a *repeat* is one halving, its *halves* two splits; *disagreement* is a
rate over pool rows, never an error bound, since rows picked by active learning are no
random sample. To add an estimate: a criterion of the counts.
"""
