"""The only code that submits tasks: to this machine or to workers of a Dask cluster.

A *task* is *work* with a name. It gets the *context* that all tasks share; it returns a
*result*, which is sent back, and may *keep* an object (models), which stays in the
process that made it. An *executor* runs tasks somewhere; `submission.TaskQueue` submits
them, a few ahead of those that run, and again if their input was lost with a worker.

To add a place where tasks run, write a class with the methods of
`local_executor.LocalExecutor`, and return it in `submission.make_executor`.
"""
