"""Versions of the packages that decide results: here, and on every worker."""

import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
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
"""What must be the same on client and workers for counts to be the same."""
CODE: Final = "code of dsel"
"""What two checkouts of one version may differ in; compared, but never stored."""

COMPARED: Final[WeakSet["Client"]] = WeakSet()
"""Clients whose workers were compared with this process."""


def _readers() -> tuple[Callable[[tuple[str, ...]], dict[str, str]], Callable[[], str]]:
    """Return functions that travel by value: they run on workers that lack dsel."""

    def versions(packages: tuple[str, ...]) -> dict[str, str]:
        found = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in packages:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = ""
        return found

    def code() -> str:
        spec = find_spec("dsel")
        root = Path(((spec and spec.submodule_search_locations) or ["-"])[0])
        digest, files = sha256(), sorted(root.rglob("*.py"))
        for path in files:
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12] if files else ""

    return versions, code


_read_versions, _read_code = _readers()
_versions = cache(_read_versions)
own_code = cache(_read_code)
"""Returns a hash of the source files; "" where there are none, as in a zip."""


def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the version of Python and of each package; "" where it is missing.

    `importlib.metadata` and not ``__version__``, which some packages make up.

    Examples
    --------
    >>> sorted(installed_versions(("numpy",)))
    ['numpy', 'python']
    """
    return dict(_versions(packages))


def versions_here() -> dict[str, str]:
    """Return the versions of this process, and a hash of its code of dsel."""
    return {**installed_versions(), CODE: own_code()}


def check_versions(client: "Client") -> None:
    """Compare the versions of scheduler and workers with ours, and the code of dsel.

    Raises VersionMismatchError where one differs; names it, the package and both
    versions.
    """

    def read() -> dict[str, str]:
        # A process runs the code that its files held when it imported them.
        here = sys.modules.get("dsel.runtime.versions")
        read_code = getattr(here, "own_code", _read_code)
        return {**_read_versions(PACKAGES), CODE: read_code()}

    ours = versions_here()
    _compare(ours, client.run_on_scheduler(read), "the scheduler")
    for worker, theirs in client.run(read, on_error="return").items():
        if isinstance(theirs, OSError):
            continue  # it died just now; `check_here` checks the one that replaces it
        if isinstance(theirs, Exception):
            raise theirs
        _compare(ours, theirs, f"worker {worker}")
    COMPARED.add(client)


@lru_cache(maxsize=16)
def check_here(expected: tuple[tuple[str, str], ...]) -> None:
    """Compare the versions of the process that planned with those of this one.

    A worker that joins during a run is checked here, by the first task that it gets.

    Raises VersionMismatchError where they differ.
    """
    address = getattr(current_worker(), "address", "of this process")
    _compare(dict(expected), versions_here(), f"worker {address}")


def _compare(ours: Mapping[str, str], theirs: Mapping[str, str], who: str) -> None:
    different = [
        f"{name} {theirs[name] or 'missing'} (client {ours[name] or 'missing'})"
        for name in ours
        if theirs[name] != ours[name]
        and not (name == CODE and "" in (ours[name], theirs[name]))
    ]
    if different:
        raise VersionMismatchError(
            f"{who} would compute with other versions: "
            f"{', '.join(different)}; install the same ones on all machines "
            "(deploy/constraints.txt)."
        )
