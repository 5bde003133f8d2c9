"""The wording of a choice: its rows of texts, its notes and the next steps.

`dsel.results.choice` has the models and their bounds.
"""

from dataclasses import replace
from math import isfinite, isinf
from typing import TYPE_CHECKING, Final

from dsel.cards import ShownRow
from dsel.option_values import ALL_ROWS, FORGOTTEN_GROUPS, ONE_FOLD
from dsel.results.caveats import (
    NAMES,
    Effect,
    caveat_rows,
    collect_caveats,
    join_advice,
    merge_models,
    texts_of,
    warnings_first,
)
from dsel.results.certificate import Certificate, note_on_estimate
from dsel.results.certificate_texts import (
    ESTIMATE,
    OF_LABELS,
    ORIGIN,
    estimate_text,
    finding_text,
    training_text,
    why_labels_give_no_bound,
    why_nothing,
)
from dsel.results.params_texts import params_text
from dsel.results.plan_calls import call_of_choice, main_delta
from dsel.results.renderings import reword_rows
from dsel.rounded_texts import confidence

if TYPE_CHECKING:
    from dsel.results.choice import Choice

CHOSEN: Final = "Chosen"
"""Name of rows of texts with the parameters that were chosen."""
COMPARED: Final = "Compare"
"""Name of rows of texts with which a bound can be compared."""
NEXT: Final = "Next"
"""Name of rows of texts that advise what to do next."""
ORDER: Final = {NAMES[Effect.INFO]: 1, "Assumes": 2, NEXT: 3}
"""Rank of rows by their names: limits of the statement come first, then the next steps.
All other rows are about the bounds, and come before these."""
MUCH: Final = 1.5
"""Ratio of two bounds from which the larger one is explained."""


def choice_rows(choice: "Choice") -> list[ShownRow]:
    """Return names and texts, which all renderings show; most have no name.

    The order follows the questions of a reader: the bounds and their subject, the
    limits of the statement, and the next steps. Warnings come before all.
    """
    printed, useless = [*choice.certificate.reasons[:1]], why_useless(choice)
    lines = [
        choice.certificate.headline(),
        *filter(None, [finding_text(choice.certificate)]),
        *_why_below_estimate(choice.certificate, printed),
        *[f"{useless[:1].upper()}{useless[1:]}"] * bool(useless),
    ]
    for name, other in choice.bounded_models.items():
        if name != choice.deploy:
            bound = other.certificate
            line = bound.headline_after("that both bounds hold", printed)
            # Parts of a distance need more words than the line has: the page has them.
            is_short = bound.is_rate and _prints_terms(choice)
            lines.append(line + f": {_terms(choice, bound)}" * is_short)
            lines += _why_below_estimate(bound, printed)
            printed += bound.reasons[:1]
    lines += _baseline_headlines(choice, printed)
    printed += [useless, *notes_without_print(choice)]
    whys = list(dict.fromkeys(_why_no_bounds(choice)))
    # A caveat about the labels to plan would repeat the next step.
    is_known = plan_call(choice) or _knows_needed_rows(choice)
    needs_labels = choice.certificate.needs_labels and not is_known
    by_text = merge_models(
        c for c in choice.all_caveats if needs_labels or not c.is_about_labels
    )
    shown_rows = [
        *(("", line) for line in lines),
        *((CHOSEN, text) for text in _parameters(choice)),
        *[("Deployed", deployed_text(choice))] * bool(deployed_text(choice)),
        *((ESTIMATE, text) for text in _estimates(choice)),
        *((COMPARED, text) for text in _comparisons(choice)),
        *(() if choice.baseline is None else choice.baseline.in_short()),
        *_query_lines(choice),
        *next_steps(choice),
        *((NAMES[Effect.INFO], reason) for reason in whys),
        *caveat_rows(collect_caveats(by_text.values()), printed=printed),
        *assumption_to_check(choice),
    ]
    texts = [c.text for c in choice.certificate.all_caveats]
    shown_rows = warnings_first(
        shown_rows, [by_text[text] for text in texts if text in by_text]
    )
    shown_rows.sort(key=lambda row: ORDER.get(row[0], 0))
    return reword_rows(shown_rows, choice.renamings)


