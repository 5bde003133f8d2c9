"""The certificate of a model: its bound, its caveats and its assumptions.

An upper limit is rounded up, so that the printed number is a bound, too.
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import floor, isclose, isfinite, isinf, isnan, log10, nan
from typing import Any, Final, TypedDict, TypeVar

import xarray as xr

from dsel import names
from dsel.cards import ShownRow
from dsel.errors import NewerRecordError, OldName
from dsel.losses.base import Loss, RowSentence
from dsel.losses.calls import rate_beyond
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.texts import loss_of_text
from dsel.option_values import ALL_ROWS
from dsel.results import records
from dsel.results.caveats import (
    Caveat,
    Effect,
    caveat_rows,
    collect_caveats,
    make_caveats,
    texts_of,
    upgrade_texts,
    warnings_first,
)
from dsel.results.records import older_name
from dsel.results.renderings import Renderable
from dsel.results.tolerances import amount_about, amount_at_most
from dsel.results.values import value_text
from dsel.rounded_texts import (
    about_percent,
    at_most,
    confidence,
    count_of,
    in_percent,
    name_folds,
)
from dsel.typing import Options

T = TypeVar("T")
STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "labeled rows and pool rows are independent draws from one population",
    "A3": "your code sees only the rows that it is given: no scaler or selection of "
    "features was fitted to all rows before",
    "A4": "no model was trained or chosen with the pool rows that are counted",
    "A5": "you did not pick this plan after seeing another's results, nor change "
    "features after a look at the pool",
    "A7": "`predict` treats each row by itself",
}
"""Text of each assumption. A2 of the theory holds by construction, and A6 because the
deployed model is the one whose errors were counted."""
IN_SHORT: Final[Mapping[str, str]] = {
    "A1": "independent draws from one population",
    "A3": "code that sees only its own rows",
    "A4": "a pool that no model was trained on",
    "A5": "a plan made before any result",
    "A7": "predictions row by row",
}
"""Each assumption in a few words, where only its violation is reported."""
ALWAYS: Final = ("A1", "A3", "A5", "A7")
"""Assumptions of every certificate; A4 is added with a pool."""
ALL_CAVEATS: Final = "all_caveats"
"""Key of `to_json` of certificates and choices, which follows from other fields."""
ORIGIN: Final = "Origin"
"""Name of rows of texts about the counts from which a number is computed."""
OF_LABELS: Final = " on labeled rows"
"""Words for the rows of the first part of a bound that is a sum."""
ESTIMATE: Final = "Estimate"
"""Name of the row with the estimate that is printed with a bound."""
DECLARED: Final = "declared"
VIOLATED: Final = "violated"

BOUNDED_EACH: Final = ("cv_bound", "best_fold", "holdout")
"""Criteria of 0.2 that bound every candidate; records of 0.2 do not say so."""
LOST: Final = (
    "the results lost their attribute `assumptions`, which lists what was checked; "
    "select from what the run or `open_results` returned"
)
NOTED_DUPLICATES: Final = 0.1
"""Share of labeled rows above which duplicates in the pool are noted; fewer duplicates
are probably other records that look alike."""
LARGE: Final = 0.5
"""Part of the largest loss above which a bound says little."""
HOW_MANY: Final = (
    "the bound says little: see plan_bound, which prints how many labels are needed"
)
RANDOM_ROW: Final = "a random row of a new group"
"""Subject of a bound if rows come in groups, of which one row each is counted."""
CHOICE: Final = "choice"
"""Attribute of a search's cube: the run's choice, with its certificates."""
NO_QUERIES: Final = (
    "no rows are to be labeled: the search planned no queries, or has no model of all "
    "labels; search with n_queries=50 and a pool, and an `out` of its own."
)


@dataclass(frozen=True)
class Assumption:
    """One assumption and how far it can be trusted."""

    name: str
    """A key of `STATEMENTS`."""
    state: str = DECLARED
    """``declared`` by the user, or ``violated``."""
    reason: str = ""
    """The finding that violates it, or a finding that does not."""
    says: str = ""
    """Its text here, if that is not the one of `STATEMENTS`."""
    shifted_by: tuple[str, ...] | None = None
    """Columns by which pool rows come from another population than labeled ones; the
    one that differs most comes first. None if no such difference violates the
    assumption."""
    has_lost_groups: bool = False
    """Whether labeled rows seem to come in groups that were not passed."""
    has_test: bool = False
    """Whether its reason has the result of a test of labeled rows against the pool."""

    @property
    def statement(self) -> str:
        """Text of the assumption."""
        return self.says or STATEMENTS[self.name]

    @property
    def is_violated(self) -> bool:
        """Whether it is known not to hold."""
        return self.state == VIOLATED

    @property
    def text(self) -> str:
        """The assumption in one line, without what violates it: a caveat shows that."""
        return str(replace(self, reason="")) if self.is_violated else str(self)

    def __str__(self) -> str:
        because = ""
        if self.reason:
            because = f". {self.reason[0].upper()}{self.reason[1:]}"
        # The name is for readers of the theory, since not all names occur in each list.
        violated = "violated: " if self.is_violated else ""
        return f"{violated}{self.statement} ({self.name}){because}"


def assumption_rows(assumptions: Sequence[Assumption]) -> list[ShownRow]:
    """Return a line for each assumption."""
    return [("Assumes", assumption.text) for assumption in assumptions]


def full_list(
    checked: Iterable[Assumption] = (), *, has_pool: bool = True
) -> tuple[Assumption, ...]:
    """Return all assumptions of a certificate; those not `checked` are declared."""
    by_name = {assumption.name: assumption for assumption in checked}
    wanted = {*ALWAYS, *by_name, *["A4"] * has_pool}
    return tuple(by_name.get(name, Assumption(name)) for name in sorted(wanted))


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the assumptions stored in a cube; empty if its attributes were lost."""

    def read(text: str) -> tuple[Assumption, ...]:
        stored = (
            records.from_record(Assumption, record) for record in json.loads(text)
        )
        return tuple(assumption for assumption in stored if assumption.statement)

    return attribute(cube, names.ASSUMPTIONS, read, ())


