"""The wording of a certificate: its line, the reasons behind it and its rows of texts.

`dsel.results.certificate` has the numbers and the caveats, which these texts read. The
notes among the caveats are worded there, by the numbers alone.
"""

from collections.abc import Container
from decimal import Decimal
from math import isclose, isfinite, isnan
from typing import TYPE_CHECKING, Final

from dsel.cards import ShownRow
from dsel.losses.by_class import Recall
from dsel.losses.regression import Beyond
from dsel.losses.texts import loss_of_text
from dsel.option_values import ALL_ROWS
from dsel.results.assumptions import assumption_rows
from dsel.results.caveats import caveat_rows, warnings_first
from dsel.rounded_texts import confidence, count_of, name_folds

if TYPE_CHECKING:
    from dsel.results.certificate import Certificate

ORIGIN: Final = "Origin"
"""Name of rows of texts about the counts from which a number is computed."""
ESTIMATE: Final = "Estimate"
"""Name of the row with the estimate that is printed with a bound."""
OF_LABELS: Final = " of the tested models on labeled rows"
"""Words for the models and rows of the first part of a bound that is a sum: models
trained without a fold are tested on it, and the model of all rows by none."""


def statement_text(
    bound: "Certificate", joint_note: str = "", printed: Container[str] = ()
) -> str:
    """Return the headline without its model."""
    amount = bound.amount(bound.number)
    if not bound.certified:
        number = "no number"
        reason = bound.reasons[0]
        is_bound, is_printed = not bound.is_estimate, reason in printed
        if isfinite(bound.number) and not (is_bound and bound.says_nothing):
            # The bound without this reason is not known: the reason may hide
            # others, such as rows in groups.
            number = f"about {amount}"
            if is_bound:
                number = f"the computed {amount} is no bound"
        # A finding of several lines would part the number from its sentence.
        short = bound.all_caveats[0].short_text or reason
        why = "for the reason above" if is_printed else f"since {short}"
        return f"No guarantee, {why}: {number}"
    if bound.says_nothing:
        return _no_bound(bound)
    level = f"{confidence(bound.delta)}% confidence{joint_note and f' {joint_note}'}"
    if bound.conditions:
        level += f", if {' and '.join(bound.conditions)}"
    return f"{bound.says} {amount}{bound.on_rows} ({level})"


def finding_text(bound: "Certificate") -> str:
    """Return the finding for which nothing is guaranteed; "" if the headline has it."""
    if bound.certified or not (short := bound.all_caveats[0].short_text):
        return ""
    finding = bound.reasons[0].removeprefix(f"{short}: ")
    return f"{finding[:1].upper()}{finding[1:]}"


def _no_bound(bound: "Certificate") -> str:
    """Return the text in place of a bound that excludes nothing, with a reason."""
    what = f"{bound.title[:1].lower()}{bound.title[1:]}"
    begin = f"No bound below {bound.most} for the {what}"
    if bound.is_tolerance:
        begin = f"No finite bound of {_tolerance_text(bound)}"
    rows = "groups" if bound.n_groups else "labeled rows"
    if bound.has_failed_folds:
        return f"{begin}: fits failed"
    if bound.n_not_finite:
        return f"{begin}: some predictions are NaN or infinite"
    if bound.has_old_rows_alone:
        return f"{begin}: no new rows in the pool"
    if bound.has_large_pool_term and isinstance(loss_of_text(bound.loss), Recall):
        return f"{begin}: models may differ on as many pool rows as the class has"
    if bound.has_large_pool_term:
        return f"{begin}: the pool's part alone is above {bound.most}"
    if bound.has_short_pool and bound.n_far_apart:
        return f"{begin}: predictions for the pool are far apart, NaN or infinite"
    if bound.has_short_pool:
        return f"{begin}: too few pool rows"
    if bound.estimate >= bound.largest and bound.loss == "error":
        return f"{begin}: no prediction was right"
    if bound.errs_mostly:
        return f"{begin}: the estimate is {bound.about(bound.estimate_where_fitted)}"
    if bound.is_sum and bound.label_term < bound.largest:
        return f"{begin}: too few {rows} and pool rows"
    return f"{begin}: too few {rows}"