def _query_lines(choice: "Choice") -> list[ShownRow]:
    """Return the lines on queried rows, whose labels bound the model of all rows."""
    if choice.queries is None:
        return []
    all_rows = choice.certificates.get(ALL_ROWS, choice.certificate)
    return choice.queries.lines(are_bounds=all_rows.certified)


def _parameters(choice: "Choice") -> list[str]:
    """Return the chosen parameters, and the procedure that chose them, as texts."""
    deployed = choice.bounded_models[choice.deploy]
    others = [
        model
        for model in choice.bounded_models.values()
        if model.params != deployed.params or model.candidate != deployed.candidate
    ]
    if choice.procedure and not any(m.params for m in (deployed, *others)):
        return [f"{choice.procedure}, as it is"]
    # Each search saw other labels, so both choices may be right.
    details = [
        *[f"by {choice.procedure}"] * bool(choice.procedure),
        *(
            f"{training_text(model.certificate)}: {params_text(model.params)}"
            for model in others
        ),
    ]
    end = f" ({'; '.join(details)})" if details else ""
    return [f"{params_text(deployed.params)}{end}"]


def deployed_text(choice: "Choice") -> str:
    """Return the deployed one of two models, as text; "" if there is only one."""
    other_names = [name for name in choice.bounded_models if name != choice.deploy]
    if not other_names:
        return ""
    other = choice.certificates[other_names[0]]
    if other.says_nothing or not other.certified:
        return "the first model"
    # The text does not name the better model: the run has measured no difference of
    # errors.
    return f"the first model (the second with deploy={other_names[0]!r})"


def _estimates(choice: "Choice") -> list[str]:
    """Return the text of the estimate; none if the number itself is one."""
    bound = choice.certificate
    estimate = bound.estimate
    if isinf(estimate):  # the warning about failed fits reports this
        estimate = bound.estimate_where_fitted
    if bound.is_estimate or not isfinite(estimate):
        return []
    how = "cross-validated"
    if bound.is_holdout:
        how = "this model on the held-out rows"
    return [estimate_text(replace(bound, estimate=estimate), how)]


def _why_below_estimate(bound: Certificate, printed: list[str]) -> list[str]:
    """Return why a bound is below its estimate, for the line behind it.

    The long text of the caveat is added to those that are `printed`.
    """
    if note_on_estimate(bound) not in texts_of(bound.all_caveats, Effect.INFO):
        return []
    printed.append(note_on_estimate(bound))
    estimate = bound.about(bound.estimate_where_fitted)
    return [
        f"Below the estimate, {estimate}: the rows that gave this bound were likely "
        f"lucky; it holds at {confidence(bound.delta)}% all the same, but plan with "
        f"{estimate}"
    ]


def _baseline_headlines(choice: "Choice", printed: list[str]) -> list[str]:
    """Return the comparisons with the baseline, the deployed model's first."""
    order = sorted(choice.bounded_models, key=lambda name: name != choice.deploy)
    comparisons = choice.by_model("baseline")
    return [comparisons[n].headline(printed) for n in order if n in comparisons]


def _why_no_bounds(choice: "Choice") -> list[str]:
    """Return why models have no bound; each model is named if these differ."""
    whys = {
        n: reason for n in choice.bounded_models if (reason := _why_no_bound(choice, n))
    }
    if len({*whys.values()}) < 2:
        return [*whys.values()]
    order = sorted(whys, key=lambda name: name != choice.deploy)
    return [f"{choice.certificates[n].model_text}: {whys[n]}" for n in order]


def _why_no_bound(choice: "Choice", name: str) -> str:
    """Return why a model has no bound, and which model has one; "" otherwise."""
    if _knows_needed_rows(choice) and not choice.certificates[name].has_failed_folds:
        return ""
    reason = why_nothing(choice.certificates[name])
    other = choice.certificates.get(ONE_FOLD)
    if not reason or name == ONE_FOLD or other is None or other.says_nothing:
        return reason
    return f"{reason}; the {other.model_text} has a bound"


def _knows_needed_rows(choice: "Choice") -> bool:
    """Return whether a caveat says how many rows a finite tolerance needs."""
    bound = choice.certificate
    if not (why_nothing(bound) and bound.is_tolerance) or bound.divides_delta:
        return False
    return any(caveat.infinite_loss == bound.loss for caveat in choice.caveats)


