"""What a run keeps in its store beside the cube: the journal and the chosen model."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, TypeVar

import xarray as xr

from dsel import names
from dsel.results import save_results
from dsel.results.files import find_results
from dsel.results.journal import Journal, open_journal, read_journal
from dsel.results.models import model_key, open_model, save_model
from dsel.results.records import Record
from dsel.runtime.versions import installed_versions
from dsel.searches.phases import WORK

Note = TypeVar("Note")


def run_journal(
    place: Any, fingerprint: Mapping[str, Any]
) -> AbstractContextManager[Journal | None]:
    """Open the journal of a run to go on with it; None where nothing is kept.

    Where nothing can be written a run that has ended is opened all the same.

    Parameters
    ----------
    place
        Store, or None.
    fingerprint
        What all that is counted depends on; versions are added.

    Raises
    ------
    StoreMismatchError
        Where the store holds another run.
    OSError
        Where nothing can be written, and no run was begun.
    """
    if place is None:
        return nullcontext()
    return open_journal(place, _whole(fingerprint))


def kept_records(place: Any, fingerprint: Mapping[str, Any]) -> Mapping[str, Record]:
    """Return what earlier runs wrote, and write nothing: the run may yet be refused."""
    return {} if place is None else read_journal(place, _whole(fingerprint))


def _whole(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return {**fingerprint, "versions": installed_versions()}


def keep_results(results: xr.Dataset, place: Any, journal: Journal | None) -> None:
    """Save the cube, unless it is there already and nothing can be written.

    Raises
    ------
    OSError
        Where nothing can be written and another cube is there, or none.
    """
    if journal is not None and journal.is_read_only:
        earlier = find_results(place)
        if earlier is not None and _counts(earlier).equals(_counts(results)):
            return
    save_results(results, place)


def _counts(results: xr.Dataset) -> xr.Dataset:
    """Return a cube without the times that counting took, and what was read."""
    counted = results.drop_dims(names.SPENDING, errors="ignore")
    return counted.drop_vars(WORK.values(), errors="ignore")


def kept_model(
    journal: Journal | None, place: Any, path: str, fit: Callable[[], Any]
) -> Any:
    """Return the model of a path: the kept one, else `fit()`, which is then kept.

    Parameters
    ----------
    journal, place
        The open journal and the store where it is; None keeps nothing, nor does a
        place that cannot be written to.
    path
        What the model depends on beside the fingerprint, its training included.
    fit
        Gives the fitted model.
    """
    if journal is None or find_spec("skops") is None:
        return fit()
    # A damaged model, or one of the user's own types, is fitted again.
    with suppress(ValueError):
        if model_key(place) == path:
            return open_model(place)
    model = fit()
    if not journal.is_read_only:
        save_model(model, place, key=path)
    return model


@dataclass(frozen=True)
class Notebook:
    """What jobs have found, by key; in a journal it outlives the run."""

    journal: Journal | None
    """Where notes are kept; None keeps nothing."""

    def find(self, key: str, kind: type[Note]) -> Note | None:
        """Return what was noted under a key as a dataclass, or None.

        Raises
        ------
        OSError
            Where it is not there, and what is found instead could not be noted.
        """
        record = None if self.journal is None else self.journal.read().get(key)
        if record is not None:
            return kind(**_scalars(record))
        if self.journal is not None:
            self.journal.check_writable()
        return None

    def check(self) -> None:
        """Raise where notes could not be written."""
        if self.journal is not None:
            self.journal.check()

    def note(self, key: str, found: Any) -> None:
        """Keep a dataclass of numbers and arrays under a key."""
        if self.journal is not None:
            values = {each.name: getattr(found, each.name) for each in fields(found)}
            self.journal.append(key, values)


def _scalars(record: Mapping[str, Any]) -> dict[str, Any]:
    """Turn arrays without dimensions back into the numbers that they were."""
    return {name: value[()] for name, value in record.items()}
