"""The store of a run: its records, from which a killed run goes on, and its outcome.

A place belongs to one plan. A record depends on its key alone, so two runs in one place
can do the same work twice, and no harm. What is final is written last, and once.
"""

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import xarray as xr

from dsel.results.files import (
    CUBE,
    PAIRS,
    Outcome,
    read_dataset,
    read_outcome,
    write_dataset,
    write_outcome,
)
from dsel.results.models import read_model, write_model
from dsel.results.place import (
    JOURNAL,
    Place,
    claim,
    owner,
    read_journal,
    seal,
    stamp,
)

LEAST_SECONDS: Final = 0.5
"""From a record to its file when a run begins."""
SHARE: Final = 0.02
"""Part of a run that one that is killed may lose, if it is more than that ..."""
MOST_SECONDS: Final = 300.0
"""... and less than this."""


class Store:
    """What a plan keeps in its place; made by `open_store`, ended by `close`."""

    def __init__(self, place: Place, kind: str, plan: Mapping[str, str]) -> None:
        self.place = place
        self.records: dict[str, dict[str, Any]] = {}
        """Records by key, those of earlier runs included; of two the first counts."""
        self._owner = owner(kind, plan)
        self._lines = [json.dumps(self._owner)]
        self._guard = threading.Lock()  # of the lines
        self._writing = threading.Lock()  # one write at a time
        self._timer: threading.Timer | None = None
        self._failure: OSError | None = None
        self._began = time.monotonic()
        for theirs, lines in read_journal(place):
            if theirs == self._owner:
                self.records = dict(map(json.loads, lines)) | self.records
        self._final = read_outcome(place)
        self._kept = Outcome()
        if self._final is None:
            self._write()  # says before work starts that nothing can be written

    def append(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep a record, as JSON gives it back; nothing where its key is known.

        It is written soon, the later the longer a run is.

        Raises
        ------
        OSError
            Where an earlier write failed; what was not written is kept.
        """
        line = json.dumps([key, record], default=_plain)
        with self._guard:
            if key not in self.records:
                self.records[key] = json.loads(line)[1]
                self._lines.append(line)
                self._write_soon()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def flush(self) -> None:
        """Write what was appended; return when it is there."""
        if len(self._lines) > 1:  # the first says whose they are
            self._write()

    def close(self) -> None:
        """Write what was appended, and end."""
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def save_cube(self, cube: xr.Dataset) -> None:
        """Keep the cube, in the place of an earlier one."""
        self._kept.datasets[CUBE] = write_dataset(self.place, CUBE, cube)

    def cube(self) -> xr.Dataset | None:
        """Return the cube; None where none was kept, or it must be made anew."""
        return self._dataset(CUBE)

    def save_pairs(self, pairs: xr.Dataset) -> None:
        """Keep what was counted pair by pair, in the place of what was there."""
        self._kept.datasets[PAIRS] = write_dataset(self.place, PAIRS, pairs)

    def pairs(self) -> xr.Dataset | None:
        """Return what was counted pair by pair; None as of `cube`."""
        return self._dataset(PAIRS)

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What `save_outcome` was given first, by this run or another."""
        return None if self._final is None else self._final.said

    def save_outcome(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Make certificates and choice final; return those that are.

        Save the cube and the models before: the outcome says which belong to it. Where
        another run was first, its outcome is returned, and nothing is written.
        """
        self.flush()
        self._kept.said = json.loads(json.dumps(outcome, default=_plain))
        self._final = write_outcome(self.place, self._kept)
        return self._final.said

    def save_model(self, name: str, model: Any) -> None:
        """Keep a fitted model as skops, to be found when the outcome was saved.

        Raises
        ------
        ModuleNotFoundError
            Where skops is not installed.
        """
        self._kept.models[name] = write_model(self.place, name, model)

    def has_model(self, name: str) -> bool:
        """Whether the model of that name that belongs to the outcome was kept."""
        return name in self._models()

    def load_model(self, name: str, trusted: Sequence[str] = ()) -> Any:
        """Return the model of that name; see `open_model`.

        Raises
        ------
        KeyError
            Where none was kept.
        ValueError
            Where it is damaged, or has types that are not trusted.
        """
        return read_model(self.place, self._models()[name], trusted)

    def _models(self) -> Mapping[str, str]:
        return (self._final or self._kept).models

    def _dataset(self, name: str) -> xr.Dataset | None:
        try:
            return read_dataset(self.place, name, self._final)
        except (FileNotFoundError, ValueError):
            return None

    def _pause(self) -> float:
        share = SHARE * (time.monotonic() - self._began)
        return min(max(LEAST_SECONDS, share), MOST_SECONDS)

    def _write_soon(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._pause(), self._write_late)
            self._timer.daemon = True
            self._timer.start()

    def _write_late(self) -> None:
        with self._guard:
            self._timer = None
        try:
            self.flush()
        except OSError as error:  # shown to the driver by its next append
            self._failure = error

    def _write(self) -> None:
        """Write the lines to a file of their own; `append` takes more meanwhile."""
        with self._writing:
            with self._guard:
                lines, self._lines = self._lines, self._lines[:1]
            try:
                name = f"{JOURNAL}/{stamp()}.json"
                self.place.write({name: seal("\n".join(lines).encode())})
            except BaseException:
                with self._guard:
                    self._lines = lines + self._lines[1:]
                raise


def open_store(
    out: str | os.PathLike[str],
    *,
    kind: str,
    plan: Mapping[str, str],
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """Open the store of a plan, made if it is not there.

    Parameters
    ----------
    out
        Folder or URL that is empty or belongs to this plan.
    kind
        Which of dsel's systems keeps its results there.
    plan
        Tokens of all that its counts and certificates depend on, by name.
    storage_options
        Passed to fsspec with a URL.

    Returns
    -------
    Store
        With the records of earlier runs; where there is an outcome, nothing is written.

    Raises
    ------
    StoreMismatchError
        Where the place belongs to another plan; what differs is named.
    ValueError
        Where anything else is there, or the outcome is damaged.
    OSError
        Where nothing can be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as out:
    ...     with open_store(out, kind="search", plan={"seed": "7"}) as store:
    ...         store.append("fit/0", {"errors": [3, 4]})
    ...     open_store(out, kind="search", plan={"seed": "7"}).records
    {'fit/0': {'errors': [3, 4]}}
    """
    place = Place(out, storage_options=storage_options)
    claim(place, kind, plan)
    return Store(place, kind, plan)


def _plain(value: Any) -> Any:
    """Return what JSON takes for arrays and numbers of numpy."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a record holds numbers and texts, got {type(value).__name__}.")
