"""The chosen model, kept beside the cube so that a finished run opens without a fit."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from dsel.results.journal import Journal
from dsel.results.models import model_key, open_model, save_model


def kept_model(
    journal: Journal | None, out: Any, path: str, fit: Callable[[], Any]
) -> Any:
    """Return the model of a path: the kept one, else `fit()`, which is then kept.

    Parameters
    ----------
    journal, out
        The open journal and where it is; None keeps nothing.
    path
        What the model depends on beside the fingerprint, its training included.
    fit
        Gives the fitted model.
    """
    if journal is None or find_spec("skops") is None:
        return fit()
    if model_key(out) == path:
        try:
            return open_model(out)
        except ValueError:
            pass  # a model of the user's own types, or a damaged one: fit it again
    model = fit()
    save_model(model, out, key=path)
    return model
