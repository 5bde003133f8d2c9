"""The certificate of a model: its numbers, its caveats and its assumptions.

An upper limit is rounded up, so that the printed number is a bound, too. The sentences
about the numbers are in `dsel.results.certificate_texts`.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, field
from math import floor, isfinite, isinf, isnan, log10, nan
from typing import Any, Final, TypedDict

from dsel.bounds.binomial import binomial_tail_inversion
from dsel.cards import ShownRow
from dsel.losses.calls import rate_beyond
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import Loss, RowSentence
from dsel.losses.texts import loss_of_text
from dsel.old_names import OldName
from dsel.results import certificate_texts, records
from dsel.results.assumptions import ALWAYS, IN_SHORT, LOST, Assumption, full_list
from dsel.results.caveats import (
    Caveat,
    Effect,
    collect_caveats,
    make_caveats,
    texts_of,
    upgrade_texts,
)
from dsel.results.records import older_name
from dsel.results.renderings import Renderable
from dsel.results.tolerances import amount_about, amount_at_most
from dsel.rounded_texts import about_percent, at_most, confidence, count_of, in_percent

ALL_CAVEATS: Final = "all_caveats"
"""Key of `to_json` of certificates and choices, which follows from other fields."""
BOUNDED_EACH: Final = ("cv_bound", "best_fold", "holdout")
"""Criteria of 0.2 that bound every candidate; records of 0.2 do not say so."""
NOTED_DUPLICATES: Final = 0.1
"""Fraction of labeled rows above which duplicates in the pool are noted; fewer
duplicates are probably other records that look alike."""
LARGE: Final = 0.5
"""Part of the largest loss above which a bound says little."""
RANDOM_ROW: Final = "a random row of a new group"
"""Subject of a bound if rows come in groups, of which one row each is counted."""
ONE_OF_EACH: Final = "one row of each group"
"""The rows that bounds of rows in groups count, and what is compared with them."""


@dataclass(frozen=True)
class BinomialLimit:
    """The largest rate at which so few errors are not too unlikely.

    Examples
    --------
    >>> limit = BinomialLimit(0, 100, 0.0125)
    >>> print(limit, round(limit.rate, 4))
    B(0, 100, 0.0125) 0.0429
    """

    n_errors: int
    n_rows: int
    delta: float
    """Probability with which the true rate may be above."""

    @property
    def rate(self) -> float:
        """The limit, as `dsel.bounds.binomial_tail_inversion` has it."""
        limit = binomial_tail_inversion(self.n_errors, self.n_rows, delta=self.delta)
        return float(limit)

    def __str__(self) -> str:
        return f"B({self.n_errors}, {self.n_rows}, {self.delta:.6g})"


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
    n_fold_rows: int
    fold_delta: float
    limits: tuple[BinomialLimit, ...]
    trained_on: str


class NumberFields(LossFields, OriginFields, total=False):
    """Fields of a `Certificate` about its number alone, not about the run."""

    estimate: float
    estimate_of_models: float | None
    n_not_finite: int
    n_far_apart: int
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
    Assumes: what `assumptions` lists; for all bounds at once, what those of all list.
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
    """All assumptions of this bound, from `full_list`."""
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
    n_fold_rows: int = field(default=0, metadata=older_name("fold_rows"))
    """Rows of that fold that were counted; 0 in a record of an older version."""
    fold_delta: float = nan
    """Part of delta at which the rows of the fold bound the model; NaN if it was
    trained on all rows, and if a hold-out set bounds it."""
    limits: tuple[BinomialLimit, ...] = ()
    """Limits whose sum is the number, with their counts: of errors on a fold, and of
    pool rows on which two models differ. () if it is no such sum."""
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
    """Fraction of the predictions that keep the tolerance; NaN for another loss."""
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
    n_not_finite: int = 0
    """Labeled rows whose predictions are NaN or infinite, which count as infinitely far
    off; without those of failed fits. 0 if the loss is no distance."""
    n_far_apart: int = 0
    """Pool rows on which a prediction is NaN or infinite, or both models are apart by
    more than ten times a usual residual; 0 if the number is no tolerance of the model
    of all rows."""

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
            short = f"{violated.name} is violated ({IN_SHORT[violated.name]})"
            text = f"{short}: {violated.reason}"
            caveats.append(Caveat(Effect.VOIDS, text, short_text=short))
        if not texts_of(caveats, Effect.VOIDS):
            notes = [note_on_estimate(self)] * self.is_below_estimate
            notes += filter(None, [note_on_duplicates(self)])
            caveats += make_caveats(Effect.INFO, notes)
            # Where `why_nothing` tells that the model is poor, nothing is left to say.
            if self.needs_labels and not (self.says_nothing and self.errs_mostly):
                text = note_on_labels(self)
                caveats.append(Caveat(Effect.INFO, text, is_about_labels=True))
        return collect_caveats(caveats)

    @property
    def conditions(self) -> list[str]:
        """Conditions of the bound that nothing tests, such as a lack of copies."""
        warnings = [caveat for caveat in self.caveats if caveat.effect is Effect.WARNS]
        return list(
            dict.fromkeys(filter(None, (caveat.condition for caveat in warnings)))
        )

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
    def says_nothing(self) -> bool:
        """Whether the bound is the largest possible loss, or is printed as that."""
        if self.is_rate:  # a rate above this is printed as 100.0%
            return self.unclipped > 0.999
        return self.unclipped >= self.largest

    @property
    def needs_labels(self) -> bool:
        """Whether the number, if it is a bound, says little, and labels would help."""
        if self.is_estimate or self.has_failed_folds or self.n_not_finite:
            return False
        is_large = self.is_rate and self.number > LARGE * self.largest
        has_new_rows = not self.n_unlabeled or self.n_duplicates < self.n_unlabeled
        return has_new_rows and (is_large or self.says_nothing)

    @property
    def errs_mostly(self) -> bool:
        """Whether the estimate alone is so large that a better model is needed."""
        return self.is_rate and self.estimate_where_fitted > LARGE * self.largest

    @property
    def why_better_model(self) -> str:
        """Why more labels alone do not help where models err on most rows."""
        return (
            f"the estimate itself is {self.about(self.estimate_where_fitted)}, so that "
            f"only a better model makes it small"
        )

    @property
    def is_tolerance(self) -> bool:
        """Whether it bounds a distance to the target, in units of the target."""
        return isinf(self.largest)

    @property
    def is_rate(self) -> bool:
        """Whether it bounds a fraction of rows, which is shown in percent."""
        return not (self.is_cost or self.is_tolerance)

    @property
    def is_sum(self) -> bool:
        """Whether it is the sum of two known parts, of labeled rows and the pool."""
        return isfinite(self.label_term) and isfinite(self.disagreement_term)

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

    @property
    def _decimals(self) -> int:
        """Digits of a cost after the point, as texts show it."""
        return 3 - min(0, floor(log10(self.largest)))  # more where costs are small

    @property
    def most(self) -> str:
        """The largest value of the loss, as text."""
        return "100%" if self.is_rate else self.amount(self.largest)

    @property
    def model_text(self) -> str:
        """Description of the model."""
        return f"model trained {certificate_texts.training_text(self)}"

    @property
    def on_rows(self) -> str:
        """The rows that the bound is about, in words; "" if that is any new row."""
        return f" on {RANDOM_ROW}" if self.n_groups else ""

    @property
    def model_on_rows(self) -> str:
        """Description of the model, and of the rows that its numbers are about."""
        return f"{self.model_text},{self.on_rows}" if self.on_rows else self.model_text

    @property
    def counted(self) -> str:
        """Number of rows or groups that can be counted, in words."""
        if self.n_groups:
            return f"{count_of(self.n_groups, 'group')} of labeled rows"
        return count_of(self.n_labeled, "labeled row")

    @property
    def says(self) -> str:
        """First words of its line."""
        return f"{self.title} at most"

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
        return certificate_texts.statement_text(self, joint_note, printed)

    @property
    def terms(self) -> str:
        """Parts of the number, in words; "" if they are not known."""
        return certificate_texts.terms_text(self)

    @property
    def origin(self) -> str:
        """Parts of the number, its counts, and the method by its name."""
        text = f"{self.terms}{self.formula}"
        return f"{text} ({self.method})" if text else self.method

    @property
    def formula(self) -> str:
        """End of a text that has the counts behind the number; "" if it has none.

        ``B(c, m, delta)`` is the largest error rate at which at most c errors on m rows
        have the probability delta: ``scipy.stats.beta.ppf(1 - delta, c + 1, m - c)``.
        """
        return f": {' + '.join(map(str, self.limits))}" if self.limits else ""

    def in_numbers_of_rows(self, who: str = "the model") -> str:
        """Return the bound as a sentence about a number of new rows; may be ""."""
        return certificate_texts.sentence_about_rows(self, who)

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show; the first has no name."""
        return certificate_texts.certificate_rows(self)

    def reading(self) -> str:
        """Return the certificate as text, with one line for each assumption."""
        return str(self)


