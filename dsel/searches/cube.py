"""From a finished run's evidence to its cube."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.criteria import Criterion, Evidence, get_criterion
from dsel.results import add_criterion, make_cube
from dsel.searches.ledger import open_ledger, with_ledger
from dsel.searches.versions import installed_versions

if TYPE_CHECKING:
    from dsel.searches.plan import Plan

CO_VALIDATION: Final = (
    "disagreement",
    "dis_error",
    "train_error",
    "two_fold_cv",
    "max_dt_e",
    "max_cv_dt_e",
)
"""Criteria that the counts of random halvings answer without another fit."""


def make_results(plan: "Plan", evidence: Evidence) -> xr.Dataset:
    """Return the cube of the evidence, with what the plan's criteria make of it."""
    cube = make_cube(
        plan.axes,
        plan.scheme.axes,
        {
            **evidence,
            names.N_LABELED: np.array(len(plan.work.y)),
        },
        assumptions=plan.assumptions,
        attributes=_provenance(plan),
    )
    for criterion in _read_out(plan):
        terms = criterion.evaluate(evidence, plan.settings)
        cube = add_criterion(
            cube,
            criterion.name,
            terms,
            delta_shares=plan.settings.delta_shares,
            delta=plan.delta,
            label_share=plan.label_share,
        )
    ledger = open_ledger(
        plan.certificate.name,
        delta=plan.delta,
        label_share=plan.label_share,
        reserve=plan.reserve,
    )
    return with_ledger(cube, ledger)


def _read_out(plan: "Plan") -> list[Criterion]:
    """Return the plan's criterion first, then what else costs nothing."""
    free = ("cv_error",) if plan.scheme.halving is None else CO_VALIDATION
    wanted = [plan.criterion, plan.certificate, *map(get_criterion, free)]
    return list({criterion.name: criterion for criterion in wanted}.values())


def _provenance(plan: "Plan") -> dict[str, Any]:
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
