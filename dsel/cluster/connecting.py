"""Open the cluster that a configuration describes, and close it at the end."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import dask.config

from dsel.cluster.base import ONE_THREAD, ClusterConfig
from dsel.cluster.config import parse_config
from dsel.cluster.running import Address, SchedulerFile
from dsel.runtime.versions import check_versions
from dsel.runtime.workers import STARTED

if TYPE_CHECKING:
    from distributed import Client

SETTINGS: Final = {
    # By default tasks wait for ever after the last worker has left.
    "distributed.scheduler.no-workers-timeout": "60s",
}
"""Dask's settings for schedulers that run in this process."""


@contextmanager
def connect(
    config: ClusterConfig | Mapping[str, Any], *, timeout: float = 10.0
) -> "Iterator[Client]":
    """Open the client of a configured cluster, for a ``with`` block.

    The client is the current one inside of the block, so that `plan.run()` and
    `fit` find it. What was started for it ends with the block, and the environment
    and Dask's settings are as before.

    Parameters
    ----------
    config
        What to open: one of the classes of this room, or a mapping as `parse_config`
        takes it, such as ``{"class": "dask_jobqueue.SLURMCluster", "cores": 1, ...}``.
    timeout
        Seconds within which a running scheduler must answer.

    Yields
    ------
    distributed.Client
        Connected; the versions of its workers were compared with ours.

    Raises
    ------
    ConnectionError
        Where no scheduler answers.
    VersionMismatchError
        Where a worker has another version of a package that decides results.
    ModuleNotFoundError
        Where the kind of cluster needs a package that is not installed.

    Examples
    --------
    >>> with connect(Local(workers=1)) as client:       # doctest: +SKIP
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    # Its defaults must stand in Dask's configuration before `set` remembers them.
    import distributed  # noqa: F401

    with ExitStack() as stack:
        stack.enter_context(_environment(ONE_THREAD))
        stack.enter_context(dask.config.set(SETTINGS))
        if isinstance(config, Mapping):
            config = parse_config(config)
        client = config.open(stack, timeout)
        if not isinstance(config, Address | SchedulerFile):
            STARTED.add(client)
        check_versions(client)
        yield client


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables that processes started here inherit, and put them back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
