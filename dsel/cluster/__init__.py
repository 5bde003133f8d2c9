"""A Dask `Client` from one small configuration; nothing else in dsel creates one.

`connect(config)` opens the cluster that a configuration describes, compares the
versions of the packages that decide a result on all workers, and gives the client
as a context manager: what it started ends with it.

Vocabulary: a *cluster config* is a frozen dataclass, one per way to get workers:
`Local` processes, a running scheduler (`Address`, `SchedulerFile`), or a `DaskCluster`,
which is any cluster class that another package has. A YAML file holds
``local: {workers: 4}`` or ``{class: dask_jobqueue.SLURMCluster, cores: 4, ...}``; see
`read_config`. `choose_config` makes one from the options of a command.

To add a way: nothing but its class name. The pages of `deploy/` say which options
matter: one thread for each worker, BLAS with one thread, HTTP ports on loopback.
"""

from dsel.cluster.base import ClusterConfig, Tls
from dsel.cluster.config import choose_config, parse_config, read_config
from dsel.cluster.connecting import connect
from dsel.cluster.local import Local
from dsel.cluster.running import Address, SchedulerFile
from dsel.cluster.started import DaskCluster

__all__ = [
    "Address",
    "ClusterConfig",
    "DaskCluster",
    "Local",
    "SchedulerFile",
    "Tls",
    "choose_config",
    "connect",
    "parse_config",
    "read_config",
]
