"""The choice of a search: the models that it deploys, with their certificates.

The sentences about it are in `dsel.results.choice_texts`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any, Final, NoReturn, Self, TypeVar

from dsel.arrays import ArrayLike
from dsel.cards import ShownRow
from dsel.checks import attribute_error, check_choice, check_truth
from dsel.errors import Words, reword
from dsel.old_names import OldName, names_of
from dsel.option_values import ALL_ROWS
from dsel.results import choice_texts, records
from dsel.results.assumptions import Assumption
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.caveats import (
    Caveat,
    Effect,
    collect_caveats,
    for_other_rows,
    make_caveats,
    texts_that_void_nothing,
    upgrade_texts,
)
from dsel.results.certificate import ALL_CAVEATS, Certificate
from dsel.results.choice_parts import (
    BestConstant,
    BoundedModel,
    ByModel,
    FoldChoices,
    FoldForecast,
    Params,
)
from dsel.results.class_report import CertifiedReport
from dsel.results.queried_labels import LabelRules
from dsel.results.queries import EFFECT, NO_QUERIES, Queries, QueryForecast
from dsel.results.records import older_name
from dsel.results.renderings import Renderable
from dsel.results.tolerances import ToleranceReport
from dsel.results.value_report import ReportByValue
from dsel.results.values import decode_params, encode_params

T = TypeVar("T")
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
NAMES_OF_SEARCH: Final = ("best_index_", "best_score_", "cv_results_")
"""Attributes that a search of scikit-learn has itself, if it was certified as it is."""


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
    Compare   a 20% hold-out set would give a bound of about 16.4% on average
    Assumes   labeled rows and pool rows are independent draws from one population, no
    two of one customer (else this bound is void: run again with `groups`); the
    attribute `certificates` lists all
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
    """The class with the most labeled rows, of groups that with most counted rows, one
    of each; empty if the target has no classes."""
    largest_class_error: float = nan
    """Error of always predicting that class, on the same rows."""
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
    """Loss of always predicting that class, on the labeled rows, or one row of each
    group; NaN if the loss has no such constant, or an older version made the record."""
    median: float = nan
    """Median of the labeled targets of a regression, with groups of one row of each;
    NaN for classes."""
    median_loss: float = nan
    """Loss of always predicting the median, on the same rows."""
    n_folds: int = 0
    """Folds of the run; 0 in a record of an older version, and where candidates divide
    delta unequally."""
    five_fold_disagreement: float = nan
    """Rate of pool rows on which the model of all rows differs from one trained without
    20% of them, estimated from those of the folds; NaN without both models."""
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
        end = ""
        if name in NAMES_IN_OUTCOME:
            end = f"; it is `{NAMES_IN_OUTCOME[name]}`."
        if name in NAMES_OF_SEARCH:
            of_search = f"`outcome.model.{name}` if that is a search"
            end = f"{end[:-1]}, or {of_search}." if end else f"; it is {of_search}."
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
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of all bounds of the choice, each once, by their names."""
        by_name = {
            assumption.name: assumption
            for bound in self.certificates.values()
            for assumption in bound.assumptions
        }
        return tuple(assumption for _, assumption in sorted(by_name.items()))

    @property
    def all_caveats(self) -> tuple[Caveat, ...]:
        """All caveats of the choice and its models, the gravest first, each once."""
        model_caveats = (bound.all_caveats for bound in self.certificates.values())
        return collect_caveats(
            *model_caveats,
            make_caveats(Effect.INFO, filter(None, [choice_texts.why_useless(self)])),
            self.caveats,
            make_caveats(Effect.INFO, choice_texts.notes_without_print(self)),
        )

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
    def _calling_name(self) -> str:
        """The function of the user that made the choice, as messages name it."""
        return "certify" if self.procedure else "the search"

    @property
    def fold_choices(self) -> FoldChoices:
        """The candidate that was chosen without each fold, in words."""
        return FoldChoices(self.fold_params)

    @property
    def choices_of_folds(self) -> str:
        """The choices without each fold, as text; "" without any, or with one fold."""
        if self.certificate.is_holdout:
            return ""
        return "; ".join(self.fold_choices.texts)

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show; most have no name."""
        return choice_texts.choice_rows(self)
