"""The loops that fit, count and prune: they submit jobs and take their results.

The default path: the loop of `fit_loop` fits until `inner_searches` needs no other fit,
and that of `pool_pass` counts on the pool. `jobs` has the types of jobs and of their
results; `fit_batch` and `count_batch` do it on workers. `counts` has the tables of the
loops and the final record of a search. `job_queue` has the engine of a run, the turns
of all loops and the policy for failed tasks.

Other searches count all candidates on the pool: `exhaustive_search` adds passes over
the pool to the loop of fits, and `exact_pruner` drops candidates by their counts.
"""
