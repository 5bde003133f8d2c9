"""The engine of a search: what is trained and compared, and the loop that counts it.

`scheme` says which models are trained, `comparisons` which of them are compared on each
row of the pool. `fit_task` and `count_task` are what runs on a worker. `driver` is the
loop: `fits` and `pool_rounds` submit tasks, `counts` holds what they counted, `pruning`
says which candidates can still win, `checkpoint` writes counts to the journal and reads
them back, `stages` says after which rows of the pool reading may stop.

Only times, and which losers were dropped when, depend on where and in which order tasks
ran; counts do not.

To add a scheme: a function like `scheme.random_halves`, and a criterion that reads its
counts.
"""