def attribute(cube: xr.Dataset, name: str, read: Callable[[Any], T], default: T) -> T:
    """Return an attribute of a cube; ValueError if dsel cannot have written it."""
    if name not in cube.attrs:
        return default
    try:
        return read(cube.attrs[name])
    except NewerRecordError:
        raise  # its message names the version
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"`results` has the attribute {name} = {str(cube.attrs[name])[:40]!r}, "
            f"which no run has written; take the results that the run returned, or "
            f"open them again."
        ) from error


class LossFields(TypedDict, total=False):
    """Fields of a `Certificate` about its loss."""

    loss: str
    title: str
    largest: float
    is_cost: bool
    sentence: RowSentence | None
    fraction: float


class OriginFields(TypedDict, total=False):
    """Fields of a `Certificate` about the counts that its number comes from."""

    label_term: float
    disagreement_term: float
    fold_rows: int
    fold_delta: float
    trained_on: str


class NumberFields(LossFields, OriginFields, total=False):
    """Fields of a `Certificate` about its number alone, not about the run."""

    estimate: float
    estimate_of_models: float | None
    fold: int | None
    is_estimate: bool
    divides_delta: bool
    is_holdout: bool


def loss_fields(loss: "Loss | Certificate") -> LossFields:
    """Return the fields of a certificate about its loss, with the words for it.

    The fields are read from a loss, or from another certificate.
    """
    if isinstance(loss, Certificate):
        return LossFields(
            loss=loss.loss,
            title=loss.title,
            largest=loss.largest,
            is_cost=loss.is_cost,
            sentence=loss.sentence,
            fraction=loss.fraction,
        )
    beyond = rate_beyond(loss)
    return LossFields(
        loss=repr(loss),
        title=loss.title,
        largest=loss.largest,
        is_cost=loss.is_cost,
        sentence=loss.sentence,
        # 1 - (1 - 0.3) is 0.30000000000000004.
        fraction=nan if beyond is None else round(1.0 - beyond, 15),
    )


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Renderable):
    """Bound on the loss of one model, and the assumptions on which it is based.

    Notes
    -----
    Guarantee: if `certified`, the model's loss on new rows is at most `bound`: its
    error rate, another rate, a mean cost, or the distance that all but a share of its
    predictions keep. With probability at least ``1 - delta`` over the draw of labeled
    rows and pool the bounds of all models of a search hold at once.
    Assumes: what `assumptions` lists.
    Source: the formulas of `dsel.bounds`; `method` is the name of the certificate.

    Examples
    --------
    >>> half = "50% of the labels"
    >>> Certificate(0.1507, 0.05, "nested", "one_fold", trained_on=half).headline()
    'Error at most 15.1% (95% confidence), model trained on 50% of the labels'
    """

    unclipped: float
    """The number as computed: it may exceed the largest loss, and is infinite where
    nothing bounds the loss, such as if the fit failed."""
    delta: float
    """Probability that the bound fails."""
    method: str = field(metadata=older_name("criterion"))
    """Name of the certificate, or of the criterion of an estimate."""
    model_name: str = field(metadata=older_name("deploy"))
    """Name of the model: ``one_fold`` or ``all_rows``."""
    assumptions: tuple[Assumption, ...] = field(default_factory=full_list)
    """All assumptions, from `full_list`."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the number, the gravest first; `all_caveats` adds violated
    assumptions."""
    label_term: float = nan
    """Part of the bound that comes from labeled rows."""
    disagreement_term: float = nan
    """Part of the bound that comes from the pool."""
    estimate: float = nan
    """Loss on held-out rows, printed with the bound: an estimate, no guarantee."""
    estimate_of_models: float | None = None
    """The estimate without folds whose fit failed; None if none failed."""
    fold: int | None = None
    """Fold that the model was trained without; None if it was trained on all rows."""
    fold_rows: int = 0
    """Rows of that fold that were counted; 0 in a record of an older version."""
    fold_delta: float = nan
    """Part of delta at which the rows of the fold bound the model; NaN if it was
    trained on all rows, and if a hold-out set bounds it at all of delta."""
    n_labeled: int = 0
    """Labeled rows."""
    n_unlabeled: int = 0
    """Pool rows that were counted."""
    n_duplicates: int = field(default=0, metadata=older_name("equal_rows"))
    """Pool rows that equal labeled rows; without a pool, held-out rows that equal
    training rows of the model."""
    copied_rows: int = 0
    """Labeled rows that equal rows of other folds, which models were trained on; 0 if
    these are few."""
    trained_on: str = field(default="", metadata=older_name("share"))
    """Part of the labels that the model was trained on, as printed."""
    loss: str = "error"
    """The bounded loss: ``error``, or the one that the plan declared."""
    title: str = ERROR_RATE.title
    """Name of the bounded quantity: ``Error``, ``Misses of 'fraud'``."""
    largest: float = 1.0
    """The largest value of the loss: 1 of a rate, infinity of a tolerance."""
    sentence: RowSentence | None = ERROR_RATE.sentence
    """The meaning of the bound for a number of new rows; None if the loss has no
    words."""
    fraction: float = nan
    """Share of the predictions that keep the tolerance; NaN for another loss."""
    n_queried: int = 0
    """Queried rows whose labels the number uses, too."""
    n_groups: int = 0
    """Groups of labeled rows, if one row of each was counted: then the number is about
    a random row of a new group. 0 if rows are independent."""
    is_estimate: bool = False
    """Whether its criterion estimates: then it is rounded to the nearest, not up."""
    divides_delta: bool = False
    """Whether every candidate was bounded, at a share of delta."""
    is_cost: bool = False
    """Whether it bounds a mean cost, which is no rate."""
    is_holdout: bool = False
    """Whether one set of rows was held out, so that the estimate is of one model."""

    deploy = OldName("model_name")
    criterion = OldName("method")
    share = OldName("trained_on")
    model = OldName("model_text")
    what = OldName("title")
    equal_rows = OldName("n_duplicates")

    @property
    def bound(self) -> float:
        """The bound, at most the largest loss.

        NaN if nothing is guaranteed; then `number` has the number that is printed.
        """
        return self.number if self.certified else nan

    @property
    def number(self) -> float:
        """The number that is printed, as a guarantee or without one.

        A text says "the computed 21.8% is no bound" of a number without a guarantee:
        `bound` is NaN there. NaN if there is no number either.
        """
        return min(self.unclipped, self.largest)  # in this order NaN stays

    @property
    def certified(self) -> bool:
        """Whether the number is a guarantee: no caveat voids it."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why the number is no guarantee; empty if it is one."""
        return texts_of(self.all_caveats, Effect.VOIDS)

    @property
    def all_caveats(self) -> tuple[Caveat, ...]:
        """All caveats of the number, violated assumptions included, gravest first."""
        reasons = []
        if isnan(self.unclipped) and not texts_of(self.caveats, Effect.VOIDS):
            reasons.append(f"{self.method} has no number")
        # An xarray operation that drops attributes drops the record of violations, too:
        # without the full list nothing is certified.
        if set(ALWAYS) - {assumption.name for assumption in self.assumptions}:
            reasons.append(LOST)
        caveats = [*self.caveats, *make_caveats(Effect.VOIDS, reasons)]
        for violated in (known for known in self.assumptions if known.is_violated):
            short = f"{violated.name} ({IN_SHORT[violated.name]}) is violated"
            text = f"{short}: {violated.reason}"
            caveats.append(Caveat(Effect.VOIDS, text, short_text=short))
        if not texts_of(caveats, Effect.VOIDS):
            notes = [self.note_on_estimate] * self.is_below_estimate
            notes += filter(None, [self.note_on_duplicates])
            caveats += make_caveats(Effect.INFO, notes)
            if self.needs_labels:
                caveats.append(Caveat(Effect.INFO, HOW_MANY, is_about_labels=True))
        return collect_caveats(caveats)

    @property
    def is_below_estimate(self) -> bool:
        """Whether the estimate from folds that were fitted is above the bound.

        If nothing is certified, the estimate is compared with the number in place of
        the bound.
        """
        # A missing estimate is NaN, and comparisons with NaN are False.
        return not self.is_estimate and self.estimate_where_fitted > self.number

    @property
    def estimate_where_fitted(self) -> float:
        """The estimate, without folds whose fit failed."""
        # Rows of a failed fit count as errors, which says nothing about luck.
        known = self.estimate_of_models
        return self.estimate if known is None else known

    @property
    def note_on_estimate(self) -> str:
        """Explanation why an estimate may be above the bound, and what to plan with."""
        estimate = self.about(self.estimate_where_fitted)
        of = "folds that were fitted" if self.has_failed_folds else "all folds"
        return (
            f"the estimate from {of} ({estimate}) is above the bound "
            f"({self.amount(self.number)}) of the {self.model_text}: the bound has its "
            f"{confidence(self.delta)}% confidence whatever the estimate is, but the "
            f"rows of the fold that gave it were likely lucky; plan with {estimate}"
        )

    def to_json(self) -> str:
        """Return all fields, with all digits, and `all_caveats`."""
        record = json.loads(super().to_json())
        return json.dumps(record | {ALL_CAVEATS: records.to_record(self.all_caveats)})

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2 with its reasons as caveats, and with a title."""
        record = upgrade_texts(record, "objections", Effect.VOIDS)
        if isinstance(record.get("says"), str):  # the first words of its line
            record["title"] = record.pop("says").removesuffix(" at most")
        record.pop(ALL_CAVEATS, None)  # the list follows from the other fields
        name = record.get("criterion")
        if "sentence" not in record:
            loss = loss_of_text(str(record.get("loss", "error")))
            words = {} if loss is None else loss_fields(loss)
            record["sentence"] = records.to_record(words.get("sentence"))
            record["fraction"] = words.get("fraction", nan)
        estimate = record.get("estimate_of_models")
        if isinstance(estimate, float) and isnan(estimate):  # older versions wrote NaN
            record["estimate_of_models"] = None
        # Version 0.2 derived both from the name, and had no other certificates.
        defaults = {
            "is_estimate": name not in ("nested", *BOUNDED_EACH),
            "divides_delta": name in BOUNDED_EACH,
            "is_cost": str(record.get("loss")).startswith("cost"),
            "is_holdout": name == "holdout",
        }
        return defaults | record

    @property
    def model_text(self) -> str:
        """Description of the model."""
        return f"model trained {self.training_text}"

    @property
    def training_text(self) -> str:
        """The labels that the model was trained on, in words."""
        if self.model_name == ALL_ROWS:
            return "on all labels"
        if self.trained_on or self.fold is None:
            return f"on {self.trained_on or 'a part of the labels'}"
        return f"without {name_folds(self.fold)}"

    def headline(self) -> str:
        """Return the error bound in one line, rounded up."""
        return self.headline_after("")

    def headline_after(self, joint_note: str, printed: Container[str] = ()) -> str:
        """Return the headline; `joint_note` says that another bound holds with it.

        `printed` are reasons against a guarantee that were printed above.
        """
        return f"{self.statement(joint_note, printed)}, {self.model_text}"

    def statement(self, joint_note: str = "", printed: Container[str] = ()) -> str:
        """Return the headline without its model."""
        amount = self.amount(self.number)
        if not self.certified:
            number = "no number"
            reason = self.reasons[0]
            is_bound, is_printed = not self.is_estimate, reason in printed
            if isfinite(self.number) and not (is_bound and self.says_nothing):
                # The bound without this reason is not known: the reason may hide
                # others, such as rows in groups.
                number = f"about {amount}"
                if is_bound:
                    number = f"the computed {amount} is no bound"
            why = "for the reason above" if is_printed else f"since {reason}"
            return f"No guarantee, {why}: {number}"
        if self.says_nothing:
            return self.no_bound
        level = f"{confidence(self.delta)}% confidence{joint_note and f' {joint_note}'}"
        if self.conditions:
            level += f", if {' and '.join(self.conditions)}"
        return f"{self.says} {amount}{self.on_rows} ({level})"

    @property
    def says(self) -> str:
        """First words of its line."""
        return f"{self.title} at most"

    @property
    def conditions(self) -> list[str]:
        """Conditions of the bound that nothing tests, such as a lack of copies."""
        warnings = [caveat for caveat in self.caveats if caveat.effect is Effect.WARNS]
        return list(
            dict.fromkeys(filter(None, (caveat.condition for caveat in warnings)))
        )

    @property
    def on_rows(self) -> str:
        """The rows that the bound is about, in words; "" if that is any new row."""
        return f" on {RANDOM_ROW}" if self.n_groups else ""

    @property
    def counted(self) -> str:
        """Number of rows or groups that can be counted, in words."""
        if self.n_groups:
            return f"{count_of(self.n_groups, 'group')} of labeled rows"
        return count_of(self.n_labeled, "labeled row")

    @property
    def model_on_rows(self) -> str:
        """Description of the model, and of the rows that its numbers are about."""
        return f"{self.model_text},{self.on_rows}" if self.on_rows else self.model_text

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is the largest possible loss, or is printed as that."""
        if self.is_rate:  # a rate above this is printed as 100.0%
            return self.unclipped > 0.999
        return self.unclipped >= self.largest

    @property
    def why_nothing(self) -> str:
        """Reason why the bound excludes nothing, and what makes it smaller; or ""."""
        if not (self.certified and self.says_nothing):
            return ""
        if self.is_tolerance and self.has_failed_folds:
            return (
                "rows without a prediction count as infinitely far off; mend the fits"
            )
        if self.has_short_pool:
            return (
                f"the {self.n_unlabeled:,} pool rows are too few for this part of the "
                f"predictions; pass a larger pool, or ask for a smaller part, such as "
                f"loss='error_quantile=0.5'"
            )
        if self.is_tolerance:
            fewer = self.divides_delta
            return (
                f"the folds of {self.counted} are too small for this part of the "
                f"predictions{' and this number of candidates' if fewer else ''}; "
                f"label more {'groups' if self.n_groups else 'rows'}, "
                f"{'compare fewer candidates, ' if fewer else ''}take fewer folds, or "
                f"ask for a smaller part, such as loss='error_quantile=0.5'"
            )
        more = "more groups" if self.n_groups else "more labeled rows"
        reason = f"{self.counted} with as many errors give no smaller bound"
        if self.has_old_rows_alone:
            return (
                f"all {self.n_unlabeled:,} pool rows equal labeled rows, so they do "
                f"not show how often models differ on new rows; pass other rows as the "
                f"pool"
            )
        if isfinite(self.disagreement_term) and self.label_term < self.largest:
            first, second = self._parts()
            reason = (
                f"{first} from errors on labeled rows and {second} from pool rows "
                f"on which the models differ add up to {self.most} or more"
            )
            if self.has_large_pool_term:
                reason = f"the pool's part alone is above {self.most}"
            more += " and pool rows"
        if self.divides_delta:
            more += " or fewer candidates"
        return f"{reason}; {more} make it smaller"

    @property
    def needs_labels(self) -> bool:
        """Whether the number, if it is a bound, says little, and labels would help."""
        if self.is_estimate or self.has_failed_folds:
            return False
        is_large = self.is_rate and self.number > LARGE * self.largest
        has_new_rows = not self.n_unlabeled or self.n_duplicates < self.n_unlabeled
        return has_new_rows and (is_large or self.says_nothing)

    @property
    def how_far(self) -> str:
        """Name of a bounded tolerance inside of a sentence."""
        if isnan(self.fraction):
            return "how far predictions are off"
        return f"how far {100 * self.fraction:.6g}% of predictions are off"

    @property
    def is_tolerance(self) -> bool:
        """Whether it bounds a distance to the target, in units of the target."""
        return isinf(self.largest)

    @property
    def is_rate(self) -> bool:
        """Whether it bounds a share of rows, which is shown in percent."""
        return not (self.is_cost or self.is_tolerance)

    @property
    def no_bound(self) -> str:
        """Text in place of a bound that excludes nothing, with the reason in short."""
        what = f"{self.title[:1].lower()}{self.title[1:]}"
        begin = f"No bound below {self.most} for the {what}"
        if self.is_tolerance:
            begin = f"No finite bound of {self.how_far}"
        rows = "groups" if self.n_groups else "labeled rows"
        if self.has_failed_folds:
            return f"{begin}: fits failed"
        if self.has_old_rows_alone:
            return f"{begin}: no new rows in the pool"
        if self.has_large_pool_term and self.loss.startswith("recall("):
            return f"{begin}: models may differ on as many pool rows as the class has"
        if self.has_large_pool_term:
            return f"{begin}: the pool's part alone is above {self.most}"
        if self.has_short_pool:
            return f"{begin}: too few pool rows"
        if self.label_term < self.largest:
            return f"{begin}: too few {rows} and pool rows"
        if self.estimate >= self.largest:
            return f"{begin}: no prediction was right"
        return f"{begin}: too few {rows}"

    @property
    def has_large_pool_term(self) -> bool:
        """Whether the pool's part of the number alone is above the largest loss.

        The part of labeled rows then explains nothing. A class of as many rows as those
        on which the models may differ has such a part, though these may be few.
        """
        return self.disagreement_term > self.largest

    @property
    def has_old_rows_alone(self) -> bool:
        """Whether all pool rows behind the number equal labeled rows."""
        return not isnan(self.disagreement_term) and (
            0 < self.n_unlabeled == self.n_duplicates
        )

    @property
    def has_short_pool(self) -> bool:
        """Whether a tolerance is infinite although the labeled rows give a finite part.

        The bound of the model trained on all labels is a sum of two parts: residuals on
        labeled rows, and distances of the two models on the pool.
        """
        return self.is_tolerance and isfinite(self.label_term) and self.says_nothing

    @property
    def has_failed_folds(self) -> bool:
        """Whether rows count as the largest loss because fits without them failed."""
        return self.estimate_of_models is not None

    def amount(self, value: float) -> str:
        """Return a limit of the loss as text, or an estimate if it is no limit."""
        if self.is_estimate:
            return self.about(value)
        if self.is_tolerance:
            return amount_at_most(value)
        if self.is_cost:
            return at_most(value, decimals=self._decimals)
        return in_percent(value)

    def about(self, value: float) -> str:
        """Return an estimate as text: a rate in percent, another loss in its unit."""
        if self.is_tolerance:
            return amount_about(value)
        return f"{value:.{self._decimals}f}" if self.is_cost else about_percent(value)

    def estimate_text(self, how: str) -> str:
        """Return the estimate in words; `how` says from what it was measured."""
        what = f"{self.title[:1].lower()}{self.title[1:]}"
        return f"{what} about {self.about(self.estimate)} ({how}, no guarantee)"

    @property
    def _decimals(self) -> int:
        """Digits of a cost after the point, as texts show it."""
        return 3 - min(0, floor(log10(self.largest)))  # more where costs are small

    @property
    def most(self) -> str:
        """The largest value of the loss, as text."""
        return "100%" if self.is_rate else self.amount(self.largest)

    def _parts(self) -> tuple[str, str]:
        """Return both parts of the number, rounded so that the printed texts add up."""
        first = self.amount(self.label_term)
        pool_term = self.disagreement_term
        if self.is_tolerance or not isclose(
            self.label_term + pool_term, self.unclipped
        ):
            return first, self.amount(pool_term)
        unit = "%" if self.is_rate else ""
        texts = (self.amount(self.unclipped), first)
        total, label_part = (Decimal(text.removesuffix(unit)) for text in texts)
        return first, f"{total - label_part}{unit}"

    def in_numbers_of_rows(self, who: str = "the model") -> str:
        """Return the bound as a sentence about a number of new rows.

        "" for a loss that has no such sentence, and where nothing is guaranteed, or the
        bound excludes nothing.
        """
        if self.sentence is None or not self.certified or self.says_nothing:
            return ""
        return self.sentence.fill(
            self.bound,
            self.amount(self.bound),
            model=who,
            are_in_groups=self.n_groups > 0,
        )

    @property
    def terms(self) -> str:
        """Parts of the number, in words; "" if they are not known."""
        errors = "residuals" if self.is_tolerance else "errors"
        if self.is_sum:
            pool = "pool rows on which the models differ"
            if self.n_queried:
                pool += f" and labels of {count_of(self.n_queried, 'queried row')}"
            if self.has_large_pool_term:
                return f"no limit below {self.most} from {pool}"
            first, second = self._parts()
            return f"{first} from {errors}{OF_LABELS}, {second} from {pool}"
        is_of_one_model = not (self.is_estimate or self.divides_delta)
        if is_of_one_model and self.fold is not None:
            tested = name_folds(self.fold)
            if self.fold_rows:
                tested = f"the {count_of(self.fold_rows, 'row')} of {tested}"
            text = f"from {errors} on {tested}, which the model had not seen"
            if isfinite(self.fold_delta):
                text += f", at delta={self.fold_delta:.3g} of {self.delta:g}"
            return text
        return ""

    @property
    def is_sum(self) -> bool:
        """Whether it is the sum of two known parts, of labeled rows and the pool."""
        return isfinite(self.label_term) and isfinite(self.disagreement_term)

    @property
    def part_of_labels(self) -> str:
        """Why its part of labeled rows is no bound of the model of a fold."""
        if self.is_tolerance:
            level = f"{100 * (1 - self.fraction):.3g}%"
            return f"which fewer may exceed, since the pool has a part of the {level}"
        if self.loss.startswith("beyond("):
            return "that are off by more than 4/5 of the distance"
        return "of another fold than that of the other bound"

    @property
    def origin(self) -> str:
        """Parts of the number, and the method by its name."""
        return f"{self.terms} ({self.method})" if self.terms else self.method

    @property
    def note_on_duplicates(self) -> str:
        """Number of counted rows that equal labeled ones; "" if few, or all, do."""
        n_rows = min(self.n_labeled, self.n_unlabeled or self.n_labeled)
        is_all = self.n_duplicates == self.n_unlabeled  # `why_nothing` is about this
        is_few = self.n_duplicates < NOTED_DUPLICATES * n_rows
        if not self.n_duplicates or is_all or is_few:
            return ""
        equal, are = ("equals", "is") if self.n_duplicates == 1 else ("equal", "are")
        if not self.n_unlabeled:
            return (
                f"{self.n_duplicates:,} of {count_of(self.n_labeled, 'row')} "
                f"{equal} rows that the model was fitted to, and {are} not counted on"
            )
        return (
            f"{self.n_duplicates:,} of {count_of(self.n_unlabeled, 'pool row')} "
            f"{equal} labeled rows; bounds allow for it"
        )

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show; the first has no name."""
        shown_rows: list[ShownRow] = [("", self.headline()), (ORIGIN, self.origin)]
        shown_rows += caveat_rows(self.all_caveats, printed=self.reasons[:1])
        if self.why_nothing:
            shown_rows.append(("Caveat", self.why_nothing))
        shown_rows += assumption_rows(self.assumptions)
        return warnings_first(shown_rows, self.all_caveats)

    def reading(self) -> str:
        """Return the certificate as text, with one line for each assumption."""
        return str(self)


def params_text(params: Options) -> str:
    """Return the parameters of a candidate as one line that Python can read.

    Examples
    --------
    >>> params_text({"C": 0.5, "kernel": "rbf"}), params_text({})
    ("C=0.5, kernel='rbf'", 'the only candidate')
    """
    shown = (f"{name}={value_text(value)}" for name, value in params.items())
    return ", ".join(shown) or "the only candidate"


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the shortest ending of each name that no other name has, by full name.

    Endings begin at a step of a pipeline.

    Examples
    --------
    >>> short_names(["model__C", "model__gamma"])
    {'model__C': 'C', 'model__gamma': 'gamma'}
    >>> list(short_names(["a__svc__C", "b__svc__C", "enc__imputer__strategy"]).values())
    ['a__svc__C', 'b__svc__C', 'strategy']
    """
    endings = {
        name: ["__".join(path[n:]) for n in reversed(range(len(path)))]
        for name, path in ((name, name.split("__")) for name in names)
    }
    counts = Counter(end for ends in endings.values() for end in ends)
    return {
        name: next((end for end in ends if counts[end] == 1), name)
        for name, ends in endings.items()
    }


def short_params_text(params: Options) -> str:
    """Return parameters as one line, by the endings of `short_names`.

    Examples
    --------
    >>> short_params_text({"svc__C": 0.5, "svc__kernel": "rbf"})
    "C=0.5, kernel='rbf'"
    """
    short = short_names(list(params))
    return params_text({short[name]: value for name, value in params.items()})
