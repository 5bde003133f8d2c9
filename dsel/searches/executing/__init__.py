"""Where tasks run: on local threads or on the workers of a Dask cluster, alike.

An *executor* takes a task with its arguments and gives back what it counted; its
*payload* (models) stays where it was made, under the task's key. *Jobs* are tasks that
do not depend on one another; *notes* of them are kept so that none is done twice.

To add a place where tasks run: a class with the methods of `executors.Executor`, and a
line in `executors.make_executor`.
"""
