"""Any Dask cluster class of another package."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dsel import checks
from dsel.cluster.base import Tls, check_texts

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class DaskCluster:
    """A cluster class of dask-jobqueue, dask-kubernetes, dask-gateway or others.

    The class is called with the options, scaled or adapted, and closed at the end. The
    page of `deploy/` for that kind of cluster says which options it needs: one thread
    for each worker, BLAS with one thread, dashboards on loopback.

    Examples
    --------
    >>> DaskCluster("distributed.LocalCluster", {"n_workers": 2}, workers=0)
    Traceback (most recent call last):
    ...
    ValueError: `workers` must be >= 1, got 0.
    """

    class_name: str
    """Where the class is, such as "dask_jobqueue.SLURMCluster"."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the class."""
    workers: int | None = None
    """Workers for its `scale`; None where `options` or `adapt` say how many."""
    adapt: Mapping[str, Any] | None = None
    """Keyword arguments of its `adapt`, with which Dask replaces workers that end."""
    patience: float = 600.0
    """Seconds until the first worker must have joined."""
    tls: Tls | None = None
    """Certificates, as files that the workers can read too."""

    def __post_init__(self) -> None:
        check_texts(self)
        if self.workers is not None:
            checks.check_integer(self.workers, "workers", at_least=1)
        if self.workers is not None and self.adapt is not None:
            raise ValueError(
                f"`workers` is a fixed number, but `adapt` is {self.adapt!r}; give one "
                "of the two."
            )
        checks.check_positive(self.patience, "patience")

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Start the cluster and return once the first worker has joined."""
        options = dict(self.options)
        if self.tls is not None:
            options |= {"protocol": "tls://", "security": self.tls.security()}
        cluster = stack.enter_context(_imported(self.class_name)(**options))
        if self.workers is not None:
            cluster.scale(self.workers)
        if self.adapt is not None:
            cluster.adapt(**self.adapt)
        client: Client = stack.enter_context(cluster.get_client())
        client.wait_for_workers(1, timeout=self.patience)
        return client


def _imported(class_name: str) -> Any:
    """Return the class of that name.

    Raises ModuleNotFoundError where its package is not installed, ValueError where
    there is no such class, or it is not a cluster of Dask: a mistake in a configuration
    file must not call something else. It is no protection against whoever writes that
    file, since importing the module already runs its code.
    """
    module, _, name = class_name.rpartition(".")
    try:
        found = getattr(import_module(module or "builtins"), name, None)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"`class` {class_name!r} needs the package {missing.name!r}; install it, "
            f"for example with: pip install {module.partition('.')[0]}"
        ) from missing
    # Not every one is a `distributed.deploy.Cluster`: that of dask-gateway is not.
    is_cluster = isinstance(found, type) and hasattr(found, "scale")
    if not (is_cluster and hasattr(found, "adapt")):
        raise ValueError(
            f"`class` must be a cluster of Dask, such as dask_jobqueue.SLURMCluster, "
            f"got {class_name!r}."
        )
    return found
