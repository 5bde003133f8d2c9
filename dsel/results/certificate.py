"""Certificate and choice: how wrong a model can be, and on what that rests.

Both are facts, which are names and texts, in three renderings: lines, HTML and JSON.
An upper limit rounds up, so that what is shown is a bound, too.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from math import floor, isfinite, isnan, log10, nan
from typing import Any, Final, Self, TypeVar

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice, check_probability
from dsel.results.certified_report import CertifiedReport
from dsel.results.texts import (
    about_percent,
    at_most,
    confidence,
    in_percent,
    shortened,
)

T = TypeVar("T")
STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "labeled rows and pool rows are independent draws from one population",
    "A3": "your code sees only the rows that it is given",
    "A4": "no model depends on the pool rows that are counted",
    "A5": "you did not pick this plan after seeing another's results, nor change "
    "features after a look at the pool",
    "A6": "the model that was fitted anew is the one that was counted: the estimator "
    "is repeatable",
    "A7": "`predict` answers each row by itself",
}
"""What each assumption says. Folds are random by construction (A2 of the theory)."""
ALWAYS: Final = ("A1", "A3", "A5", "A7")
"""What every certificate assumes; A4 comes with a pool, A6 with a model fitted anew."""
DECLARED: Final = "declared"
VIOLATED: Final = "violated"
STATES: Final = ("by design", "checked", DECLARED, VIOLATED)

CERTIFICATES: Final = ("nested", "cv_bound", "best_fold", "holdout")
"""Criteria that bound the error; numbers of all others are estimates."""
ONE_FOLD: Final = "one_fold"
ALL_ROWS: Final = "all_rows"
DEPLOYMENTS: Final = (ONE_FOLD, ALL_ROWS)
"""The model that never saw one of the folds, and the model of all labeled rows."""
LOST: Final = (
    "the results lost their attribute `assumptions`, which says what was checked; "
    "select from what the run or `open_results` returned"
)


@dataclass(frozen=True)
class Assumption:
    """One assumption and how far it can be trusted.

    Examples
    --------
    >>> Assumption("A1", "violated", "the rows come in groups").is_violated
    True
    """

    name: str
    """A key of `STATEMENTS`."""
    state: str = DECLARED
    """``by design``, ``checked`` by dsel, ``declared`` by the user, or ``violated``."""
    reason: str = ""
    """What was checked, who declared it, or what breaks it."""

    def __post_init__(self) -> None:
        check_choice(self.name, "name", tuple(STATEMENTS))
        check_choice(self.state, "state", STATES)

    @property
    def statement(self) -> str:
        """What is assumed, in words."""
        return STATEMENTS[self.name]

    @property
    def is_violated(self) -> bool:
        """Whether it is known not to hold."""
        return self.state == VIOLATED

    def __str__(self) -> str:
        because = f" ({self.reason})" if self.reason else ""
        return f"{self.name}, {self.state}: {self.statement}{because}"


def full_list(
    known: Iterable[Assumption] = (),
    *,
    has_pool: bool = True,
    is_refitted: bool = False,
) -> tuple[Assumption, ...]:
    """Return all that a certificate assumes, in order; what is not known is declared.

    A number that reads the pool assumes A4, and one about a model that was fitted anew
    A6.

    Examples
    --------
    >>> [each.name for each in full_list([Assumption("A4", "by design")])]
    ['A1', 'A3', 'A4', 'A5', 'A7']
    """
    by_name = {each.name: each for each in known}
    wanted = {*ALWAYS, *by_name}
    wanted |= {"A4"} if has_pool else set()
    wanted |= {"A6"} if is_refitted else set()
    return tuple(by_name.get(name, Assumption(name)) for name in sorted(wanted))


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the list that stands in a cube; empty where its attributes were lost."""
    return attribute(
        cube,
        names.ASSUMPTIONS,
        lambda text: tuple(Assumption(**each) for each in json.loads(text)),
        (),
    )


