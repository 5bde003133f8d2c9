"""What a search has found so far, in its store: the only code of the room that keeps.

A record is made of numbers and arrays, which JSON gives back to the last digit.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from dsel.results.store import Store, open_store
from dsel.runtime.versions import installed_versions

Found = TypeVar("Found")


@dataclass(frozen=True)
class Records:
    """The records of a search; without a store nothing is kept."""

    store: Store | None

    def find(self, key: str, kind: type[Found]) -> Found | None:
        """Return what was kept under a key, made of its fields; None for nothing."""
        fields = {} if self.store is None else self.store.records.get(key)
        if not fields:
            return None
        return kind(**{name: np.asarray(each)[()] for name, each in fields.items()})

    def keep(self, key: str, fields: Mapping[str, Any]) -> None:
        """Keep the fields of what was found under a key."""
        if self.store is not None:
            self.store.append(key, fields)

    def save_cube(self, cube: xr.Dataset) -> None:
        """Keep the cube, in the place of an earlier one."""
        if self.store is not None:
            self.store.flush()
            self.store.save_cube(cube)


@contextmanager
def open_records(out: Any, plan: Mapping[str, str]) -> Iterator[Records]:
    """Open the store of a search at `out`, or none for None; closed at the end.

    Raises StoreMismatchError where it holds a search of other rows or models.
    """
    if out is None:
        yield Records(None)
        return
    plan = {**plan, "versions": str(sorted(installed_versions().items()))}
    with open_store(out, kind="least-squares", plan=plan) as store:
        yield Records(store)
