"""Losses by name, such as ``recall:7``, in Python and in the shell."""

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any, Final

from dsel.checks import did_you_mean, listing
from dsel.losses.base import Loss
from dsel.option_values import LOSS_FORMS

OF_NUMBERS: Final = ("error_quantile", "beyond")
OF_CLASSES: Final = ("error", "recall", "precision", "balanced", "cost")
MOST_SHOWN: Final = 5
"""Most classes in a message."""


def loss_of_name(text: str, classes: Sequence[Any], *, name: str = "`loss`") -> Loss:
    """Return the loss with a name of `LOSS_FORMS`; a regression has no classes.

    `name` is the argument or option, for messages. Raises ValueError for other texts.

    Examples
    --------
    >>> loss_of_name("recall:7", [1, 7]), loss_of_name("beyond=2", [])
    (recall(7), beyond(2.0))
    """
    from dsel import losses  # it imports this module

    kind, equals, value = text.partition("=")
    if equals and kind in OF_NUMBERS:
        try:
            made: Loss = getattr(losses, kind)(float(value))
        except ValueError as error:
            raise ValueError(
                f"{name} {kind}= needs a number, got {value!r}: {error}"
            ) from error
        if len(classes):
            raise ValueError(
                f"{name} {text!r} is for numbers; of classes there are error, "
                f"recall:CLASS, precision:CLASS, balanced and cost:TRUE>ANSWER=5."
            )
        return made
    kind, colon, rest = text.partition(":")
    if not len(classes) and kind in OF_CLASSES:
        raise ValueError(
            f"{name} {text!r} is for classes; of numbers there are error_quantile=0.9 "
            f"and beyond=2.0."
        )
    if kind == "balanced" and not colon:
        return losses.balanced()
    if kind in ("recall", "precision") and rest:
        of_class = losses.recall if kind == "recall" else losses.precision
        return of_class(class_of_text(rest, classes, name=name))
    if kind == "cost" and rest:
        return losses.cost(_costs(rest, classes, name))
    end = did_you_mean(kind, (*OF_CLASSES, *OF_NUMBERS))
    if kind in ("recall", "precision"):
        end = f"; name a class, such as {kind}:{classes[0]}."
    elif kind == "cost":
        end = f"; name costs, such as cost:{classes[0]}>{classes[-1]}=5."
    elif kind in OF_CLASSES or kind in OF_NUMBERS:
        end = "."
    raise ValueError(f"{name} must be {LOSS_FORMS}, got {text!r}{end}")


def class_of_text(text: str, classes: Sequence[Any], *, name: str = "`loss`") -> Any:
    """Return the class whose text is `text`, or raise ValueError."""
    for label in classes:
        if str(label) == text:
            return label
    shown = listing([*map(str, classes)], MOST_SHOWN)
    raise ValueError(
        f"{name} names {text!r}, which is not a class ({shown})"
        f"{did_you_mean(text, classes)}"
    )


def _costs(text: str, classes: Sequence[Any], name: str) -> dict[tuple[Any, Any], Any]:
    """Return the costs of ``fraud>ok=50,ok>fraud=1`` by true class and prediction."""
    costs = {}
    for part in text.split(","):
        pair, equals, value = part.rpartition("=")
        true, arrow, answer = pair.partition(">")
        try:
            cost = float(value)
        except ValueError:
            cost = nan
        if not (equals and arrow and isfinite(cost)):
            raise ValueError(
                f"{name} cost: needs parts such as fraud>ok=50 (true class, answer, "
                f"cost), got {part!r}."
            )
        true, answer = (
            class_of_text(text, classes, name=name) for text in (true, answer)
        )
        if (true, answer) in costs:
            raise ValueError(
                f"{name} cost: names each pair once, got {pair!r} twice; leave one out."
            )
        costs[true, answer] = cost
    return costs