def note_on_estimate(bound: Certificate) -> str:
    """Return why an estimate may be above the bound, and what to plan with."""
    estimate = bound.about(bound.estimate_where_fitted)
    of = "folds that were fitted" if bound.has_failed_folds else "all folds"
    return (
        f"the estimate from {of} ({estimate}) is above the bound "
        f"({bound.amount(bound.number)}) of the {bound.model_text}: the bound has its "
        f"{confidence(bound.delta)}% confidence whatever the estimate is, but the "
        f"rows of the fold that gave it were likely lucky; plan with {estimate}"
    )


def note_on_labels(bound: Certificate) -> str:
    """Return whether more labels help against a bound that says little."""
    if bound.errs_mostly:
        return f"the bound says little: {bound.why_better_model}"
    return "the bound says little; more labels make it smaller"


def note_on_duplicates(bound: Certificate) -> str:
    """Return how many counted rows equal labeled ones; "" if few, or all, do."""
    n_rows = min(bound.n_labeled, bound.n_unlabeled or bound.n_labeled)
    is_all = bound.n_duplicates == bound.n_unlabeled  # `why_nothing` is about this
    is_few = bound.n_duplicates < NOTED_DUPLICATES * n_rows
    if not bound.n_duplicates or is_all or is_few:
        return ""
    equal, are = ("equals", "is") if bound.n_duplicates == 1 else ("equal", "are")
    if not bound.n_unlabeled:
        return (
            f"{bound.n_duplicates:,} of {count_of(bound.n_labeled, 'row')} "
            f"{equal} rows that the model was fitted to, and {are} not counted on"
        )
    return (
        f"{bound.n_duplicates:,} of {count_of(bound.n_unlabeled, 'pool row')} "
        f"{equal} labeled rows; bounds allow for it"
    )
