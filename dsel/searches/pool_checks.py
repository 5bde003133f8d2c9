"""The pool beside the labeled rows: what both hold, and whether both look alike.

Found by a run, not by the plan, since it takes a reading of the pool. Rows of both that
are equal are resolved before anything is counted. Then a forest learns on one half of a
sample to tell labeled rows from pool rows, and is asked on the other half. If rows come
from one population, its scores on that half say nothing, and every assignment of
"labeled" and "pool" to them is equally likely, which gives an exact p-value for one
fit. No label is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from dsel import names
from dsel.data.chunking import stacked
from dsel.data.content import exact_text
from dsel.data.labeled import LabeledRows
from dsel.data.shared import (
    EXCLUDE,
    KEEP,
    MANY,
    REFUSE,
    SharedRows,
    chance_of_equal,
    resolve_shared_rows,
)
from dsel.data.words import hashed_seed
from dsel.results import Assumption
from dsel.results.journal import Journal
from dsel.results.records import Record
from dsel.results.schema import VIOLATED
from dsel.searches.engine.pool_sample import SAMPLE_ROWS, PoolSample, sample_of_stage
from dsel.searches.engine.scheme import of_rows_there
from dsel.searches.keeping import Notebook
from dsel.searches.spec import SearchSpec

NOTE: Final = "two-sample-test"
RESOLVED: Final = "shared-rows"
"""Keys of the journal."""
KEPT: Final = "pool rows that equal labeled rows are kept as other records"
FEWEST_ROWS: Final = 40
"""With fewer of either kind nothing is compared."""
N_PERMUTATIONS: Final = 999
ALARM: Final = 0.001
"""A p-value at which rows are said to differ: a false alarm in one of 1000 searches."""
SAME: Final = (
    'more than chance makes: the pool holds the same records; say duplicates="exclude"'
)


def with_rows(
    plan: SearchSpec, client: Any = None, *, is_kept: bool = False
) -> SearchSpec:
    """Return the plan with its pool as it is now, and a fingerprint of its rows.

    Parameters
    ----------
    plan
        As it was made; rows may have been written since.
    client
        As for `execute`.
    is_kept
        Whether counts are kept for later runs, which must tell these rows from others
        even if they have to be read for it.

    Raises
    ------
    ValueError
        Where the pool has another shape than when it was opened.
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
    """What was done about the rows that labels and pool share."""

    left_out: NDArray[np.int64]
    """Numbers of the pool rows that take no part."""
    found: str
    """What is said of shared rows in A1."""
    is_broken: bool
    """Whether it breaks A1."""

    def note(self, journal: Journal | None) -> None:
        """Keep it for later runs."""
        if journal is not None and not journal.is_read_only:
            journal.append(RESOLVED, vars(self))


def resolve_pool(
    plan: SearchSpec, records: Mapping[str, Record], client: Any = None
) -> Resolved | None:
    """Return what is done about shared rows: what was noted, else a pass says it.

    Raises
    ------
    ValueError
        Where rows are shared and the plan refuses them.
    """
    if plan.pool is None:
        return None
    if (known := records.get(RESOLVED)) is not None:
        rows = np.asarray(known["left_out"], dtype=np.int64)
        return Resolved(rows, str(known["found"]), bool(known["is_broken"]))
    none = np.empty(0, dtype=np.int64)
    work = plan.work
    if plan.duplicates == KEEP and work.fitting_pool is None:
        # The rows that a run samples will say whether they are the same records.
        return Resolved(none, KEPT, is_broken=False)
    # Before it was divided: a learner must not be fitted on labeled rows either, and
    # which of several equal rows are left out must not depend on the part they are in.
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
    stages = plan.stages if pool is plan.pool else replace(plan.stages, pool=pool)
    return replace(
        _with_finding(plan, resolved.found, is_broken=resolved.is_broken),
        pool=pool,
        work=replace(plan.work, fitting_pool=fitting),
        scheme=of_rows_there(plan.scheme, pool),
        stages=stages,
    )


def _reopened(plan: SearchSpec) -> SearchSpec:
    """Return the plan with its pool as it is now."""
    if plan.pool is None:
        return plan
    pool = plan.pool.reopened()
    fitting = plan.work.fitting_pool
    if fitting is not None:
        fitting = replace(fitting, storage=pool.storage)
    return replace(
        plan,
        pool=pool,
        whole_pool=replace(plan.whole_pool, storage=pool.storage),
        stages=replace(plan.stages, pool=pool),
        work=replace(plan.work, fitting_pool=fitting),
    )


