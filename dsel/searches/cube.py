"""From a finished run's evidence to its cube."""

from typing import Any

import xarray as xr

from dsel.criteria import CRITERIA, Criterion, Evidence, get_criterion
from dsel.results import add_criterion, make_cube
from dsel.results.choice import ORDER, candidate_order
from dsel.runtime.versions import installed_versions
from dsel.searches.ledger import ledger_of_plan, with_ledger
from dsel.searches.spec import SearchSpec


def make_results(plan: SearchSpec, evidence: Evidence) -> xr.Dataset:
    """Return the cube of the evidence, with what the plan's criteria make of it."""
    cube = make_cube(
        plan.axes,
        plan.scheme.axes,
        evidence,
        assumptions=plan.assumptions,
        attributes=_provenance(plan),
    )
    for criterion in _read_out(plan, evidence):
        terms = criterion.evaluate(evidence, plan.settings)
        cube = add_criterion(
            cube,
            criterion.name,
            terms,
            delta_shares=plan.settings.delta_shares,
            delta=plan.delta,
            label_share=plan.label_share,
        )
    cube.attrs[ORDER] = candidate_order(cube)
    return with_ledger(cube, ledger_of_plan(plan))


def _read_out(plan: SearchSpec, evidence: Evidence) -> list[Criterion]:
    """Return the plan's criterion first, then what else costs nothing."""
    free = [get_criterion("cv_error")]
    if plan.scheme.n_halvings:
        of_all_rows = map(get_criterion, ("loo_error", "true_error"))
        free = [*(each for each in CRITERIA.values() if each.by_halves), *of_all_rows]
    wanted = [
        plan.criterion,
        plan.certificate,
        *(each for each in free if evidence.keys() >= set(each.needs)),
    ]
    return list({criterion.name: criterion for criterion in wanted}.values())


def _provenance(plan: SearchSpec) -> dict[str, Any]:
    return {
        "seed": str(plan.seed),
        "versions": installed_versions(),
        "criterion": plan.criterion.name,
        "certificate": plan.certificate.name,
        "prune": int(plan.prune),
        "fingerprint": dict(plan.fingerprint),
        "remarks": list(plan.remarks),
        "classes": [str(label) for label in plan.classes],
    }
