"""The certificate: how wrong a chosen model can be, and on what that rests."""

import json
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan, nan
from textwrap import fill
from typing import Final

from dsel.checks import check_probability
from dsel.results.ledger import STATEMENTS, Assumption, full_ledger
from dsel.results.notebook import as_html
from dsel.results.rounding import at_least, at_most, confidence

LOST: Final = (
    "the results lost their attribute `assumptions`, which says what was checked; "
    "select from what the run or `open_results` returned"
)


@dataclass(frozen=True, repr=False)
class Certificate:
    """An error bound and the assumptions that it rests on.

    Examples
    --------
    >>> Certificate(unclipped=0.0731, delta=0.01, criterion="cv_bound")
    Certificate(error <= 0.0731, delta=0.01, criterion='cv_bound', certified=True)
    """

    unclipped: float
    """The number as computed; above 1 where it says nothing, inf where a fit failed."""
    delta: float
    """Probability with which the bound may fail."""
    criterion: str
    """The criterion or read-out that gave the number."""
    assumptions: tuple[Assumption, ...] = field(default_factory=full_ledger)
    """The ledger, A1 to A6."""
    objections: tuple[str, ...] = ()
    """Why the number is no guarantee, beside violated assumptions."""
    label_term: float = nan
    """Part of the bound that comes from labeled rows."""
    disagreement_term: float = nan
    """Part of the bound that comes from the pool."""
    lower: float = nan
    """Lower end of the interval; NaN where only the upper bound was asked for."""
    n_unlabeled: int = 0
    """Pool rows that were counted: all that `transductive` speaks of."""
    estimate: float = nan
    """Error on held-out rows that stands beside the bound, of cross-validation or, by
    `select_then_certify`, on the rows that were set aside: no guarantee."""
    fold: int | None = None
    """Fold that the model was trained without; None for that of all labeled rows."""

    def __post_init__(self) -> None:
        check_probability(self.delta, "delta")

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
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound; the lower is 0 where none was asked for."""
        return (self.lower if isfinite(self.lower) else 0.0, self.bound)

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
        unknown = isnan(self.unclipped) and not self.objections
        missing = [f"{self.criterion} has no number"] if unknown else []
        if set(STATEMENTS) - {each.name for each in self.assumptions}:
            missing.append(LOST)
        return (*self.objections, *missing, *violated)

    def reading(self) -> str:
        """Return the certificate in plain words, reasons against it first.

        Examples
        --------
        >>> checked = [Assumption(f"A{i}", "checked", "by dsel") for i in (2, 3, 4, 5)]
        >>> ledger = full_ledger([*checked, Assumption("A1", "checked", "by design")])
        >>> print(Certificate(0.0731, 0.01, "cv_bound", ledger).reading())
        With probability at least 99 %, the chosen model errs on at most 7.31 % of new
        rows drawn like the labeled ones (cv_bound). Not checked but taken as declared:
        the random draws are independent of the data (A6).
        """
        text = " ".join(self._sentences()).replace(" %", "\xa0%")  # on one line
        return fill(text, width=80).replace("\xa0", " ")

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts: the bound, what it is made of, what would help."""
        return [
            ("Error", self.in_short()),
            ("Why", self.parts()),
            ("Smaller", self.advice()),
        ]

    def _repr_html_(self) -> str:
        means = ("Means", " ".join(self._sentences()))
        return as_html("Certificate", [*self.facts(), means])

    def in_short(self) -> str:
        """Return the bound, rounded up, with the estimate beside it."""
        beside = "; cross-validation gives no estimate"
        if isfinite(self.estimate):
            apart = self.criterion == "select_then_certify"
            who = "rows set aside say" if apart else "cross-validation says"
            beside = f"; {who} {100 * self.estimate:.1f} %"
        if isnan(self.unclipped):
            return f"no bound{beside}"
        sure = confidence(self.delta, percent=True)
        if not self.certified:
            return f"{percent(self.bound)}, which is NO guarantee{beside}"
        return f"at most {percent(self.bound)} ({sure} % sure){beside}"

    def parts(self) -> str:
        """Return what of the bound comes from where, and by which certificate."""
        if not self.certified:
            return f"by {self.criterion}: {self.reasons[0]}"
        label, pool = self.label_term, self.disagreement_term
        terms = (
            [] if isnan(label) else [f"{percent(label)} from errors on labeled rows"]
        )
        terms += [] if isnan(pool) else [f"{percent(pool)} from the pool"]
        return f"{', '.join(terms) or 'both ends together'}, by {self.criterion}"

    def advice(self) -> str:
        """Return what would make the bound smaller."""
        if self.criterion in ("nested", "nested_vote"):
            return "with more labeled rows, or nested_fold_model for another model"
        if self.criterion in ("nested_fold_model", "select_then_certify"):
            return "with more labeled rows"
        return "with more labeled rows, or certificate='auto'; see plan_bound"

    def _sentences(self) -> list[str]:
        if not self.certified:
            lines = ["This is no guarantee.", *map(_sentence, self.reasons)]
            if not isnan(self.unclipped):
                number = f"{at_most(self.bound)} ({self.criterion})"
                lines.append(f"The number {number} is an estimate only.")
            return lines
        if self.unclipped >= 1:
            return [
                f"The bound says nothing: at delta = {self.delta:g} {self.criterion} "
                f"comes to {at_most(self.unclipped)}, and no error rate is above 1.",
                "More labeled rows, fewer candidates or larger folds bring it down; "
                "`plan_bound` shows by how much.",
            ]
        return [self._claim(), *self._terms(), *self._declared()]

    def _claim(self) -> str:
        lower = f"at least {at_least(self.lower, percent=True)} % and "
        return (
            f"With probability at least {confidence(self.delta, percent=True)} %, "
            f"{self._model()} errs on {lower if self.lower > 0 else ''}at most "
            f"{at_most(self.bound, percent=True)} % of {self._rows()} "
            f"({self.criterion})."
        )

    def _model(self) -> str:
        if self.criterion == "nested_vote":
            return "the vote of the models that were chosen without each fold"
        if self.fold is None:
            return "the chosen model"
        return f"the chosen candidate's model that was trained without fold {self.fold}"

    def _rows(self) -> str:
        if self.criterion == "transductive":
            rows = f"{self.n_unlabeled:,} " if self.n_unlabeled else ""
            return (
                f"the {rows}pool rows that were counted, which says nothing of others"
            )
        return "new rows drawn like the labeled ones"

    def _terms(self) -> list[str]:
        if not (isfinite(self.label_term) and isfinite(self.disagreement_term)):
            return []
        return [
            f"Of this, {at_most(self.label_term, percent=True)} % comes from errors on "
            f"labeled rows and {at_most(self.disagreement_term, percent=True)} % from "
            f"disagreement on the pool."
        ]

    def _declared(self) -> list[str]:
        declared = [
            f"{each.statement} ({each.name})"
            for each in self.assumptions
            if each.state == "declared"
        ]
        if not declared:
            return []
        return [f"Not checked but taken as declared: {'; '.join(declared)}."]

    # Parts that are NaN are equal; as floats they would not be.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        sign = "<=" if self.certified else "~"
        fields = [
            f"error {sign} {at_most(self.bound)}",
            f"delta={self.delta:g}",
            f"criterion={self.criterion!r}",
            f"certified={self.certified}",
        ]
        if self.fold is not None:
            fields.append(f"model trained without fold {self.fold}")
        if not self.certified:
            fields.append(f"reasons={list(self.reasons)}")
        return f"Certificate({', '.join(fields)})"


def percent(rate: float) -> str:
    """Return a rate in percent with one digit, rounded up."""
    return f"{at_most(rate, decimals=1, percent=True)} %"


def _sentence(reason: str) -> str:
    is_name = "_" in reason.split(" ", 1)[0]
    text = reason if is_name else reason[:1].upper() + reason[1:]
    return text if text.endswith(".") else text + "."
