"""Names of losses: in Python and the shell, ``recall:7``; in results, ``recall(7)``."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import isfinite, nan
from typing import Any, Final

from dsel.checks import class_without_blanks, did_you_mean, listing, nearest_name
from dsel.errors import Correction, UndecidedError, with_ways
from dsel.losses import makers
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import Loss
from dsel.option_values import LOSS_FORMS

MOST_PAIRS: Final = 6
"""Most costs that a command adds."""
BY_CLASS: Final = (
    "has no bound here; report=True bounds recall and precision of each class"
)
BY_SCORE: Final = "has no bound here, since it ranks scores: write {balanced}"
OF_PROBABILITIES: Final = (
    "has no bound here, since it is about probabilities; error and cost are about the "
    "predicted classes"
)
IN_UNITS: Final = (
    "has no bound here; {error_quantile} bounds how far off 90% of the predictions "
    "are at most"
)
OTHER_SCORES: Final = {
    "accuracy": "is 1 minus the error: write {error}",
    "zero_one": "is the error: write {error}",
    "balanced_accuracy": "is 1 minus the balanced error: write {balanced}",
    **dict.fromkeys(("f1", "fbeta", "jaccard", "matthews", "cohen_kappa"), BY_CLASS),
    **dict.fromkeys(("roc_auc", "auc", "average_precision"), BY_SCORE),
    **dict.fromkeys(("log_loss", "brier"), OF_PROBABILITIES),
}
"""Beginnings of names of scikit-learn's scores, and what takes their place.

