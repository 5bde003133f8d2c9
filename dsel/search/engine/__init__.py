"""The loop that fits, counts and prunes: it submits jobs and collects their results.

`search_loop` submits fits in the order of `fits` until `pruning` shows that no
candidate needs another one; between them, it reads the pool by the `engine`. `jobs`
says what is to be done and what comes back, `fit_batch` and `count_batch` do it on
workers. Of the tables, `counts` has that of a search and the record that it ends with,
`pool_table` that of a pass over the pool. `retries` is the policy for
failed tasks.
"""
