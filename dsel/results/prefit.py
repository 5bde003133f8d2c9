"""The bound of a fitted model, from rows that it has not seen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from dsel.cards import Fact
from dsel.results.baseline import BaselineComparison
from dsel.results.by_value import ReportByValue
from dsel.results.caveats import Effect, caveat_facts, remarks_of, upgrade_texts
from dsel.results.certificate import Assumption, Certificate, CertifiedReport
from dsel.results.tolerances import ToleranceReport
from dsel.rounded_texts import confidence, count_of

AS_GIVEN: Final = "as_given"
"""The deployment of a model that dsel has not fitted."""
STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "these rows and those that the model will meet are independent draws from "
    "one population",
    "A3": "the model has not seen these rows, in training or in tuning",
    "A5": "the model was not picked by its errors on these rows",
    "A7": "`predict` labels each row by itself",
}
"""What the assumptions of a certificate say of a model that is fitted already."""
NEW_GROUPS: Final = (
    "these groups and those that the model will meet are independent draws from one "
    "population, and the rows of a group here are all of its rows or a random part"
)
"""What A1 says where rows come in groups."""


@dataclass(frozen=True, repr=False, eq=False)
class PrefitCertificate(Certificate):
    """An error bound of a model as it was given, and the assumptions behind it.

    Notes
    -----
    Guarantee: the loss of the model is at most ``bound`` with probability at least
    ``1 - delta`` over the draw of the rows.
    Assumes: A1, A3, A5 and A7, as they are printed.
    Source: the exact binomial limit of Clopper and Pearson,
    :func:`dsel.bounds.binomial_tail_inversion`.

    Examples
    --------
    >>> made = PrefitCertificate(
    ...     0.0417, 0.05, "holdout", "as_given", n_labeled=1000, estimate=0.031)
    >>> print(made.headline())  # doctest: +NORMALIZE_WHITESPACE
    Error at most 4.2% (95% confidence), model as given, 1,000 rows that it has
    not seen, as you declare (A3)
    """

    report: CertifiedReport | None = None
    """Recall and precision of every class, where ``report`` asked for it."""
    tolerances: ToleranceReport | None = None
    """The report of a regressor, where ``report`` asked for it."""
    by_value: ReportByValue | None = None
    """Limits by the values of a column, where ``report_by`` named one."""

    baseline: BaselineComparison | None = None
    """Whether the model is better than the baseline, where there is one."""

    def with_baseline(self, compared: BaselineComparison | None) -> Self:
        """Return it with a comparison, which gets the model's name and caveats."""
        if compared is None:
            return self
        named = replace(compared, model=self.model_on_rows, caveats=self.all_caveats)
        return replace(self, baseline=named)

    def certified_report(self) -> CertifiedReport | ToleranceReport:
        """Return recall and precision of every class, or tolerances of a regressor.

        All limits hold at once, together with the bound. ValueError where ``report``
        did not ask for it.
        """
        report = self.report or self.tolerances
        if report is None:
            raise ValueError(
                "`certified_report` has only what was declared; certify with "
                "report=True."
            )
        return replace(report, model=self.model_on_rows, caveats=self.all_caveats)

    def report_by_value(self) -> ReportByValue:
        """Return the error, or tolerance, for each value of the column.

        All limits hold at once, together with the bound. ValueError where
        ``report_by`` named no column.
        """
        if self.by_value is None:
            raise ValueError(
                "`report_by_value` has only what was declared; certify with "
                "report_by='site' or another column."
            )
        return replace(
            self.by_value, model=self.model_on_rows, caveats=self.all_caveats
        )

    @property
    def certificate(self) -> Self:
        """The certificate itself, as an `Outcome` has it."""
        return self

    @property
    def certificates(self) -> Mapping[str, Self]:
        """The certificate by its deployment, as an `Outcome` has them."""
        return {self.deploy: self}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What makes the number doubtful, though it breaks no assumption for sure."""
        return remarks_of(self.caveats)

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record whose remarks and reasons were texts in today's fields."""
        return upgrade_texts(super().upgrade_record(record), "remarks", Effect.WEAKENS)

    @property
    def model(self) -> str:
        """The model that it is about, in words."""
        unit = count_of(self.n_labeled, "group" if self.n_groups else "row")
        return f"model as given, {unit} that it has not seen, as you declare (A3)"

    def headline(self) -> str:
        """Return the one line that says how wrong the model can be, rounded up."""
        if self.is_tolerance and self.says_nothing:
            return f"{self.no_tolerance}, {self.model}"
        if self.says_nothing:
            return (
                f"No bound below {self.amount(self.largest)}: too few rows, "
                f"{self.model}"
            )
        amount, sure = self.amount(self.bound), confidence(self.delta)
        return f"{self.says} {amount}{self.on_rows} ({sure}% confidence), {self.model}"

    def facts(self) -> list[Fact]:
        """Return names and texts, which all renderings show; the first has no name."""
        seen = self.about(self.estimate)
        seen_here = f"{self.what} on these rows: {seen}"
        if self.is_tolerance:
            seen_here = f"On these rows {self.what} at most {seen}"
        return [
            ("", self.headline()),
            ("", seen_here),
            *([] if self.baseline is None else [("", self.baseline.headline())]),
            *([] if self.baseline is None else self.baseline.details()),
            *caveat_facts(self.all_caveats),
            *(("Assumes", _statement(each)) for each in self.assumptions),
        ]


def _statement(assumption: Assumption) -> str:
    text = assumption.says or STATEMENTS[assumption.name]
    return f"{assumption.name}, {assumption.state}: {text}"
