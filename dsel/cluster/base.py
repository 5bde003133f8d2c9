"""What all cluster configurations share: certificates, environment, checks."""

from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from dask.utils import parse_bytes

if TYPE_CHECKING:
    from distributed import Client, Security

LOOPBACK_HTTP: Final = "127.0.0.1:0"
"""Where dashboards listen. `None` and `":0"` would open them to everyone."""

ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Environment of a worker: Dask runs one task per process, and each task one thread."""

FREED_MEMORY: Final = {
    "MALLOC_TRIM_THRESHOLD_": str(2**25),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
}
"""Environment in which glibc keeps freed memory for the next chunk of a pool.

With Dask's defaults a worker returns freed memory to the system at once, and for every
chunk the system has to clear new pages. glibc allows at most 32 MiB here; larger arrays
are returned at once as before. With huge pages too (`glibc.malloc.hugetlb`) chunks of
200 MB are read in half the processor time, but fits of SVMs take 5 to 20 % more.
"""


class ClusterConfig(Protocol):
    """One way to get workers; a frozen dataclass."""

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Return a connected client; what was started is closed by `stack`."""


@dataclass(frozen=True)
class Tls:
    """Certificates and key for encrypted connections.

    Examples
    --------
    >>> Tls(ca="no-such-file.pem", certificate="me.pem", key="me-key.pem")
    Traceback (most recent call last):
    ...
    FileNotFoundError: `ca` must be a PEM file, but 'no-such-file.pem' does not exist.
    """

    ca: str
    """Certificate of the authority that signed those of all members."""
    certificate: str
    """Our own certificate."""
    key: str
    """The key that belongs to it; its content is never logged or stored."""

    def __post_init__(self) -> None:
        for field in fields(self):
            path = getattr(self, field.name)
            if not Path(path).is_file():
                raise FileNotFoundError(
                    f"`{field.name}` must be a PEM file, but {path!r} does not exist."
                )
            if b"-----BEGIN " not in Path(path).read_bytes():
                raise ValueError(
                    f"`{field.name}` must be a PEM file, but {path!r} is not one; name "
                    "the file that begins with -----BEGIN."
                )

    @classmethod
    def in_folder(cls, folder: str | Path) -> "Tls":
        """Return the files ``ca.pem``, ``cert.pem`` and ``key.pem`` of a folder."""
        names = ("ca.pem", "cert.pem", "key.pem")
        return cls(*(str(Path(folder) / name) for name in names))

    def security(self) -> "Security":
        """Return the files as distributed takes them, for client, scheduler, worker."""
        from distributed import Security

        return Security(
            tls_ca_file=self.ca,
            tls_client_cert=self.certificate,
            tls_client_key=self.key,
            tls_scheduler_cert=self.certificate,
            tls_scheduler_key=self.key,
            tls_worker_cert=self.certificate,
            tls_worker_key=self.key,
            require_encryption=True,
        )


def check_texts(config: Any) -> None:
    """Raise TypeError where a field that must be text is something else.

    YAML reads a name that looks like a number as one, and 02:00:00 as 7200.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        is_missing = value is None and field.type == (str | None)
        if field.type in (str, str | None) and not (
            is_missing or isinstance(value, str)
        ):
            raise TypeError(
                f"`{field.name}` must be text, got {value!r}; put it in quotes."
            )


def check_memory(value: str, name: str) -> None:
    """Raise ValueError where a text is not an amount of memory."""
    try:
        if parse_bytes(value) > 0:
            return
    except ValueError:
        pass
    raise ValueError(f'`{name}` must be an amount such as "4 GiB", got {value!r}.')
