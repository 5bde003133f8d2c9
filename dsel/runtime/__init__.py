"""The only code that submits tasks: to local threads or to workers of a Dask cluster.

An *executor* takes a task with its arguments and gives back what it counted; its
*payload* (models) stays where it was made, under the task's key. *Jobs* are tasks that
do not depend on one another.

To add a place where tasks run: a class with the methods of `executors.Executor`, and a
line in `executors.make_executor`.
"""
