"""Whether a model is proved to err less than a baseline, from labeled rows alone."""

from collections.abc import Container
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

from dsel.cards import Fact
from dsel.results.caveats import Caveat, LimitsWithCaveats
from dsel.results.told import Told
from dsel.rounded_texts import (
    confidence,
    count_of,
    points_at_least,
    points_at_most,
)

FIXED: Final = (
    "the baseline was trained on none of these labels, and was not chosen by them"
)
"""What is assumed of a baseline that is a model."""
BY_DESIGN: Final = (
    "the largest class is that of the labels that a model was trained on: no label by "
    "which both are compared decides it"
)
"""Why of the largest class nothing need be assumed."""


@dataclass(frozen=True, eq=False)
class BaselineComparison(LimitsWithCaveats, Told):
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
    ...     0.05, share, "the baseline (LinearSVC)", -0.0312, 120, 25, 3)
    >>> made.is_better
    True
    >>> print(made.headline())  # doctest: +NORMALIZE_WHITESPACE
    Better than the baseline (LinearSVC): errs at least 3.1 percentage points less
    (95% confidence), model trained on 80% of the labels
    """

    delta: float
    """Probability with which the limit may fail; that of the bounds is another one."""
    model: str
    """The model that is compared, in words."""
    baseline: str
    """What it is compared with, in words."""
    upper: float
    """Upper limit of the error of the model less that of the baseline."""
    n_rows: int
    """Labeled rows of the fold, which neither has seen."""
    model_right: int
    """Those of them that only the model of the fold predicts rightly."""
    baseline_right: int
    """Those that only the baseline predicts rightly."""
    estimate: float = nan
    """The difference on the rows of all folds together: no guarantee."""
    label_term: float = nan
    """Part of ``upper`` from the rows of the fold, of the model of all labels, whose
    other part is from the pool; NaN of the model of a fold."""
    largest_class: str = ""
    """The class that the baseline always predicts, the largest one of the rows that the
    model was trained on; empty of another baseline."""
    caveats: tuple[Caveat, ...] = ()
    """Those of the certificate of the model; `remarks` are those that void limits."""

    @property
    def certified(self) -> bool:
        """Whether the limit is a guarantee: nothing speaks against it."""
        return not self.remarks

    @property
    def is_better(self) -> bool:
        """Whether the model is proved to err less than the baseline."""
        return self.certified and self.upper < 0

    def headline(self, known: Container[str] = ()) -> str:
        """Return the verdict in one line, rounded so that it holds.

        Of the `known` reasons why it may be no guarantee a reader was told before.
        """
        if self.remarks:
            reason = self.remarks[0]
            why = "for the reason above" if reason in known else f"since {reason}"
            return (
                f"No guarantee, {why}: whether it errs less than {self.baseline}, "
                f"{self.model}"
            )
        sure = f"{confidence(self.delta)}% confidence"
        if self.upper < 0:
            return (
                f"Better than {self.baseline}: errs at least "
                f"{points_at_least(-self.upper)} percentage points less ({sure}), "
                f"{self.model}"
            )
        return (
            f"Not proved better than {self.baseline}: errs at most "
            f"{points_at_most(self.upper)} percentage points more ({sure}), "
            f"{self.model}"
        )

    @property
    def counts(self) -> str:
        """What the limit rests on, in words."""
        rows, is_of_fold = count_of(self.n_rows, "row"), isnan(self.label_term)
        model = "the model" if is_of_fold else "the model of a fold"
        text = (
            f"of {rows} that neither has seen, only {model} is right on "
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
    def joint(self) -> str:
        """With which confidence it holds together with the bounds, in words."""
        both = confidence(min(1.0, 2 * self.delta))
        return (
            f"the comparison with the baseline has a delta of its own; bounds and "
            f"comparison hold together with {both}% confidence"
        )

    def facts(self) -> list[Fact]:
        """Return the verdict, what it rests on, and what it assumes."""
        others = [("But", why) for why in self.remarks[1:]]
        return [("", self.headline()), *others, *self.details()]

    def details(self) -> list[Fact]:
        """Return what the verdict rests on, and what it assumes of the baseline."""
        return [
            ("Baseline", self.counts),
            ("Note", self.joint),
            ("Note", BY_DESIGN) if self.largest_class else ("Assumes", FIXED),
        ]
