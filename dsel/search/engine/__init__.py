"""The loop that fits, counts and prunes: it submits jobs and collects their results.

`engine` submits tasks in the order of `fits` until `pruning` shows that no candidate
needs another one. `jobs` has the code of workers, `counts` the table of results, and
`retries` the policy for failed tasks. Nothing is chosen here.
"""
