"""The certificate: how wrong a model can be, and on what that rests."""

import json
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan, nan
from typing import Final

from dsel.checks import check_choice, check_probability
from dsel.results.assumptions import ALWAYS, Assumption, full_list
from dsel.results.text import as_html, as_lines, confidence, in_percent

ONE_FOLD: Final = "one_fold"
ALL_ROWS: Final = "all_rows"
DEPLOYMENTS: Final = (ONE_FOLD, ALL_ROWS)
"""The model that never saw one of the folds, and the model of all labeled rows."""
LOST: Final = (
    "the results lost their attribute `assumptions`, which says what was checked; "
    "select from what the run or `open_results` returned"
)


@dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """An error bound of one model and the assumptions that it rests on.

    Examples
    --------
    >>> Certificate(0.1507, 0.05, "nested", "one_fold", share="four fifths of the labels")
    Certificate(error <= 15.1 %, 95 % sure, criterion='nested', deploy='one_fold')
    """  # noqa: E501

    unclipped: float
    """The number as computed; above 1 where it says nothing, inf where a fit failed."""
    delta: float
    """Probability with which the bound may fail."""
    criterion: str
    """``nested``, ``cv_bound``, ``best_fold``, ``holdout``, or that of an estimate."""
    deploy: str
    """Which model it is about: ``one_fold`` or ``all_rows``."""
    assumptions: tuple[Assumption, ...] = field(default_factory=full_list)
    """All that it assumes, from `full_list`."""
    objections: tuple[str, ...] = ()
    """Why the number is no guarantee, beside violated assumptions."""
    label_term: float = nan
    """Part of the bound that comes from labeled rows."""
    disagreement_term: float = nan
    """Part of the bound that comes from the pool."""
    estimate: float = nan
    """Error on held-out rows that stands beside the bound: no guarantee."""
    fold: int | None = None
    """Fold that the model was trained without; None for that of all labeled rows."""
    n_labeled: int = 0
    """Labeled rows."""
    n_unlabeled: int = 0
    """Pool rows that were counted."""
    equal_rows: int = 0
    """Pool rows that equal labeled rows: so many fewer are counted as seen."""
    share: str = ""
    """Words for the part of the labels that its model saw."""

    def __post_init__(self) -> None:
        check_probability(self.delta, "delta")
        check_choice(self.deploy, "deploy", DEPLOYMENTS)

    def to_json(self) -> str:
        """Return what `from_json` takes, with all digits."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Return the certificate that `to_json` wrote."""
        fields = json.loads(text)
        fields["assumptions"] = tuple(Assumption(**a) for a in fields["assumptions"])
        return cls(**fields | {"objections": tuple(fields["objections"])})

    @property
    def bound(self) -> float:
        """The bound as reported: ``min(1, unclipped)``; NaN where it has no number."""
        return self.unclipped if isnan(self.unclipped) else min(1.0, self.unclipped)

    @property
    def certified(self) -> bool:
        """Whether the number is a guarantee: nothing speaks against it."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the number is no guarantee; empty where it is one."""
        violated = [
            f"{each.name} is violated: {each.reason}"
            for each in self.assumptions
            if each.is_violated
        ]
        missing = []
        if isnan(self.unclipped) and not self.objections:
            missing.append(f"{self.criterion} has no number")
        if set(ALWAYS) - {each.name for each in self.assumptions}:
            missing.append(LOST)
        return (*self.objections, *missing, *violated)

    @property
    def model(self) -> str:
        """The model that it is about, in words."""
        if self.deploy == ALL_ROWS:
            return "the model of all labels"
        if self.share:
            return f"the model of {self.share}"
        return f"the model trained without fold {self.fold}"

    def headline(self) -> str:
        """Return the one line that says how wrong the model can be, rounded up.

        Examples
        --------
        >>> share = "four fifths of the labels"
        >>> print(Certificate(0.1507, 0.05, "nested", "one_fold", share=share).headline())
        Error at most 15.1 % (95 % sure): the model of four fifths of the labels
        """  # noqa: E501
        if not self.certified:
            number = "no number" if isnan(self.bound) else f"about {self._percent()}"
            return f"No guarantee, since {self.reasons[0]}: {number}, {self.model}"
        if self.unclipped >= 1:
            return f"The bound says nothing, it is above 100 %: {self.model}"
        sure = confidence(self.delta)
        return f"Error at most {self._percent()} ({sure} % sure): {self.model}"

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, which all renderings show; the first has no name."""
        facts = [("", self.headline()), ("By", self._origin())]
        facts += [("But", reason) for reason in self.reasons[1:]]
        if self.certified and self.unclipped >= 1:
            advice = "with more labeled rows or fewer candidates; see plan_bound"
            facts.append(("Smaller", advice))
        return facts + [("Assumes", str(each)) for each in self.assumptions]

    def reading(self) -> str:
        """Return the certificate in plain words, each assumption in a line of its own.

        Examples
        --------
        >>> print(Certificate(0.0731, 0.01, "cv_bound", "all_rows").reading())
        Error at most 7.4 % (99 % sure): the model of all labels
        By       cv_bound
        Assumes  A1, declared: labeled rows and pool rows are independent draws from one population
        Assumes  A3, declared: your code sees only the rows that it is given
        Assumes  A4, declared: no model depends on the pool rows that are counted
        Assumes  A5, declared: you did not pick this plan after seeing another's results, nor change features after a look at the pool
        Assumes  A7, declared: `predict` answers each row by itself
        """  # noqa: E501
        return as_lines(self.facts())

    def _origin(self) -> str:
        """Return the criterion and what of the number comes from where."""
        parts = [self.criterion]
        if isfinite(self.label_term) and isfinite(self.disagreement_term):
            labels, pool = map(in_percent, (self.label_term, self.disagreement_term))
            parts.append(f"{labels} from errors on labeled rows, {pool} from the pool")
        if self.equal_rows:
            parts.append(
                f"{self.equal_rows:,} of {self.n_unlabeled:,} pool rows equal labeled "
                f"rows, and so many fewer are taken as seen"
            )
        return "; ".join(parts)

    def _percent(self) -> str:
        return in_percent(self.bound)

    def _repr_html_(self) -> str:
        return as_html("Certificate", self.facts())

    # Parts that are NaN are equal; as floats they would not be.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        return self.reading()

    def __repr__(self) -> str:
        sign = "<=" if self.certified else "~"
        reasons = "" if self.certified else f", reasons={list(self.reasons)}"
        return (
            f"Certificate(error {sign} {self._percent()}, {confidence(self.delta)} % "
            f"sure, criterion={self.criterion!r}, deploy={self.deploy!r}{reasons})"
        )