def why_nothing(bound: "Certificate") -> str:
    """Return why the bound excludes nothing, and what makes it smaller; or ""."""
    if not (bound.certified and bound.says_nothing):
        return ""
    if bound.is_tolerance and bound.has_failed_folds:
        return "rows without a prediction count as infinitely far off; mend the fits"
    if bound.is_tolerance and bound.n_not_finite:
        return f"{not_finite_text(bound)}; mend the model, which must predict a number"
    if bound.has_short_pool and bound.n_far_apart:
        return (
            f"for {bound.n_far_apart:,} of {bound.n_unlabeled:,} pool rows a "
            f"prediction is NaN or infinite, or both models are more than ten times "
            f"as far apart as predictions are off; mend the model, which must predict "
            f"a number"
        )
    if bound.has_short_pool:
        return (
            f"the {bound.n_unlabeled:,} pool rows are too few for this part of the "
            f"predictions; pass a larger pool, or ask for a smaller part, such as "
            f"loss='error_quantile=0.5'"
        )
    if bound.is_tolerance:
        fewer = bound.divides_delta
        return (
            f"the folds of {bound.counted} are too small for this part of the "
            f"predictions{' and this number of candidates' if fewer else ''}; "
            f"label more {'groups' if bound.n_groups else 'rows'}, "
            f"{'compare fewer candidates, ' if fewer else ''}take fewer folds, or "
            f"ask for a smaller part, such as loss='error_quantile=0.5'"
        )
    more = "more groups" if bound.n_groups else "more labeled rows"
    reason = f"{bound.counted} with as many errors give no smaller bound"
    if bound.has_old_rows_alone:
        return (
            f"all {bound.n_unlabeled:,} pool rows equal labeled rows, so they do "
            f"not show how often models differ on new rows; pass other rows as the "
            f"pool"
        )
    if bound.errs_mostly:
        return bound.why_better_model
    if isfinite(bound.disagreement_term) and bound.label_term < bound.largest:
        first, second, _ = _round_parts(bound)
        reason = (
            f"{first} from errors{OF_LABELS} and {second} from pool rows on which the "
            f"models differ add up to {bound.most} or more"
        )
        if bound.has_large_pool_term:
            reason = f"the pool's part alone is above {bound.most}"
        more += " and pool rows"
    if bound.divides_delta:
        more += " or fewer candidates"
    return f"{reason}; {more} make it smaller"


def not_finite_text(bound: "Certificate") -> str:
    """Return that predictions for labeled rows are no finite numbers."""
    return (
        f"for {bound.n_not_finite:,} of {bound.counted} the prediction is NaN or "
        f"infinite, which counts as infinitely far off"
    )


def _tolerance_text(bound: "Certificate") -> str:
    """Return the name of a bounded tolerance inside of a sentence."""
    if isnan(bound.fraction):
        return "how far predictions are off"
    return f"how far {100 * bound.fraction:.6g}% of predictions are off"


def training_text(bound: "Certificate") -> str:
    """Return the labels that the model was trained on, in words."""
    if bound.model_name == ALL_ROWS:
        return "on all labels"
    if bound.trained_on or bound.fold is None:
        return f"on {bound.trained_on or 'a part of the labels'}"
    return f"without {name_folds(bound.fold)}"


def sentence_about_rows(bound: "Certificate", who: str = "the model") -> str:
    """Return the bound as a sentence about a number of new rows.

    "" for a loss that has no such sentence, and where nothing is guaranteed, or the
    bound excludes nothing.
    """
    if bound.sentence is None or not bound.certified or bound.says_nothing:
        return ""
    return bound.sentence.fill(
        bound.bound,
        bound.amount(bound.bound),
        model=who,
        are_in_groups=bound.n_groups > 0,
    )


