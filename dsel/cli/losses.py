"""``--loss`` of the shell: losses by name, classes as they stand in the table."""

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dsel import losses

FORMS = "error, recall:CLASS, precision:CLASS, balanced, or cost:TRUE>ANSWER=5,..."


def parse_loss(text: str | None, y: Any) -> Any:
    """Return what `text` means for labels `y`.

    Raises click.UsageError where it means nothing.
    """
    kind, _, rest = (text or "error").partition(":")
    if kind in ("error", "balanced") and not rest:
        return losses.balanced() if kind == "balanced" else "error"
    if kind in ("recall", "precision") and rest:
        return getattr(losses, kind)(_label(rest, y))
    if kind == "cost" and rest:
        costs = {}
        for part in rest.split(","):
            pair, equals, value = part.rpartition("=")
            true, arrow, answer = pair.partition(">")
            try:
                cost = float(value)
            except ValueError:
                cost = np.nan
            if not (equals and arrow and np.isfinite(cost)):
                raise click.UsageError(
                    f"--loss cost: needs parts such as fraud>ok=50 (true class, "
                    f"answer, cost), got {part!r}."
                )
            costs[_label(true, y), _label(answer, y)] = cost
        return losses.cost(costs)
    raise click.UsageError(f"--loss must be {FORMS}, got {text!r}.")


def _label(text: str, y: NDArray[Any]) -> Any:
    """Return the class that is written so."""
    classes = np.unique(y).tolist()
    for label in classes:
        if str(label) == text:
            return label
    shown = ", ".join(map(str, classes[:5])) + ", ..." * (len(classes) > 5)
    raise click.UsageError(f"--loss names {text!r}, which is no class ({shown}).")
