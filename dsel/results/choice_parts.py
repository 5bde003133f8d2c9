"""The parts of a choice: bounded models, forecasts, and constants for comparison."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, Final, NamedTuple, NoReturn, Self, TypeVar

from dsel.cards import ShownRow
from dsel.results import records
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.caveats import Caveat, collect_caveats
from dsel.results.certificate import ONE_OF_EACH, Certificate
from dsel.results.class_report import CertifiedReport
from dsel.results.params_texts import params_text
from dsel.results.renderings import Shown
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue
from dsel.rounded_texts import (
    about_percent,
    fraction_in_percent,
    terminal_width,
    wrap_line,
)

T = TypeVar("T")
Params = Mapping[str, Any]
"""Values of parameters by name; a value may be any object."""
AGREEMENT: Final = 0.75
"""Part of the folds with the same choice, above which another choice is an
exception."""
HARDLY_BETTER: Final = 0.9
"""Part of the loss of a constant from which on a tolerance is hardly better."""
MOST_CHOICES: Final = 5
"""How many choices of a procedure are listed."""


@dataclass(frozen=True, repr=False)
class BoundedModel(Shown):
    """One model of a search, with its parameters, certificate and reports."""

    name: str
    """``one_fold`` or ``all_rows``."""
    candidate: int
    """Number of its candidate, in the C order of the cube."""
    params: Params
    """Parameters that the grid sets, or that the procedure has chosen."""
    certificate: Certificate
    report: CertifiedReport | None = None
    """Recall and precision of every class, if the plan declared a report."""
    report_by_value: ReportByValue | None = None
    """Limits by the values of a column, if the plan declared one."""
    tolerances: ToleranceReport | None = None
    """The report of a regressor, if the plan declared it."""
    baseline: BaselineComparison | None = None
    """Comparison with the baseline, if the plan has one."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows of the fold of the model by true class and prediction, in the order of the
    classes, with a last row and column for others. They are an estimate, since the fold
    was chosen by its errors. Empty for numbers, more than 20 classes, the model of all
    rows, and with a report.
    """
    load_model: Callable[[], Any] | None = field(
        default=None, repr=False, compare=False, metadata=records.NOT_KEPT
    )
    """Function that returns the fitted estimator; None if the choice was read alone."""

    def shown_rows(self) -> list[ShownRow]:
        """Return the bound, and the parameters that were chosen."""
        chosen = ("Chosen", params_text(self.params))
        return [("", self.certificate.headline()), chosen]

    def with_caveats(self, *caveats: Caveat) -> Self:
        """Return the model with more caveats, in its certificate and its reports."""
        caveats = collect_caveats(caveats, self.certificate.caveats)
        certificate = replace(self.certificate, caveats=caveats)
        return replace(self, certificate=certificate).name_in_reports()

    def name_in_reports(self) -> Self:
        """Return the model with reports that have its name and its bound's caveats.

        A report is also printed alone, so it must show both.
        """
        bound = self.certificate
        shared: Any = {"model_text": bound.model_on_rows, "caveats": bound.all_caveats}
        reports: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("report", "report_by_value", "tolerances", "baseline")
        }
        renamed = {k: replace(v, **shared) for k, v in reports.items() if v is not None}
        return replace(self, **renamed)

    @property
    def fold(self) -> int | None:
        """Fold that it was trained without; None if it was trained on all rows."""
        return self.certificate.fold

    @property
    def model(self) -> Any:
        """The fitted estimator, loaded or fitted again if necessary.

        Raises ValueError if the choice was read alone: the outcome has its models.
        """
        if self.load_model is None:
            raise ValueError(
                f"the choice alone has no fitted model {self.name!r}; take it from "
                f"`bounded_models` or `models` of the outcome."
            )
        return self.load_model()


class ByModel(dict[str, T]):
    """A value of each bounded model by the model's name; unknown names are explained.

    It is printed with the first line of each value.
    """

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"no model {name!r}; it has {', '.join(map(repr, self))}")

    def __repr__(self) -> str:
        if not any(isinstance(value, Shown) for value in self.values()):
            return super().__repr__()
        lines = (f"{n!r}: {str(value).splitlines()[0]}" for n, value in self.items())
        text = "{" + ",\n ".join(lines) + "}"
        width = terminal_width()
        if width is None:
            return text
        return "\n".join(wrap_line(line, 2, width) for line in text.splitlines())


@dataclass(frozen=True)
class FoldForecast:
    """Average bound of the model of a fold, with some number of folds; no guarantee.

    It is that of models which err as often as those of the run.
    """

    n_folds: int
    bound: float
    is_of_run: bool
    """Whether the run had that many folds."""

    @property
    def advice(self) -> str:
        """What a search of other rows does if a hold-out set has the smaller bound."""
        bound = about_percent(self.bound)
        if self.is_of_run:
            return f"the same search: {bound} on average, so this run had bad luck"
        part = fraction_in_percent(1 - 1 / self.n_folds)
        return (
            f"the same call with cv={self.n_folds}: a first bound of about {bound} on "
            f"average, if models trained on {part} of the labels err as often"
        )


class FoldChoices(NamedTuple):
    """The parameters that searches chose without each fold."""

    params: tuple[Params | None, ...]
    """One for each fold; None where no model could be fitted. Empty if nothing was
    chosen."""

    @property
    def n_times(self) -> Counter[str]:
        """How often each choice was made, among folds that have a model."""
        chosen = (params for params in self.params if params is not None)
        return Counter(map(params_text, chosen))

    @property
    def texts(self) -> list[str]:
        """A text for each choice, the most frequent first; none without any."""
        if not any(self.params):
            return []
        counts, n = self.n_times, len(self.params)
        shown = [
            f"{params} ({n_times} of {n} times)"
            for params, n_times in counts.most_common(MOST_CHOICES)
        ]
        n_more = len(counts) - MOST_CHOICES
        return [*shown, f"and {n_more} more"] if n_more > 0 else shown

    def note_on_others(self, chosen: Params, models: Mapping[str, BoundedModel]) -> str:
        """Return a note if nearly all folds agree on others than the `chosen` ones.

        One of the bounded `models` may have these parameters.
        """
        # Neighbors in a grid are often equally good: the choices of folds differ in 20
        # of 24 searches with 400 labels, which is no reason to act.
        counts = self.n_times
        [(params, n_times)] = counts.most_common(1) or [("", 0)]
        n_folds = counts.total()
        is_rare = n_times < AGREEMENT * n_folds or not n_folds
        if is_rare or params == params_text(chosen):
            return ""
        text = (
            f"{n_times} of {n_folds} searches without a fold chose {params}, and the "
            f"deployed model has other parameters; its bound holds nevertheless"
        )
        model_names = {params_text(m.params): n for n, m in models.items()}
        if name := model_names.get(params):
            text += f", and deploy={name!r} has these parameters"
        return text


class BestConstant(NamedTuple):
    """The best constant prediction by a loss."""

    text: str = ""
    """Its value in words; "" if the loss has none, such as the recall of one class."""
    loss: float = nan
    """Its loss on the labeled rows, or on one row of each group, as the bound."""

    def compare(self, bound: Certificate) -> str:
        """Return what it gives, by the loss of a bound; "" without one."""
        if not self.text:
            return ""
        if bound.loss == "error":
            return (
                f"always predicting the largest class, {self.text}, errs on "
                f"{about_percent(self.loss)}{_of_groups(bound)}"
            )
        verb = "at most" if bound.is_tolerance else "about"
        what = bound.title[:1].lower() + bound.title[1:]
        loss = f"{bound.about(self.loss)}{_of_groups(bound)}"
        return f"always predicting {self.text}: {what} {verb} {loss}"

    def amount(self, bound: Certificate) -> str:
        """Return its loss as text, with the rows that it is of in runs with groups."""
        return f"about {bound.about(self.loss)}{_of_groups(bound)}"

    def why_useless(self, bound: Certificate) -> str:
        """Return a note that it may be as good as a model; "" if it is not."""
        # The line in place of a bound already says this.
        is_bound = bound.certified and not (bound.is_estimate or bound.says_nothing)
        if not is_bound or not self.text:
            return ""
        loss = f"{bound.about(self.loss)}{_of_groups(bound)}"
        constant = f"always predicting {self.text} ({loss})"
        if bound.bound < self.loss:
            # A reader of an amount does not see that it is nearly the spread of the
            # targets; a rate is seen next to that of the largest class.
            is_near = bound.is_tolerance and bound.bound >= HARDLY_BETTER * self.loss
            part = f"{100 * bound.bound / self.loss:.0f}%"
            return f"hardly better than {constant}: {part} of that" * is_near
        if bound.estimate_where_fitted >= self.loss:
            return (
                f"no better than {constant}, as far as these rows tell: neither the "
                f"bound nor the estimate is below that"
            )
        return (
            f"not proved better than {constant}: the bound is not below that, though "
            f"the estimate, {bound.about(bound.estimate_where_fitted)}, is"
        )


def _of_groups(bound: Certificate) -> str:
    """Return the rows on which a constant is compared, where rows come in groups."""
    return f", by {ONE_OF_EACH}" if bound.n_groups else ""
