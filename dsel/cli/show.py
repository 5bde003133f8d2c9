"""What a finished search prints: plain words for people, JSON for machines."""

import json
from typing import Any, Final

import click
import numpy as np

from dsel import names
from dsel.criteria import get_criterion
from dsel.results.rounding import at_most, confidence
from dsel.searches import Outcome, Plan
from dsel.searches.phases import PHASE_SECONDS, describe_times

CV_ERROR: Final = "cv_error"


def show(
    plan: Plan,
    outcome: Outcome,
    *,
    n_unlabeled: int,
    as_json: bool,
    out: str | None,
    hidden: Any = None,
) -> None:
    """Print the choice and its certificate.

    Parameters
    ----------
    plan, outcome
        What was planned and how it ended.
    n_unlabeled
        Rows of the pool.
    as_json
        One JSON object instead of text.
    out
        Where the results are, or None.
    hidden
        Features and true labels of pool rows, where somebody has them: the observed
        error is printed beside the bound.
    """
    facts = facts_of(plan, outcome, out, hidden) | {"n_unlabeled": n_unlabeled}
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
        "cv_error": _cv_error(outcome),
        "n_labeled": len(plan.work.y),
        "n_candidates": plan.n_candidates,
        "n_pruned": int((status == 1).sum()),
        "n_failed": int((status == 2).sum()),
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
    """Return the lines that people read; what weakens the number comes first."""
    params = ", ".join(f"{name} = {_short(v)}" for name, v in facts["chosen"].items())
    dropped = f", {facts['n_pruned']} shown not to win" if facts["n_pruned"] else ""
    lines = [
        outcome.choice.certificate.reading(),
        "",
        f"Chosen        {params or 'the only candidate'}",
        f"From          {plan.n_candidates} candidates{dropped}, "
        f"{facts['n_labeled']:,} labeled rows, {facts['n_unlabeled']:,} unlabeled",
        _number(facts),
    ]
    if facts["cv_error"] is not None and facts["certificate"] != CV_ERROR:
        lines.append(f"CV estimate   {facts['cv_error']:.4f} (no guarantee)")
    if "observed_error" in facts:
        lines.append(
            f"Observed      {facts['observed_error']:.4f} on the pool's true labels, "
            f"which nothing above has seen"
        )
    if facts["n_failed"]:
        lines.append(
            f"Failed        {facts['n_failed']} candidates could not be fitted"
        )
    lines.append(
        f"Time          {describe_times(outcome.results.attrs[PHASE_SECONDS])}"
    )
    if facts["results"]:
        lines.append(f"Results       {facts['results']}")
    return lines


def _number(facts: dict[str, Any]) -> str:
    """Return the line of the reported number: a bound, or what is none."""
    if facts["bound"] is None:
        return "Bound         none, see above"
    number = at_most(facts["bound"], decimals=4)
    if not get_criterion(facts["certificate"]).is_guarantee:
        return f"Estimate      {number} ({facts['certificate']}, no guarantee)"
    weak = "" if facts["certified"] else "  (NOT a guarantee, see above)"
    odds = f"with probability {confidence(facts['delta'])}"
    return f"Bound         {number} {odds}{weak}"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
