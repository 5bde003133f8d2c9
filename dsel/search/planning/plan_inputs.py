"""What a plan makes of its inputs: parts of the pool, groups of candidates, a prior."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dsel.arrays import Floats, fill_masked
from dsel.bounds.shares import normalized_weights
from dsel.candidates import candidate_key, candidate_texts
from dsel.checks import listed
from dsel.data.groups import RowGroups
from dsel.data.identity import NEVER_AGAIN
from dsel.data.labeled import LabeledRows, matching_pool
from dsel.data.pool import Pool
from dsel.data.row_random import SUBSET_STREAM
from dsel.families.assignment import assign_families, group_label
from dsel.families.family import Candidate
from dsel.families.routing import check_groups_reach, groups_arguments
from dsel.results.certificate import params_text
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.engine.jobs import CandidateGroup

FITTING_PART: Final = 0.5  # of the pool, for learners that want one


def divide_pool(
    opened: Pool, labeled: LabeledRows, is_fitted: bool, max_rows: int | None, seed: int
) -> tuple[Pool, Pool | None, list[str]]:
    """Return the part of a pool that is counted, that for fits, and remarks."""
    fitting, notes = None, []
    counted = matching_pool(opened, labeled)
    given, kept = opened.columns or (), counted.columns or ()
    if given != kept:
        left = [name for name in given if name not in kept]
        out = f"; left out: {listed(left, 5)}" if left else ""
        notes = [f"columns of `pool` are found by their names{out}"]
    if is_fitted:
        fitting = counted.part(0.0, FITTING_PART, seed=seed)
        counted = counted.part(FITTING_PART, 1.0, seed=seed)
    if max_rows is not None and max_rows < counted.n_rows:
        share = max_rows / counted.n_rows
        counted = counted.part(0.0, share, seed=seed, stream=SUBSET_STREAM)
    if counted.n_rows == 0:
        raise ValueError(
            "`pool` must have rows to be counted, got none; pass more, or None to go "
            "without it."
        )
    return counted, fitting, notes


def group_candidates(
    candidates: tuple[Candidate, ...],
    labeled: LabeledRows,
    seed: int,
    fit_params: Mapping[str, Any],
    of_rows: RowGroups | None,
) -> tuple[tuple[CandidateGroup, ...], list[str]]:
    """Return the candidates in groups that share work, and remarks on them."""
    are_wanted = False
    if of_rows is not None:
        for each in candidates:
            check_groups_reach(each.estimator)
        # Else their keys, which may be long texts, need not be sent to workers.
        are_wanted = any(groups_arguments(each.estimator) for each in candidates)
    assignments = assign_families(
        candidates, labeled.X, classes=labeled.classes, seed=seed,
        fit_params=fit_params,
        row_groups=of_rows.by_row if of_rows is not None and are_wanted else None,
    )  # fmt: skip
    texts = candidate_texts(candidates)
    groups: list[CandidateGroup] = []
    notes = []
    for assigned in assignments:
        family = assigned.family
        for members in assigned.groups:
            keys = tuple(
                candidate_key(family.name, each, texts[each.number]) for each in members
            )
            label = group_label(members, len(groups))
            groups.append(CandidateGroup(len(groups), family, members, keys, label))
        n = sum(map(len, assigned.groups))
        plural = "s" if n != 1 else ""
        notes.append(f"{n} candidate{plural} by {family.name}: {assigned.remark}")
    n_unknown = sum(NEVER_AGAIN in text for text in texts.values())
    if n_unknown:
        notes.append(
            f"{n_unknown} candidates hold what cannot be pickled: another run with the "
            f"same `out` counts them again"
        )
    return tuple(groups), notes


def read_prior(
    prior: Any, method: CertificateMethod, candidates: Sequence[Mapping[str, Any]]
) -> Floats:
    """Return the parts of delta that a prior means, shape (n_candidates,)."""
    n = len(candidates)
    if not method.takes_prior:
        why = "a nested search does not pay for its candidates"
        raise ValueError(
            f"`prior` is for certificate='cv_bound' and 'best_fold', which divide "
            f"delta among the candidates, got {method.name or None!r}; leave it out"
            f"{f': {why}' if method.is_nested else ''}."
        )
    if callable(prior):
        weights = []
        for params in candidates:
            try:
                weights.append(prior(dict(params)))
            except Exception as error:
                raise ValueError(
                    f"`prior` must return a weight for every candidate, but for "
                    f"{params_text(params)} it raised {type(error).__name__}: {error}"
                ) from error
        prior = weights
    if isinstance(prior, Mapping | str) or not np.iterable(prior):
        raise TypeError(
            f"`prior` must be a list of {n} weights, one for each candidate, or a "
            f"function of a candidate's parameters, got {prior!r:.60}."
        )
    try:
        given = np.asarray(fill_masked(prior, "`prior`"))
    except ValueError as error:
        raise TypeError(f"`prior` must have numbers as weights: {error}") from error
    if given.dtype.kind not in "iuf":
        raise TypeError(
            f"`prior` must have numbers as weights, got {given.ravel()[:3].tolist()}."
        )
    if given.shape != (n,):
        raise ValueError(
            f"`prior` must have one weight for each of the {n} candidates, got shape "
            f"{given.shape}; plan.axes.candidates has their order."
        )
    return normalized_weights(given.astype(np.float64))
