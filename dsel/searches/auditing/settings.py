"""Settings of an audit, and the steps that a user takes with a draw.

Steps use public names only. They return *claims*: a number, whether it was called
certified, and the true error of the model that it is about.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from dsel import names
from dsel.bounds import binomial_tail_inversion
from dsel.bounds.events import CERTIFICATE_EVENTS
from dsel.criteria import CRITERIA
from dsel.results import Certificate, evidence
from dsel.searches.auditing.laws import Codes, Floats, Law
from dsel.searches.certify_selection import certify_selection
from dsel.searches.engine.stages import PoolReading
from dsel.searches.facade import SemiSupervisedSearchCV
from dsel.searches.ledger import add_certificate
from dsel.searches.plan import Plan, plan_search
from dsel.searches.select import select


@dataclass(frozen=True)
class Claim:
    """What a search said about a model, and the truth."""

    delta: float
    """Probability with which it may be wrong."""
    certified: bool
    """Whether it was called a guarantee."""
    bound: float
    truth: float
    lower: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether it is wrong; equal numbers may differ by rounding."""
        return not self.lower - 1e-12 <= self.truth <= self.bound + 1e-12


@dataclass(frozen=True)
class Setting:
    """One way to search, on rows of a known law."""

    name: str
    law: Law
    estimator: Any
    grid: Mapping[str, Any]
    steps: Callable[["Draw"], Iterator[Claim]]
    """Searches a draw and returns claims."""
    options: Mapping[str, Any] = field(default_factory=dict)
    n_labeled: int = 39
    """Labeled rows; from 40 on a run makes the two-sample test, which takes longer
    than everything else."""
    n_unlabeled: int = 200
    is_control: bool = False
    """Whether it is a broken bound, which the audit must catch."""


@dataclass(frozen=True)
class Draw:
    """Labeled rows and a pool, drawn from the law of a setting."""

    setting: Setting
    deltas: tuple[float, ...]
    """Values of delta for which claims are wanted, the largest first."""
    X: Floats
    y: Codes
    pool: Floats
    answers: Codes
    """Their classes, which searches do not see."""
    seed: int

    def plan(self, grid: Any = None, **changed: Any) -> Plan:
        """Plan the setting's search, or a changed one."""
        options = {"cv": 5, "random_state": self.seed, **self.setting.options}
        return plan_search(
            self.setting.estimator, self.setting.grid if grid is None else grid, self.X,
            self.y, self.pool, **options | changed,
        )  # fmt: skip

    def claim(self, certificate: Certificate, model: Any, delta: float) -> Claim:
        """Return the claim of a certificate for the model that was returned."""
        if certificate.criterion == "transductive":
            truth = float(np.mean(np.asarray(model.predict(self.pool)) != self.answers))
        else:
            truth = self.setting.law.error(model)
        lower, upper = certificate.interval
        return Claim(delta, certificate.certified, upper, truth, lower)


def draw_of(setting: Setting, deltas: tuple[float, ...], entropy: Any) -> Draw:
    """Return one draw of a setting; the same for the same numbers."""
    rng = np.random.default_rng(entropy)
    X, y = setting.law.draw(setting.n_labeled, rng)
    pool, answers = setting.law.draw(setting.n_unlabeled, rng)
    seed = int(rng.integers(2**31))
    return Draw(setting, deltas, X, y, pool, answers, seed)


# Steps: what is done with a draw.


def once(draw: Draw) -> Iterator[Claim]:
    """Search at the largest delta, and read the same cube at all of them."""
    plan = draw.plan(delta=draw.deltas[0], prune=False)
    results = plan.run(n_jobs=1)
    for delta in draw.deltas:
        yield _chosen(draw, plan, results, delta)


def each(draw: Draw, **changed: Any) -> Iterator[Claim]:
    """Search once for each delta."""
    for delta in draw.deltas:
        plan = draw.plan(delta=delta, **changed)
        yield _chosen(draw, plan, plan.run(n_jobs=1), delta)


