"""Workers from a Dask gateway."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dsel import checks
from dsel.cluster.base import check_texts, import_extra

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Gateway:
    """A cluster of one's own from a Dask gateway, which sets up TLS by itself.

    Name and password come from dask-gateway's own configuration, never from here.

    Examples
    --------
    >>> Gateway(address="", workers=2)
    Traceback (most recent call last):
    ...
    ValueError: `address` must be the URL of a gateway, got ''.
    """

    address: str
    """URL of the gateway."""
    workers: int
    """Number of workers."""
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Options that this gateway's administrator offers, such as an image."""
    patience: float = 600.0
    """Seconds until the first worker must have joined."""

    def __post_init__(self) -> None:
        check_texts(self)
        if "://" not in self.address:
            raise ValueError(
                f"`address` must be the URL of a gateway, got {self.address!r}."
            )
        checks.check_integer(self.workers, "workers", at_least=1)
        checks.check_positive(self.patience, "patience")

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Ask for a cluster and return once the first worker has joined."""
        package = import_extra("dask_gateway", "gateway", "'dsel[gateway]'")
        gateway = stack.enter_context(package.Gateway(self.address))
        cluster = stack.enter_context(gateway.new_cluster(**self.options))
        cluster.scale(self.workers)
        client: Client = stack.enter_context(cluster.get_client())
        client.wait_for_workers(1, timeout=self.patience)
        return client
