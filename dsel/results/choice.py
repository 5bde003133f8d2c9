"""The choice of a search: the models that it deploys, with their certificates."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, isinf, isnan, nan
from typing import Any, Final, NoReturn, Self, TypeVar

from dsel.arrays import ArrayLike
from dsel.cards import ShownRow
from dsel.checks import attribute_error, check_choice, check_truth
from dsel.errors import OldName, Words, names_of, reword
from dsel.option_values import ALL_ROWS, FORGOTTEN_GROUPS, ONE_FOLD
from dsel.results import records
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.by_class import CertifiedReport
from dsel.results.by_value import ReportByValue
from dsel.results.caveats import (
    NAMES,
    Caveat,
    Effect,
    caveat_rows,
    collect_caveats,
    for_other_rows,
    make_caveats,
    merge_models,
    texts_that_void_nothing,
    upgrade_texts,
    warnings_first,
)
from dsel.results.certificate import (
    ALL_CAVEATS,
    ESTIMATE,
    NO_QUERIES,
    OF_LABELS,
    ORIGIN,
    Certificate,
    params_text,
)
from dsel.results.choice_parts import (
    BestConstant,
    BoundedModel,
    ByModel,
    FoldChoices,
    FoldForecast,
    Params,
)
from dsel.results.queried_labels import LabelRules
from dsel.results.queries import EFFECT, Queries, QueryForecast
from dsel.results.records import older_name
from dsel.results.renderings import Renderable, reword_rows
from dsel.results.tolerances import ToleranceReport
from dsel.results.values import decode_params, encode_params

T = TypeVar("T")
CHOSEN: Final = "Chosen"
"""Name of rows of texts with the parameters that were chosen."""
COMPARED: Final = "Compare"
"""Name of rows of texts with which a bound can be compared."""
NEXT: Final = "Next"
"""Name of rows of texts that advise what to do next."""
ORDER: Final = {NAMES[Effect.INFO]: 1, "Assumes": 2, NEXT: 3}
"""Rank of rows by their names: limits of the statement come first, then the next steps.
All other rows are about the bounds, and come before these."""
USUAL_DELTA: Final = 0.05
"""Delta of a call that does not pass it."""
MUCH: Final = 1.5
"""Ratio of two bounds from which the larger one is explained."""
BY_MODEL: Final[Mapping[str, str]] = {
    "certificates": "certificate",
    "candidates": "candidate",
    "params_of": "params",
    "reports": "report",
    "reports_by_value": "report_by_value",
}
"""Fields of older records, each a dict by model, and the field of a model for each."""
OLD_HOLDOUT: Final = "held_out_fifth"
"""Name of the field `expected_holdout` in records of 0.2."""


NAMES_IN_OUTCOME: Final = {
    "best_estimator_": "outcome.model",
    "best_params_": "choice.params",
    "best_score_": "choice.criterion_value",
    "cv_results_": "outcome.results",
    "estimate": "outcome.certificate.estimate",
    **{
        name: f"outcome.{name}"
        for name in (
            "classes_",
            "decision_function",
            "model",
            "models",
            "monitor",
            "plot",
            "predict",
            "predict_proba",
            "results",
            "score",
        )
    },
}
"""Attributes that users of scikit-learn's searches expect, and the objects that have
them."""


@dataclass(frozen=True, repr=False, eq=False)
class Choice(Renderable):
    """The candidate that a criterion chose, and the error bound of its model.

    Examples
    --------
    >>> rows = {"trained_on": "80% of the labels", "n_unlabeled": 2000}
    >>> certificates = (
    ...     Certificate(0.1507, 0.05, "nested", "one_fold", **rows),
    ...     Certificate(0.1777, 0.05, "nested", "all_rows", **rows),
    ... )
    >>> models = {
    ...     made.model_name: BoundedModel(made.model_name, 3, {"C": 8.0}, made)
    ...     for made in certificates
    ... }
    >>> choice = Choice("cv_error", 0.11, models, "one_fold", 0.1635)
    >>> print(choice)  # doctest: +NORMALIZE_WHITESPACE
    Error at most 15.1% (95% confidence), model trained on 80% of the labels
    Error at most 17.8% (95% confidence that both bounds hold), model trained
    on all labels
    Chosen    C=8.0
    Deployed  the first model (the second with deploy='all_rows')
    Compare   a 20% hold-out set would give a bound of about 16.4% on average, between
    these two
    Assumes   labeled rows and pool rows are independent draws from one population
    (if several rows are of one customer, this bound is void: run again with
    `groups`); the attribute `certificate` lists all
    """

    criterion: str
    """Name of the criterion that chose."""
    criterion_value: float = field(metadata=older_name("estimate"))
    """The criterion's number for the candidate, unclipped."""
    bounded_models: Mapping[str, BoundedModel] = field(metadata=older_name("deployed"))
    """The models of the run, ``one_fold`` and ``all_rows``, with their bounds; the
    bounds of a nested search hold at once."""
    deploy: str
    """Name of the model that is deployed."""
    expected_holdout: float = nan
    """Bound that a 20% hold-out set would give on average at this error; NaN if it is
    not known."""
    caveats: tuple[Caveat, ...] = ()
    """Caveats of the choice, such as fits that failed."""
    queries: Queries | None = None
    """Rows queried where both models differ; None if none were planned."""
    procedure: str = ""
    """Name of the class that chose the parameters, such as ``GridSearchCV``, or of the
    class of the model if nothing was chosen; empty if the grid of the plan sets
    them."""
    fold_params: tuple[Params | None, ...] = ()
    """Parameters that were chosen without each fold, by its number; None where no model
    could be fitted. Empty if nothing was chosen."""
    largest_class: str = ""
    """The class with the most labeled rows; empty if the target has no classes."""
    largest_class_error: float = nan
    """Error of always predicting that class, on the labeled rows."""
    constant: str = ""
    """The class that is the best constant prediction by the loss of the search."""
    n_candidates: int = 0
    """Candidates that were compared; 0 in a record of an older version."""
    fold_forecast: FoldForecast | None = None
    """Number of folds with the smallest bound of the first model on average; None where
    a hold-out set has a smaller one, or if it is not known."""
    forecast: QueryForecast | None = None
    """Expected bounds of the same search with queried rows; None if the search has
    queried rows, or can have none."""
    constant_loss: float = nan
    """Loss of always predicting that class, on the labeled rows; NaN if the loss has no
    such constant, or an older version made the record."""
    median: float = nan
    """Median of the labeled targets of a regression; NaN for classes."""
    median_loss: float = nan
    """Loss of always predicting the median, on the labeled rows."""
    renamings: Words = field(
        default_factory=dict, repr=False, metadata=records.NOT_KEPT
    )
    """Words of the reader of its texts."""

    @property
    def _deployed(self) -> BoundedModel:
        return self.bounded_models[self.deploy]

    @property
    def candidate(self) -> int:
        """Number of the deployed model's candidate."""
        return self._deployed.candidate

    @property
    def params(self) -> Params:
        """Parameters of the deployed model's candidate."""
        return self._deployed.params

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """The bound of each model."""
        return self.by_model("certificate")

    def by_model(self, name: str) -> ByModel[Any]:
        """Return an attribute of each model that has it, by the names of the models."""
        values = {n: getattr(model, name) for n, model in self.bounded_models.items()}
        return ByModel({n: value for n, value in values.items() if value is not None})

    def __getattr__(self, name: str) -> NoReturn:
        end = f"; it is `{NAMES_IN_OUTCOME[name]}`." if name in NAMES_IN_OUTCOME else ""
        raise attribute_error("a choice", name, names_of(type(self)), end)

    @property
    def baseline(self) -> BaselineComparison | None:
        """Comparison of the deployed model with the baseline; None without one."""
        return self._deployed.baseline

    @property
    def remarks(self) -> tuple[str, ...]:
        """Texts of the caveats of the choice that do not void its bounds."""
        return texts_that_void_nothing(self.caveats)

    @property
    def all_caveats(self) -> tuple[Caveat, ...]:
        """All caveats of the choice and its models, the gravest first, each once."""
        model_caveats = (bound.all_caveats for bound in self.certificates.values())
        other_params = self.fold_choices.note_on_others(
            self.params, self.bounded_models
        )
        notes = [*filter(None, [other_params]), *self._why_much_larger()]
        return collect_caveats(
            *model_caveats,
            make_caveats(Effect.INFO, filter(None, [self.why_useless])),
            self.caveats,
            make_caveats(Effect.INFO, notes),
        )

    def _why_much_larger(self) -> list[str]:
        """Return why the bound of the model of all rows is much larger."""
        bound = self.certificates.get(ALL_ROWS)
        # Where the bound excludes nothing, the reason for that is printed instead.
        if bound is None or bound.says_nothing or not bound.terms:
            return []
        text = f"the {bound.model_text} has the larger bound: {self._terms(bound)}"
        return [text] * self._is_much_larger

    def _terms(self, bound: Certificate) -> str:
        """Return the parts of a bound, and why its first part is no other bound."""
        other = self.certificates.get(ONE_FOLD)
        # Both are one number where they are of the same fold.
        if other is None or not bound.is_sum or bound.label_term == other.unclipped:
            return bound.terms
        return bound.terms.replace(OF_LABELS, f"{OF_LABELS} ({bound.part_of_labels})")

    @property
    def _is_much_larger(self) -> bool:
        """Whether the bound of the model of all rows is much larger than the other."""
        least = min(bound.unclipped for bound in self.certificates.values())
        bound = self.certificates.get(ALL_ROWS)
        return bound is not None and bound.certified and bound.bound >= MUCH * least

    def next_steps(self) -> list[ShownRow]:
        """Return the next steps by the bounds: plan more labels, or query rows."""
        bound, steps = self.certificate, list[str]()
        if bound.needs_labels and self.plan_call:
            wanted = f"{100 * float(self.planned_options['wanted']):g}%"
            unit = "groups" if bound.n_groups else "labels"
            steps.append(
                f"to see how many {unit} a bound of {wanted} needs, run "
                f"{self.plan_call}"
            )
        if self.queries is None and self.forecast is not None:
            is_asked = self._is_much_larger or self._is_between(self.expected_holdout)
            # Where the hold-out set has the smallest bound, labels must change that.
            is_asked |= (
                self._is_above_holdout
                and self.forecast.all_rows_bound < self.expected_holdout
            )
            all_rows = self.certificates[ALL_ROWS].unclipped
            if is_asked and self.forecast.would_help(all_rows):
                one_fold = self.certificates[ONE_FOLD].unclipped
                steps.append(self.forecast.advice(one_fold, all_rows))
        if self._fold_advice:
            steps.append(self._fold_advice)
        return [(NEXT, step) for step in steps]

    @property
    def _fold_advice(self) -> str:
        """What to do if a hold-out set has the smallest bound; "" if it has not."""
        if self.fold_forecast is None or not self._is_above_holdout:
            return ""
        return self.fold_forecast.advice(self._holdout_line)

    @property
    def _is_above_holdout(self) -> bool:
        """Whether a hold-out set has the smallest bound on average."""
        bounds = self.certificates.values()
        # This is False for NaN, where it is not known.
        return all(b.certified and self.expected_holdout < b.bound for b in bounds)

    @property
    def plan_call(self) -> str:
        """Call that prints how many labels a smaller bound needs; "" if none is known.

        The bound is one in the middle between the present one and the estimate.
        """
        options = [f"{name}={value}" for name, value in self.planned_options.items()]
        bound = self.certificate
        rows = f"{bound.n_groups or bound.n_labeled}, {bound.n_unlabeled}"
        return f"dsel.plan_bound({rows}, {', '.join(options)})" if options else ""

    @property
    def planned_options(self) -> dict[str, str]:
        """Options of `plan_call` by name; empty without one."""
        bound = self.certificate
        estimate = bound.estimate_where_fitted
        wanted = round((estimate + min(bound.number, 1.0)) / 2, 2)
        if bound.loss != "error" or not 0 < estimate < wanted < 1:
            return {}
        options = {
            "n_candidates": str(max(1, self.n_candidates)),
            "error": f"{estimate:.3g}",
            "wanted": f"{wanted:g}",
        }
        return options | (
            {} if self.delta == USUAL_DELTA else {"delta": f"{self.delta:g}"}
        )

    def _is_between(self, value: float) -> bool:
        """Return whether a value is at least the first bound, and below the second."""
        first, second = self.certificates.get(ONE_FOLD), self.certificates.get(ALL_ROWS)
        if first is None or second is None:
            return False
        if not (first.certified and second.certified) or second.says_nothing:
            return False
        return first.bound <= value < second.bound

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2 with caveats for remarks, and records of models."""
        # It follows from the other fields.
        record = {key: value for key, value in record.items() if key != ALL_CAVEATS}
        if OLD_HOLDOUT in record:
            record = dict(record)
            record["expected_holdout"] = record.pop(OLD_HOLDOUT)
        record = upgrade_texts(record, "remarks", Effect.INFO)
        # Version 0.2 wrote one dict for each field of the models. A field of another
        # type stays, and is refused as an unknown field.
        by_model = {name: record.get(name) or {} for name in BY_MODEL}
        certificates = by_model["certificates"]
        is_older = certificates and all(isinstance(d, dict) for d in by_model.values())
        if "deployed" in record or not is_older:
            return record
        # Models without a dict of their own have the chosen parameters.
        chosen = {name: record.get(name) for name in ("candidate", "params")}
        deployed = {
            name: {"name": name, **chosen}
            | {BY_MODEL[key]: d[name] for key, d in by_model.items() if name in d}
            for name in certificates
        }
        kept_fields = {k: v for k, v in record.items() if k not in {*BY_MODEL, *chosen}}
        return {**kept_fields, "deployed": deployed}

    candidates = OldName.by_model("candidate")
    params_of = OldName.by_model("params")
    reports = OldName.by_model("report")
    held_out_fifth = OldName("expected_holdout")
    estimate = OldName("criterion_value")

    def to_json(self) -> str:
        """Return all fields, with parameters as texts, and `all_caveats`.

        The labels keep 1, 1.0 and "1" apart.
        """
        record = json.loads(records.to_json(self._map_params(encode_params)))
        return json.dumps(record | {ALL_CAVEATS: records.to_record(self.all_caveats)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; parameters are as `read_entry` reads them."""
        choice = super().from_json(text)
        if choice.deploy not in choice.bounded_models:
            raise ValueError(f"a choice of {choice.deploy!r} has no such model")
        return choice._map_params(decode_params)

    def _map_params(self, change: Callable[[Params], Params]) -> Self:
        """Return the choice with the parameters of every model changed."""
        return replace(
            self,
            bounded_models={
                name: replace(model, params=change(model.params))
                for name, model in self.bounded_models.items()
            },
            fold_params=tuple(
                None if params is None else change(params)
                for params in self.fold_params
            ),
        )

    def report(self, deploy: str | None = None) -> CertifiedReport | ToleranceReport:
        """Return the certified report of a model, by default the deployed one.

        Parameters
        ----------
        deploy
            ``"one_fold"`` or ``"all_rows"``.

        Returns
        -------
        CertifiedReport or ToleranceReport
            Limits of a classifier's classes, or of a regressor's tolerances.

        Raises
        ------
        ValueError
            If the plan declared no report.
        """
        reports = self.by_model("report") or self.by_model("tolerances")
        by_value = self.by_model("report_by_value")
        if not reports:
            other = "; limits by value are in report_by_value()"
            way = f"pass report=True to {self._calling_name}, and an `out` of its own"
            text = (
                f"no report was declared before the run, and what was not declared is "
                f"not certified; {for_other_rows(way)}"
                f"{other if by_value else ''}."
            )
            raise ValueError(reword(text, self.renamings))
        name = check_choice(deploy or self.deploy, "deploy", tuple(reports))
        report: CertifiedReport | ToleranceReport = reports[name]
        return report

    def report_by_value(self, deploy: str | None = None) -> ReportByValue:
        """Return limits for each value of the column that was declared.

        Parameters
        ----------
        deploy
            ``"one_fold"`` or ``"all_rows"``; by default the deployed model.

        Returns
        -------
        ReportByValue
            Limits of the error, or tolerances, which hold all at once.

        Raises
        ------
        ValueError
            If the plan declared no column by ``report_by``.
        """
        reports = self.by_model("report_by_value")
        if not reports:
            way = (
                f"pass report_by='site' or another column to {self._calling_name}, and "
                f"an `out` of its own"
            )
            text = (
                f"no column to report by was declared before the run, and what was not "
                f"declared is not certified; {for_other_rows(way)}."
            )
            raise ValueError(reword(text, self.renamings))
        name = check_choice(deploy or self.deploy, "deploy", tuple(reports))
        report: ReportByValue = reports[name]
        return report

    def certify_with_labels(
        self,
        labels: ArrayLike,
        *,
        partial: bool = False,
        allow_unknown: bool = False,
        corrected: bool = False,
    ) -> Self:
        """Return the choice with labels of the queried rows.

        Parameters
        ----------
        labels, partial, allow_unknown, corrected
            As for `Outcome.certify_with_labels`.

        Returns
        -------
        Choice
            With the bound that these labels give for the model trained on all rows.

        Raises
        ------
        ValueError
            If no rows were queried, their labels are known already, or `labels` are
            not those of the queried rows.
        """
        rules = LabelRules(
            check_truth(partial, "partial"),
            check_truth(allow_unknown, "allow_unknown"),
            check_truth(corrected, "corrected"),
            effect=EFFECT,
        )
        return self.with_labels(labels, rules)

    def with_labels(self, labels: ArrayLike, rules: LabelRules) -> Self:
        """Return the choice with labels that are usable by these rules."""
        if self.queries is None:
            raise ValueError(NO_QUERIES)
        queries = self.queries.with_labels(labels, rules)
        certificate = self.certificates[ALL_ROWS]
        # Delta was divided between both before the run, so they hold at once, and the
        # smaller one may be taken.
        if queries.queried < queries.pool_only:
            certificate = replace(
                certificate,
                unclipped=queries.queried,
                label_term=queries.fold_limit,
                disagreement_term=queries.queried - queries.fold_limit,
                n_queried=len(queries.rows),
            )
        labeled = replace(self.bounded_models[ALL_ROWS], certificate=certificate)
        models = {**self.bounded_models, ALL_ROWS: labeled}
        return replace(self, bounded_models=models, queries=queries)

    @property
    def certificate(self) -> Certificate:
        """The certificate of the deployed model."""
        return self.certificates[self.deploy]

    @property
    def bound(self) -> float:
        """The certificate's bound; NaN if nothing is guaranteed.

        ``certificate.number`` has the number that is printed in any case.
        """
        return self.certificate.bound

    @property
    def delta(self) -> float:
        """Probability that the bound fails."""
        return self.certificate.delta

    @property
    def fold(self) -> int | None:
        """Fold that the model was trained without; None if trained on all rows."""
        return self.certificate.fold

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show; most have no name.

        The order follows the questions of a reader: the bounds and their subject, the
        limits of the statement, and the next steps. Warnings come before all.
        """
        printed = [*self.certificate.reasons[:1]]
        bounds = [self.certificate.headline()]
        for name, other in self.bounded_models.items():
            if name != self.deploy:
                bound = other.certificate
                bounds.append(bound.headline_after("that both bounds hold", printed))
                printed += bound.reasons[:1]
        lines = [
            bounds[0],
            *[f"{self.why_useless[:1].upper()}{self.why_useless[1:]}"]
            * bool(self.why_useless),
            *bounds[1:],
            *self._baseline_headlines(printed),
        ]
        whys = list(dict.fromkeys(self._why_no_bounds()))
        # A caveat about the labels to plan would repeat the next step.
        is_known = self.plan_call or self._knows_needed_rows
        needs_labels = self.certificate.needs_labels and not is_known
        by_text = merge_models(
            c for c in self.all_caveats if needs_labels or not c.is_about_labels
        )
        shown_rows = [
            *(("", line) for line in lines),
            *((CHOSEN, text) for text in self._choices()),
            *[("Deployed", self.deployed_text)] * bool(self.deployed_text),
            *((ESTIMATE, text) for text in self._estimate()),
            *((COMPARED, text) for text in self._comparisons()),
            *(() if self.baseline is None else self.baseline.details()),
            *(() if self.queries is None else self.queries.lines()),
            *self.next_steps(),
            *((NAMES[Effect.INFO], reason) for reason in whys),
            *caveat_rows(
                collect_caveats(by_text.values()), printed=[*printed, self.why_useless]
            ),
            *self.assumption(),
        ]
        texts = [c.text for c in self.certificate.all_caveats]
        shown_rows = warnings_first(
            shown_rows, [by_text[text] for text in texts if text in by_text]
        )
        shown_rows.sort(key=lambda row: ORDER.get(row[0], 0))
        return reword_rows(shown_rows, self.renamings)

    def _baseline_headlines(self, printed: list[str]) -> list[str]:
        """Return the comparisons with the baseline, the deployed model's first."""
        order = sorted(self.bounded_models, key=lambda name: name != self.deploy)
        comparisons = self.by_model("baseline")
        return [comparisons[n].headline(printed) for n in order if n in comparisons]

    def _why_no_bounds(self) -> list[str]:
        """Return why models have no bound; each model is named if these differ."""
        whys = {
            n: reason for n in self.bounded_models if (reason := self._why_no_bound(n))
        }
        if len({*whys.values()}) < 2:
            return [*whys.values()]
        order = sorted(whys, key=lambda name: name != self.deploy)
        return [f"{self.certificates[n].model_text}: {whys[n]}" for n in order]

    def assumption(self) -> list[ShownRow]:
        """Return the assumption that most often fails; none if no model has a bound."""
        bounds = [self.certificate, *self.certificates.values()]
        bounds = [
            bound for bound in bounds if bound.certified and not bound.says_nothing
        ]
        if not bounds:
            return []
        [first] = [bound for bound in bounds[0].assumptions if bound.name == "A1"]
        text = first.statement
        if not bounds[0].n_groups:
            # A pool is needed to show that labeled rows are nearest to other labeled
            # ones.
            if not bounds[0].n_unlabeled:
                text += ", which nothing tests without a pool"
            text += FORGOTTEN_GROUPS
        return [("Assumes", f"{text}; the attribute `certificate` lists all")]

    def _why_no_bound(self, name: str) -> str:
        """Return why a model has no bound, and which model has one; "" otherwise."""
        if self._knows_needed_rows and not self.certificates[name].has_failed_folds:
            return ""
        reason = self.certificates[name].why_nothing
        other = self.certificates.get(ONE_FOLD)
        if not reason or name == ONE_FOLD or other is None or other.says_nothing:
            return reason
        return f"{reason}; the {other.model_text} has a bound"

    @property
    def _knows_needed_rows(self) -> bool:
        """Whether a caveat says how many rows a finite tolerance needs."""
        bound = self.certificate
        if not (bound.why_nothing and bound.is_tolerance) or bound.divides_delta:
            return False
        return any(caveat.infinite_loss == bound.loss for caveat in self.caveats)

    @property
    def holdout_text(self) -> str:
        """The expected bound of a 20% hold-out set, as text; "" if it is not known.

        It is rounded to the nearest, since it is no limit. If it equals the printed
        bound when rounded up, it is rounded up, so that it does not look smaller.
        """
        if not isfinite(value := self.expected_holdout):
            return ""
        limit = self.certificate.amount(value)
        is_equal = limit == self.certificate.amount(self.certificate.number)
        return limit if is_equal else self.certificate.about(value)

    def origins(self) -> list[ShownRow]:
        """Return the origin of each model's number, then the choices without a fold.

        The deployed model comes first.
        """
        models = [self._deployed, *self.bounded_models.values()]
        certificates = {model.name: model.certificate for model in models}
        first, *other_certificates = certificates.values()
        texts = [
            f"{other.model_text}: {self._terms(other)}"
            for other in other_certificates
            if other.terms
        ]
        lines = [(ORIGIN, text) for text in (first.origin, *texts)]
        folds = self.choices_of_folds
        return [
            *lines,
            *[("Folds", f"the searches without a fold chose {folds}")] * bool(folds),
        ]

    @property
    def deployed_text(self) -> str:
        """The deployed one of two models, as text; "" if there is only one."""
        other_names = [name for name in self.bounded_models if name != self.deploy]
        if not other_names:
            return ""
        other = self.certificates[other_names[0]]
        if other.says_nothing or not other.certified:
            return "the first model"
        # The text does not name the better model: the run has measured no difference of
        # errors.
        return f"the first model (the second with deploy={other_names[0]!r})"

    def _estimate(self) -> list[str]:
        """Return the text of the estimate; none if the number itself is one."""
        bound = self.certificate
        estimate = bound.estimate
        if isinf(estimate):  # the warning about failed fits reports this
            estimate = bound.estimate_where_fitted
        if bound.is_estimate or not isfinite(estimate):
            return []
        how = "cross-validated"
        if bound.is_holdout:
            how = "this model on the held-out rows"
        return [replace(bound, estimate=estimate).estimate_text(how)]

    def _comparisons(self) -> list[str]:
        """Return texts of numbers without a guarantee, to compare the bounds with."""
        bound, line = self.certificate, self._holdout_line
        is_between = self.queries is None and self._is_between(self.expected_holdout)
        if is_between and self.holdout_text != bound.amount(bound.number):
            line += ", between these two"
        # The next step has the number if it is the smallest.
        texts = [line] if line and not self._fold_advice else []
        return [*texts, *filter(None, [self.best_constant.compare(bound)])]

    @property
    def _holdout_line(self) -> str:
        """The expected bound of a hold-out set in words; "" if it is not known."""
        if not self.holdout_text:
            return ""
        # A hold-out set spends all of delta on its bound, whatever is reported.
        model = self._deployed
        reports = (model.report, model.tolerances, model.report_by_value)
        holdout = f"20% hold-out set{' without a report' if any(reports) else ''}"
        return f"a {holdout} would give a bound of about {self.holdout_text} on average"

    @property
    def best_constant(self) -> BestConstant:
        """The best constant prediction by the loss of the search."""
        if not isnan(self.median_loss):
            return BestConstant(f"the median, {self.median:,.6g}", self.median_loss)
        if not isnan(self.constant_loss):
            return BestConstant(self.constant, self.constant_loss)
        # Older records have the largest class alone, the best constant for the error.
        if self.certificate.loss == "error" and not isnan(self.largest_class_error):
            return BestConstant(self.largest_class, self.largest_class_error)
        return BestConstant()

    @property
    def why_useless(self) -> str:
        """Note that a constant may be as good as the model; "" if it is not."""
        # A comparison with a baseline says more than a loss on the labeled rows.
        if self.baseline:
            return ""
        reason = self.best_constant.why_useless(self.certificate)
        return f"{reason}{self.baseline_advice}" if reason else ""

    @property
    def baseline_advice(self) -> str:
        """The comparison of a model with a constant, in words; "" if there is none."""
        if self.certificate.loss != "error":
            return ""
        way = "baseline='largest class' tests whether the model is better"
        if self.by_model("report"):
            seen = "see certified_report() for the recall of each class"
            return f"; {seen}; {for_other_rows(way)}"
        way += ", and report=True has the recall of each class"
        return f"; {for_other_rows(way)}"

    @property
    def _calling_name(self) -> str:
        """The function of the user that made the choice, as messages name it."""
        return "certify" if self.procedure else "the search"

    def _choices(self) -> list[str]:
        """Return the chosen parameters, and the procedure that chose them, as texts."""
        deployed = self.bounded_models[self.deploy]
        models = [
            deployed,
            *(
                model
                for model in self.bounded_models.values()
                if model.params != deployed.params
                or model.candidate != deployed.candidate
            ),
        ]
        if self.procedure and not any(model.params for model in models):
            return [f"{self.procedure}, as it is"]
        by = f"by {self.procedure} " if self.procedure else ""
        if len(models) == 1:
            end = f" ({by.strip()})" if by else ""
            return [f"{params_text(deployed.params)}{end}"]
        # Each search saw other labels, so both texts may be right.
        return [
            f"{params_text(model.params)} ({by}{model.certificate.training_text})"
            for model in models
        ]

    @property
    def fold_choices(self) -> FoldChoices:
        """The candidate that was chosen without each fold, in words."""
        return FoldChoices(self.fold_params)

    @property
    def choices_of_folds(self) -> str:
        """The choices without each fold, as text; "" without any."""
        return "; ".join(self.fold_choices.texts)
