"""Workers as SLURM jobs, through dask-jobqueue."""

from contextlib import ExitStack
from dataclasses import dataclass
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING, Any

from dsel import checks
from dsel.cluster.base import (
    LOOPBACK_HTTP,
    WORKER_ENVIRONMENT,
    Tls,
    check_memory,
    check_texts,
    import_extra,
)

if TYPE_CHECKING:
    from distributed import Client


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
    """Time limit of one job."""
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
            "worker_extra_args": ["--dashboard-address", LOOPBACK_HTTP],
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
        # A fixed number of jobs by `adapt`, since `scale` replaces none that ended.
        cluster.adapt(minimum_jobs=self.jobs, maximum_jobs=self.jobs)
        client: Client = stack.enter_context(Client(cluster, timeout=timeout))
        client.wait_for_workers(1, timeout=self.patience)
        return client