What is in braces is a loss, which `_advise` writes as its reader does."""
OTHER_NUMBER_SCORES: Final = dict.fromkeys(
    ("mean_", "median_", "root_mean_", "mae", "mse", "rmse", "mape", "r2", "max_error"),
    IN_UNITS,
)
"""The same of scores for regressors."""


class UnfitLossError(UndecidedError):
    """A loss is not for the labels of a table, though its text is right."""


class UnknownClassError(UnfitLossError):
    """A loss names a class that the labels do not have."""

    def __init__(self, text: str, named: str = "", meant: str | None = None) -> None:
        super().__init__(text)
        self.named = named
        self.meant = meant
        """The class of nearly the same name; None where there is none."""


def class_of_text(text: str, classes: Sequence[Any], name: str) -> Any:
    """Return the class whose text is `text`, or raise UnfitLossError."""
    for label in classes:
        if str(label) == text:
            return label
    if (label := class_without_blanks(text, classes)) is not None:
        return label
    shown = listing([*map(str, classes)], 5)
    end = did_you_mean(text, classes)
    near = nearest_name(text, classes)
    raise UnknownClassError(
        f"{name} names {text!r}, which is not a class ({shown})"
        f"{'; name one of these.' if end == '.' else end}",
        text,
        None if near is None else str(near),
    )


def costs_of_text(
    text: str, classes: Sequence[Any], name: str
) -> dict[tuple[Any, Any], Any]:
    """Return the costs of ``fraud>ok=50,ok>fraud=1`` by true class and prediction."""
    costs = {}
    for part in text.split(","):
        pair, equals, value = part.rpartition("=")
        true, arrow, prediction = pair.partition(">")
        try:
            cost = float(value)
        except ValueError:
            cost = nan
        if not (equals and arrow and isfinite(cost)):
            raise ValueError(
                f"{name} needs parts such as fraud>ok=50 (true class, prediction, "
                f"cost), got {part!r}."
            )
        true, prediction = (
            class_of_text(text, classes, name) for text in (true, prediction)
        )
        if (true, prediction) in costs:
            raise ValueError(
                f"{name} names each pair once, got {pair!r} twice; leave one out."
            )
        costs[true, prediction] = cost
    # Classes that are not named cost the most, as rows and as predictions.
    named = {label for pair in costs for label in pair}
    known = [label for label in classes if label in named]
    pairs = [pair for pair in permutations(known, 2) if pair not in costs]
    if pairs:
        lacking = [f"{true}>{prediction}" for true, prediction in pairs]
        true, prediction = pairs[0]
        whole = ",".join([text, *(f"{pair}=1" for pair in lacking)])
        # The command is an example: only its reader knows the costs, and of many pairs
        # nobody would read it.
        examples = [[Correction("--loss", f"cost:{text}", f"cost:{whole}")]]
        raise with_ways(
            ValueError(
                f"{name} lacks the cost of {listing(lacking, 5)}: {lacking[0]} is to "
                f"predict {prediction} where {true} is true. Give each pair its cost, "
                f"such as {lacking[0]}=1."
            ),
            *(examples if len(pairs) <= MOST_PAIRS else []),
        )
    return costs


def number_of_text(text: str, classes: Sequence[Any], name: str) -> float:
    """Return a number; ValueError if the text is none."""
    return float(text)


def name_of_text(text: str) -> str:
    """Return the name before the sign of a text such as ``recall:7``."""
    return text.partition("=")[0].partition(":")[0]


@dataclass(frozen=True)
class NamedLoss:
    """A loss that has a name: how its text is read, and what makes it."""

    form: str
    """Its text, as it is described to users."""
    make: Callable[..., Loss]
    read: Callable[[str, Sequence[Any], str], Any] | None = None
    """Function that reads the argument after the name; None if it takes none."""
    is_regression: bool = False


LOSSES: Final = {
    name_of_text(loss.form): loss
    for loss in (
        NamedLoss("error", lambda: ERROR_RATE),
        NamedLoss("recall:CLASS", makers.recall, class_of_text),
        NamedLoss("precision:CLASS", makers.precision, class_of_text),
        NamedLoss("balanced", makers.balanced),
        NamedLoss("cost:TRUE>PREDICTED=5", makers.cost, costs_of_text),
        NamedLoss("error_quantile=0.9", makers.error_quantile, number_of_text, True),
        NamedLoss("beyond=2.0", makers.beyond, number_of_text, True),
    )
}
"""All losses with a name. `LOSS_FORMS` describes them in the help of the shell."""


def loss_of_name(text: str, classes: Sequence[Any], *, name: str = "`loss`") -> Loss:
    """Return the loss with a name of `LOSSES`; a regression has no classes.

    `name` is the argument or option, for messages. Raises ValueError for other texts.

    Examples
    --------
    >>> loss_of_name("recall:7", [1, 7]), loss_of_name("beyond=2", [])
    (recall(7), beyond(2.0))
    """
    kind = name_of_text(text)
    named = LOSSES.get(kind)
    argument = text[len(kind) + 1 :]
    must_be = f"{name} must be {LOSS_FORMS}, got {text!r}"
    scores = OTHER_SCORES if len(classes) else OTHER_NUMBER_SCORES
    # An argument is written in quotes, and an option is named already.
    if advice := _advise(kind, scores, "{}" if name.startswith("-") else "loss='{}'"):
        raise ValueError(f"{name} {text!r} {advice}.")
    if named is None:
        near = nearest_name(kind, LOSSES)
        end = "." if near is None else f"; did you mean '{near}{text[len(kind) :]}'?"
        raise ValueError(f"{must_be}{end}")
    is_regression = not len(classes)
    if named.is_regression != is_regression:
        forms = [n.form for n in LOSSES.values() if n.is_regression == is_regression]
        kind_meant, kind_here = "numbers", "classes"
        if is_regression:
            kind_meant, kind_here = kind_here, kind_meant
        raise UnfitLossError(
            f"{name} {text!r} is for {kind_meant}; of {kind_here} there are "
            f"{', '.join(forms[:-1])} and {forms[-1]}."
        )
    sign = named.form[len(kind) :][:1]
    if text[len(kind) :][:1] != sign or (sign == ":" and not argument):
        example = named.form
        for word, position in (("TRUE", 0), ("PREDICTED", -1)):
            example = example.replace(word, str(classes[position]) if classes else word)
        if "CLASS" in example and classes:  # either of two may be the rare one
            meant = classes if len(classes) == 2 else classes[-1:]
            example = " or ".join(example.replace("CLASS", str(c)) for c in meant)
        raise ValueError(f"{must_be}; write {example}.")
    if named.read is None:
        return named.make()
    try:
        return named.make(named.read(argument, classes, f"{name} {text}"))
    except ValueError as error:
        if named.read is not number_of_text:  # else nothing has named the argument
            raise
        raise ValueError(
            f"{name} {kind}= needs a number, got {argument!r}: {error}"
        ) from error


def why_no_loss(name: str) -> str:
    """Return the end of a message that `dsel.losses` has no such name; "" if unknown.

    Examples
    --------
    >>> why_no_loss("accuracy_score")
    ": it is 1 minus the error: write loss='error'."
    """
    if name == "error":
        return ": write loss='error', the default."
    advice = _advise(name, {**OTHER_SCORES, **OTHER_NUMBER_SCORES}, "loss='{}'")
    return advice and f": it {advice}."


def _advise(name: str, scores: Mapping[str, str], written: str) -> str:
    """Return what takes the place of a score of scikit-learn; "" for another name.

    Losses in the text are `written` so, with the name in the place of the braces.
    """
    start = name.removeprefix("neg_").casefold()
    text = next((text for key, text in scores.items() if start.startswith(key)), "")
    losses = ("error", "balanced", "error_quantile=0.9")
    return text.format(**{name_of_text(loss): written.format(loss) for loss in losses})


def loss_of_text(text: str) -> Loss | None:
    """Return the loss with this `repr`, which certificates and stores have, or None.

    Nothing is evaluated: names are those of `LOSSES`, arguments are literals.

    Examples
    --------
    >>> loss_of_text("recall('fraud')"), loss_of_text("error"), loss_of_text("Mine(3)")
    (recall('fraud'), error, None)
    """
    if text == repr(ERROR_RATE):
        return ERROR_RATE
    # A store may come from a stranger, so its text is parsed and never evaluated.
    try:
        call = ast.parse(text, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            return None
        loss = LOSSES[call.func.id].make(*map(ast.literal_eval, call.args))
    except (KeyError, SyntaxError, TypeError, ValueError):
        return None
    # No version of dsel has written a text with another spelling.
    return loss if repr(loss) == text else None
