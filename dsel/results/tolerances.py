"""Tolerances of a regressor: limits of distances to the target, by fraction of rows."""

from dataclasses import dataclass, field
from decimal import Decimal
from math import floor, isfinite, log10

import pandas as pd

from dsel.cards import ShownRow
from dsel.results.bounded_values import (
    POOLED_NOTE,
    BoundedValues,
    TableReport,
    report_frame,
    report_table,
)
from dsel.results.caveats import Caveat
from dsel.results.records import older_name
from dsel.rounded_texts import NONE, at_most, confidence

DIGITS = 3


def amount_at_most(limit: float) -> str:
    """Return a limit in units of the target with three digits, never below it.

    Examples
    --------
    >>> amount_at_most(3.1201), amount_at_most(0.0451), amount_at_most(123401.0)
    ('3.13', '0.0451', '124,000')
    """
    if not isfinite(limit) or not limit:
        return "0" if limit == 0 else NONE
    # The limit is rounded up: one that is rounded to the nearest may fail more often
    # than delta.
    text = at_most(limit, decimals=DIGITS - 1 - floor(log10(abs(limit))))
    return f"{Decimal(text):,f}"


def amount_about(value: float) -> str:
    """Return an estimate with three digits.

    Examples
    --------
    >>> amount_about(3.1201), amount_about(123401.0), amount_about(1.0)
    ('3.12', '123,000', '1.00')
    """
    if not isfinite(value) or not value:
        return "0" if value == 0 else NONE
    decimals = DIGITS - 1 - floor(log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


@dataclass(frozen=True, repr=False, eq=False)
class ToleranceReport(TableReport):
    """Distances that given fractions of the predictions of a model keep, with limits.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` all tolerances hold at once,
    together with those of the other model.
    Assumes: what the certificate of the search lists.
    Source: :func:`dsel.bounds.tolerance_limit` and
    :func:`dsel.bounds.deviation_limit` at equal shares of delta, and the union bound.

    Examples
    --------
    >>> made = ToleranceReport(
    ...     0.05, "model trained on 80% of the labels", (0.5, 0.95),
    ...     BoundedValues((1.31, 6.02), own=(0.97, 4.11), pooled=(1.02, 3.9)))
    >>> print(made)
    Tolerances (95% confidence, all at once): model trained on 80% of the labels
    share of predictions   off by about  off by at most  pooled off by
    50%                           0.970            1.31           1.02
    95%                            4.11            6.02           3.90
    Pooled: models of all folds, on all labeled rows (an estimate)
    >>> float(made.to_dataframe().off_by_at_most[0.95])
    6.02
    """

    delta: float
    """Probability that any of the tolerances fails."""
    model_text: str = field(metadata=older_name("model"))
    """Description of the model."""
    fractions: tuple[float, ...] = field(metadata=older_name("shares"))
    """Fractions of the predictions."""
    off_by: BoundedValues
    """Distances, in units of the target, with upper limits: infinite if there are too
    few rows."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the model's certificate; `reasons` are those that void limits."""

    @property
    def off_by_at_most(self) -> tuple[float, ...]:
        """Upper limits of this model's distances."""
        return self.off_by.limits

    def to_dataframe(self) -> pd.DataFrame:
        """Return a frame with a row for each fraction, in units of the target.

        ``off_by`` is of this model, on rows that it had not seen; it is left out where
        no labeled row tests it. ``off_by_at_most`` is its limit, ``pooled_off_by`` is
        of the models of all folds. ``certified`` is False where the limits are no
        guarantee.
        """
        index = pd.Index(self.fractions, name="share")
        return report_frame(index, {"off_by": self.off_by}, "at_most", self.certified)

    def table(self) -> list[ShownRow]:
        """Return the heads of the table, and the texts of each fraction."""
        return report_table(
            [f"{100 * fraction:.6g}%" for fraction in self.fractions],
            ("share of predictions", "off by about", "off by at most", "pooled off by"),
            self.off_by,
            amount_about,
            amount_at_most,
        )

    def headline(self) -> str:
        """Return the line above the table."""
        if self.reasons:
            return f"No guarantee, since {self.reasons[0]}: {self.model_text}"
        level = f"{confidence(self.delta)}% confidence, all at once"
        return f"Tolerances ({level}): {self.model_text}"

    def notes(self) -> list[str]:
        """Return the lines below the table."""
        lines = [POOLED_NOTE] if self.off_by.pooled else []
        if not all(map(isfinite, self.off_by_at_most)):
            lines.append(
                f"{NONE}: too few labeled rows for this part of the predictions, fits "
                f"that failed, or predictions that are NaN or infinite"
            )
        return lines + [f"No guarantee: {reason}" for reason in self.reasons[1:]]
