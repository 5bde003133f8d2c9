"""Workers as SLURM jobs, through dask-jobqueue."""

import math
import re
from contextlib import ExitStack
from dataclasses import dataclass
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING, Any, Final

from dsel import checks
from dsel.cluster.base import (
    LOOPBACK_HTTP,
    WORKER_ENVIRONMENT,
    Tls,
    check_memory,
    check_texts,
    import_extra,
)
from dsel.cluster.replacing import replacing_adaptive

if TYPE_CHECKING:
    from distributed import Client

_TIME_LIMIT: Final = re.compile(
    r"(?:(\d+)-(\d+)(?::(\d+))?(?::(\d+))?)|(?:(\d+):)?(\d+):(\d+)|(\d+)"
)
"""Days, hours, minutes, seconds; hours, minutes, seconds; minutes."""
_TIME_UNITS: Final = (86400, 3600, 60, 1, 3600, 60, 1, 60)


@dataclass(frozen=True)
class Slurm:
    """Workers as SLURM jobs; the scheduler runs in this process, on a login node.

    Examples
    --------
    >>> print(Slurm(jobs=2, processes=4, memory="16 GiB").cluster_options()["cores"])
    4
    """

    jobs: int
    """Number of jobs; one that ends is replaced."""
    memory: str
    """Memory of one job, such as "16 GiB"."""
    processes: int = 1
    """Worker processes, and cores, of one job."""
    walltime: str = "01:00:00"
    """Time limit of one job, as ``sbatch --time`` has it; its workers leave before."""
    queue: str | None = None
    """Partition; None means the site's default."""
    account: str | None = None
    """Account that is charged; None means the user's default."""
    interface: str | None = None
    """Network interface by which jobs reach this node, such as "ib0"."""
    python: str | None = None
    """Interpreter on the nodes; None means this one's path."""
    patience: float = 3600.0
    """Seconds that the first job may wait in the queue."""
    tls: Tls | None = None
    """Certificates, as files that the nodes can read too."""

    def __post_init__(self) -> None:
        checks.check_integer(self.jobs, "jobs", at_least=1)
        checks.check_integer(self.processes, "processes", at_least=1)
        check_texts(self)
        check_memory(self.memory, "memory")
        time_limit(self.walltime)
        checks.check_positive(self.patience, "patience")

    def cluster_options(self) -> dict[str, Any]:
        """Return the keyword arguments of dask-jobqueue's `SLURMCluster`."""
        secured = (
            {"protocol": "tls://", "security": self.tls.security()} if self.tls else {}
        )
        return {
            "cores": self.processes,
            "processes": self.processes,
            "memory": self.memory,
            "walltime": self.walltime,
            "queue": self.queue,
            "account": self.account,
            "interface": self.interface,
            "python": self.python,
            "job_script_prologue": [
                f"export {k}={quote(v)}" for k, v in WORKER_ENVIRONMENT.items()
            ],
            "worker_extra_args": [
                *("--dashboard-address", LOOPBACK_HTTP),
                *_leaving(time_limit(self.walltime)),
            ],
            "scheduler_options": {"dashboard_address": LOOPBACK_HTTP},
            **secured,
        }

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Submit the jobs and return once the first worker has joined."""
        jobqueue = import_extra("dask_jobqueue", "slurm", "'dsel[slurm]'")
        if which("sbatch") is None:
            raise FileNotFoundError(
                "a 'slurm' cluster needs the command sbatch, which is not here; "
                "run this on a node that submits jobs."
            )
        from distributed import Client

        cluster = stack.enter_context(jobqueue.SLURMCluster(**self.cluster_options()))
        cluster.adapt(
            replacing_adaptive(), minimum_jobs=self.jobs, maximum_jobs=self.jobs
        )
        client: Client = stack.enter_context(Client(cluster, timeout=timeout))
        client.wait_for_workers(1, timeout=self.patience)
        return client


def time_limit(walltime: str) -> float:
    """Return the seconds that a time limit of SLURM stands for.

    Raises
    ------
    ValueError
        Where it is none.

    Examples
    --------
    >>> time_limit("90"), time_limit("02:00:00"), time_limit("1-12"), time_limit("0")
    (5400.0, 7200.0, 129600.0, inf)
    """
    found = _TIME_LIMIT.fullmatch(walltime)
    if found is None and walltime.upper() not in ("INFINITE", "UNLIMITED"):
        raise ValueError(
            '`walltime` must be a time limit as SLURM has it, such as "02:00:00" or '
            f'"1-12", got {walltime!r}.'
        )
    parts = [int(part or 0) for part in found.groups()] if found else []
    seconds = sum(n * s for n, s in zip(parts, _TIME_UNITS, strict=False))
    return float(seconds) or math.inf


def _leaving(limit: float) -> list[str]:
    """Return the options with which workers leave before their job is killed.

    What they hold goes to others then, and what they run is no death to Dask. Five
    minutes before, give or take four, as dask-jobqueue recommends: not all at once.
    """
    if math.isinf(limit):
        return []
    before = min(300.0, limit / 4)
    spread = 0.8 * before
    return [
        "--lifetime",
        f"{limit - before:.0f}s",
        "--lifetime-stagger",
        f"{spread:.0f}s",
    ]