def attribute(cube: xr.Dataset, name: str, read: Callable[[Any], T], default: T) -> T:
    """Return an attribute of a cube; ValueError where dsel cannot have written it."""
    if name not in cube.attrs:
        return default
    try:
        return read(cube.attrs[name])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"`results` has the attribute {name} = {str(cube.attrs[name])[:40]!r}, "
            f"which no run has written; take the results that the run returned, or "
            f"open them again."
        ) from error


class Told:
    """What is told by facts in several renderings; equal where its JSON is."""

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, which all renderings show; some have no name."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return what `from_json` takes, with all digits."""
        return json.dumps(vars(self), default=_as_json)

    # Parts that are NaN are equal; as floats they would not be.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        return as_lines(self.facts())

    def _repr_html_(self) -> str:
        """Return facts as HTML without colours, for light and dark ground."""
        left = 'style="text-align: left"'
        rows = [
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>\n"
            if name
            else f'<tr><td colspan="2" {left}>{escape(text)}</td></tr>\n'
            for name, text in self.facts()
        ]
        head = f"<div><strong>{type(self).__name__}</strong><table>\n"
        return f"{head}{''.join(rows)}</table></div>"


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Told):
    """An error bound of one model and the assumptions that it rests on.

    Examples
    --------
    >>> share = "four fifths of the labels"
    >>> made = Certificate(0.1507, 0.05, "nested", "one_fold", share=share)
    >>> made
    Certificate(error <= 15.1 %, 95 % sure, criterion='nested', deploy='one_fold')
    >>> print(made)
    Error at most 15.1 % (95 % sure): the model of four fifths of the labels
    By       nested
    Assumes  A1, declared: labeled rows and pool rows are independent draws from one population
    Assumes  A3, declared: your code sees only the rows that it is given
    Assumes  A4, declared: no model depends on the pool rows that are counted
    Assumes  A5, declared: you did not pick this plan after seeing another's results, nor change features after a look at the pool
    Assumes  A7, declared: `predict` answers each row by itself
    """  # noqa: E501

    unclipped: float
    """The number as computed; above 1 where it says nothing, inf where a fit failed."""
    delta: float
    """Probability with which the bound may fail."""
    criterion: str
    """One of `CERTIFICATES`, or that of an estimate."""
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
    loss: str = "error"
    """What is bounded: ``error``, or the loss that the plan declared."""
    says: str = "Error at most"
    """How its line begins."""
    largest: float = 1.0
    """The largest value of the loss; 1 for a rate."""

    def __post_init__(self) -> None:
        check_probability(self.delta, "delta")
        check_choice(self.deploy, "deploy", DEPLOYMENTS)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the certificate that `to_json` wrote."""
        told = json.loads(text)
        told["assumptions"] = tuple(Assumption(**each) for each in told["assumptions"])
        return cls(**told | {"objections": tuple(told["objections"])})

    @property
    def bound(self) -> float:
        """The bound as reported, at most the largest loss; NaN where there is none."""
        return (
            self.unclipped
            if isnan(self.unclipped)
            else min(self.largest, self.unclipped)
        )

    @property
    def certified(self) -> bool:
        """Whether the number is a guarantee: nothing speaks against it."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the number is no guarantee; empty where it is one."""
        reasons = list(self.objections)
        if isnan(self.unclipped) and not reasons:
            reasons.append(f"{self.criterion} has no number")
        if set(ALWAYS) - {each.name for each in self.assumptions}:
            reasons.append(LOST)
        return (*reasons, *(
            f"{each.name} is violated: {each.reason}"
            for each in self.assumptions if each.is_violated
        ))  # fmt: skip

    @property
    def model(self) -> str:
        """The model that it is about, in words."""
        if self.deploy == ALL_ROWS:
            return "the model of all labels"
        if self.share:
            return f"the model of {self.share}"
        return f"the model trained without fold {self.fold}"

    def headline(self) -> str:
        """Return the one line that says how wrong the model can be, rounded up."""
        amount = self.amount(self.bound)
        if not self.certified:
            number = "no number" if isnan(self.bound) else f"about {amount}"
            return f"No guarantee, since {self.reasons[0]}: {number}, {self.model}"
        if self.says_nothing:
            most = self.amount(self.largest) if self.loss != "error" else "100 %"
            return f"The bound says nothing, it is above {most}: {self.model}"
        return f"{self.says} {amount} ({confidence(self.delta)} % sure): {self.model}"

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is the largest loss that there is, or above."""
        return self.unclipped >= self.largest

    @property
    def what(self) -> str:
        """What is bounded, in words: ``Error``, ``Misses of 'fraud'``."""
        return self.says.removesuffix(" at most")

    @property
    def is_cost(self) -> bool:
        """Whether it bounds a mean cost, which is no rate."""
        return self.loss.startswith("cost")

    def amount(self, value: float) -> str:
        """Return a limit of the loss as text, or an estimate where it is of none."""
        if self.criterion not in CERTIFICATES:
            return self.about(value)
        if not self.is_cost:
            return in_percent(value)
        return at_most(value, decimals=self._decimals)

    def about(self, value: float) -> str:
        """Return what is no limit as text: rates in percent, costs as they are."""
        return f"{value:.{self._decimals}f}" if self.is_cost else about_percent(value)

    @property
    def _decimals(self) -> int:
        return 3 - min(0, floor(log10(self.largest)))  # more where costs are small

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, which all renderings show; the first has no name."""
        origin = [self.criterion]
        if isfinite(self.label_term) and isfinite(self.disagreement_term):
            origin.append(
                f"{self.amount(self.label_term)} from errors on labeled rows, "
                f"{self.amount(self.disagreement_term)} from the pool"
            )
        if self.equal_rows:
            origin.append(
                f"{self.equal_rows:,} of {self.n_unlabeled:,} pool rows equal labeled "
                f"rows, and so many fewer are taken as seen"
            )
        facts = [("", self.headline()), ("By", "; ".join(origin))]
        facts += [("But", reason) for reason in self.reasons[1:]]
        if self.certified and self.says_nothing:
            advice = "with more labeled rows or fewer candidates; see plan_bound"
            facts.append(("Smaller", advice))
        return facts + [("Assumes", str(each)) for each in self.assumptions]

    def reading(self) -> str:
        """Return the certificate in plain words, an assumption a line."""
        return str(self)

    def __repr__(self) -> str:
        sign = "<=" if self.certified else "~"
        reasons = "" if self.certified else f", reasons={list(self.reasons)}"
        return (
            f"Certificate({shortened(self.loss)} {sign} {self.amount(self.bound)}, "
            f"{confidence(self.delta)} % sure, criterion={self.criterion!r}, "
            f"deploy={self.deploy!r}{reasons})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Choice(Told):
    """The candidate that a criterion chose, and how wrong its model can be.

    Examples
    --------
    >>> share = "four fifths of the labels"
    >>> certificates = {
    ...     "one_fold": Certificate(0.1507, 0.05, "nested", "one_fold", share=share),
    ...     "all_rows": Certificate(0.1777, 0.05, "nested", "all_rows"),
    ... }
    >>> print(Choice(3, {"C": 8.0}, "cv_error", 0.11, certificates, "one_fold", 0.1635))
    Chosen: C=8
    Error at most 15.1 % (95 % sure): the model of four fifths of the labels
    at most 17.8 %: the model of all labels, likely the better one
    A held-out fifth would give about 16.4 %
    """

    candidate: int
    params: Mapping[str, Any]
    """What the grid sets for it."""
    criterion: str
    """Name of the criterion that chose it."""
    estimate: float
    """The criterion's number for it, unclipped."""
    certificates: Mapping[str, Certificate]
    """The bounds of the run by deployment; those of a nested search hold at once."""
    deploy: str
    """Which of them is about the model that is handed over."""
    held_out_fifth: float = nan
    """Expected limit of a held-out fifth on as many errors; NaN where none is told."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know, such as fits that failed."""
    candidates: Mapping[str, int] = field(default_factory=dict)
    """The candidate of each deployment; that of a fold may be another."""
    params_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the grid sets for the candidate of each deployment."""
    reports: Mapping[str, CertifiedReport] = field(default_factory=dict)
    """The certified report of each deployment, where the plan declared it."""

    def report(self, deploy: str | None = None) -> CertifiedReport:
        """Return the certified report of a deployment, by default what is handed over.

        Raises ValueError where the plan had none.
        """
        if not self.reports:
            raise ValueError(
                "the plan declared no report, and what was not declared is not "
                "certified; search with report=True, and an `out` of its own."
            )
        return self.reports[
            check_choice(deploy or self.deploy, "deploy", tuple(self.reports))
        ]

    @property
    def certificate(self) -> Certificate:
        """The certificate of the model that is handed over."""
        return self.certificates[self.deploy]

    @property
    def bound(self) -> float:
        """The certificate's bound, at most 1."""
        return self.certificate.bound

    @property
    def delta(self) -> float:
        """Probability with which the bound may fail."""
        return self.certificate.delta

    @property
    def fold(self) -> int | None:
        """Fold that the model was trained without; None for that of all rows."""
        return self.certificate.fold

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, which all renderings show; most have no name."""
        lines = [f"Chosen: {params_text(self.params)}", self.certificate.headline()]
        for deploy, other in self.certificates.items():
            if deploy == self.deploy:
                continue
            number = self.candidates.get(deploy, self.candidate)
            params = params_text(self.params_of.get(deploy, self.params))
            which = "" if number == self.candidate else f" ({params})"
            better = ", likely the better one" if deploy == ALL_ROWS else ""
            lines.append(
                f"at most {other.amount(other.bound)}: {other.model}{which}{better}"
                if other.certified
                else other.headline()
            )
        if not isnan(self.held_out_fifth):
            percent = self.certificate.amount(self.held_out_fifth)
            smallest = min(each.bound for each in self.certificates.values())
            is_smaller = self.held_out_fifth < smallest
            advice = "the smallest number: it does as well"
            line = f"A held-out fifth would give about {percent}"
            lines.append(f"{line}, {advice}" if is_smaller else line)
        return [
            *(("", line) for line in lines),
            *(("But", reason) for reason in self.certificate.reasons[1:]),
            *(("Note", remark) for remark in self.remarks),
        ]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the choice that `to_json` wrote."""
        told = json.loads(text)
        told["remarks"] = tuple(told["remarks"])
        told["certificates"] = {
            deploy: Certificate.from_json(json.dumps(each))
            for deploy, each in told["certificates"].items()
        }
        told["reports"] = {
            deploy: CertifiedReport.from_dict(each)
            for deploy, each in told.get("reports", {}).items()
        }
        choice = cls(**told)
        str(choice)  # raises where a part is of a wrong kind
        return choice

    def __repr__(self) -> str:
        return (
            f"Choice(candidate {self.candidate}: {params_text(self.params)}; "
            f"{self.certificate!r})"
        )


def params_text(params: Mapping[str, Any]) -> str:
    """Return what a candidate sets as one line, as every text and figure has it.

    Examples
    --------
    >>> params_text({"C": 0.5, "kernel": "rbf"}), params_text({})
    ('C=0.5, kernel=rbf', 'the only candidate')
    """
    shown = (
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )
    return ", ".join(shown) or "the only candidate"


def as_lines(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts, which are names and texts, as lines; some have no name."""
    return "\n".join(f"{name:8} {text}" if name else text for name, text in facts)


def _as_json(value: Any) -> Any:
    if isinstance(value, (Told, Assumption, CertifiedReport)):
        return vars(value)
    return value.item() if isinstance(value, np.generic) else str(value)
