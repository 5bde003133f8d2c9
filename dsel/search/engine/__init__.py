"""The loops that fit, count and prune: they submit jobs and take their results.

The default path: the loop of `fit_loop` fits until `inner_searches` needs no other fit,
and that of `pool_pass` counts on the pool. `jobs` says what is to be done and what
comes back; `fit_batch` and `count_batch` do it on workers. `counts` has their tables
and the record that a search ends with, and `job_queue` the engine of a run, the turns
of all loops and the policy for failed tasks.

Other searches count all candidates: `exhaustive_search` adds passes over the pool to
the loop, and `exact_pruner` their counts to the table, by which it drops candidates.
"""
