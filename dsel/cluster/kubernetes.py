"""Workers as pods, through the Dask operator for Kubernetes."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsel import checks
from dsel.cluster.base import (
    WORKER_ENVIRONMENT,
    check_memory,
    check_texts,
    import_extra,
)

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Kubernetes:
    """Workers as pods of a cluster whose Dask operator is installed.

    The credentials are those of the current context. An existing cluster is reached by
    `Address`, through its service or a forwarded port.

    Examples
    --------
    >>> config = Kubernetes(image="dsel:0.1.0", workers=3, memory="4 Gi")
    >>> config.cluster_options()["worker_command"]
    'dask worker --nthreads 1'
    """

    image: str
    """Image of scheduler and workers, from `deploy/containers/Containerfile`."""
    workers: int
    """Number of pods."""
    memory: str = "4Gi"
    """Memory of one pod, as Kubernetes writes it."""
    name: str = "dsel"
    """Name of the cluster."""
    namespace: str = "default"
    """Namespace of the cluster."""
    patience: float = 600.0
    """Seconds until the scheduler's pod must run and the first worker have joined."""

    def __post_init__(self) -> None:
        checks.check_integer(self.workers, "workers", at_least=1)
        check_texts(self)
        check_memory(self.memory, "memory")
        checks.check_positive(self.patience, "patience")

    def cluster_options(self) -> dict[str, Any]:
        """Return the keyword arguments of dask-kubernetes' `KubeCluster`."""
        pod = {"memory": self.memory.replace(" ", ""), "cpu": "1"}
        return {
            "name": self.name,
            "namespace": self.namespace,
            "image": self.image,
            "n_workers": self.workers,
            "worker_command": "dask worker --nthreads 1",
            "resources": {"requests": pod, "limits": pod},
            "env": WORKER_ENVIRONMENT,
            "resource_timeout": int(self.patience),
            "quiet": True,
        }

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Create the cluster and return once the first worker has joined."""
        operator = import_extra(
            "dask_kubernetes.operator", "kubernetes", "'dsel[kubernetes]'"
        )
        from distributed import Client

        cluster = stack.enter_context(operator.KubeCluster(**self.cluster_options()))
        client: Client = stack.enter_context(Client(cluster, timeout=timeout))
        client.wait_for_workers(1, timeout=self.patience)
        return client
