"""From a plan to an outcome: on a cluster or on local threads.

A run reads the pool once to compare it with the labeled rows, makes the fits and passes
of the search, and ends with the models that were counted. A certificate that was
written is final: the same plan in the same place reads it.

In the last step of a nested search the k models without a fold and that of all rows
come to this process with their counts, each in one message, before the pool is read.
The pass over the pool gets these objects, so no task of it depends on a fit that could
run twice, and what is handed over is what was counted, whatever the learner draws.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.shares import uniform_shares
from dsel.checks import check_choice, check_options
from dsel.criteria import Settings
from dsel.data.equal_rows import duplicate_finder
from dsel.data.frames import Frame
from dsel.data.pool import Span
from dsel.errors import (
    AllFitsFailedError,
    FitFailedWarning,
    NewerRecordError,
    PoolChangedError,
    warn,
)
from dsel.families.family import FIT_DONE, FittedGroup
from dsel.losses.base import FoldCounts, PoolCounts, Statistic
from dsel.losses.joint import Evidence
from dsel.results import Certificate, Choice
from dsel.results.certificate import (
    ALL_ROWS,
    ONE_FOLD,
    CertifiedReport,
    params_text,
)
from dsel.results.cube import evidence as read_evidence
from dsel.results.cube import make_cube, make_pair_cube
from dsel.results.place import CUBE, PAIRS
from dsel.results.store import Store
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.progress import (
    Progress,
    check_verbose,
    row_progress,
    run_progress,
)
from dsel.runtime.submission import Executor, make_executor
from dsel.runtime.tasks import Task
from dsel.runtime.versions import installed_versions
from dsel.search.assumptions import (
    PoolFacts,
    count_fitting_rows,
    look_at_pool,
    objections_to_fitting_rows,
    with_pool_facts,
)
from dsel.search.counts import CountTable, cannot_predict, replay
from dsel.search.driver import Driver
from dsel.search.fits import Fitting, attempts
from dsel.search.keep_models import check_estimators, keep_models, trusted_types
from dsel.search.predict_table import (
    Deployed,
    InputFormat,
    PredictedTable,
    predict_table,
)
from dsel.search.pruning import ExactRace, NestedRace
from dsel.search.select import (
    CHOICE,
    certificate_of,
    choose,
    cv_error,
    planned_objections,
    remarks_on,
    with_terms,
)
from dsel.search.tasks import Call, ChosenModels, FitJob, count_chosen, fit_chosen
from dsel.stores import BAD_HEADER

if TYPE_CHECKING:
    from dsel.search.plan import Plan

NOTHING_DONE: Final = Progress()
FACTS: Final = "pool/facts"
"""Key of the record of the pass that looks at the pool."""
CHANGED_POOL: Final = "pool/changed"
"""Key of a record that says that no count in the store is to be used."""
WORDS: Final = {
    2: "half", 3: "two thirds", 4: "three quarters", 5: "four fifths",
    6: "five sixths", 8: "7 eighths", 10: "9 tenths",
}  # fmt: skip
"""The part of the labels that a model without one of so many folds has seen."""


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of a search."""

    results: xr.Dataset
    """The cube over the grid, ``fold`` and ``criterion``."""
    choice: Choice
    """The chosen candidate; printed, it says how wrong its model can be."""
    pair_results: xr.Dataset | None = None
    """What inner searches counted, pair of folds by pair; None of other searches."""
    make_models: Callable[[], Mapping[str, Any]] = field(default=dict, compare=False)
    input_format: InputFormat = field(default_factory=InputFormat, compare=False)
    """How the models get their rows."""

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """By deployment: ``one_fold``, ``all_rows``."""
        return self.choice.certificates

    @property
    def certificate(self) -> Certificate:
        """That of the model that is handed over."""
        return self.choice.certificate

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """The fitted models that the certificates are about, by deployment.

        Of a run that had ended before, without kept models, they are fitted anew and
        counted again.

        Raises
        ------
        RuntimeError
            Where a model that was fitted anew is not the one that was counted.
        """
        return self.make_models()

    @property
    def model(self) -> Any:
        """The model that is handed over."""
        return self.models[self.choice.deploy]

    def certified_report(self, deploy: str | None = None) -> CertifiedReport:
        """Return recall and precision of every class with limits, and the error.

        Parameters
        ----------
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is handed over.

        Raises
        ------
        ValueError
            Where the plan had no ``report``: what is read out is declared before.
        """
        return self.choice.report(deploy)

    def predict_table(
        self,
        source: Any,
        *,
        out: str | os.PathLike[str],
        deploy: str | None = None,
        id: Sequence[str] | None = None,
        client: Any = None,
        verbose: bool | None = None,
    ) -> PredictedTable:
        """Predict every row of a table of any size, and write a file in its order.

        Parameters
        ----------
        source
            The path of a table in any format of `read_table`, or what `open_pool`
            takes. Columns are found by their names, those that the model does not use
            are left out, and texts become what the labeled rows hold.
        out
            A new file that ends in ``.parquet``, ``.csv`` or ``.zarr``. It gets its
            name when all rows are in it.
        deploy
            ``one_fold`` or ``all_rows``; by default the model that is deployed.
        id
            Columns of the table that are carried into the file. None takes those that
            `dsel select` was told; without any, ``row`` has the numbers of the rows.
        client
            Dask client; None is the current one, else local threads.
        verbose
            Whether progress is shown; None shows it in terminals and notebooks.

        Returns
        -------
        PredictedTable
            What was written: ``label``, and ``probability_`` of each class where the
            model has it; ``value`` of a regressor.

        Raises
        ------
        FileExistsError
            If something is at `out`.
        TypeError
            If a column holds something else than that of the labeled rows.
        ValueError
            If a column is missing, a value is of another kind than its column (the
            message has column, row and value), or `out` has another ending.

        Examples
        --------
        >>> import pandas as pd
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from dsel import plan_search
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> outcome = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0).run()
        >>> with TemporaryDirectory() as folder:
        ...     made = outcome.predict_table(X, out=f"{folder}/p.csv")
        ...     pd.read_csv(made.path).columns.to_list()
        ['row', 'label']
        """
        wanted = check_choice(
            deploy or self.choice.deploy, "deploy", tuple(self.certificates)
        )
        deployed = Deployed(
            self.models[wanted], self.certificates[wanted], self.input_format
        )
        with row_progress(check_verbose(verbose)) as report:
            return predict_table(
                deployed, source, out, id=id, client=client, on_progress=report
            )

    def __repr__(self) -> str:
        return str(self.choice)


