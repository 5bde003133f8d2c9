"""The engine of a search: what is trained and compared, and the loop that counts it.

`scheme` says which models are trained, `comparisons` which of them are compared on each
row of the pool. `fit_task` and `count_task` run on workers. `driver` is the loop:
`fits` and `pool_rounds` make its tasks, `counts` holds what tasks counted, `pruning`
decides which candidates can still win, `checkpoint` writes counts to the journal and
reads them back, `stages` decides after which rows a candidate is compared no further.

Counts do not depend on where and in which order tasks run. Only times do, and how early
a candidate is pruned.

To add a scheme: a function like `scheme.random_halves`, and a criterion that reads its
counts.
"""
