"""Sentences of the page, for readers who know no statistics."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from dsel import names
from dsel.criteria import CRITERIA
from dsel.plots.spread import (
    BY_OTHER_FOLDS,
    fold_losses,
    has_single_fold,
    is_squared,
    name_chosen,
    name_cross_validation,
    name_of_fold_losses,
)
from dsel.report.page_tables import root_text
from dsel.results import Choice
from dsel.results.candidate_tables import all_params
from dsel.results.certificate import Certificate
from dsel.results.comparison import ModelComparison
from dsel.results.cube import read_counts
from dsel.results.params_texts import short_params_text
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.results.records import read_attribute
from dsel.results.run_tables import RunTables
from dsel.rounded_texts import about_percent, confidence, count_of
from dsel.search.design.certificate_methods import is_nested
from dsel.search.running.select import select


def title_of_search(results: xr.Dataset, tables: RunTables | None) -> str:
    """Return the title of the page, with target and table if they are known.

    Rows of Python have no names: learner, number of rows and date take their place.
    """
    procedure, n_rows = select(results).procedure, read_counts(results)[names.N_LABELED]
    learners = read_attribute(results, names.LEARNERS, json.loads, []) or [procedure]
    learner = learners[0] if len(learners) == 1 else ""
    if tables is None:
        # A pipeline that is certified is the learner itself.
        is_learner = procedure in ("", learner.partition(" (")[0])
        by = "" if is_learner else f"chosen by {procedure}"
        date = str(results.attrs.get("created_at", "")).partition("T")[0]
        about = [by, count_of(int(n_rows), "labeled row"), date]
    else:
        # The model stands below as its user wrote it, not as classes of a pipeline.
        table = f"{Path(tables.labeled).name}, {count_of(int(n_rows), 'labeled row')}"
        of = f" of {tables.target}" if tables.target else ""
        return f"How wrong predictions{of} can be: {table}"
    # The last step of a pipeline predicts.
    learner = learner.rpartition(", ")[2].rstrip(")")
    return (
        f"How wrong this {learner or 'model'} can be: {', '.join(filter(None, about))}"
    )


def plain_sentences(bound: Certificate, tables: RunTables | None) -> list[str]:
    """Return what the bound means and assumes, for readers who know no statistics.

    Empty where nothing is guaranteed, and where the bound excludes nothing.
    """
    if not bound.certified or bound.says_nothing:
        return []
    # The line below names the model that was chosen among several.
    has_one = tables is not None and tables.model and "," not in tables.model
    model = f" ({tables.model})" if tables is not None and has_one else ""
    chosen = "" if isinstance(bound, PrefitCertificate) else "chosen "
    new = "new groups of rows that come" if bound.n_groups else "new rows that come"
    table = f"those of {Path(tables.labeled).name}" if tables else "the labeled rows"
    conditions = "".join(f", and {condition}" for condition in bound.conditions)
    return [
        *filter(None, [bound.in_numbers_of_rows(f"the {chosen}model{model}")]),
        f"This is about {new} from the same source as {table}. It says "
        f"nothing about rows of another kind, such as a later year or another site. "
        f"{confidence(bound.delta)}% confidence: where the assumptions below "
        f"hold{conditions}, at most {100 * bound.delta:g}% of such statements "
        f"are false.",
    ]


def why_chosen(results: xr.Dataset, choice: Choice) -> str:
    """Return a sentence that compares the choice with the next best candidate."""
    losses, _, in_percent = fold_losses(results)
    is_whole = np.isfinite(losses).all(axis=1)
    if is_whole.sum() < 2 or not is_whole[choice.candidate]:
        return ""
    means = losses.mean(axis=1)
    about: Callable[[float], str]
    about = about_percent if in_percent else choice.certificate.about
    if is_squared(results):  # in units of the target
        about = root_text
    is_holdout = has_single_fold(results)
    where = "on the" if is_holdout else "in"
    what = f"{name_of_fold_losses(results)} {where} {name_cross_validation(results)}"
    others = np.flatnonzero(is_whole & (np.arange(len(means)) != choice.candidate))
    second = int(others[np.argmin(means[others])])
    least, most = (about(f(losses[choice.candidate])) for f in (np.min, np.max))
    other = (
        f"{short_params_text(all_params(results)[second])} has {about(means[second])}"
    )
    if means[second] < means[choice.candidate]:
        other += ", which is less. " + (
            "The choice was made without the fold that tests the chosen model, and on "
            "the other folds the chosen candidate was the best"
            if name_chosen(choice, means) == BY_OTHER_FOLDS
            else f"Candidates were ranked by {CRITERIA[choice.criterion].title}"
        )
    else:
        other = f"the next best candidate, {other}".replace(" has ", ", has ", 1)
    chosen, choices = short_params_text(choice.params), choice.choices_of_folds
    if is_holdout:
        return (
            f"{what[:1].upper()}{what[1:]}: {chosen} has "
            f"{about(means[choice.candidate])}; {other}."
        )
    return (
        f"{what[:1].upper()}{what[1:]}: {chosen} has "
        f"{about(means[choice.candidate])} on average over the folds, "
        f"from {least} to {most}; {other}. Differences that are small compared "
        f"to the spread of the folds mean little."
        + (f" The searches without a fold chose {choices}." if choices else "")
    )


def compare_estimates(choice: Choice) -> str:
    """Return how the estimate at the top of the page differs from candidates' errors.

    Empty where the page has one kind of estimate only.
    """
    bound = choice.certificate
    if not is_nested(bound) or not np.isfinite(bound.estimate) or choice.procedure:
        return ""
    estimate = bound.about(bound.estimate)
    text = (
        f"Inner cross-validation ranks candidates, with models that were trained "
        f"without two of the folds. The {estimate} at the top is about models that "
        f"were chosen and trained without one fold, and tested on it, all folds "
        f"together: it cross-validates the whole search, is an estimate, and not that "
        f"of a single model."
    )
    if not bound.certified or bound.says_nothing or bound.is_below_estimate:
        return text  # what is said at the top of such a bound is the advice
    amount, level = bound.amount(bound.bound), confidence(bound.delta)
    return f"{text} What you can promise is the bound, {amount} ({level}% confidence)."


def why_holdout_may_be_smaller(choice: Choice) -> str:
    """Return why the bound of a hold-out set is below that of this run, if it is."""
    bound = choice.certificate
    is_smaller = bound.certified and choice.expected_holdout < bound.bound
    if not is_smaller or not is_nested(bound):
        return ""
    rate = f"{100 * choice.delta:g}%"
    other_tests = (
        " and the report"
        if choice.by_model("report") or choice.by_model("report_by_value")
        else ""
    )
    return (
        f" Such a set may have the smaller bound: it is one test, which may fail with "
        f"probability {rate}; here the tests of all folds{other_tests} "
        f"share these {rate}."
    )


def next_steps(comparison: ModelComparison) -> list[str]:
    """Return what to do after a comparison of two models, as sentences."""
    if comparison.labels is None and comparison.rows:
        return [
            "Let somebody who does not see the predictions label the queried rows: "
            "their labels decide which model errs less."
        ]
    if comparison.is_better:
        return [
            "Let the new model predict rows from the same source in the place of the "
            "old one.",
            "When new rows have come for a while, test (monitor) whether this still "
            "holds for them.",
        ]
    if comparison.is_worse:
        return ["Keep the old model."]
    if comparison.labels is None:
        return [
            "Keep the old model, or query rows: labels of some dozen rows on which the "
            "models differ say more (`n_queries=60`)."
        ]
    return [
        "Keep the old model, unless the new one is cheaper or faster and an error "
        "inside of this interval is acceptable.",
        "Further labels, asked for until the answer is the one that is wanted, prove "
        "nothing. Plan another comparison, with more labels, for rows of another pool.",
    ]
