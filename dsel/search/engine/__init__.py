"""The one loop that fits, counts and prunes: jobs go out, results come back.

`engine` submits tasks in the order that `fits` gives and `pruning` shortens, until no
candidate needs another. `jobs` has all that runs on a worker, `counts` the table of
what came back, and `retries` what becomes of jobs whose task failed. Nothing is chosen.
"""
