"""Caveats of a choice about its models: failed fits, and better options."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Final

import numpy as np

from dsel.checks import listing, show
from dsel.data.labeled import LabeledRows
from dsel.families.family import error_line
from dsel.losses.declared import DeclaredLosses
from dsel.option_values import ALL_ROWS
from dsel.results import BoundedModel, Certificate
from dsel.results.caveats import Caveat, Effect, make_caveats
from dsel.results.certificate_texts import not_finite_text
from dsel.results.params_texts import params_text
from dsel.rounded_texts import confidence, count_of, name_folds
from dsel.search.design.cv_schemes import CVScheme
from dsel.search.engine.counts import SearchCounts
from dsel.search.running.fit_chosen import ChosenModels
from dsel.search.running.procedures import find_searches, returned_model
from dsel.typing import Options

LARGE_EXCESS: Final = 1.2
"""A candidate that was dropped early is named if the mean of the chosen one exceeds
this multiple of its mean."""
MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""


def caveats_of_failed_folds(
    losses: DeclaredLosses,
    scheme: CVScheme,
    failed: Mapping[int, str],
    *,
    estimate: float,
    expected_holdout: float,
    unit: str,
) -> list[Caveat]:
    """Return a warning that fits without a fold, or predictions of the fold, failed.

    `failed` maps folds to causes; `unit` is what a fold counts, ``row`` or ``group``.
    """
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    rows = count_of(int(scheme.fold_rows[list(failed)].sum()), unit)
    causes = [f"{name_folds(fold)}: {reason}" for fold, reason in failed.items()]
    is_too_large = "is"
    if np.isfinite(expected_holdout):
        is_too_large = "and the comparison with a hold-out set are"
    end = f"the estimate {is_too_large} too large"
    if np.isinf(estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{losses.unpredicted_text}, so {end}"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_failed_all_rows(
    deploy: str, reason: str, one_fold: Certificate
) -> list[Caveat]:
    """Return the caveat of a fit on all labels that failed for this reason.

    `deploy` is the name of the model that was to be deployed.
    """
    failed = f"the fit on all labels failed ({reason})"
    text = f"{failed}, so it has no model and no bound"
    if deploy != ALL_ROWS:
        return [Caveat(Effect.INFO, text)]
    end = f"; the {one_fold.model_text} is deployed in its place"
    return [Caveat(Effect.WARNS, text + end)]


def caveats_of_infinite_predictions(certificate: Certificate) -> list[Caveat]:
    """Return a warning of predictions that are no numbers, if the bound is finite.

    Otherwise they are the reason why there is none.
    """
    if certificate.says_nothing:
        return []
    return [Caveat(Effect.WARNS, not_finite_text(certificate))]


def caveats_of_unpredicted_rows(
    deploy: str, chosen: ChosenModels, one_fold: Certificate
) -> list[Caveat]:
    """Return a warning that models raised on rows of the pool.

    `deploy` is the name of the model that was to be deployed.
    """
    rows = chosen.unpredicted
    if chosen.refusal:
        text = (
            f"the model trained on all labels has no bound, since "
            f"{chosen.refusal.rstrip('.')}"
        )
        if deploy == ALL_ROWS:
            text += f"; the {one_fold.model_text} is deployed in its place"
        return [Caveat(Effect.WARNS, text)]
    text = (
        f"`predict` raised on {count_of(rows.n_rows, 'pool row')} (row "
        f"{rows.first_row}: {rows.cause}), counted as if all models differed there, so "
        f"the bound of the model trained on all labels is larger than it would be"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_unranked_searches(labeled: LabeledRows, model: Any) -> list[Caveat]:
    """Return a warning of each search in a model whose scores are all NaN.

    Such a search takes its first candidate, as if this one had been the best.
    """
    caveats = []
    for path, search in find_searches(returned_model(model)):
        score = getattr(search, "best_score_", None)
        if not isinstance(score, Real) or not np.isnan(float(score)):
            continue
        reason = ""
        scorer = getattr(search, "scorer_", None)
        # Steps of a pipeline before a search would change the rows.
        if callable(scorer) and not path:
            try:
                scorer(
                    search.best_estimator_, labeled.take(slice(None)), labeled.labels
                )
            except Exception as error:  # scorers of users may raise any error
                reason = f", which fails ({error_line(error)})"
        scoring = f"scoring={show(getattr(search, 'scoring', None))}"
        text = (
            f"{type(search).__name__} has ranked no candidate, and took the first one: "
            f"all of its scores are NaN; correct {scoring}"
        )
        caveats.append(Caveat(Effect.WARNS, f"{text}{reason}"))
    return caveats


def notes_on_dropped_candidates(
    search_counts: SearchCounts,
    candidate_params: Sequence[Options],
    candidate_of_all_rows: int,
) -> list[Caveat]:
    """Return a note if a candidate dropped early seems better than the chosen one.

    Rankings by few rows of a class differ from fold to fold, and the searches then drop
    candidates that others keep.
    """
    scores = search_counts.fold_scores
    # The mean is over the folds that a candidate has; a failed candidate has none.
    is_known = ~np.isnan(scores)
    means = np.full(len(scores), np.inf)
    np.divide(np.nansum(scores, 1), is_known.sum(1), means, where=is_known.any(1))
    best = int(np.argmin(means))
    if not means[candidate_of_all_rows] > LARGE_EXCESS * means[best]:
        return []
    params = params_text(candidate_params[best])
    less = 100 * (1 - means[best] / means[candidate_of_all_rows])
    text = (
        f"{params} was dropped early by some searches, and where it was not, its mean "
        f"loss is {less:.0f}% below that of the choice on all labels"
        f"; prune=False compares all candidates"
    )
    return [Caveat(Effect.INFO, text)]


def notes_of_choice(
    losses: DeclaredLosses,
    delta: float,
    bounded: Mapping[str, BoundedModel],
    deployed: BoundedModel,
) -> list[Caveat]:
    """Return notes about what another choice of options would give."""
    notes = []
    names_with_misses = {
        name
        for name, model in bounded.items()
        if any(c.model and c.effect is Effect.WARNS for c in model.certificate.caveats)
    }
    if deployed.name in names_with_misses and names_with_misses != bounded.keys():
        [other] = bounded.keys() - names_with_misses
        text = bounded[other].certificate.model_text
        of_training = ""
        # No fold tests that model, which may merely have memorized these rows.
        if other == ALL_ROWS:
            of_training = ", though among the rows that it learned from"
        notes.append(
            f"the warning above is about the deployed model alone: the {text} finds "
            f"rows of each class{of_training}; deploy={other!r} "
            f"deploys it"
        )
    main_delta = losses.divide_among_losses(delta).main_delta
    # Numbers without a guarantee have no confidence to share.
    if main_delta < delta and deployed.certificate.certified:
        reports = {
            "certified_report()": deployed.report or deployed.tolerances,
            "report_by_value()": deployed.report_by_value,
        }
        shown = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"the bounds and all numbers of {shown} share the "
            f"{confidence(delta)}% confidence: the bounds are computed with "
            f"{confidence(main_delta, decimals=2)}%, and would be smaller without a "
            f"report"
        )
    return make_caveats(Effect.INFO, notes)
