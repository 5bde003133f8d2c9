"""Bounds of nested searches, in which a candidate is also chosen without each fold.

Their delta is not divided among candidates: the bounds hold whichever was chosen.
"""

from typing import Any, Final

import numpy as np

from dsel import bounds, names
from dsel.bounds import BoundTerms
from dsel.criteria.base import OUTER_FOLD, VOTE, Evidence, Settings, Terms
from dsel.criteria.certificates import Bound, Formula, leader
from dsel.results import Deployment


def _formula(variable: str | None) -> Formula:
    """Return the formula of a nested search's bound.

    `variable` counts where the model handed over differs from that of each fold; None
    where it is the best fold's own.
    """

    def formula(evidence: Evidence, settings: Settings) -> Terms:
        errors, rows = evidence[names.OUTER_ERRORS], evidence[names.FOLD_ROWS]
        chosen = evidence[names.OUTER_CANDIDATE]
        unknown = np.full(len(evidence[names.STATUS]), np.nan)
        delta = float(settings.delta_shares.sum())  # no candidate has a share of it
        best = int(bounds.best_fold_number(errors, rows))
        if variable is None:
            bound = bounds.best_fold_model(errors, rows, delta=delta)
            found = BoundTerms(bound, bound, np.array(np.nan))
        else:
            found = bounds.best_fold(
                errors,
                rows,
                evidence[variable][best],
                evidence[names.N_UNLABELED],
                delta=delta,
                label_share=settings.label_share,
            )
        number = chosen[best]
        if variable == names.OUTER_DISAGREEMENTS:
            number = leader(evidence)
        about = np.arange(len(unknown)) == number
        return Terms(*(np.where(about, term, np.nan) for term in found))

    return formula


def _bound(name: str, deploys: str, variable: str | None) -> Bound:
    counted = (names.OUTER_ERRORS, names.OUTER_CANDIDATE)
    pool = () if variable is None else (variable, names.N_UNLABELED)
    return Bound(
        name,
        _formula(variable),
        (),
        (*counted, names.FOLD_ERRORS, names.FOLD_ROWS, *pool),
        deploys=deploys,
        only_about="what the search chose by cross-validation error, by all folds and "
        "without each; select by criterion='cv_error' from all of its candidates",
        reads_whole_pool=variable is not None,
    )


NESTED: Final = (
    _bound("nested", "full", names.OUTER_DISAGREEMENTS),
    _bound("nested_fold_model", OUTER_FOLD, None),
    _bound("nested_vote", VOTE, names.VOTE_DISAGREEMENTS),
)
"""About the model of all rows, the best fold's, and the vote of the folds' models."""

_MODELS: Final = (
    ("all rows", names.FULL_TEST_ERRORS),
    ("best fold", names.OUTER_TEST_ERRORS),
    ("folds' vote", names.VOTE_TEST_ERRORS),
)
"""What they are in words, and their errors on pool rows of known label."""


def deployments(evidence: Evidence, settings: Settings) -> tuple[Deployment, ...]:
    """Return what a nested search can hand over, as far as it was counted.

    Each bound is at the whole delta.
    """
    errors, rows = evidence[names.OUTER_ERRORS], evidence[names.FOLD_ROWS]
    # Where in the errors on rows of known label each of them stands, in their order.
    places: tuple[Any, ...] = (
        leader(evidence),
        int(bounds.best_fold_number(errors, rows)),
        (),
    )
    found = []
    for rule, (model, variable), place in zip(NESTED, _MODELS, places, strict=True):
        if set(rule.needs) <= set(evidence):
            bounds_of = rule.evaluate(evidence, settings).estimate
            bound = float(np.nanmin(bounds_of, initial=np.inf))
            is_seen = variable in evidence
            wrong = evidence[variable][place] if is_seen else 0
            observed = float(wrong / evidence[names.TEST_ROWS]) if is_seen else None
            found.append(Deployment(rule.name, model, bound, observed))
    return tuple(found)