def deployed(draw: Draw, **changed: Any) -> Iterator[Claim]:
    """Search as a scikit-learn estimator; the claim is about its model."""
    for delta in draw.deltas:
        yield _fitted(draw, delta, **changed)


def any_pair(draw: Draw) -> Iterator[Claim]:
    """Rank by one criterion and certify by another, both drawn at random."""
    rng = np.random.default_rng(draw.seed)
    pair = {
        "criterion": str(rng.choice(list(CRITERIA))),
        "certificate": str(rng.choice(list(CERTIFICATE_EVENTS))),
    }
    for delta in draw.deltas:
        try:
            yield _fitted(draw, delta, **pair)
        except (TypeError, ValueError):  # refused
            return


def selected_in_folds(draw: Draw, certificate: str) -> Iterator[Claim]:
    """Choose whatever looks best without each fold, and certify what comes of it."""
    setting = draw.setting

    def procedure(X: Floats, y: Codes) -> Any:
        return lowest_error(setting, X, y).fit(X, y)

    for delta in draw.deltas:
        found = certify_selection(
            procedure, draw.X, draw.y,
            draw.pool if certificate == "best_fold" else None, certificate=certificate,
            delta=delta, random_state=draw.seed, n_jobs=1, **draw.setting.options,
        )  # fmt: skip
        yield draw.claim(found.certificate, found.model, delta)


def lowest_error(setting: Setting, X: Floats, y: Codes) -> Any:
    """Return the candidate, not fitted, that errs least on the rows it has learned."""
    [(name, values)] = setting.grid.items()
    models = [clone(setting.estimator).set_params(**{name: v}) for v in values]
    errors = [np.mean(model.fit(X, y).predict(X) != y) for model in models]
    return clone(models[int(np.argmin(errors))])


def read_later(draw: Draw) -> Iterator[Claim]:
    """Read one more certificate from a reserve after the first was seen."""
    for delta in draw.deltas:
        plan = draw.plan(delta=delta / 2, reserve=delta / 2, prune=False)
        results = plan.run(n_jobs=1)
        later = add_certificate(results, "best_fold", delta=delta / 2)
        first = _chosen(draw, plan, results, delta)
        second = _chosen(
            draw, plan, later, delta, read=delta / 2, certificate="best_fold"
        )
        yield _worse(first, second)


def in_one_place(
    draw: Draw, grids: Callable[[Any, int], list[Any]], reserve: float, **first: Any
) -> Iterator[Claim]:
    """Search one grid after another in the same `out`; all their claims must hold.

    `grids` returns the next grids, given the first one and the number of the candidate
    that was chosen; `first` are options of the first run only.
    """
    for delta in draw.deltas:
        paid = {"delta": delta * (1 - reserve), "reserve": delta * reserve}
        with TemporaryDirectory() as out:
            plan = draw.plan(**paid, **first)
            results = plan.run(n_jobs=1, out=out)
            claims = [_chosen(draw, plan, results, delta)]
            for grid in grids(draw.setting.grid, select(results).candidate):
                plan = draw.plan(grid, **paid)
                results = plan.run(n_jobs=1, out=out)
                claims.append(_chosen(draw, plan, results, delta))
        yield _worse(*claims)


def the_winner(grid: Mapping[str, Any], chosen: int) -> list[Any]:
    """Return the grid of the candidate that was chosen."""
    [(name, values)] = grid.items()
    return [{name: [values[chosen]]}]


def the_winner_and_another(grid: Mapping[str, Any], chosen: int) -> list[Any]:
    """Return that grid with one more candidate."""
    [(name, values)] = grid.items()
    return [{name: [values[chosen], len(values) + 1]}]


def half_then_all(grid: Mapping[str, Any], chosen: int) -> list[Any]:
    """Return the grid with twice the candidates, twice: the same command again."""
    [(name, values)] = grid.items()
    del chosen
    both = {name: [*values, *(value + len(values) for value in values)]}
    return [both, both]