def terms_text(bound: "Certificate") -> str:
    """Return the parts of the number, in words; "" if they are not known."""
    errors = "residuals" if bound.is_tolerance else "errors"
    if bound.is_sum:
        pool = "pool rows on which the models differ"
        if bound.n_queried:
            pool += f" and labels of {count_of(bound.n_queried, 'queried row')}"
        if bound.has_large_pool_term:
            return f"no limit below {bound.most} from {pool}"
        first, second, together = _round_parts(bound)
        text = f"{first} from {errors}{OF_LABELS}, {second} from {pool}"
        return f"{text}; {together}" if together else text
    is_of_one_model = not (bound.is_estimate or bound.divides_delta)
    if is_of_one_model and bound.fold is not None:
        tested = name_folds(bound.fold)
        if bound.n_fold_rows and bound.n_groups:
            tested = f"one row of {count_of(bound.n_fold_rows, 'group')} of {tested}"
        # Other losses, such as the misses of a class, count some of these rows.
        elif bound.n_fold_rows and (bound.loss == "error" or bound.is_tolerance):
            tested = f"the {count_of(bound.n_fold_rows, 'row')} of {tested}"
        if bound.limits and bound.loss == "error":
            errors = count_of(bound.limits[0].n_errors, "error")
        text = f"from {errors} on {tested}, which the model had not seen"
        if isfinite(bound.fold_delta):
            text += f", at delta={bound.fold_delta:.6g} of {bound.delta:g}"
        return text
    return ""


def why_labels_give_no_bound(bound: "Certificate") -> str:
    """Return why its part of labeled rows is no bound of the model of a fold."""
    if bound.is_tolerance:
        level = f"{100 * (1 - bound.fraction):.3g}%"
        return f"which fewer may exceed, since the pool has a part of the {level}"
    if isinstance(loss_of_text(bound.loss), Beyond):
        return "that are off by more than 4/5 of the distance"
    return "of another fold than that of the other bound"


def _round_parts(bound: "Certificate") -> tuple[str, str, str]:
    """Return both parts of the number, and their limit together if it is smaller.

    Every part is rounded by itself: a part that fills up the rounded sum could be
    printed below its number. The third text is "" if the first two add up to it.
    """
    first, second = map(bound.amount, (bound.label_term, bound.disagreement_term))
    if not isclose(bound.label_term + bound.disagreement_term, bound.unclipped):
        return first, second, ""
    together = bound.amount(bound.unclipped)
    unit = "%" if bound.is_rate else ""
    *parts, total = (
        Decimal(text.removesuffix(unit).replace(",", ""))
        for text in (first, second, together)
    )
    if sum(parts) == total:
        return first, second, ""
    how = "about" if bound.is_estimate else "at most"
    return first, second, f"together {how} {together}"


def estimate_text(bound: "Certificate", how: str) -> str:
    """Return the estimate in words; `how` says from what it was measured."""
    what = f"{bound.title[:1].lower()}{bound.title[1:]}"
    return f"{what} about {bound.about(bound.estimate)} ({how}, no guarantee)"


def certificate_rows(bound: "Certificate") -> list[ShownRow]:
    """Return names and texts, which all renderings show; the first has no name."""
    shown_rows: list[ShownRow] = [("", bound.headline())]
    shown_rows += [("", text) for text in [finding_text(bound)] if text]
    shown_rows.append((ORIGIN, bound.origin))
    shown_rows += caveat_rows(bound.all_caveats, printed=bound.reasons[:1])
    if why_nothing(bound):
        shown_rows.append(("Caveat", why_nothing(bound)))
    shown_rows += assumption_rows(bound.assumptions)
    return warnings_first(shown_rows, bound.all_caveats)
