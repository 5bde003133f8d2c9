"""What a nested search chose: its models, counted on their folds and on the pool."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import get_criterion
from dsel.data.splits import FULL
from dsel.errors import AllFitsFailedError
from dsel.families.chosen import ChosenFamily
from dsel.families.vote import FoldVote
from dsel.results import Choice, grid_axes
from dsel.searches.declarations import CHOSEN
from dsel.searches.engine.comparisons import KnownLabels, every_fold, votes
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.driver import Driver
from dsel.searches.engine.fit_task import Group
from dsel.searches.engine.scheme import Scheme
from dsel.searches.engine.stages import Stages
from dsel.searches.spec import SearchSpec


def without_pool(plan: SearchSpec) -> SearchSpec:
    """Return the plan of the choices alone: labeled rows, and no full model."""
    scheme = replace(plan.scheme, splits=plan.scheme.splits[:-1], known_labels=())
    return replace(plan, scheme=scheme, stages=Stages())


def of_chosen(plan: SearchSpec, chosen: Sequence[int]) -> SearchSpec:
    """Return the plan of one candidate: on each split what was chosen for it.

    `chosen` are those chosen by all folds and without each fold, in this order.
    """
    k = plan.scheme.n_folds
    folds, full = plan.work.splits[:k], plan.work.splits[-1]
    splits = (*folds, replace(full, number=k)) if plan.pool is not None else folds
    numbers = [*chosen[1:], chosen[0]][: len(splits)]
    groups = [plan.work.group_of(number) for number in numbers]
    candidates = [replace(plan.candidate(number), number=0) for number in numbers]
    keys = [
        group.keys[[each.number for each in group.candidates].index(number)]
        for group, number in zip(groups, numbers, strict=True)
    ]
    family = ChosenFamily(tuple(each.family for each in groups), tuple(candidates))
    group = Group(0, family, (candidates[0],), (CHOSEN + "-".join(keys),))
    return replace(
        plan,
        axes=grid_axes([candidates[-1].estimator]),
        work=replace(plan.work, splits=splits, groups=(group,)),
        scheme=_scheme(plan, splits),
        criterion=get_criterion("best_fold_model"),
        prune=False,
    )


def _scheme(plan: SearchSpec, splits: tuple[Any, ...]) -> Scheme:
    """Return the scheme that compares full model and vote with every fold's model."""
    k, n_classes = plan.scheme.n_folds, len(plan.classes)
    if plan.pool is None:
        return Scheme(splits, k, (), is_plain_random=True)
    known: tuple[KnownLabels, ...] = ()
    if plan.scheme.known_labels:
        codes, folds = plan.scheme.known_labels[0].labels, tuple(range(k))
        known = (
            KnownLabels(codes, (k,), names.FULL_TEST_ERRORS),
            KnownLabels(codes, folds, names.OUTER_TEST_ERRORS),
            KnownLabels(codes, folds, names.VOTE_TEST_ERRORS, n_classes=n_classes),
        )
    compared = (every_fold(k), votes(k, n_classes))
    return Scheme(splits, k, compared, is_plain_random=True, known_labels=known)


def chosen_evidence(
    searched: Mapping[str, NDArray[Any]], table: CountTable, chosen: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Return the evidence of the choices with the counts of what was chosen.

    Raises AllFitsFailedError where that cannot be fitted, RuntimeError where a model
    that was counted before gave another count.
    """
    if table.failed[0]:
        raise AllFitsFailedError(
            f"what was chosen cannot be fitted: {table.message(0, table.in_order[0])}"
        )
    found, outer = table.evidence(), np.array(chosen[1:])
    errors = found[names.FOLD_ERRORS][0]
    before = searched[names.FOLD_ERRORS][outer, np.arange(len(outer))]
    if ((before >= 0) & (before != errors)).any():
        fold = int(np.argmax((before >= 0) & (before != errors)))
        raise RuntimeError(
            f"candidate {outer[fold]} gave another model when it was fitted again "
            f"without fold {fold}: {errors[fold]} errors where {before[fold]} were "
            f"counted. Give it a fixed seed."
        )
    own = {
        names.OUTER_CANDIDATE: outer,
        names.OUTER_ERRORS: errors,
        names.N_UNLABELED: found[names.N_UNLABELED],
    }
    for name, counted in (
        (names.OUTER_DISAGREEMENTS, names.FOLD_DISAGREEMENTS),
        (names.VOTE_DISAGREEMENTS, names.VOTE_DISAGREEMENTS),
        (names.OUTER_TEST_ERRORS, names.OUTER_TEST_ERRORS),
        (names.VOTE_TEST_ERRORS, names.VOTE_TEST_ERRORS),
    ):
        if counted in found:
            own[name] = found[counted][0]
    if names.TEST_ROWS in found:
        own[names.TEST_ROWS] = found[names.TEST_ROWS]
    n = len(searched[names.STATUS])
    for name in (
        names.FULL_TRAIN_ERRORS, names.FULL_TEST_ERRORS, names.FULL_FIT_SECONDS
    ):  # fmt: skip
        if name in found:
            empty = np.nan if name == names.FULL_FIT_SECONDS else names.UNCOUNTED
            own[name] = np.full(n, empty)
            own[name][chosen[0]] = found[name][0]
    return {**searched, **own}


def chosen_model(driver: Driver, choice: Choice, classes: NDArray[Any]) -> Any:
    """Return the model of the choice from the run of `of_chosen`."""
    scheme = driver.table.scheme
    if choice.voters:
        models = [driver.model(0, fold) for fold in range(scheme.n_folds)]
        return FoldVote(models, classes)
    fold = scheme.full if choice.fold is None else choice.fold
    assert fold is not None, f"a plan without a pool has no split {FULL!r}"
    return driver.model(0, fold)
