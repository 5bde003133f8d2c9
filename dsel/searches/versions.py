"""Versions of the packages that decide results: here, and on every worker."""

import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Final

from dsel.errors import VersionMismatchError

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
"""What must be the same on client and workers for counts to be the same."""


def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the version of Python and of each package; "" where it is missing.

    `importlib.metadata` and not ``__version__``, which some packages make up.

    Examples
    --------
    >>> sorted(installed_versions(("numpy",)))
    ['numpy', 'python']
    """
    return _reader(packages)()


def check_versions(client: "Client") -> dict[str, str]:
    """Compare the versions of all workers with ours, and return them.

    Raises
    ------
    VersionMismatchError
        Where a worker differs; names worker, package and both versions.
    """
    ours = installed_versions()
    for worker, theirs in client.run(_reader(PACKAGES)).items():
        _compare(ours, theirs, worker)
    return ours


def _reader(packages: tuple[str, ...]) -> Callable[[], dict[str, str]]:
    # A nested function travels by value: it runs on workers that lack dsel.
    def read() -> dict[str, str]:
        found = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in packages:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = ""
        return found

    return read


def _compare(ours: Mapping[str, str], theirs: Mapping[str, str], worker: str) -> None:
    different = [
        f"{name} {theirs[name] or 'missing'} (here {ours[name] or 'missing'})"
        for name in ours
        if theirs[name] != ours[name]
    ]
    if different:
        raise VersionMismatchError(
            f"worker {worker} would compute with other versions: "
            f"{', '.join(different)}; install the same ones on all machines "
            "(deploy/constraints.txt)."
        )