def interrupted(draw: Draw, **changed: Any) -> Iterator[Claim]:
    """Stop a run after its first fits, and continue with the same command."""

    def stop(progress: Any) -> None:
        if progress.fits_done:
            raise KeyboardInterrupt

    for delta in draw.deltas:
        plan = draw.plan(delta=delta, **changed)
        with TemporaryDirectory() as out:
            with suppress(KeyboardInterrupt):
                plan.run(n_jobs=1, out=out, on_progress=stop)
            yield _chosen(draw, plan, plan.run(n_jobs=1, out=out), delta)


def looked_elsewhere(draw: Draw) -> Iterator[Claim]:
    """Read a part of the pool, then more of it in the same place."""
    for delta in draw.deltas:
        claims = []
        with TemporaryDirectory() as out:
            for within in (0.3, 0.1):
                reading = PoolReading(n_stages=0, stop_within=within)
                plan = draw.plan(delta=delta, reading=reading)
                results = plan.run(n_jobs=1, out=out)
                claims.append(_chosen(draw, plan, results, delta))
        yield _worse(*claims)


def with_labeled_rows_in_the_pool(draw: Draw) -> Iterator[Claim]:
    """Search with a pool that contains the labeled records, which are excluded."""
    mixed = replace(draw, pool=np.vstack([draw.pool, draw.X]))
    yield from each(mixed, duplicates="exclude")


def _chosen(
    draw: Draw,
    plan: Plan,
    results: Any,
    delta: float,
    *,
    read: float | None = None,
    certificate: str | None = None,
) -> Claim:
    """Return the claim of `select` for the model that the plan fits."""
    wanted = float(results[names.DELTA].values[0])
    lower = read or (delta if delta < wanted else None)
    choice = select(results, delta=lower, certificate=certificate)
    return draw.claim(choice.certificate, plan.deployed(choice), delta)


def _fitted(draw: Draw, delta: float, **changed: Any) -> Claim:
    options = {"cv": 5, **draw.setting.options, **changed}
    search = SemiSupervisedSearchCV(
        draw.setting.estimator, draw.setting.grid, delta=delta, random_state=draw.seed,
        n_jobs=1, **options,
    )  # fmt: skip
    search.fit(draw.X, draw.y, draw.pool)
    return draw.claim(search.certificate_, search.best_estimator_, delta)


def _worse(*claims: Claim) -> Claim:
    """Return a claim that is certified and wrong; else one that is certified."""
    certified = [claim for claim in claims if claim.certified]
    wrong = [claim for claim in certified if claim.has_failed]
    return (wrong or certified or claims)[-1]


# Controls: broken bounds, called certified.


def pooled_folds(draw: Draw) -> Iterator[Claim]:
    """Take all fold errors as one binomial: BROKEN, since folds are dependent."""
    plan = draw.plan(prune=False)
    n_errors = int(plan.run(n_jobs=1)[names.FOLD_ERRORS].sum())
    truth = draw.setting.law.error(plan.model(0))
    for delta in draw.deltas:
        limit = binomial_tail_inversion(n_errors, len(draw.y), delta=delta)
        yield Claim(delta, True, float(limit), truth)


def luckiest_fold(draw: Draw) -> Iterator[Claim]:
    """Bound the error by the fold with fewest errors: BROKEN, since it was chosen."""
    plan = draw.plan(prune=False)
    results = plan.run(n_jobs=1)
    counts = evidence(results)
    errors, rows = (counts[n].ravel() for n in (names.FOLD_ERRORS, names.FOLD_ROWS))
    truth = draw.setting.law.error(plan.model(0))
    for delta in draw.deltas:
        limits = binomial_tail_inversion(errors, rows, delta=delta)
        yield Claim(delta, True, float(limits.min()), truth)


def repeated_looks(draw: Draw) -> Iterator[Claim]:
    """Read rows one by one and report the smallest limit seen: BROKEN."""
    seen = draw.answers.cumsum()
    for delta in draw.deltas:
        limits = binomial_tail_inversion(seen, np.arange(1, 1 + len(seen)), delta=delta)
        truth = float(draw.setting.law.chances[:, 1].sum())
        yield Claim(delta, True, float(limits.min()), truth)