def assumption_to_check(choice: "Choice") -> list[ShownRow]:
    """Return the assumption that most often fails; none if no model has a bound."""
    bounds = [choice.certificate, *choice.certificates.values()]
    bounds = [bound for bound in bounds if bound.certified and not bound.says_nothing]
    if not bounds:
        return []
    [first] = [bound for bound in bounds[0].assumptions if bound.name == "A1"]
    text = first.statement
    if not bounds[0].n_groups:
        # A pool is needed to show that labeled rows are nearest to other labeled
        # ones.
        text += FORGOTTEN_GROUPS
        if not bounds[0].n_unlabeled:
            text += "; nothing tests this without a pool"
    return [("Assumes", f"{text}; the attribute `certificates` lists all")]


def _comparisons(choice: "Choice") -> list[str]:
    """Return numbers without a guarantee to compare the bounds with, in one row."""
    holdout = _holdout_line(choice)
    if holdout and _is_above_holdout(choice):
        holdout += ", but one that is taken now proves nothing"
    constant = ""
    if not why_useless(choice):  # this has the loss of the constant
        constant = choice.best_constant.compare(choice.certificate)
    texts = [*filter(None, [holdout, constant])]
    return ["; ".join(texts)] if texts else []


def _holdout_line(choice: "Choice") -> str:
    """Return the expected bound of a hold-out set in words; "" if it is not known."""
    if not holdout_text(choice):
        return ""
    # A hold-out set spends all of delta on its bound, whatever is reported.
    model = choice.bounded_models[choice.deploy]
    reports = (model.report, model.tolerances, model.report_by_value)
    holdout = f"20% hold-out set{' without a report' if any(reports) else ''}"
    return f"a {holdout} would give a bound of about {holdout_text(choice)} on average"


def holdout_text(choice: "Choice") -> str:
    """Return the expected bound of a 20% hold-out set, as text; "" if it is not known.

    It is rounded to the nearest, since it is no limit. If it equals the printed
    bound when rounded up, it is rounded up, so that it does not look smaller.
    """
    if not isfinite(value := choice.expected_holdout):
        return ""
    limit = choice.certificate.amount(value)
    is_equal = limit == choice.certificate.amount(choice.certificate.number)
    return limit if is_equal else choice.certificate.about(value)


def _is_between(choice: "Choice", value: float) -> bool:
    """Return whether a value is at least the first bound, and below the second."""
    first, second = choice.certificates.get(ONE_FOLD), choice.certificates.get(ALL_ROWS)
    if first is None or second is None:
        return False
    if not (first.certified and second.certified) or second.says_nothing:
        return False
    return first.bound <= value < second.bound


def _is_above_holdout(choice: "Choice") -> bool:
    """Return whether a hold-out set has the smallest bound on average."""
    bounds = choice.certificates.values()
    # This is False for NaN, where it is not known.
    return all(b.certified and choice.expected_holdout < b.bound for b in bounds)


def _is_much_larger(choice: "Choice") -> bool:
    """Return whether the bound of the all-rows model is much larger than the other."""
    least = min(bound.unclipped for bound in choice.certificates.values())
    bound = choice.certificates.get(ALL_ROWS)
    return bound is not None and bound.certified and bound.bound >= MUCH * least


def next_steps(choice: "Choice") -> list[ShownRow]:
    """Return the next steps by the bounds: plan more labels, or search otherwise.

    All that is for a search of other rows is one step.
    """
    steps = [*filter(None, [plan_question(choice)])]
    other_rows = [_fold_advice(choice)]
    if choice.queries is None and choice.forecast is not None:
        is_asked = _is_much_larger(choice) or _is_between(
            choice, choice.expected_holdout
        )
        # Where the hold-out set has the smallest bound, labels must change that.
        is_asked |= (
            _is_above_holdout(choice)
            and choice.forecast.all_rows_bound < choice.expected_holdout
        )
        all_rows = choice.certificates[ALL_ROWS].unclipped
        if is_asked and choice.forecast.would_help(all_rows):
            one_fold = choice.certificates[ONE_FOLD].unclipped
            other_rows.append(choice.forecast.advice(one_fold, all_rows))
    other_rows += [caveat.advice for caveat in choice.all_caveats]
    steps.append(join_advice([*other_rows, *_tests_of_constant(choice)]))
    return [(NEXT, step) for step in steps if step]