@dataclass(frozen=True)
class LastStep:
    """The models of what was chosen, and what was counted of them."""

    candidates: tuple[int, ...]
    """Candidate chosen without each fold, then that of all rows."""
    models: Mapping[int, Any]
    """Fitted estimators by fold; that of all rows, where there is one, under k."""
    evidence: Evidence
    """What was counted on the folds, and with a model of all rows on the pool."""
    messages: tuple[str, ...]
    """What went wrong in a fit."""
    stopped: Mapping[int, str]
    """By candidate, what a fit said that was done, such as that it did not converge."""

    @property
    def counts(self) -> dict[str, NDArray[np.int64]]:
        """What was counted, by the names of the cube's variables."""
        found = {s.on_folds: each.counts for s, each in self.evidence.folds.items()}
        for statistic, each in self.evidence.pool.items():
            found[statistic.on_pool] = each.counts
            found[statistic.on_duplicates] = each.duplicates
        return found


def execute(
    plan: "Plan", client: Any, *, out: Any, storage_options: Any, on_failure: str,
    on_progress: Any, verbose: Any, n_jobs: int | None,
) -> Outcome:  # fmt: skip
    """Run a plan; see `Plan.run`."""
    check_choice(on_failure, "on_failure", ("record", "raise"))
    # Refused before the pool is read.
    count_threads(n_jobs)
    verbose = check_verbose(verbose)
    if on_progress is not None and not callable(on_progress):
        raise TypeError(
            f"`on_progress` must be a function that takes a Progress, got "
            f"{on_progress!r}; verbose=True shows progress without one."
        )
    check_options(storage_options)
    client = resolve_client(client)
    run = _Run(plan, client, n_jobs, raise_failures=on_failure == "raise")
    with ExitStack() as stack:
        store = None
        if out is not None:
            identity = {**plan.identity, **run.tokens_of_rows()}
            store = stack.enter_context(Store(
                out, kind="search", plan=identity, storage_options=storage_options
            ))  # fmt: skip
            if CHANGED_POOL in store.records:
                raise ValueError(
                    f"`out` {store.place} holds counts of a pool that was written "
                    f"while a run read it; delete it, or choose another `out`."
                )
            cube = store.dataset(CUBE)
            if store.outcome is not None and cube is not None:
                return replace(
                    _finished(run, store, cube), input_format=run.input_format
                )
            run.not_kept = check_estimators(run.estimators, store.place)
        run.store = store
        run.on_progress = on_progress or stack.enter_context(run_progress(verbose))
        try:
            outcome = run.outcome()
            if plan.pool is not None:  # also where learners read it last
                plan.pool.check_unchanged()
        except PoolChangedError:
            if store is not None:  # what was counted may be of other rows
                store.append(CHANGED_POOL, {})
            raise
        if store is not None:
            outcome = _kept(run, outcome, store)
    return replace(outcome, input_format=run.input_format)


