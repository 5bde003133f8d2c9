"""The search that counts every candidate that can win, on the folds and on the pool.

Its fits are those of `fit_loop`, but models stay on the workers that fitted them until
all pool rows are predicted. It fits until a pass over the pool is worth its time,
counts, and continues. Models that were lost with a worker, or with an earlier run, are
fitted again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import ClassVar, Final

import numpy as np

from dsel.data.cache import process_cache
from dsel.data.splits import Split, SplitIndex, SplitKind
from dsel.families.family import Family, FitCounts, FitId, FittedGroup
from dsel.runtime.progress import Progress
from dsel.runtime.tasks import Finished, Inputs, Output
from dsel.search.design.comparisons import Comparison
from dsel.search.engine.count_batch import ComparedModels, ModelSets, count_slice
from dsel.search.engine.exact_pruner import ExhaustiveTable
from dsel.search.engine.fit_batch import (
    FitBatch,
    fit_jobs,
    make_result,
    make_results,
    model_tokens,
)
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.job_queue import MOST_ATTEMPTS
from dsel.search.engine.jobs import (
    CountedJob,
    CountJob,
    FitJob,
    FitResult,
    FittedJob,
    JobContext,
    join_tokens,
)
from dsel.search.engine.pool_pass import PoolPass
from dsel.search.engine.pruning import margin_above

MODELS_AT_ONCE: Final = 64
"""Most rows whose models are in memory at once."""
LEADERS: Final = 4
"""Candidates of the first pass, whose counts then prune the others."""
MODELS_NBYTES: Final = 2**30
"""Most bytes of the models of one pass, on every worker."""


@dataclass(frozen=True)
class KeptGroup:
    """Fitted models, with a token that identifies each."""

    fitted_group: FittedGroup
    tokens: Mapping[FitId[SplitIndex], str]
    """Tokens of the models; they are made where the model was fitted, since a
    transferred model may have another pickle."""


KeptGroups = dict[FitJob, KeptGroup]
"""Kept models of a task, by the first job of the call that fitted them."""


@dataclass(frozen=True)
class FitAndKeepBatch(FitBatch):
    """Fits that are one task, whose models stay on the worker."""

    keeps_models: ClassVar[bool] = True

    def run(self, context: JobContext, inputs: Inputs) -> Output[list[FittedJob]]:
        """Fit; the result is a `FittedJob` for each job."""
        kinds = {job: context.scheme.splits[job.split_number].kind for job in self.jobs}
        one_by_one = [j for j in self.jobs if kinds[j] is SplitKind.LEAVE_ONE_OUT]
        fitted_jobs = [leave_one_out(context, job) for job in one_by_one]
        kept_groups: KeptGroups = {}
        grouped_jobs = [job for job in self.jobs if job not in one_by_one]
        for jobs, fitted_group in fit_jobs(context, grouped_jobs, self.ending_groups):
            fits = [
                FitId(n, job.split_number)
                for job in jobs
                for n in job.candidate_numbers
            ]
            tokens = model_tokens(fitted_group, fits)
            # Models of one call are kept together, and each of its jobs counts an equal
            # number of bytes. They may have to be pickled to be measured.
            nbytes = fitted_group.nbytes // len(jobs)
            for job in jobs:
                split = context.scheme.splits[job.split_number]
                results = make_results(
                    context.labeled,
                    context.losses.main,
                    job.candidate_numbers,
                    split,
                    fitted_group,
                    tokens,
                )
                fitted_jobs.append(FittedJob(job, results, nbytes))
            # These predictions have been counted, and would be pickled with a kept
            # model.
            fitted_group.forget_test_predictions()
            kept_groups[jobs[0]] = KeptGroup(fitted_group, tokens)
        return Output(fitted_jobs, kept_groups)


def leave_one_out(context: JobContext, job: FitJob) -> FittedJob:
    """Return the leave-one-out errors of a job, which has a model for each row.

    Errors are `UNCOUNTED` where a fit failed, and always those of a second part.
    """
    candidate_group = context.candidate_groups[job.group_number]
    y = context.labeled.y
    candidates = candidate_group.select(job.candidate_numbers)
    rows = np.arange(len(y))
    failures: dict[int, str] = {}
    n_errors = np.zeros(len(candidates), np.int64)
    seconds = np.zeros(len(candidates))
    for start in range(0, len(y), MODELS_AT_ONCE):
        splits = [
            Split(row, SplitKind.ROW, (row,), np.delete(rows, row), rows[[row]])
            for row in rows[start : start + MODELS_AT_ONCE].tolist()
        ]
        fit_counts = candidate_group.family.fit(
            candidates,
            context.labeled.X,
            y,
            splits,
            pool=context.fitting_pool,
            cache=process_cache(),
        ).fit_counts
        # Failed fits add `UNCOUNTED`; `record_failure` below overwrites their sums.
        n_errors += fit_counts.errors[..., 0].sum(axis=1)
        seconds += np.nansum(fit_counts.seconds, axis=1)
        for i, column in np.argwhere(fit_counts.has_failed).tolist():
            row = splits[column].number
            message = fit_counts.messages.get(FitId(candidates[i].number, row))
            reason = message.text if message is not None else ""
            failures.setdefault(i, f"without row {row}: {reason}")
    totals = FitCounts.empty(len(candidates), 1)
    totals.record((slice(None), 0), n_errors)
    totals.record_seconds(0, seconds)
    for i, reason in failures.items():
        fit = FitId(candidates[i].number, job.split_number)
        totals.record_failure((i, 0), fit, reason)
    results = (
        make_result(totals, (i, 0), FitId(candidate, job.split_number))
        for i, candidate in enumerate(job.candidate_numbers)
    )
    return FittedJob(job, tuple(results))


@dataclass(frozen=True)
class CountBatch:
    """Slices of the pool that are one task; all jobs have the same candidates."""

    jobs: tuple[CountJob, ...]
    comparisons: tuple[Comparison, ...]
    run_id: str
    """Part of cache keys: runs must not share cached models."""

    def run(self, context: JobContext, inputs: Inputs) -> Output[list[CountedJob]]:
        """Count; the result is a `CountedJob` for each job.

        The models are those that fits have kept. Joining copies them, so a worker joins
        them once for all tasks that count the same models.
        """
        candidates = self.jobs[0].model_sets
        tokens = tokens_of_models(inputs.kept, candidates)
        # Models are cached by their tokens: those that were lost with another worker
        # are made again, and this worker must count the new ones from then on.
        fitted_groups = process_cache().get(
            f"joined-{self.run_id}-{hash((candidates, tokens))}",
            lambda: join_kept_groups(context, inputs.kept, candidates),
        )
        models = ComparedModels(
            # The models of a candidate are the model set with its number.
            [ModelSets(group.candidate_numbers, group) for group in fitted_groups],
            tokens,
            self.comparisons,
            context.reading,
        )
        slices = zip(self.jobs, inputs.sources, strict=True)
        return Output([count_slice(job, rows, models) for job, rows in slices])


def join_kept_groups(
    context: JobContext,
    kept_by_task: Sequence[KeptGroups],
    candidate_numbers: Sequence[int],
) -> list[FittedGroup]:
    """Return the models of candidates, one group a family."""
    families: dict[int, tuple[Family, list[FittedGroup]]] = {}
    for job, kept_group in (
        item for task_groups in kept_by_task for item in task_groups.items()
    ):
        family = context.candidate_groups[job.group_number].family
        fitted_group = kept_group.fitted_group
        if not set(candidate_numbers).isdisjoint(fitted_group.candidate_numbers):
            families.setdefault(id(family), (family, []))[1].append(fitted_group)
    joined = []
    for family, fitted_groups in families.values():
        fitted = {
            n for fitted_group in fitted_groups for n in fitted_group.candidate_numbers
        }
        joined.append(
            family.join(fitted_groups, sorted(fitted & set(candidate_numbers)))
        )
    return joined


def tokens_of_models(
    kept_by_task: Sequence[KeptGroups], candidate_numbers: Sequence[int]
) -> tuple[str, ...]:
    """Return one token for the kept models of each candidate."""
    tokens_by_split: dict[int, dict[int, str]] = {
        candidate: {} for candidate in candidate_numbers
    }
    for kept_group in (
        kept_group
        for task_groups in kept_by_task
        for kept_group in task_groups.values()
    ):
        for (candidate, split_number), token in kept_group.tokens.items():
            if candidate in tokens_by_split:
                tokens_by_split[candidate][split_number] = token
    return tuple(
        join_tokens(tokens_by_split[candidate]) for candidate in candidate_numbers
    )


@dataclass(eq=False)
class ExhaustiveLoop(FitLoop[ExhaustiveTable]):
    """Fits of all candidates, and passes over the pool with their models."""

    batch_type: ClassVar[type[FitBatch]] = FitAndKeepBatch
    task_of_model: dict[FitId[SplitIndex], str] = field(
        init=False, default_factory=dict
    )
    """Key of the task that has fitted each model. Dask keeps a task's output on its
    worker only while its key is needed, so that models are found by it."""
    keeping_tasks: set[str] = field(init=False, default_factory=set)
    """Keys of the tasks that keep models."""
    model_nbytes: Counter[int] = field(init=False, default_factory=Counter)
    """Bytes of all models that were ever fitted, by candidate."""
    passes: list[PoolPass] = field(init=False, default_factory=list)
    released_candidates: set[int] = field(init=False, default_factory=set)
    """Candidates with a model that this run has dropped, since other candidates were
    better."""
    n_changes: Counter[int] = field(init=False, default_factory=Counter)
    """Number of times that the models of a candidate differed from the counted ones."""

    def fit_and_count(self) -> None:
        """Fit and count until every candidate is complete, pruned or failed."""
        while True:
            # Fits and passes alternate: a pass needs all models of its candidates, and
            # its counts decide which fits are still needed.
            self.fit()
            candidates = self.next_candidates()
            if not candidates:
                return
            # Models of an earlier run, and dropped ones, are fitted first.
            if self.restore_models(candidates):
                self.count_candidates(candidates)

    def prune(self) -> None:
        """Prune; drop models that no pass needs and that cannot be deployed."""
        super().prune()
        complete = self.table.complete_candidates
        least = np.min(self.lower_bounds[complete], initial=np.inf)
        # The best candidate may be deployed, and its model is fetched after the search.
        is_needed = complete & (self.lower_bounds <= margin_above(least))
        is_needed |= self.table.active_candidates
        has_changed = np.isin(
            np.arange(len(complete)), list(self.table.changed_candidates)
        )
        is_needed |= complete & has_changed  # see `fetch_counted_group`
        needed_tasks = {
            key for fit, key in self.task_of_model.items() if is_needed[fit.candidate]
        }
        # Models of one task are dropped together, when the last of them is not needed.
        for key in self.keeping_tasks - needed_tasks:
            self.engine.executor.forget(key)
        self.keeping_tasks &= needed_tasks
        items = self.task_of_model.items()
        self.released_candidates |= {
            fit.candidate for fit, key in items if key not in needed_tasks
        }
        self.task_of_model = {fit: key for fit, key in items if key in needed_tasks}

    def next_jobs(self) -> list[FitJob]:
        """Return the jobs of the next task; none if a pass over the pool can begin."""
        # Running tasks end before the pool is read. Lost models, which are urgent, come
        # first: a pass cannot begin without them.
        return [] if self.next_candidates() else super().next_jobs()

    def add_results(self, task: Finished[list[FittedJob]]) -> None:
        """Write the results of a task, and where its models are."""
        super().add_results(task)
        self.keeping_tasks.add(task.key)
        for fitted_job in task.get():
            job = fitted_job.job
            for candidate in job.candidate_numbers:
                self.task_of_model[FitId(candidate, job.split_number)] = task.key
                # Models of a job are measured together; each counts equally.
                nbytes = fitted_job.nbytes // len(job.candidate_numbers)
                self.model_nbytes[candidate] += nbytes

    def next_candidates(self) -> tuple[int, ...]:
        """Return the candidates of the next pass, smallest lower bound first; or none.

        With pruning, a first pass for a few leaders begins as soon as the candidate
        with the smallest lower bound is fitted: its estimate prunes others. All other
        passes wait until no fit is left, or their models use the memory of a pass, so
        that the pool is read as few times as possible. The models of a pass must fit
        into the memory of every worker.
        """
        table = self.table
        if not table.pool_table.slices:
            return ()
        active = np.flatnonzero(table.active_candidates)
        # Equal bounds are in order of the candidates, so that passes are repeatable.
        order = active[np.lexsort((active, self.lower_bounds[active]))]
        ready = order[table.fitted_candidates[order]]
        if not len(ready):
            return ()
        leaders_first = self.pruner.best_first and not table.complete_candidates.any()
        leads = leaders_first and order[0] == ready[0]
        # Joining copies the models, and a block needs memory too.
        most_nbytes = min(MODELS_NBYTES, self.engine.executor.slot_memory // 4)
        sizes = np.cumsum([self.model_nbytes[int(n)] for n in ready])
        all_fitted = not (self.queue.unfinished_jobs or table.waiting_fits.any())
        if not (all_fitted or leads or sizes[-1] >= most_nbytes):
            return ()
        # A candidate whose models alone exceed the limit has a pass of its own.
        n_fitting = max(1, int(np.searchsorted(sizes, most_nbytes, side="right")))
        most = LEADERS if leaders_first else n_fitting
        return tuple(ready[: min(n_fitting, most)].tolist())

    def count_candidates(self, candidate_numbers: tuple[int, ...]) -> None:
        """Read the pool once for some candidates, all of whose models are available."""
        make_batch = partial(
            CountBatch,
            comparisons=self.table.current_comparisons(),
            run_id=self.engine.run_id,
        )
        pool_pass = PoolPass(
            self.engine,
            self.table.pool_table,
            make_batch,
            on_turn=partial(self.on_turn, self),
            input_tasks=self.tasks_of(candidate_numbers),
        )
        self.passes.append(pool_pass)
        for counted_job in pool_pass.run(candidate_numbers):
            changed = self.table.pool_table.sets_of_other_models(counted_job)
            if changed:
                self.adopt_remade_models(changed)
            pool_pass.add_counts(counted_job)

    def tasks_of(self, candidate_numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the keys of the tasks that keep the models of some candidates."""
        splits = self.table.scheme.splits_with_models
        fits = (FitId(c, s) for c in candidate_numbers for s in splits)
        return tuple(sorted({self.task_of_model[fit] for fit in fits}))

    def restore_models(self, candidate_numbers: Iterable[int]) -> bool:
        """Fit missing models of some candidates again; return whether none is missing.

        Models are missing if an earlier run fitted them, or if this run dropped them.
        Dask repeats the fits of models that are lost with a worker.
        """
        lost = np.zeros(self.table.fit_status.shape, bool)
        for split_number in self.table.scheme.splits_with_models:
            for candidate in candidate_numbers:
                lost[candidate, split_number] = (
                    FitId(candidate, split_number) not in self.task_of_model
                )
        # Models that are being fitted again are not available yet, either.
        self.repeat_fits(lost)
        return not lost.any()

    def fetch_counted_group(
        self, candidate: int, split_number: SplitIndex
    ) -> FittedGroup | None:
        """Return the group with the model that was counted; None to choose again.

        A model that was lost with its worker, or with the run that counted it, is
        fitted again. If the learner draws without a seed, the new model is another one:
        then the candidate gets the counts of the new model, and the choice by the old
        counts is void.

        Notes
        -----
        The bounds stay valid: whatever is chosen by counts, a candidate is deployed by
        its first model since the last loss only, so that one model of each candidate
        takes part, for which the bounds of all candidates hold at once (losses must not
        depend on counts). A model that this search has dropped because of its counts is
        no such loss: its candidate fails if the fit does not repeat, since the better
        of two draws would hold only at twice its delta.
        """
        fit = FitId(candidate, split_number)
        table = self.table
        counted_token = table.token_of_models(candidate)
        was_released = candidate in self.released_candidates
        for _ in range(MOST_ATTEMPTS):
            # A worker may die between the fit and the fetch, and takes the model with
            # it.
            if self.restore_models([candidate]):
                # Only deployed models are transferred: passes use them where they were
                # fitted.
                kept_groups: KeptGroups = self.engine.executor.fetch(
                    self.task_of_model[fit]
                )
                for kept_group in kept_groups.values():
                    if kept_group.tokens.get(fit, "") == table.tokens[fit]:
                        return kept_group.fitted_group
                self.adopt_remade_models([candidate])
            self.fit_and_count()
            if table.token_of_models(candidate) != counted_token:
                if was_released:
                    reason = "its model was dropped, and fitted again it is another"
                    self.fail_candidate(candidate, reason)
                return None
        raise RuntimeError(
            f"the model of candidate {candidate} was lost several times, with its "
            f"worker; start the run again with workers of more memory, and with the "
            f"same `out` if it had one."
        )

    def adopt_remade_models(self, candidate_numbers: Sequence[int]) -> None:
        """Write the fits of some candidates again if Dask has repeated them.

        Dask repeats a lost task by itself. The models of the repeated task are used,
        not those of one more fit, so that a loss costs one fit and counts as one
        change, however many slices notice it.
        """
        tokens = {
            candidate: self.table.token_of_models(candidate)
            for candidate in candidate_numbers
        }
        by_task = self.engine.executor.fetch_results(self.tasks_of(candidate_numbers))
        for fitted in chain.from_iterable(by_task):
            for candidate, result in zip(
                fitted.job.candidate_numbers, fitted.results, strict=True
            ):
                if candidate in tokens:
                    self._add_result(fitted.job, candidate, result)
        for candidate, token in tokens.items():
            self.n_changes[candidate] += self.table.token_of_models(candidate) != token
            # A learner that draws without a seed gives another model each time, so that
            # counts would never end.
            if self.n_changes[candidate] >= MOST_ATTEMPTS:
                self.fail_candidate(candidate, "its models were never the same again")

    def fail_candidate(self, candidate: int, why: str) -> None:
        """Give up a candidate whose models have changed, with a way to prevent it."""
        failure = FitResult.failure(f"{why}; give it a `random_state`")
        split_number = self.table.scheme.splits_with_models[0]
        self.table.add_fit(candidate, split_number, failure)

    def progress(self) -> Progress:
        """Return the progress of fits and passes."""
        totals = [
            rows.sum(axis=1).max(initial=0) for rows in self.table.pool_table.pool_rows
        ]
        return replace(
            super().progress(),
            slices_done=sum(pool_pass.n_slices_done for pool_pass in self.passes),
            slices_total=sum(pool_pass.n_slices for pool_pass in self.passes),
            pool_rows_done=int(max(totals, default=0)),
        )