def _fold_advice(choice: "Choice") -> str:
    """Return what to do if a hold-out set has the smallest bound; "" if it has not."""
    if choice.fold_forecast is None or not _is_above_holdout(choice):
        return ""
    return choice.fold_forecast.advice


def plan_question(choice: "Choice") -> str:
    """Return the step that plans more labels; "" where they are not needed."""
    call = call_of_choice(choice)
    if not choice.certificate.needs_labels or call is None:
        return ""
    return (
        f"to see how many {unit_to_plan(choice)} a bound of {call.wanted_text} needs, "
        f"run {call}{note_on_delta(choice)}"
    )


def unit_to_plan(choice: "Choice") -> str:
    """Return what more of makes a bound smaller."""
    return "groups" if choice.certificate.n_groups else "labels"


def plan_call(choice: "Choice") -> str:
    """Return the call that prints how many labels a smaller bound needs, or ""."""
    call = call_of_choice(choice)
    return "" if call is None else str(call)


def note_on_delta(choice: "Choice") -> str:
    """Return why `plan_call` has another delta than the run; "" if it has not."""
    if main_delta(choice) == choice.delta:
        return ""
    return " (its delta is what the report leaves)"


def notes_without_print(choice: "Choice") -> list[str]:
    """Return notes that change neither a number nor the next step: no print has them.

    The attribute `all_caveats` and the page have them, and ``--verbose`` their numbers.
    """
    other_params = choice.fold_choices.note_on_others(
        choice.params, choice.bounded_models
    )
    return [*filter(None, [other_params]), *why_much_larger(choice)]


def why_much_larger(choice: "Choice") -> list[str]:
    """Return why the bound of the model of all rows is much larger."""
    if not _prints_terms(choice):
        return []
    bound = choice.certificates[ALL_ROWS]
    return [f"the {bound.model_text} has the larger bound: {_terms(choice, bound)}"]


def _prints_terms(choice: "Choice") -> bool:
    """Return whether the line of the larger bound has its parts."""
    bound = choice.certificates.get(ALL_ROWS)
    # Where the bound excludes nothing, the reason for that is printed instead.
    if bound is None or bound.says_nothing or not bound.terms:
        return False
    return _is_much_larger(choice)


def why_useless(choice: "Choice") -> str:
    """Return a note that a constant may be as good as the model; "" if it is not."""
    # A comparison with this constant says more than its loss on the labeled rows.
    if choice.baseline and choice.baseline.largest_class:
        return ""
    return choice.best_constant.why_useless(choice.certificate)


def _tests_of_constant(choice: "Choice") -> list[str]:
    """Return what a search of other rows shows about a constant that may be as good."""
    if not why_useless(choice) or choice.certificate.loss != "error":
        return []
    way = "baseline='largest class' tests whether the model is better"
    # The report that there is has the recall.
    recall = "report=True has the recall of each class"
    return [way] if choice.by_model("report") else [way, recall]


def origins(choice: "Choice") -> list[ShownRow]:
    """Return the origin of each model's number, then the choices without a fold.

    The deployed model comes first.
    """
    models = [choice.bounded_models[choice.deploy], *choice.bounded_models.values()]
    certificates = {model.name: model.certificate for model in models}
    first, *other_certificates = certificates.values()
    texts = [
        f"{other.model_text}: {_terms(choice, other)}{other.formula}"
        for other in other_certificates
        if other.terms
    ]
    lines = [(ORIGIN, text) for text in (first.origin, *texts)]
    folds = choice.choices_of_folds
    return [
        *lines,
        *[("Folds", f"the searches without a fold chose {folds}")] * bool(folds),
    ]


def _terms(choice: "Choice", bound: Certificate) -> str:
    """Return the parts of a bound, and why its first part is no other bound."""
    other = choice.certificates.get(ONE_FOLD)
    # Both are one number where they are of the same fold.
    if other is None or not bound.is_sum or bound.label_term == other.unclipped:
        return bound.terms
    return bound.terms.replace(
        OF_LABELS, f"{OF_LABELS} ({why_labels_give_no_bound(bound)})"
    )
