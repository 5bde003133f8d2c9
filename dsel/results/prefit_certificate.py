"""The certificate of a fitted model, from rows that it was not trained on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NoReturn, Self

from dsel.cards import ShownRow
from dsel.checks import attribute_error
from dsel.old_names import names_of
from dsel.results.assumptions import STATEMENTS, Assumption, assumption_rows
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.caveats import caveat_rows, texts_that_void_nothing, warnings_first
from dsel.results.certificate import ONE_OF_EACH, Certificate
from dsel.results.certificate_texts import ESTIMATE, estimate_text, finding_text
from dsel.results.class_report import CertifiedReport
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue
from dsel.rounded_texts import count_of

NAMES_OF_MODEL: Final = (
    "classes_",
    "decision_function",
    "predict",
    "predict_proba",
    "predict_table",
    "score",
)
"""Attributes that a user may look for in the certificate of a fitted model."""
AS_GIVEN: Final = "as_given"
"""Name of a model that was fitted before the call."""
OF_FITTED: Final[Mapping[str, str]] = {
    **STATEMENTS,
    "A1": "these rows and those that the model will meet are independent draws from "
    "one population",
    "A3": "the model has not seen these rows, in training or in tuning; if it has, the "
    "bound is too small, and nothing here notices it",
    "A5": "the model was not picked by its errors on these rows",
}
"""Texts of the assumptions about a model that is fitted already."""
NEW_GROUPS: Final = (
    "these groups and those that the model will meet are independent draws from one "
    "population, and the rows of a group here are all of its rows or a random part"
)
"""Text of A1 if rows come in groups."""


@dataclass(frozen=True, repr=False, eq=False)
class PrefitCertificate(Certificate):
    """Error bound of a fitted model, and the assumptions on which it is based.

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
    Error at most 4.2% (95% confidence, if the model has not seen these 1,000
    rows), model as given
    """

    report: CertifiedReport | None = None
    """Recall and precision of every class, if ``report`` requested it."""
    tolerances: ToleranceReport | None = None
    """The report of a regressor, if ``report`` requested it."""
    by_value: ReportByValue | None = None
    """Limits by the values of a column, if ``report_by`` named one."""

    baseline: BaselineComparison | None = None
    """Comparison with the baseline, if there is one."""
    sources: dict[str, str] = field(default_factory=dict)
    """The subject of the certificate, for pages: the model, the date and the version of
    dsel. Empty in older records."""

    def with_baseline(self, compared: BaselineComparison | None) -> Self:
        """Return the certificate with a comparison, which gets its name and caveats."""
        if compared is None:
            return self
        named = replace(
            compared, model_text=self.model_on_rows, caveats=self.all_caveats
        )
        return replace(self, baseline=named)

    def certified_report(self) -> CertifiedReport | ToleranceReport:
        """Return recall and precision of every class, or tolerances of a regressor.

        Returns
        -------
        CertifiedReport or ToleranceReport
            Limits that hold all at once, together with the bound.

        Raises
        ------
        ValueError
            If ``report`` did not request it.
        """
        report = self.report or self.tolerances
        if report is None:
            raise ValueError(
                "`certified_report` has only what was declared; certify with "
                "report=True."
            )
        return replace(report, model_text=self.model_on_rows, caveats=self.all_caveats)

    def report_by_value(self) -> ReportByValue:
        """Return the error, or tolerance, for each value of the column.

        Returns
        -------
        ReportByValue
            Limits that hold all at once, together with the bound.

        Raises
        ------
        ValueError
            If ``report_by`` named no column.
        """
        if self.by_value is None:
            raise ValueError(
                "`report_by_value` has only what was declared; certify with "
                "report_by='site' or another column."
            )
        return replace(
            self.by_value, model_text=self.model_on_rows, caveats=self.all_caveats
        )

    if not TYPE_CHECKING:  # mypy would otherwise accept any name as an attribute

        def __getattr__(self, name: str) -> NoReturn:
            end = ""
            if name in NAMES_OF_MODEL:
                end = f"; it has no model: call `{name}` of the model itself."
            elif name.endswith("_") and not name.startswith("_"):
                end = f"; it has no model: read `{name}` of the model itself."
            elif name == "plot":
                end = "; dsel.plots.plot_certificates(it) draws its bound."
            names = names_of(type(self))
            raise attribute_error("a certificate of a fitted model", name, names, end)

    @property
    def certificate(self) -> Self:
        """The certificate itself, as an `Outcome` has it."""
        return self

    @property
    def choice(self) -> Self:
        """The certificate itself, since nothing was chosen."""
        return self

    @property
    def certificates(self) -> Mapping[str, Self]:
        """The certificate by the name of its model, as an `Outcome` has them."""
        return {self.model_name: self}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Texts of the caveats that weaken the number without voiding it."""
        return texts_that_void_nothing(self.caveats)

    @property
    def counted_rows(self) -> str:
        """Number of rows, or of groups with one row each, that were counted."""
        return count_of(self.n_labeled, "group" if self.n_groups else "row")

    @property
    def assumptions_in_words(self) -> tuple[Assumption, ...]:
        """The assumptions with the texts that they have for a fitted model."""
        return tuple(
            replace(assumption, says=assumption.says or OF_FITTED[assumption.name])
            for assumption in self.assumptions
        )

    @property
    def model_text(self) -> str:
        """Description of the model."""
        return "model as given"

    @property
    def model_on_rows(self) -> str:
        """Description of the model in reports, with the assumption about it."""
        return f"{super().model_on_rows}, if it has not seen these {self.counted_rows}"

    @property
    def conditions(self) -> list[str]:
        """Conditions of the bound that nothing tests, such as A3."""
        unseen = f"the model has not seen these {self.counted_rows}"
        return [*super().conditions, unseen]

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show; the first has no name."""
        baseline = self.baseline
        rows = ONE_OF_EACH if self.n_groups else "these rows"
        shown_rows = [
            ("", self.headline()),
            *[("", text) for text in [finding_text(self)] if text],
            *([] if baseline is None else [("", baseline.headline())]),
            (ESTIMATE, estimate_text(self, f"this model on {rows}")),
            *([] if baseline is None else baseline.details()),
            *caveat_rows(self.all_caveats, printed=self.reasons[:1]),
            *assumption_rows(self.assumptions_in_words),
        ]
        return warnings_first(shown_rows, self.all_caveats)
