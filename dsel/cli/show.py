"""What a finished search prints: plain words for people, JSON for machines."""

import json
from typing import Any, Final

import click
import numpy as np

from dsel import names
from dsel.searches import Outcome, Plan
from dsel.searches.phases import PHASE_SECONDS, describe_times

CV_ERROR: Final = "cv_error"


def show(
    plan: Plan,
    outcome: Outcome,
    *,
    n_labeled: int,
    n_unlabeled: int,
    as_json: bool,
    out: str | None,
    hidden: Any = None,
) -> None:
    """Print the choice and its certificate.

    `hidden` are features and true labels of pool rows, where somebody has them: the
    observed error is printed beside the bound.
    """
    facts = facts_of(plan, outcome, out, hidden)
    facts |= {"n_labeled": n_labeled, "n_unlabeled": n_unlabeled}
    if as_json:
        click.echo(json.dumps(facts, default=_plain, allow_nan=False))
        return
    for line in in_words(plan, outcome, facts):
        click.echo(line)


def facts_of(plan: Plan, outcome: Outcome, out: str | None, hidden: Any) -> Any:
    """Return what the command says, as plain values."""
    choice, certificate = outcome.choice, outcome.choice.certificate
    status = outcome.results.status.values
    facts = {
        "chosen": dict(choice.params),
        "candidate": choice.candidate,
        "bound": certificate.bound,
        "delta": certificate.delta,
        "criterion": choice.criterion,
        "certificate": certificate.criterion,
        "certified": certificate.certified,
        "reasons": list(certificate.reasons),
        "remarks": list(choice.remarks),
        "cv_error": _cv_error(outcome),
        "estimate": certificate.estimate,
        "n_candidates": plan.n_candidates,
        "n_pruned": int((status == names.STATUS_PRUNED).sum()),
        "n_failed": int((status == names.STATUS_FAILED).sum()),
        "seed": plan.seed,
        "seconds": json.loads(outcome.results.attrs[PHASE_SECONDS]),
        "results": out,
    }
    if hidden is not None:
        X, labels = hidden
        wrong = outcome.model.predict(X) != labels
        facts["observed_error"] = float(np.mean(wrong))
    return {key: _finite(value) for key, value in facts.items()}


def _cv_error(outcome: Outcome) -> float | None:
    """Return the chosen candidate's error on held-out rows, if it was judged by it."""
    results = outcome.results
    if CV_ERROR not in results[names.CRITERION]:
        return None
    errors = results[names.ESTIMATE].sel({names.CRITERION: CV_ERROR})
    return float(errors.values.ravel()[outcome.choice.candidate])


def in_words(plan: Plan, outcome: Outcome, facts: dict[str, Any]) -> list[str]:
    """Return the lines that people read: four that say all, facts, assumptions."""
    dropped = f", {facts['n_pruned']} shown not to win" if facts["n_pruned"] else ""
    rows = [
        (
            "From",
            f"{plan.n_candidates} candidates{dropped}, {facts['n_labeled']:,} labeled "
            f"rows, {facts['n_unlabeled']:,} unlabeled",
        )
    ]
    if "observed_error" in facts:
        observed = f"{100 * facts['observed_error']:.1f} % on the pool's true labels"
        rows.append(("Observed", f"{observed}, which nothing above has seen"))
    rows.append(("Time", describe_times(outcome.results.attrs[PHASE_SECONDS])))
    if facts["results"]:
        rows.append(("Results", facts["results"]))
    return [
        outcome.choice.summary(),
        *(f"{name:8} {text}" for name, text in rows),
        "",
        outcome.choice.certificate.reading(),
    ]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
