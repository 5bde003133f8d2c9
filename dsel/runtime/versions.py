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
"""What two checkouts of one version may differ in; told, but never stored."""


def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the version of Python and of each package; "" where it is missing.

    `importlib.metadata` and not ``__version__``, which some packages make up.

    Examples
    --------
    >>> sorted(installed_versions(("numpy",)))
    ['numpy', 'python']
    """
    return dict(_installed(packages))


@cache
def _installed(packages: tuple[str, ...]) -> dict[str, str]:
    return _reader(packages)()


@cache
def _own_code() -> str:
    return _code_reader()()


def check_versions(client: "Client") -> dict[str, str]:
    """Compare the versions of scheduler and workers with ours, and return them.

    Their code of dsel is compared as well, by a hash of its files.

    Raises
    ------
    VersionMismatchError
        Where one differs; names it, the package and both versions.
    """
    ours = {**installed_versions(), CODE: _own_code()}
    versions, code = _reader(PACKAGES), _code_reader()

    def read() -> dict[str, str]:
        # What a process has loaded is what its files were when it was asked first.
        ours = sys.modules.get("dsel.runtime.versions")
        return {**versions(), CODE: getattr(ours, "_own_code", code)()}

    _compare(ours, client.run_on_scheduler(read), "the scheduler")
    for worker, theirs in client.run(read, on_error="return").items():
        if isinstance(theirs, OSError):
            continue  # it died just now; `check_here` asks who comes in its place
        if isinstance(theirs, Exception):
            raise theirs
        _compare(ours, theirs, f"worker {worker}")
    return ours


@lru_cache(maxsize=16)
def check_here(expected: tuple[tuple[str, str], ...]) -> None:
    """Compare the versions of this process with those of whoever planned its tasks.

    A worker that joins while a run is on its way is found out by its first task.

    Raises
    ------
    VersionMismatchError
        Where they differ.
    """
    address = getattr(current_worker(), "address", "of this process")
    ours = {**installed_versions(), CODE: _own_code()}
    _compare(dict(expected), ours, f"worker {address}")


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


def _code_reader() -> Callable[[], str]:
    def read() -> str:
        """Return a hash of the source files; "" where there are none, as in a zip."""
        spec = find_spec("dsel")
        root = Path(((spec and spec.submodule_search_locations) or ["-"])[0])
        digest = sha256()
        files = sorted(root.rglob("*.py"))
        for path in files:
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12] if files else ""

    return read


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
