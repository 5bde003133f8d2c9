"""Checks of the pool against the labeled rows: equal rows, and a two-sample test.

A run makes them, not the plan, since they take a pass over the pool. Before anything is
counted, pool rows that equal labeled ones are excluded, kept or refused. After the
search, a forest is trained on one half of a sample to tell labeled rows from pool rows,
and scores the other half. If all rows come from one population, its scores there are
independent of which rows are labeled, so all assignments of "labeled" and "pool" are
equally likely. A permutation test then gives an exact p-value. No class label is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from dsel.criteria.base import reads_pool
from dsel.data.blocks import stacked
from dsel.data.frames import encoded
from dsel.data.identity import exact_text
from dsel.data.labeled import LabeledRows
from dsel.data.overlap import (
    EXCLUDE,
    KEEP,
    MANY,
    REFUSE,
    SharedRows,
    chance_of_equal,
    resolve_shared_rows,
)
from dsel.data.row_random import hashed_seed
from dsel.results import Assumption
from dsel.results.ledger import VIOLATED
from dsel.results.records import Record
from dsel.searches.assumptions import copies
from dsel.searches.checkpoint import Checkpoint
from dsel.searches.engine.pool_sample import SAMPLE_ROWS, PoolSample, sample_of_stage
from dsel.searches.engine.scheme import of_rows_there
from dsel.searches.spec import SearchSpec

TEST: Final = "two-sample-test"
RESOLVED: Final = "shared-rows"
"""Keys of the journal."""
KEPT: Final = "pool rows that equal labeled rows are kept as other records"
FEWEST_ROWS: Final = 40
"""With fewer rows of either kind there is no test."""
N_PERMUTATIONS: Final = 999
ALARM: Final = 0.001
"""The p-value below which rows are said to differ: one false alarm in 1000 searches."""
SAME: Final = (
    'more than chance makes: the pool holds the same records; say duplicates="exclude"'
)


def with_rows(
    plan: SearchSpec, client: Any = None, *, is_kept: bool = False
) -> SearchSpec:
    """Return the plan with its pool as it is now, and a fingerprint of its rows.

    Rows may have been written since the plan was made. Where counts are stored for
    later runs, `is_kept`, the fingerprint must change with the rows, even if they have
    to be read to compute it. Raises ValueError where the pool has another shape than
    before.
    """
    plan = _reopened(plan)
    work = plan.work
    labeled = LabeledRows(work.X, work.y, plan.classes, plan.columns)
    params = exact_text(dict(work.groups[0].family.fit_params))
    rows = {
        "labeled": labeled.token,
        "fit_params": blake2b(params.encode(), digest_size=12).hexdigest(),
        "pool": "none",
        "left_out": "labeled records" if plan.duplicates == EXCLUDE else "nothing",
    }
    pools = {"pool": plan.pool, "fitting_pool": work.fitting_pool}
    for name, pool in pools.items():
        if pool is not None:
            rows[name] = pool.fingerprint(client) if is_kept else pool.token
    return replace(plan, fingerprint={**plan.fingerprint, **rows})


@dataclass(frozen=True)
class Resolved:
    """What was decided about pool rows that equal labeled rows."""

    left_out: NDArray[np.int64]
    """Numbers of the pool rows that are excluded."""
    found: str
    """What A1 says about equal rows."""
    is_broken: bool
    """Whether it breaks A1."""

    def keep(self, checkpoint: Checkpoint) -> None:
        """Store it for later runs."""
        if not checkpoint.is_read_only:
            checkpoint.keep(RESOLVED, self)


def resolve_pool(
    plan: SearchSpec, records: Mapping[str, Record], client: Any = None
) -> Resolved | None:
    """Return what is done about shared rows, as stored or found by a pass.

    Raises ValueError where rows are shared and the plan refuses them.
    """
    if plan.pool is None:
        return None
    if (known := records.get(RESOLVED)) is not None:
        rows = np.asarray(known["left_out"], dtype=np.int64)
        return Resolved(rows, str(known["found"]), bool(known["is_broken"]))
    none = np.empty(0, dtype=np.int64)
    work = plan.work
    if plan.duplicates == KEEP and work.fitting_pool is None:
        # The sample of the two-sample test will show whether they are the same records.
        return Resolved(none, KEPT, is_broken=False)
    # In the pool as it was before it was divided: learners must not be fitted on pool
    # rows that are labeled rows either, and which of several equal rows are excluded
    # must not depend on the part that they are in.
    is_whole = work.fitting_pool is not None or plan.duplicates == EXCLUDE
    shared = resolve_shared_rows(
        plan.whole_pool if is_whole else plan.pool,
        LabeledRows(work.X, work.y, plan.classes),
        plan.duplicates,
        client=client,
        allow_nan=work.allow_nan,
    )
    left_out = shared.twins() if plan.duplicates == EXCLUDE else none
    return Resolved(left_out, *_finding(plan, shared, len(left_out)))


def without_shared(plan: SearchSpec, resolved: Resolved | None) -> SearchSpec:
    """Return the plan without the pool rows that are labeled ones."""
    if resolved is None:
        return plan
    pool, fitting = (
        part and part.excluding(resolved.left_out)
        for part in (plan.pool, plan.work.fitting_pool)
    )
    # A pool that was empty before is that of active learning, at its last labels.
    if len(resolved.left_out) and pool is not None and pool.n_rows == 0:
        raise ValueError(
            f"`pool` must have rows besides the labeled ones, but none is left: "
            f"{len(resolved.left_out):,} equal labeled rows and are excluded. Pass "
            f"unlabeled rows, or pool=None."
        )
    stages = plan.stages if pool is plan.pool else replace(plan.stages, pool=pool)
    return replace(
        _with_finding(plan, resolved.found, is_broken=resolved.is_broken),
        work=replace(plan.work, fitting_pool=fitting),
        scheme=of_rows_there(plan.scheme, pool),
        stages=stages,
    )


def as_counted(plan: SearchSpec, client: Any = None) -> SearchSpec:
    """Return the plan with the pool of its run: without records that it excludes."""
    if plan.duplicates != EXCLUDE:
        return plan
    return without_shared(plan, resolve_pool(plan, {}, client))


def _reopened(plan: SearchSpec) -> SearchSpec:
    """Return the plan with its pool as it is now."""
    if plan.pool is None:
        return plan
    pool = plan.pool.reopened()
    fitting = plan.work.fitting_pool
    if fitting is not None:
        fitting = replace(fitting, collection=pool.collection)
    return replace(
        plan,
        whole_pool=replace(plan.whole_pool, collection=pool.collection),
        stages=replace(plan.stages, pool=pool),
        work=replace(plan.work, fitting_pool=fitting),
    )


def pool_sample(plan: SearchSpec) -> PoolSample | None:
    """Return the sample that a run should collect for the two-sample test.

    None where the plan's certificate does not use the pool, or there are too few rows.
    """
    reads = reads_pool(plan.certificate)
    if not (plan.certificate.is_guarantee and reads and plan.stages.parts):
        return None
    stage = plan.stages.parts[0]
    if min(len(plan.work.y), stage.pool.n_rows) < FEWEST_ROWS:
        return None
    return sample_of_stage(stage, seed=plan.seed)


def with_shift(
    plan: SearchSpec,
    sample: PoolSample | None,
    checkpoint: Checkpoint,
    client: Any = None,
) -> SearchSpec:
    """Return the plan with the result of the two-sample test in A1.

    The result is stored, so that a finished run is opened without its pool.
    """
    if sample is None:
        return plan
    test = checkpoint.find(TEST, TwoSampleTest)
    if test is None:
        rows = sample.rows(client=client, allow_nan=plan.work.allow_nan)
        if rows.shape[0] < FEWEST_ROWS:
            return plan
        test = two_sample_test(plan.work.X, rows, seed=plan.seed)
        checkpoint.keep(TEST, test)
    compared = _with_finding(plan, str(test), is_broken=test.finds_shift)
    if plan.duplicates == KEEP and test.finds_records:
        recur = f"{test.n_equal:,} random pool rows equal a labeled row, {SAME}"
        return _with_finding(compared, recur, is_broken=True)
    return compared


def _with_finding(
    plan: SearchSpec, found: str, *, is_broken: bool = False
) -> SearchSpec:
    """Return the plan with a finding about A1; a violation stays one."""
    first, *others = plan.assumptions
    if first.is_violated:
        reasons = (found if is_broken else "", first.reason)
    elif is_broken:  # of what spoke for it only copies are a reason now
        work = plan.work
        reasons = (found, copies(work.X, work.y, work.splits)[0])
    else:
        reasons = (first.reason, found)
    state = VIOLATED if is_broken else first.state
    reason = "; ".join(filter(None, reasons))
    return replace(plan, assumptions=(Assumption("A1", state, reason), *others))


def _finding(plan: SearchSpec, shared: SharedRows, n_left_out: int) -> tuple[str, bool]:
    """Return what A1 says about equal rows, and whether they break it."""
    near, n_near, n = "", shared.near.n_copied, len(plan.work.y)
    if n_near:
        near = (
            f"; the pool holds near copies of {n_near:,} of {shared.near.n_searched:,} "
            f"labeled rows, which differ by rounding or noise alone"
        )
    if plan.duplicates == EXCLUDE:
        records = f"{n_left_out:,} pool rows were the labeled records and are left out"
        if shared.p_value > ALARM or shared.n_remaining < MANY * n:
            return records + near, False
        again = (
            f"; {shared.n_remaining:,} of {n:,} labeled rows equal further pool rows, "
            f"more than chance makes: the pool holds records more than once"
        )
        return records + again + near, True
    if plan.duplicates == REFUSE:
        return "no pool row equals a labeled row" + near, False
    kept = KEPT + near
    if shared.p_value <= ALARM:
        kept += f"; {shared.n_labeled:,} of {n:,} labeled rows equal pool rows, {SAME}"
    is_many = shared.p_value <= ALARM and shared.n_labeled >= MANY * n
    return kept, is_many or shared.has_many_near


@dataclass(frozen=True)
class TwoSampleTest:
    """How well a classifier distinguishes labeled rows from pool rows."""

    auc: float
    """Probability that a pool row scores higher than a labeled row; 0.5 by guessing."""
    p_value: float
    """Probability that chance alone does as well."""
    n_equal: int = 0
    """Rows of the sample that equal a labeled row."""
    equal_p_value: float = 1.0
    """Probability that chance makes so many equal; see `chance_of_equal`."""

    @property
    def finds_records(self) -> bool:
        """Whether the pool holds the labeled records themselves."""
        return self.equal_p_value <= ALARM

    @property
    def finds_shift(self) -> bool:
        """Whether the rows of both kinds are probably not of one population."""
        return self.p_value <= ALARM

    def __str__(self) -> str:
        found = "tells" if self.finds_shift else "does not tell"
        return (
            f"a classifier {found} labeled rows from pool rows "
            f"(AUC {self.auc:.2f}, p = {self.p_value:.2g})"
        )


def two_sample_test(labeled: Any, unlabeled: Any, *, seed: int) -> TwoSampleTest:
    """Compare rows of two kinds, (n_rows, n_columns) each, by a classifier.

    Missing values may stand in all but CSR. The seed is that of the halves, the forest
    and the permutations.
    """
    from sklearn.ensemble import RandomForestClassifier  # takes a while to import

    labeled, unlabeled = _in_one_precision([encoded(labeled), encoded(unlabeled)])
    rng = np.random.default_rng(hashed_seed(seed, "two-sample test"))
    X = stacked([_drawn(each, SAMPLE_ROWS, rng) for each in (labeled, unlabeled)])
    X = _ranked(X)
    is_pool = np.arange(X.shape[0]) >= min(labeled.shape[0], SAMPLE_ROWS)
    is_scored = _half_of_each(is_pool, rng)
    forest = RandomForestClassifier(
        n_estimators=50, min_samples_leaf=5, random_state=hashed_seed(seed, "forest")
    ).fit(X[~is_scored], is_pool[~is_scored])
    scores = forest.predict_proba(X[is_scored])[:, 1]
    auc, p_value = _rank_test(scores, is_pool[is_scored], rng)
    return TwoSampleTest(auc, p_value, *chance_of_equal(labeled, unlabeled))


def _in_one_precision(tables: Sequence[Any]) -> list[Any]:
    """Return tables, rounded to float32 in columns in which one of them was rounded.

    The float32 next to 0.1 is another number, so that trees would tell equal records.
    """
    if any(map(sparse.issparse, tables)):
        matrices = [sparse.csr_matrix(each, dtype=np.float64) for each in tables]
        data = _in_one_precision([each.data[:, np.newaxis] for each in matrices])
        for matrix, values in zip(matrices, data, strict=True):
            matrix.data = values[:, 0]
        return matrices
    if all(each.dtype.kind != "f" for each in tables):
        return list(tables)
    with np.errstate(over="ignore"):
        rounded = [each.astype(np.float32) for each in tables]
    pairs = list(zip(rounded, tables, strict=True))
    single = [((new == old) | np.isnan(old)).all(axis=0) for new, old in pairs]
    near = [  # neither too large nor too small for a float32
        np.isclose(new, old, rtol=1e-6, atol=0.0, equal_nan=True).all(axis=0)
        for new, old in pairs
    ]
    alike = np.any(single, axis=0) & np.all(near, axis=0)
    return [np.where(alike, new, old) for new, old in pairs]


def _ranked(X: Any) -> Any:
    """Return rows with the place of each value among those of its column.

    Only that matters to a forest, but scikit-learn's takes values that differ by less
    than 1e-7, or that float32 rounds to one, for equal. Zeros of CSR rows stay zeros.
    """
    if sparse.issparse(X):
        X = X.astype(np.float64)
        _, places = np.unique(np.append(X.data, 0.0), return_inverse=True)
        X.data = (places[:-1] - places[-1]).astype(np.float64)
        return X
    return stats.rankdata(X, method="dense", axis=0, nan_policy="omit")


def _rank_test(
    scores: NDArray[np.float64], is_pool: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Compare the mean rank of one kind with what it is in random assignments."""
    ranks = stats.rankdata(scores)
    n_pool, n_labeled = int(is_pool.sum()), int((~is_pool).sum())
    shuffled = rng.permuted(np.tile(ranks, (N_PERMUTATIONS, 1)), axis=1)
    by_chance = shuffled[:, :n_pool].sum(axis=1)
    seen = ranks[is_pool].sum()
    as_good = int((by_chance >= seen - 1e-9).sum())
    auc = (seen - n_pool * (n_pool + 1) / 2) / (n_pool * n_labeled)
    return float(auc), (1 + as_good) / (1 + N_PERMUTATIONS)


def _half_of_each(
    is_pool: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    is_scored = np.zeros(len(is_pool), dtype=bool)
    for kind in (False, True):
        rows = rng.permutation(np.flatnonzero(is_pool == kind))
        is_scored[rows[: len(rows) // 2]] = True
    return is_scored


def _drawn(X: Any, n_rows: int, rng: np.random.Generator) -> Any:
    if X.shape[0] <= n_rows:
        return X
    return X[np.sort(rng.choice(X.shape[0], n_rows, replace=False))]
