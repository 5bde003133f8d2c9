"""The call of `plan_bound` that a plan, an outcome and a page advise.

It has all options of the run that change the answer, so that the answer is about runs
like this one. The shell has a command of its own for it.
"""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.regression import ErrorQuantile
from dsel.option_values import ALL_ROWS, DEFAULT_DELTA, DEFAULT_FOLDS

if TYPE_CHECKING:
    from dsel.results.choice import Choice

SHELL_NAMES: Final = {
    "n_candidates": "candidates",
    "cv": "folds",
    "n_queries": "queries",
}
"""Options of the shell by their names in Python, where an underscore is no hyphen."""
WHOLE_NUMBERS: Final = frozenset(SHELL_NAMES)
"""Options that are integers."""
LEAST_RATE: Final = 1e-4
"""A rate of 0 is planned as this one: `plan_bound` takes rates inside ``(0, 1)``."""


@dataclass(frozen=True, kw_only=True)
class PlanBoundCall:
    """A call of `plan_bound`; it is printed as in Python.

    Examples
    --------
    >>> call = PlanBoundCall(
    ...     n_labeled=400, n_unlabeled=0, n_candidates=4, error=0.1, cv=3, delta=0.01
    ... )
    >>> print(call)
    dsel.plan_bound(400, 0, n_candidates=4, error=0.1, delta=0.01, cv=3)
    >>> call.command
    'dsel plan-bound 400 0 --candidates 4 --error 0.1 --delta 0.01 --folds 3'
    """

    n_labeled: int
    """Labeled rows, or groups of them."""
    n_unlabeled: int
    n_candidates: int
    error: float
    wanted: float | None = None
    class_share: float | None = None
    disagreement: float | None = None
    cv: int = DEFAULT_FOLDS
    delta: float = DEFAULT_DELTA
    """Delta of the main loss; a report has the rest."""
    n_queries: int = 0

    @property
    def options(self) -> dict[str, str]:
        """Options that are no defaults, as they are printed, by their names."""
        rates = {
            "error": self.error,
            "wanted": self.wanted,
            "class_share": self.class_share,
            "disagreement": self.disagreement,
            "delta": self.delta,
        }
        texts = {
            name: f"{rate:.3g}" for name, rate in rates.items() if rate is not None
        }
        if texts["delta"] == f"{DEFAULT_DELTA:g}":
            del texts["delta"]
        if self.cv != DEFAULT_FOLDS:
            texts["cv"] = str(self.cv)
        if self.n_queries:
            texts["n_queries"] = str(self.n_queries)
        return {"n_candidates": str(max(1, self.n_candidates)), **texts}

    @property
    def arguments(self) -> dict[str, float]:
        """The same options as numbers, rounded as they are printed."""
        return {
            name: int(text) if name in WHOLE_NUMBERS else float(text)
            for name, text in self.options.items()
        }

    @property
    def wanted_text(self) -> str:
        """The wanted bound in percent; "" if none is wanted."""
        return "" if self.wanted is None else f"{100 * self.wanted:g}%"

    @property
    def command(self) -> str:
        """The command of the shell that prints the same."""
        words = ["dsel", "plan-bound", str(self.n_labeled), str(self.n_unlabeled)]
        for name, text in self.options.items():
            words += [f"--{SHELL_NAMES.get(name, name.replace('_', '-'))}", text]
        return " ".join(words)

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={text}" for name, text in self.options.items())
        return f"dsel.plan_bound({self.n_labeled}, {self.n_unlabeled}, {listed})"


def call_of_choice(
    choice: "Choice", class_share: float | None = None
) -> PlanBoundCall | None:
    """Return the call that says how many labels a smaller bound needs, or None.

    The bound is one in the middle between the present one and the estimate. There is
    none for a loss that `plan_bound` does not know, or if a record does not say how
    many folds there were. `class_share` is for the recall of a class.
    """
    bound = choice.certificate
    estimate, n_folds = bound.estimate_where_fitted, _count_folds(choice)
    is_known = bound.loss == "error" or class_share is not None
    if not (is_known and n_folds) or bound.is_estimate:
        return None
    middle = (estimate + min(bound.number, 1.0)) / 2
    # Two digits are easier to read, and three tell a small gain from none.
    wanted = round(middle, 2) if round(middle, 2) > estimate else round(middle, 3)
    if not 0 < estimate < wanted < 1:
        return None
    differ = choice.five_fold_disagreement
    has_rate = isfinite(differ) and ALL_ROWS in choice.bounded_models
    return PlanBoundCall(
        n_labeled=bound.n_groups or bound.n_labeled,
        n_unlabeled=bound.n_unlabeled,
        n_candidates=choice.n_candidates,
        error=estimate,
        wanted=wanted,
        class_share=class_share,
        disagreement=clip_rate(differ) if has_rate and class_share is None else None,
        cv=n_folds,
        delta=main_delta(choice),
        n_queries=0 if choice.queries is None else choice.queries.n_planned,
    )


def _count_folds(choice: "Choice") -> int:
    """Return the number of folds; 0 if an older record does not have it."""
    return choice.n_folds or len(choice.fold_params)


def main_delta(choice: "Choice") -> float:
    """Return the delta of the error, or of another main loss; reports have the rest."""
    bound = choice.certificate
    by_class = [*choice.by_model("report").values()]
    tolerances = [*choice.by_model("tolerances").values()]
    # The main loss of a classifier's report is one of its numbers, whichever it is.
    declared = DeclaredLosses(
        ErrorQuantile(bound.fraction) if bound.is_tolerance else ERROR_RATE,
        report_classes=tuple(by_class[0].classes) if by_class else (),
        tolerances=tuple(
            map(ErrorQuantile, tolerances[0].fractions if tolerances else ())
        ),
    )
    has_values = bool(choice.by_model("report_by_value"))
    return declared.divide_among_losses(choice.delta, has_values=has_values).main_delta


def clip_rate(rate: float) -> float:
    """Return a rate inside ``(0, 1)``, which `plan_bound` needs."""
    return min(max(rate, LEAST_RATE), 0.99)
