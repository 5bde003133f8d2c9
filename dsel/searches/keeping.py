"""What a run keeps in its store beside the cube: the journal and the chosen model."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

from dsel.results.journal import Journal, open_journal
from dsel.results.models import model_key, open_model, save_model
from dsel.searches.versions import installed_versions


def run_journal(
    place: Any, fingerprint: Mapping[str, Any]
) -> AbstractContextManager[Journal | None]:
    """Open the journal of a run to go on with it; None where nothing is kept.

    Parameters
    ----------
    place
        Directory, URL or store, or None.
    fingerprint
        What all that is counted depends on; versions are added.

    Raises
    ------
    StoreMismatchError
        Where the store holds another run.
    """
    if place is None:
        return nullcontext()
    return open_journal(place, {**fingerprint, "versions": installed_versions()})


def kept_model(
    journal: Journal | None, place: Any, path: str, fit: Callable[[], Any]
) -> Any:
    """Return the model of a path: the kept one, else `fit()`, which is then kept.

    Parameters
    ----------
    journal, place
        The open journal and the store where it is; None keeps nothing.
    path
        What the model depends on beside the fingerprint, its training included.
    fit
        Gives the fitted model.
    """
    if journal is None or find_spec("skops") is None:
        return fit()
    if model_key(place) == path:
        try:
            return open_model(place)
        except ValueError:
            pass  # a model of the user's own types, or a damaged one: fit it again
    model = fit()
    save_model(model, place, key=path)
    return model
