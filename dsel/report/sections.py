"""The sections of the page, each a function of the story."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.plots import (
    plot_surface,
    plot_terms,
    plot_timing,
    surface_data,
    terms_data,
    timing_data,
)
from dsel.plots.style import params_label
from dsel.report.figures import as_svg
from dsel.report.html import figure, paragraph, section, table, text
from dsel.results import Choice, evidence
from dsel.results.certificate import percent
from dsel.results.choice import CV_ERROR, candidate_table, params_of
from dsel.results.rounding import at_most
from dsel.searches.evaluate import Evaluation

N_BEST = 10
N_FAILURES = 10

ABOUT_BOUNDS = (
    "A bound is not an estimate. It says how large the error can be, whatever the "
    "data are like, as long as the assumptions below hold; with few labels it is much "
    "larger than the error that was seen."
)


@dataclass(frozen=True)
class Story:
    """What a report tells, worked out once from the cube."""

    results: xr.Dataset
    """The cube, loaded."""
    choice: Choice
    judged: Evaluation
    """What the criterion says of every candidate."""
    comparison: xr.Dataset
    """What other criteria would choose."""


def verdict(story: Story) -> str:
    """Say what is guaranteed, or first of all why nothing is."""
    choice, certificate = story.choice, story.choice.certificate
    chosen = params_label(dict(choice.params))
    if certificate.certified:
        headline = f"Error at most {percent(choice.bound)}"
        kind = "verdict"
    else:
        headline = "No guarantee"
        kind = "verdict warning"
    return (
        f'<div class="{kind}"><p class="headline">{text(headline)}</p>'
        f"{paragraph(' '.join(certificate.reading().splitlines()))}</div>"
        f'<p class="chosen">Chosen: <strong>{text(chosen)}</strong> '
        f"(candidate {choice.candidate}, by {text(choice.criterion)})</p>"
        f"{table(('', 'In short'), choice.facts()[1:])}"
    )


def numbers(story: Story) -> str:
    """Say what the search was made of."""
    items = "".join(
        f"<div><dt>{text(name)}</dt><dd>{value:,}</dd></div>"
        for name, value in _facts(story).items()
        if value or name in {"candidates", "rows in the pool"}
    )
    remarks = "".join(paragraph(remark) for remark in story.choice.remarks)
    return f"<dl>{items}</dl>{remarks}"


def surface(story: Story) -> str:
    """Show the criterion over the grid."""
    shown = _shown(story)
    plot = partial(plot_surface, story.results, **shown)
    drawing = as_svg(plot, width=7.2, height=4.6)
    data = surface_data(story.results, **shown)
    shape = "cell" if data.y else "point"
    caption = f"Each {shape} is a candidate; the chosen one is marked."
    if data.is_limit.any():
        caption += (
            " Dropped candidates were shown not to win before all of theirs was "
            "counted, so only a lower limit of their number is known."
        )
    return section("The candidates", figure(drawing, caption))


def best(story: Story) -> str:
    """List the candidates with the smallest numbers."""
    judged, is_bound = story.judged, story.judged.is_guarantee
    columns = {judged.criterion: judged.estimate.values.ravel()}
    if is_bound:
        columns["from labels"] = judged.label_term.values.ravel()
        columns["from the pool"] = judged.disagreement_term.values.ravel()
    cv_error = candidate_table(story.results)[CV_ERROR]
    order = [int(n) for n in np.argsort(columns[judged.criterion], kind="stable")]
    shown = [n for n in order if np.isfinite(columns[judged.criterion][n])][:N_BEST]
    lines = [
        (
            n,
            params_label(params_of(story.results, n)),
            *(_number(values[n], is_bound=is_bound) for values in columns.values()),
            *((_number(cv_error[n], is_bound=False),) if is_bound else ()),
        )
        for n in shown
    ]
    beside = ("error in cross-validation",) if is_bound else ()
    head = ("no.", "parameters", *columns, *beside)
    place = (
        shown.index(story.choice.candidate) if story.choice.candidate in shown else -1
    )
    return section(
        f"The best {len(shown)}",
        table(head, lines, marked=place, numbers=(0, *range(2, len(head)))),
    )


def terms(story: Story) -> str:
    """Show what the best bounds are made of, where they have terms."""
    shown = _shown(story)
    try:
        terms_data(story.results, **shown)
    except ValueError:
        return ""
    drawing = as_svg(partial(plot_terms, story.results, **shown), width=7.2, height=4.0)
    caption = (
        "Each bar is a candidate's bound: its part from labeled rows, then that from "
        "the pool. The mark is the error in cross-validation."
    )
    return section(
        "What the bound is made of", paragraph(ABOUT_BOUNDS), figure(drawing, caption)
    )


def deployments(story: Story) -> str:
    """Show what a nested search can hand over, side by side."""
    choice, estimate = story.choice, story.choice.certificate.estimate
    if not choice.deployments:
        return ""
    is_observed = any(each.observed is not None for each in choice.deployments)
    head = ["model", "certificate", "bound", "cross-validation"]
    head += ["observed error"] * is_observed
    lines = [
        (
            each.model,
            each.certificate,
            _number(min(1.0, each.bound), is_bound=True),
            _number(estimate, is_bound=False),
            "" if each.observed is None else f"{each.observed:.4f}",
        )[: len(head)]
        for each in choice.deployments
    ]
    named = [each.certificate for each in choice.deployments]
    about = (
        "The model of all rows, that of the best fold, which has seen fewer rows and "
        "needs no pool, and the vote of the folds' models. Only the one whose "
        "certificate was named before anybody saw the results has a guarantee. "
        "Cross-validation is about what is chosen without a fold."
    )
    observed = " Observed is the error on pool rows whose labels were not used."
    return section(
        "Which model to hand over",
        paragraph(about + observed * is_observed),
        table(
            head,
            lines,
            marked=named.index(choice.certificate.criterion),
            numbers=range(2, len(head)),
        ),
    )


def assumptions(story: Story) -> str:
    """List the ledger, violated entries first."""
    order = {"violated": 0, "declared": 1, "checked": 2}
    ledger = sorted(story.choice.certificate.assumptions, key=lambda a: order[a.state])
    lines = [(a.name, a.state, a.statement, a.reason) for a in ledger]
    return section(
        "What it rests on",
        paragraph(
            "Checked: dsel did it itself. Declared: only you can know. Violated: the "
            "number above is no guarantee."
        ),
        table(("", "state", "assumption", "why"), lines),
    )


def others(story: Story) -> str:
    """List what other criteria would choose from the same counts."""
    found = story.comparison["candidate"].values >= 0
    answers = story.comparison.isel({names.CRITERION: found})
    if answers.sizes[names.CRITERION] < 2:
        return ""
    lines = [
        (
            str(name),
            params_label(params_of(story.results, int(answers.candidate.values[n]))),
            _number(
                answers.estimate.values[n],
                is_bound=bool(answers.is_guarantee.values[n]),
            ),
            "bound" if answers.is_guarantee.values[n] else "estimate",
        )
        for n, name in enumerate(answers[names.CRITERION].values)
    ]
    return section(
        "Other criteria, same counts",
        paragraph(
            "To compare. A bound is a guarantee only if its criterion was named before "
            "anybody saw the results, and if no assumption is violated."
        ),
        table(("criterion", "would choose", "number", "which is"), lines, numbers=(2,)),
    )


def failures(story: Story) -> str:
    """List fits that failed, with their messages."""
    status = story.results[names.STATUS].values.ravel()
    messages = story.results[names.MESSAGE].values.ravel()
    failed = np.flatnonzero(status == names.STATUS_FAILED)
    if not len(failed):
        return ""
    lines = [
        (int(n), params_label(params_of(story.results, int(n))), messages[n])
        for n in failed[:N_FAILURES]
    ]
    more = f"The first {N_FAILURES} of {len(failed)}." if len(failed) > 10 else ""
    return section(
        "Fits that failed",
        paragraph(more) if more else "",
        table(("no.", "parameters", "message"), lines, numbers=(0,)),
    )


def timing(story: Story) -> str:
    """Show where the time went."""
    if not timing_data(story.results).total:
        return ""
    drawing = as_svg(partial(plot_timing, story.results), width=7.2, height=2.2)
    caption = "Seconds of work by kind of task, added up over all tasks."
    return section("Where the time went", figure(drawing, caption))


def provenance(story: Story) -> str:
    """List what is needed to get the same numbers again."""
    told_in_words = (names.ASSUMPTIONS, names.SPENT)
    lines = [
        (str(key), _as_text(value))
        for key, value in story.results.attrs.items()
        if key not in told_in_words
    ]
    return section(
        "Where it comes from",
        "<details><summary>Versions, seeds and fingerprint</summary>",
        table(("", ""), sorted(lines)),
        "</details>",
    )


def _facts(story: Story) -> dict[str, int]:
    counts, certificate = evidence(story.results), story.choice.certificate
    status = counts[names.STATUS]
    is_apart = certificate.criterion == "select_then_certify"  # by rows of its own
    return {
        f"labeled rows{' that chose' * is_apart}": int(counts[names.N_LABELED]),
        "rows in the pool": max(
            0, int(counts[names.N_UNLABELED]), certificate.n_unlabeled
        ),
        "classes": int(counts[names.N_CLASSES]),
        "folds": counts[names.FOLD_ROWS].size,
        "candidates": int(counts[names.N_CANDIDATES]),
        "counted in full": int(np.sum(status == names.STATUS_DONE)),
        "shown not to win": int(np.sum(status == names.STATUS_PRUNED)),
        "failed": int(np.sum(status == names.STATUS_FAILED)),
        "not counted": int(np.sum(status == names.STATUS_MISSING)),
    }


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    if isinstance(parsed, dict):
        return ", ".join(f"{name} {entry}" for name, entry in parsed.items())
    if isinstance(parsed, list):
        return "; ".join(map(str, parsed))
    return value


def _shown(story: Story) -> dict[str, Any]:
    return {"criterion": story.judged.criterion, "delta": story.judged.delta}


def _number(value: float, *, is_bound: bool) -> str:
    if not np.isfinite(value):
        return ""
    # Means of equal counts may differ in their last digit.
    return at_most(value, decimals=4) if is_bound else f"{round(value, 12):.4f}"
