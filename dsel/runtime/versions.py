"""Versions of the packages that affect results, here and on every worker."""

import platform
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from dsel.errors import VersionMismatchError
from dsel.runtime.clients import current_worker

if TYPE_CHECKING:
    from distributed import Client

PACKAGES: Final = (
    "dsel",
    "numpy",
    "scipy",
    "scikit-learn",
    "dask",
    "distributed",
    "xarray",
    "zarr",
    "numba",
)
"""Packages whose versions must be equal on client and workers for equal counts."""
CODE: Final = "code of dsel"
"""Key of the hash of dsel's code, in which two checkouts of one version may differ. It
is compared, but never stored."""
SAME: Final = "install the same ones on all machines (deploy/constraints.txt)."

COMPARED: Final[WeakSet["Client"]] = WeakSet()
"""Clients whose workers were compared with this process."""


@cache
def installed_versions() -> Mapping[str, str]:
    """Return the version of Python and of each package; "" where it is missing.

    They come from `importlib.metadata`, since ``__version__`` is not always correct.
    """
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = ""
    return versions


@cache
def hash_code() -> str:
    """Return a hash of dsel's files; "" where there are none, as in a zip file."""
    root = Path(__file__).parents[1]
    digest = sha256()
    files = sorted(root.rglob("*.py"))
    for path in files:
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12] if files else ""


def versions_here() -> dict[str, str]:
    """Return the versions in this process, and the hash of dsel's code."""
    return {**installed_versions(), CODE: hash_code()}


def check_versions(client: "Client") -> None:
    """Raise VersionMismatchError where scheduler or a worker has other versions."""
    own_versions = versions_here()
    try:
        other_versions = client.run_on_scheduler(versions_here)
    except (ImportError, AttributeError) as error:  # dsel is missing there, or older
        other_versions = error
    _check_same(own_versions, other_versions, "the scheduler")
    for worker, other_versions in client.run(versions_here, on_error="return").items():
        if not isinstance(other_versions, OSError):  # OSError: the worker has just died
            _check_same(own_versions, other_versions, f"worker {worker}")
    COMPARED.add(client)


@lru_cache(maxsize=16)
def check_here(expected: tuple[tuple[str, str], ...]) -> None:
    """Raise VersionMismatchError in a worker whose versions differ from the client's.

    It runs in tasks, so that workers that join during a run are checked, too.
    """
    address = getattr(current_worker(), "address", "of this process")
    _check_same(dict(expected), versions_here(), f"worker {address}")


def _check_same(own_versions: Mapping[str, str], other_versions: Any, who: str) -> None:
    """Raise VersionMismatchError where another process has other versions."""
    if isinstance(other_versions, Exception):
        raise VersionMismatchError(
            f"{who} cannot run this dsel ({other_versions}); {SAME}"
        )
    different = [
        f"{name} {other_versions[name] or 'missing'} (client "
        f"{own_versions[name] or 'missing'})"
        for name in own_versions
        if other_versions[name] != own_versions[name]
        and not (name == CODE and "" in (own_versions[name], other_versions[name]))
    ]
    if different:
        raise VersionMismatchError(
            f"{who} would compute with other versions: {', '.join(different)}; {SAME}"
        )