@dataclass
class _Run:
    """One run of a plan: what its steps share."""

    plan: "Plan"
    client: Any
    n_jobs: int | None
    raise_failures: bool = False
    store: Any = None
    on_progress: Callable[[Progress], None] | None = None
    not_kept: str = ""
    """Why models cannot be kept, where this was known before the first fit."""

    @cached_property
    def input_format(self) -> InputFormat:
        """How the models get their rows."""
        return InputFormat.of(self.plan.labeled)

    @property
    def estimators(self) -> list[Any]:
        """The candidates, unfitted."""
        groups = self.plan.work.groups
        return [each.estimator for group in groups for each in group.candidates]

    @cached_property
    def make_executor(self) -> Callable[[Any], Executor]:
        """What runs tasks: processes beside threads where fits hold the interpreter."""
        holds = any(each.family.holds_interpreter for each in self.plan.work.groups)
        return partial(
            make_executor, client=self.client, n_jobs=self.n_jobs,
            began=time.monotonic() if holds else None,
        )  # fmt: skip

    def tokens_of_rows(self) -> dict[str, str]:
        """Return what changes with the rows, which are read if they must be."""
        plan, versions = self.plan, installed_versions()
        pools = {"pool": plan.pool, "fitting_pool": plan.work.fitting_pool}
        return {
            "labeled": plan.labeled.token,
            **{
                name: "none" if pool is None else pool.fingerprint(self.client)
                for name, pool in pools.items()
            },
            **{f"version of {name}": str(found) for name, found in versions.items()},
        }

    def facts(self) -> PoolFacts:
        """Look at the pool, unless an earlier run has."""
        plan = self.plan
        fitting, allow_nan = plan.work.fitting_pool, plan.work.allow_nan
        if plan.pool is None or not (plan.certificate or fitting):
            return PoolFacts()
        known = self.store.records.get(FACTS) if self.store is not None else None
        if known is not None and known.keys() == vars(PoolFacts()).keys():
            return PoolFacts(**known)
        facts = PoolFacts()
        if plan.certificate:
            facts = look_at_pool(
                plan.pool, plan.labeled, seed=plan.seed, allow_nan=allow_nan,
                client=self.client,
            )  # fmt: skip
        if fitting is not None and fitting.n_rows:
            n_equal = count_fitting_rows(
                fitting, plan.labeled, allow_nan=allow_nan, client=self.client
            )
            facts = replace(facts, fitting_equal_rows=n_equal)
        if self.store is not None:
            self.store.append(FACTS, vars(facts))
        return facts

    def objections(self, facts: PoolFacts) -> tuple[str, ...]:
        """Return why numbers are no guarantee, as the pool has shown."""
        return objections_to_fitting_rows(facts, self.plan.work.fitting_pool)

    def outcome(self) -> Outcome:
        """Make all counts, and what is read out of them."""
        facts, work = self.facts(), self.plan.work
        with closing(self.make_executor(work)) as executor:
            # The other half is for what a family does not count, such as pool blocks.
            for group in work.groups:
                group.family.check_budget(len(work.y), executor.slot_memory // 2)
            if self.plan.layout.is_nested:
                return self._nested(executor, facts)
            # By counts of every candidate: bounds of all at once, or estimates.
            race = self.exact_race(facts, may_prune=bool(self.plan.prune))
            driver = self.driver(executor, race)
            driver.run()
            evidence = race.evidence(driver.table)
            self._check_failures(evidence, driver.table.unpredicting)
            cube = self._cube(evidence, facts)
            choice = choose(cube, self.plan.criterion.name)
            remarks = (*self.plan.row_remarks, *choice.remarks)
            choice = replace(choice, remarks=remarks)
            models = self.deployed(driver, choice)
        cube = cube.assign_attrs({CHOICE: choice.to_json()})
        return Outcome(cube, choice, None, partial(dict, models))

    def driver(self, executor: Executor, race: ExactRace | NestedRace) -> Driver:
        """Return a driver with the counts of earlier runs."""
        plan, comparisons = self.plan, self.plan.comparisons
        table = CountTable(
            plan.layout, plan.work.groups, comparisons,
            plan.spans if comparisons else (), plan.n_candidates,
        )  # fmt: skip
        if self.store is not None:
            replay(table, self.store.records)
        fitting = Fitting(
            table, executor, self.store, race.best_first, self.raise_failures,
            keeps_models=not plan.layout.is_nested,
        )  # fmt: skip
        report = self.on_progress
        if plan.layout.is_nested and report is not None:
            report = self.report  # what will be done after it is not done yet
        return Driver(table, race, executor, fitting, plan.pool, report)

    def report(
        self, before: Progress, fits: int = 0, spans: int = 0, seconds: float = 0.0
    ) -> None:
        """Tell what is done before and of the last step of a nested search."""
        pool, n_spans = self.plan.pool, len(self.plan.spans)
        if self.on_progress is not None:
            self.on_progress(before + Progress(
                fits_done=fits,
                fits_total=self.plan.layout.n_folds + (pool is not None),
                spans_done=spans,
                spans_total=n_spans,
                pool_rows_done=0 if pool is None else pool.n_rows * spans // n_spans,
                seconds=seconds,
            ))  # fmt: skip

    def fixed_evidence(self, facts: PoolFacts) -> dict[str, NDArray[Any]]:
        """Return what no task counts."""
        plan = self.plan
        return {
            names.N_LABELED: np.array(plan.labeled.n_rows),
            names.N_UNLABELED: np.array(0 if plan.pool is None else plan.pool.n_rows),
            names.N_CLASSES: np.array(len(plan.classes)),
            names.EQUAL_ROWS: np.array(facts.equal_rows),
        }

    def exact_race(self, facts: PoolFacts, *, may_prune: bool) -> ExactRace:
        """Return what drops candidates that cannot win by the plan's criterion."""
        plan, fixed = self.plan, self.fixed_evidence(facts)
        settings = Settings(uniform_shares(plan.n_candidates, delta=plan.delta))
        return ExactRace(plan.criterion, settings, fixed, may_prune)

    def deployed(self, driver: Driver, choice: Choice) -> dict[str, Any]:
        """Return the model that is handed over, by its deployment."""
        split, number = self.plan.layout.full or 0, choice.candidate
        if split and choice.fold is not None:
            split = choice.fold
        return {choice.deploy: driver.model(number, split).model(number, split)}

    def _nested(self, executor: Executor, facts: PoolFacts) -> Outcome:
        """Search without each fold, then fit and count what was chosen."""
        plan = self.plan
        race = NestedRace(plan.layout, plan.prune)
        driver = self.driver(executor, race)
        driver.run()
        evidence = race.evidence(driver.table) | self.fixed_evidence(facts)
        self._check_failures(evidence, driver.table.unpredicting)
        chosen = race.choices(driver.table)
        last = self.last_step(chosen, facts.equal_rows, driver.progress())
        for number, why in last.stopped.items():
            evidence[names.MESSAGE][number] = evidence[names.MESSAGE][number] or why
        k = plan.layout.n_folds
        if plan.n_candidates == 1:  # nothing else was counted
            evidence[names.FOLD_ERRORS] = last.counts[names.OUTER_ERRORS][np.newaxis]
            evidence[names.FOLD_ANSWERS] = plan.layout.fold_rows[np.newaxis]
            loss = plan.work.losses.main
            folds = last.evidence.folds[loss.statistic].each()
            evidence[names.FOLD_LOSS_MEAN] = np.array([[*map(loss.estimate, folds)]])
        if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
            del evidence[names.FOLD_LOSS_MEAN]
        evidence |= {names.OUTER_CANDIDATE: np.array(last.candidates[:k])}
        cube = self._cube({**evidence, **last.counts}, facts)
        for statistic in last.evidence.folds:
            labels = np.array(statistic.labels, dtype=object)
            for name, (dims, meaning) in statistic.variables.items():
                if name in last.counts:
                    told = {"long_name": meaning}
                    found = (names.FOLD, *dims), last.counts[name], told
                    cube = cube.assign(dict.fromkeys(dims, labels) | {name: found})
        table, splits = driver.table, plan.layout.splits
        seconds = [0 if s.second_rows is None else len(s.second_rows) for s in splits]
        pairs = make_pair_cube(
            plan.axes,
            [(each.left_out[0], each.left_out[-1]) for each in splits],  # or a quarter
            table.errors,
            np.stack([[len(s.test_rows) for s in splits], seconds], axis=-1),
            table.fit_seconds,
        )
        choice, models = nested_choice(plan, cube, last, facts)
        cube = cube.assign_attrs({CHOICE: choice.to_json()})
        return Outcome(cube, choice, pairs, partial(dict, models))

    def last_step(
        self, chosen: list[int], equal_rows: int, before: Progress = NOTHING_DONE
    ) -> LastStep:
        """Fit what was chosen, and count it; by all rows first, then without each fold.

        `equal_rows` pool rows equal labeled ones: where there are none, the pass over
        the pool need not look for them.

        Raises AllFitsFailedError where no model of a fold could be fitted.
        """
        plan, layout, k = self.plan, self.plan.layout, self.plan.layout.n_folds
        candidates = (*chosen[1:], chosen[0])
        work = replace(plan.work, splits=layout.folds)
        jobs = [
            FitJob(work.group_of(number).number, (number,), split)
            for split, number in enumerate(candidates[: k + 1 if plan.spans else k])
        ]
        serial, started = count(1), time.perf_counter()
        made: dict[FitJob, Any] = {}
        counted: dict[Span, list[NDArray[np.int64]]] = {}

        def report() -> None:
            passed = time.perf_counter() - started
            self.report(before, len(made), len(counted), passed)

        def task_of(jobs: list[FitJob]) -> Task:
            group, name = work.groups[jobs[0].group], layout.folds[jobs[0].split].label
            key = f"fit-chosen-{group.label}-{name}-{next(serial)}"
            # Spread over the workers, as the first fits are.
            return Task(key, Call(fit_chosen, (jobs[0],)), place=jobs[0].split)

        waiting = ([job] for job in jobs)
        with closing(self.make_executor(work)) as executor:
            for [job], record in attempts(executor, waiting, task_of, on_turn=report):
                made[job] = record
        models, messages, fitted = {}, [], {}
        stopped: dict[int, str] = {}
        unpredicting: dict[int, str] = {}
        for job in jobs:
            group, split, [number] = made[job].group, job.split, job.candidates
            if group.counts.status[0, 0] != FIT_DONE:
                why = group.counts.messages.get((number, split), "the fit failed")
                if self.raise_failures:
                    raise RuntimeError(why)
                messages.append(f"{layout.folds[split].name}: {why}")
                continue
            if told := group.counts.messages.get((number, split)):
                stopped.setdefault(number, f"{layout.folds[split].name}: {told}")
            fitted[job] = group
            models[split] = group.model(number, split)
            if split < k:
                told, rows = told or "", [layout.fold_rows[split]]
                if cannot_predict(told, group.counts.test_errors[0], rows):
                    unpredicting[split] = f"{layout.folds[split].name}: {told}"
        of_folds = [split for split in models if split < k]
        if not of_folds:
            raise AllFitsFailedError(f"what was chosen cannot be fitted: {messages[0]}")
        if len(unpredicting) == len(of_folds):
            raise AllFitsFailedError(
                f"what was chosen cannot predict; `predict` raised on all rows: "
                f"{unpredicting[of_folds[0]]}"
            )
        statistics, n_rows = work.losses.statistics, layout.fold_rows
        counts = zip(*(made[job].counts for job in jobs[:k]), strict=True)
        folds = {
            statistic: FoldCounts(np.stack(each), n_rows)
            for statistic, each in zip(statistics, counts, strict=True)
        }
        pool: dict[Statistic, PoolCounts] = {}
        if k in models:
            fits = f"{[(job, made[job].token) for job in jobs]}"
            token = blake2b(fits.encode(), digest_size=12).hexdigest()
            pool = self._count_pool(fitted, folds, token, counted, report, equal_rows)
        report()
        evidence = Evidence(folds, pool)
        return LastStep(candidates, models, evidence, tuple(messages), stopped)

    def _count_pool(
        self, fitted: Mapping[FitJob, FittedGroup],
        folds: Mapping[Statistic, FoldCounts], token: str,
        counted: dict[Span, list[NDArray[np.int64]]], report: Callable[[], None],
        equal_rows: int,
    ) -> dict[Statistic, PoolCounts]:  # fmt: skip
        """Compare the model of each fold with that of all rows, on all pool rows.

        In the same pass those rows are counted apart that equal labeled rows.
        """
        plan, spans, work = self.plan, self.plan.spans, self.plan.work
        pool = plan.pool
        assert pool is not None  # else there is no model of all rows
        keys = {span: f"chosen/{span.start}-{span.stop}/{token}" for span in spans}
        known = {} if self.store is None else self.store.records
        for span, key in keys.items():
            if key in known:
                counted[span] = [np.array(each) for each in known[key]["counts"]]
        together: dict[int, list[FitJob]] = {}  # they share work when they answer
        for job in fitted:
            together.setdefault(job.candidates[0], []).append(job)
        models = []
        for number, jobs in together.items():
            groups = [fitted[job] for job in jobs]
            family = work.group_of(number).family
            whole = family.join(groups, [number]) if len(groups) > 1 else groups[0]
            models.append(([job.split for job in jobs], whole))
        chosen = ChosenModels(
            models, isinstance(work.X, Frame), work.allow_nan,
            {statistic: each.counts for statistic, each in folds.items()},
            duplicate_finder(pool, plan.labeled) if equal_rows else None,
        )  # fmt: skip
        serial, waiting = count(1), ([span] for span in spans if span not in counted)

        def task_of(spans: list[Span]) -> Task:
            sources = partial(pool.sources, spans[0])
            key = f"count-rows={spans[0].start}-{next(serial)}"
            return Task(key, Call(count_chosen, ()), sources)

        with pool.unchanged(), closing(self.make_executor(chosen)) as executor:
            for [span], found in attempts(executor, waiting, task_of, on_turn=report):
                counted[span] = found
                if self.store is not None:
                    self.store.append(keys[span], {"counts": found})
        totals = (sum(each) for each in zip(*counted.values(), strict=True))
        return {
            statistic: PoolCounts(total[0], total[1], pool.n_rows, equal_rows)
            for statistic, total in zip(folds, totals, strict=True)
        }

    def _cube(self, evidence: dict[str, Any], facts: PoolFacts) -> xr.Dataset:
        plan, layout = self.plan, self.plan.layout
        assumptions = plan.assumptions
        if plan.pool is not None and plan.certificate:
            assumptions = with_pool_facts(assumptions, facts)
        splits = {names.FOLD: layout.n_folds}
        if layout.n_halvings:
            splits = {names.REPEAT: layout.n_halvings, names.HALF: 2}
        versions = installed_versions().items()
        # Ready, since errors of a nested search are of more answers than rows.
        errors = evidence[names.FOLD_ERRORS]
        answers = evidence.get(names.FOLD_ANSWERS, evidence[names.FOLD_ROWS])
        is_known = (errors >= 0) & (answers > 0)
        rates = np.where(is_known, errors / np.maximum(answers, 1), np.nan)
        evidence = {**evidence, names.ERROR: rates}
        cube = make_cube(
            plan.axes, splits, evidence, assumptions=assumptions,
            attributes={
                "certificate": plan.certificate,
                "deploy": plan.deploy,
                "delta": plan.delta,
                "objections": [*plan.objections, *self.objections(facts)],
                "seed": str(plan.seed),
                "classes": [str(label) for label in plan.classes.tolist()],
                "estimators": [g.family.name for g in plan.work.groups][:1],
                names.FOLD_ERROR_KIND: (
                    "models without this fold and one other"
                    if layout.is_nested
                    else "the model without this fold"
                ),
                **{f"version_{name}": found or "none" for name, found in versions},
            },
        )  # fmt: skip
        return with_terms(cube, plan.criterion, plan.delta)

    def _check_failures(
        self, evidence: Mapping[str, Any], unpredicting: NDArray[np.bool_]
    ) -> None:
        plan = self.plan
        has_failed = evidence[names.STATUS] == names.STATUS_FAILED
        failed = np.flatnonzero(has_failed)
        if unpredicting.any() and (has_failed | unpredicting).all():
            number = int(np.argmax(unpredicting))
            raise AllFitsFailedError(
                f"no candidate can predict; `predict` of candidate {number} "
                f"({params_text(plan.axes.candidates[number])}) raised on all rows: "
                f"{evidence[names.MESSAGE][number]}"
            )
        if not len(failed):
            return
        number = int(failed[0])
        message = str(evidence[names.MESSAGE][number]).rstrip(".")
        first = f"candidate {number} ({plan.axes.candidates[number]}): {message}"
        if len(failed) == plan.n_candidates:
            several = f"all {len(failed)} candidates failed; the first was {first}"
            alone = f"the only candidate failed: {message}"
            raise AllFitsFailedError(f"{alone if len(failed) == 1 else several}.")
        warn(
            f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be "
            f"chosen; the first was {first}. `results.message` has all.",
            FitFailedWarning,
        )


def nested_choice(
    plan: "Plan", cube: xr.Dataset, last: LastStep, facts: PoolFacts
) -> tuple[Choice, dict[str, Any]]:
    """Return the choice of a nested search with both read-outs, and their models.

    Both hold at once: that of one fold reads a part of the event of the other.
    """
    k, loss = plan.layout.n_folds, plan.work.losses.main
    # Whether there is a pool was planned; without a model of all rows it gives nothing.
    read, reports = plan.work.losses.bound(
        last.evidence, plan.delta, has_pool=plan.pool is not None
    )
    models = {ONE_FOLD: last.models.get(read.fold)}
    seen = WORDS.get(k, f"{k - 1} of {k} parts")
    objections = planned_objections(cube)
    common: dict[str, Any] = {
        "estimate": read.estimate, "objections": objections, "loss": repr(loss),
        "says": f"{loss.label} at most", "largest": loss.largest,
    }  # fmt: skip
    certificates = {
        ONE_FOLD: certificate_of(
            cube, read.one_fold, plan.delta, "nested", ONE_FOLD, fold=read.fold,
            label_term=read.one_fold, share=f"{seen} of the labels", **common,
        )
    }  # fmt: skip
    candidates = {ONE_FOLD: last.candidates[read.fold]}
    if k in last.models:
        certificates[ALL_ROWS] = certificate_of(
            cube, read.all_rows, plan.delta, "nested", ALL_ROWS,
            label_term=read.label_term, disagreement_term=read.pool_term, **common,
        )  # fmt: skip
        candidates[ALL_ROWS] = last.candidates[k]
        models[ALL_ROWS] = last.models[k]
    deploy = plan.deploy if plan.deploy in certificates else ONE_FOLD
    number = candidates[deploy]
    shown = read_evidence(cube)
    rates = shown.get(names.FOLD_LOSS_MEAN)
    estimate = cv_error(shown, number) if rates is None else float(rates[number].mean())
    choice = Choice(
        number, plan.axes.candidates[number], plan.criterion.name, estimate,
        certificates, deploy, read.expected_holdout,
        (*plan.row_remarks, *last.messages, *remarks_on(cube)), candidates,
        {name: plan.axes.candidates[each] for name, each in candidates.items()},
        {
            name: replace(reports[name], model=made.model, remarks=made.reasons)
            for name, made in certificates.items()
            if name in reports
        },
    )  # fmt: skip
    return choice, models


def _kept(run: _Run, outcome: Outcome, store: Any) -> Outcome:
    """Write what was found, make it final, and return what is final."""
    store.save(CUBE, outcome.results)
    if outcome.pair_results is not None:
        store.save(PAIRS, outcome.pair_results)
    # A model that cannot be kept is fitted again when it is asked for.
    reasons = keep_models(outcome.models, store, run.plan.labeled.X, run.not_kept)
    said = store.save_outcome({
        "choice": outcome.choice.to_json(),
        "deploy": outcome.choice.deploy,
        "not_kept": reasons,
        "input_format": vars(run.input_format),
    })  # fmt: skip
    final = Choice.from_json(said["choice"])
    if final.certificates == outcome.choice.certificates:
        return outcome
    # Another run of this plan was first: its certificate is the one that holds.
    alone = replace(run, store=None, on_progress=None)
    return _finished(alone, store, store.dataset(CUBE) or outcome.results)


def _finished(run: _Run, store: Any, cube: xr.Dataset) -> Outcome:
    """Return the outcome of a run that had ended; models are loaded, or made again."""
    try:
        choice = Choice.from_json(store.outcome["choice"])
        candidates = run.plan.axes.candidates
        params = candidates[choice.candidate]
        params_of = {k: candidates[choice.candidates[k]] for k in choice.params_of}
    except NewerRecordError:
        raise  # it says its number
    except BAD_HEADER as error:
        raise ValueError(
            f"the outcome at {store.place} is not what dsel wrote there; bring it back "
            f"from a copy, or choose another place."
        ) from error
    choice = replace(choice, params=params, params_of=params_of)
    make_models: Any = partial(_made_again, run, cube, choice)
    # Some are not kept, damaged, or of a type that nobody trusts.
    with suppress(KeyError, ValueError):
        trusted = trusted_types(run.estimators)
        kept = {name: store.load_model(name, trusted) for name in choice.certificates}
        make_models = partial(dict, kept)
    return Outcome(cube, choice, store.dataset(PAIRS), make_models)


def _made_again(run: _Run, cube: xr.Dataset, choice: Choice) -> dict[str, Any]:
    """Fit the models of a choice anew, and make all their counts again.

    Raises RuntimeError where one differs: then it is another model.
    """
    plan = run.plan
    if plan.layout.is_nested:
        outer = cube[names.OUTER_CANDIDATE].values.astype(int).tolist()
        chosen = [choice.candidates.get(ALL_ROWS, outer[0]), *outer]
        last = run.last_step(chosen, int(cube[names.EQUAL_ROWS]))
        # What 0.2 finished has no counts of duplicates.
        found = {name: n for name, n in last.counts.items() if name in cube}
        before = {name: cube[name].values for name in found}
        models = {
            deploy: last.models[plan.layout.n_folds if c.fold is None else c.fold]
            for deploy, c in choice.certificates.items()
        }
    else:
        race = run.exact_race(PoolFacts(), may_prune=False)
        number, counts = choice.candidate, read_evidence(cube)
        with closing(run.make_executor(plan.work)) as executor:
            driver = run.driver(executor, race)
            driver.table.pruned[:] = np.arange(plan.n_candidates) != number
            driver.run()
            again = driver.table.evidence()
            models = run.deployed(driver, choice)
        counted = names.FOLD_ERRORS, names.DISAGREEMENTS, names.BEST_FOLD_DISAGREEMENTS
        before = {n: np.ravel(counts[n][number]) for n in counted if n in counts}
        found = {name: np.ravel(again[name][number]) for name in before}
    if not all(np.array_equal(before[name], found[name]) for name in found):
        raise RuntimeError(
            "the models were fitted anew and are others than those that were counted, "
            "so no certificate is about them: the learner draws without a seed, or "
            "another kind of processor has worked. Give it a `random_state`, and "
            "search in another `out`."
        )
    return models
