"""A Dask `Client` from one small configuration; nothing else in dsel creates one.

`connect(config)` opens the cluster that a configuration describes, compares the
versions of the packages that decide a result on all workers, and gives the client
as a context manager: what it started ends with it.

Vocabulary: a *cluster config* is a frozen dataclass, one per way to get workers
(`Local`, `Address`, `SchedulerFile`, `Slurm`, `Kubernetes`, `Gateway`). A YAML file
holds one of them under its name, ``slurm: {jobs: 8, memory: 4 GiB}``; see
`read_config`. `choose_config` makes one from the options of a command.

Adding a way: one file with a frozen dataclass that has `open(stack, timeout)`, and
its name in `config.KINDS`. It starts workers with one thread each, BLAS and OpenMP
with one thread, and every HTTP port on loopback.
"""

from dsel.cluster.base import ClusterConfig, Tls
from dsel.cluster.config import choose_config, parse_config, read_config
from dsel.cluster.connecting import connect
from dsel.cluster.gateway import Gateway
from dsel.cluster.kubernetes import Kubernetes
from dsel.cluster.local import Local
from dsel.cluster.running import Address, SchedulerFile
from dsel.cluster.slurm import Slurm

__all__ = [
    "Address",
    "ClusterConfig",
    "Gateway",
    "Kubernetes",
    "Local",
    "SchedulerFile",
    "Slurm",
    "Tls",
    "choose_config",
    "connect",
    "parse_config",
    "read_config",
]
