"""The only code that submits tasks: to local threads or to workers of a Dask cluster.

A *task* is one call of a function. It gets the *work* that all tasks share and returns
a record, which comes back, and a *payload* (models), which stays where it was made. An
*executor* runs tasks somewhere; `submission.run_tasks` is the one loop that submits
them, a few ahead, and submits again what lost its rows with a worker.

To add a place where tasks run: a class with the methods of `local.LocalExecutor`, and a
line in `submission.make_executor`.
"""