def pool_sample(plan: SearchSpec) -> PoolSample | None:
    """Return what a run is to sample, if the plan's certificate counts on the pool.

    None where there are too few rows of either kind to tell anything.
    """
    reads_pool = names.POOL_ROWS in plan.certificate.needs
    if not (plan.certificate.is_guarantee and reads_pool and plan.stages.parts):
        return None
    stage = plan.stages.parts[0]
    if min(len(plan.work.y), stage.pool.n_rows) < FEWEST_ROWS:
        return None
    return sample_of_stage(stage, seed=plan.seed)


def with_shift(
    plan: SearchSpec, sample: PoolSample | None, notebook: Notebook, client: Any = None
) -> SearchSpec:
    """Return the plan with what tells labeled rows from those of the sample.

    That is noted, so that a finished run is opened without its pool.
    """
    if sample is None:
        return plan
    test = notebook.find(NOTE, TwoSampleTest)
    if test is None:
        rows = sample.rows(client=client, allow_nan=plan.work.allow_nan)
        if rows.shape[0] < FEWEST_ROWS:
            return plan
        test = two_sample_test(plan.work.X, rows, seed=plan.seed)
        notebook.note(NOTE, test)
    compared = _with_finding(plan, str(test), is_broken=test.finds_shift)
    if plan.duplicates == KEEP and test.finds_records:
        recur = f"{test.n_equal:,} random pool rows equal a labeled row, {SAME}"
        return _with_finding(compared, recur, is_broken=True)
    return compared


def _with_finding(
    plan: SearchSpec, found: str, *, is_broken: bool = False
) -> SearchSpec:
    """Return the plan with a finding about A1, which never gets better."""
    first, *others = plan.assumptions
    if is_broken:
        state, reason = VIOLATED, f"{found}; {first.reason}"
    else:
        state, reason = first.state, f"{first.reason}; {found}"
    return replace(plan, assumptions=(Assumption("A1", state, reason), *others))


def _finding(plan: SearchSpec, shared: SharedRows, n_left_out: int) -> tuple[str, bool]:
    """Return what is said of shared rows, and whether it breaks A1."""
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
    """How well rows of two kinds can be told apart."""

    auc: float
    """Chance that a pool row scores higher than a labeled row; 0.5 by guessing."""
    p_value: float
    """How often chance alone does as well."""
    n_equal: int = 0
    """Rows of the pool's sample that equal a labeled row."""
    equal_p_value: float = 1.0
    """How often chance makes so many equal; see `chance_of_equal`."""

    @property
    def finds_records(self) -> bool:
        """Whether the pool holds the labeled records themselves."""
        return self.equal_p_value <= ALARM

    @property
    def finds_shift(self) -> bool:
        """Whether the two are hardly of one population."""
        return self.p_value <= ALARM

    def __str__(self) -> str:
        found = "tells" if self.finds_shift else "does not tell"
        return (
            f"a classifier {found} labeled rows from pool rows "
            f"(AUC {self.auc:.2f}, p = {self.p_value:.2g})"
        )


def two_sample_test(labeled: Any, unlabeled: Any, *, seed: int) -> TwoSampleTest:
    """Compare rows of two kinds, (n_rows, n_columns) each, by a classifier.

    Parameters
    ----------
    labeled, unlabeled
        Arrays or CSR matrices; missing values may stand in arrays.
    seed
        Of the halves, the forest and the permutations.
    """
    from sklearn.ensemble import RandomForestClassifier  # takes a while to import

    rng = np.random.default_rng(hashed_seed(seed, "two-sample test"))
    X = stacked([_drawn(each, SAMPLE_ROWS, rng) for each in (labeled, unlabeled)])
    X = _as_float32(X)
    is_pool = np.arange(X.shape[0]) >= min(labeled.shape[0], SAMPLE_ROWS)
    asked = _half_of_each(is_pool, rng)
    forest = RandomForestClassifier(
        n_estimators=50, min_samples_leaf=5, random_state=hashed_seed(seed, "forest")
    ).fit(X[~asked], is_pool[~asked])
    scores = forest.predict_proba(X[asked])[:, 1]
    auc, p_value = _rank_test(scores, is_pool[asked], rng)
    return TwoSampleTest(auc, p_value, *chance_of_equal(labeled, unlabeled))


def _as_float32(X: Any) -> Any:
    """Return rows as a forest takes them: it asks for the order of values only."""
    most = np.finfo(np.float32).max
    if sparse.issparse(X):
        X = X.copy()
        X.data = np.clip(X.data, -most, most).astype(np.float32)
        return X
    return np.clip(X, -most, most).astype(np.float32)


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
    asked = np.zeros(len(is_pool), dtype=bool)
    for kind in (False, True):
        rows = rng.permutation(np.flatnonzero(is_pool == kind))
        asked[rows[: len(rows) // 2]] = True
    return asked


def _drawn(X: Any, n_rows: int, rng: np.random.Generator) -> Any:
    if X.shape[0] <= n_rows:
        return X
    return X[np.sort(rng.choice(X.shape[0], n_rows, replace=False))]
