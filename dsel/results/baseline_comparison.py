"""Comparison of a model with a baseline, from labeled rows alone."""

from collections.abc import Container
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Final

from dsel.cards import ShownRow
from dsel.results.bounded_values import BoundedValues
from dsel.results.caveats import Caveat, LimitsWithCaveats
from dsel.results.records import older_name
from dsel.results.renderings import Renderable
from dsel.rounded_texts import confidence, count_of, points_at_least, points_at_most

FIXED: Final = (
    "the baseline was trained on none of these labels, and was not chosen by them"
)
"""Assumption about a baseline that is a model."""
BY_DESIGN: Final = (
    "the largest class is that of the rows that a model was trained on; the rows on "
    "which both are compared took no part in naming it"
)
"""Reason why the largest class as a baseline needs no assumption."""


@dataclass(frozen=True, repr=False, eq=False)
class BaselineComparison(LimitsWithCaveats, Renderable):
    """An upper limit of the error of one model less that of a baseline.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta``, a delta of its own, the error of
    the model exceeds that of the baseline by at most ``upper``; and with probability at
    least ``1 - 2 delta`` the bounds of the search hold, too.
    Assumes: what the certificate of the search lists; a baseline that was trained on
    none of the labeled rows and not chosen by them, or that predicts the largest class
    of the rows that a model was trained on.
    Source: the sign test; :func:`dsel.bounds.baseline_limits`.

    Examples
    --------
    >>> share = "model trained on 80% of the labels"
    >>> made = BaselineComparison(
    ...     0.05, share, "the baseline (LinearSVC)",
    ...     BoundedValues((-0.0312,), own=((3 - 25) / 120,)), 120, 25, 3)
    >>> made.is_better
    True
    >>> print(made.headline())  # doctest: +NORMALIZE_WHITESPACE
    Better than the baseline (LinearSVC): errs at least 3.1 percentage points less
    (95% confidence), model trained on 80% of the labels
    """

    delta: float
    """Probability that the limit fails, in addition to that of the bounds."""
    model_text: str = field(metadata=older_name("model"))
    """Description of the model that is compared."""
    baseline: str
    """Description of the baseline."""
    difference: BoundedValues
    """The error of the model minus that of the baseline: a single number with an upper
    limit."""
    n_rows: int
    """Labeled rows of the fold, on which its model was not trained."""
    model_right: int
    """Rows of the fold that only its model predicts correctly."""
    baseline_right: int
    """Rows of the fold that only the baseline predicts correctly."""
    label_term: float = nan
    """Part of ``upper`` from the rows of the fold, for the model trained on all labels;
    the other part is from the pool. NaN for the model of a fold."""
    largest_class: str = ""
    """The class that the baseline always predicts, the largest one of the rows that the
    model was trained on; empty for another baseline."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the model's certificate; `reasons` are those that void limits."""

    @property
    def upper(self) -> float:
        """Upper limit of the error of the model less that of the baseline."""
        return self.difference.limits[0]

    @property
    def is_better(self) -> bool:
        """Whether the model is proved to err less than the baseline."""
        return self.certified and self.upper < 0

    def headline(self, printed: Container[str] = ()) -> str:
        """Return the verdict in one line, rounded so that it still holds.

        Parameters
        ----------
        printed
            Reasons against the guarantee that were printed above: they are not
            repeated.

        Returns
        -------
        str
            Such as "Better than the baseline (LinearSVC): errs at least 3.1 percentage
            points less".
        """
        if self.reasons:
            reason = self.reasons[0]
            why = "for the reason above" if reason in printed else f"since {reason}"
            return (
                f"No guarantee, {why}: whether it errs less than {self.baseline}, "
                f"{self.model_text}"
            )
        level = f"{confidence(self.delta)}% confidence"
        # An upper limit above 0 proves nothing: the model may be better or worse.
        if self.upper < 0:
            least = points_at_least(-self.upper)
            verdict = f"Better than {self.baseline}: errs at least {least}"
            # The difference is proved, but may be too small to matter.
            if least == "0.0":
                return (
                    f"Better than {self.baseline}, perhaps by less than 0.1 "
                    f"percentage points ({level}), {self.model_text}"
                )
            return f"{verdict} percentage points less ({level}), {self.model_text}"
        return (
            f"Not proved better than {self.baseline}: errs at most "
            f"{points_at_most(self.upper)} percentage points more ({level}), "
            f"{self.model_text}"
        )

    @property
    def counts(self) -> str:
        """Sentence with the counts behind the limit."""
        rows = count_of(self.n_rows, "row")
        is_of_fold = isnan(self.label_term)
        model = "the model" if is_of_fold else "the model of a fold"
        # The training rows of another baseline are assumed, and printed as `FIXED`.
        models_text = "neither has" if self.largest_class else "the model has not"
        text = (
            f"of {rows} that {models_text} seen, only {model} is right on "
            f"{self.model_right:,}, only the baseline on {self.baseline_right:,}"
        )
        if is_of_fold:
            return text
        more = points_at_most(self.upper - self.label_term)
        return (
            f"{text}; the model trained on all labels errs at most {more} percentage "
            f"points more than that of the fold, from the pool"
        )

    @property
    def joint_sentence(self) -> str:
        """Sentence with the confidence of bounds and comparison together."""
        both = confidence(min(1.0, 2 * self.delta))
        return (
            f"the comparison fails with a probability of at most "
            f"{100 * self.delta:g}%, and so do the bounds: all of them hold together "
            f"with {both}% confidence; for {confidence(self.delta)}% pass "
            f"delta={self.delta / 2:g}"
        )

    def shown_rows(self) -> list[ShownRow]:
        """Return the verdict, the counts behind it, and its assumptions."""
        caveats = [("Caveat", reason) for reason in self.reasons[1:]]
        return [("", self.headline()), *caveats, *self.details()]

    def in_short(self) -> list[ShownRow]:
        """Return the counts behind the verdict, and its assumption if there is one."""
        both = confidence(min(1.0, 2 * self.delta))
        text = self.counts
        if self.certified:
            text += (
                f"; with the bounds of the models this holds at {both}% confidence "
                f"({confidence(self.delta)}% with delta={self.delta / 2:g})"
            )
        assumed = [] if self.largest_class else [("Assumes", FIXED)]
        return [("Baseline", text), *assumed]

    def details(self) -> list[ShownRow]:
        """Return the counts behind the verdict, its confidence and its assumption."""
        joint = [("Caveat", self.joint_sentence)] if self.certified else []
        return [
            ("Baseline", self.counts),
            *joint,
            ("Caveat", BY_DESIGN) if self.largest_class else ("Assumes", FIXED),
        ]
