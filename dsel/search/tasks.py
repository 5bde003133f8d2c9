"""All that runs on a worker: fits, their errors, and counts over blocks of the pool.

Only counts are sent back, but for the last step of a nested search: there a model comes
to the driver in one message with its counts, so that what is handed over is the object
that was counted.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final, cast

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import LastUse, process_cache, spare_memory
from dsel.data.equal_rows import FindDuplicates
from dsel.data.frames import Frame
from dsel.data.pool import Block, read_blocks
from dsel.data.splits import Split, SplitKind
from dsel.families.batches import has_function, refuse_batches
from dsel.families.family import (
    FIT_DONE,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
)
from dsel.families.leave_one_out import leave_one_out_counts
from dsel.losses.base import NO_PREDICTION, Rows, Statistic
from dsel.losses.declared import DeclaredLosses
from dsel.runtime.tasks import Inputs, Output
from dsel.search.comparisons import Comparison, tallies

BLOCK_NBYTES: Final = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS: Final = (64, 2**15)  # fewest and most: a block costs 0.2 ms beside its rows
FRAME_NBYTES: Final = 2**27  # of data frames, of which a call costs milliseconds
FRAME_ROWS: Final = 2**16
NO_ROWS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Group:
    """Candidates that share work, and the family that fits them."""

    number: int
    family: Family
    candidates: tuple[Candidate, ...]
    """In the order of their numbers."""
    keys: tuple[str, ...]
    """For each candidate a hash of all that its fit depends on besides the rows."""
    label: str
    """What the candidates have in common, for names of tasks: ``gamma=0.01``."""

    def members(self, numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates of these numbers."""
        return [each for each in self.candidates if each.number in numbers]


@dataclass(frozen=True)
class Work:
    """What every task of a run needs; sent to a cluster once."""

    X: Any
    """Labeled rows, shape (n_labeled, n_columns): array, CSR or `Frame`."""
    y: NDArray[np.int64]
    splits: tuple[Split, ...]
    groups: tuple[Group, ...]
    fitting_pool: Any = None
    """Part of the pool that semi-supervised learners are fitted on, or None."""
    allow_nan: bool = False
    """Whether every estimator takes missing values."""
    losses: DeclaredLosses = field(default_factory=DeclaredLosses)
    """What ranks the candidates, and what is counted of those that are chosen."""

    def group_of(self, candidate: int) -> Group:
        """Return a candidate's group."""
        return next(group for group in self.groups if group.members((candidate,)))


@dataclass(frozen=True)
class Call:
    """A call of a function of this module, as a job."""

    function: Callable[..., tuple[Any, Any]]
    """Takes context, what other tasks kept, sources if there are some, arguments."""
    arguments: tuple[Any, ...]

    def run(self, context: Any, inputs: Inputs) -> Output:
        """Call it."""
        sources = [inputs.sources] if inputs.sources else []
        kept = list(inputs.kept)
        return Output(*self.function(context, kept, *sources, *self.arguments))


@dataclass(frozen=True)
class FitJob:
    """Candidates of a group on one split."""

    group: int
    candidates: tuple[int, ...]
    """Candidate numbers, ascending."""
    split: int


@dataclass(frozen=True)
class SpanJob:
    """Candidates to be compared on some consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One past the last."""
    candidates: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """What one job counted."""

    job: Any
    """A `FitJob` or a `SpanJob`."""
    entries: tuple[dict[str, Any], ...]
    """For each candidate what the table takes and the store keeps."""
    nbytes: int = 0
    """Size of the models of a `FitJob`, where they are kept."""


def fit_entry(
    counts: FitCounts, place: tuple[int, int], key: tuple[int, int], token: str = "",
    scores: Sequence[float] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return what a fit counted, as JSON has it; errors only of one that was done.

    `place` is that in the arrays, `key` candidate and split. The token tells the model
    from that of another fit; it is "" where fits repeat exactly, or nobody will ask for
    the model. `scores` are by the loss of the plan, on each part of the test rows.
    """
    seconds = round(float(counts.seconds[place]), 6)
    entry = {"seconds": seconds, "message": counts.messages.get(key, "")}
    if counts.status[place] == FIT_DONE:
        entry |= {
            "errors": int(counts.test_errors[place]),
            "second_errors": int(counts.train_errors[place]),
            "token": token,
        }
        entry["scores"] = [*scores]
    return entry


@dataclass(frozen=True)
class KeptModels:
    """Fitted models, and what tells each from that of another fit."""

    models: FittedGroup
    tokens: Mapping[tuple[int, int], str]
    """By candidate and split; made where the model was, since a model that has moved
    may be written otherwise."""


Payload = dict[FitJob, KeptModels]
"""Kept models by the first job of the call that fitted them."""


def fit_jobs(
    work: Work,
    payloads: Sequence[Payload],
    jobs: Sequence[FitJob],
    keeps_models: bool = True,
    last_of: Collection[int] = (),
) -> tuple[list[Record], Payload]:
    """Fit the jobs; return their counts, and the models if they are to be kept.

    Of the groups `last_of` no other task will follow, unless one is tried again.
    """
    del payloads  # a fit starts from nothing
    cache = process_cache()
    ending = LastUse(cache)
    records: list[Record] = []
    fitted: Payload = {}
    calls: dict[Any, list[FitJob]] = {}  # what splits of one group share is made once
    for job in jobs:
        is_loo = work.splits[job.split].kind is SplitKind.LEAVE_ONE_OUT
        calls.setdefault(job if is_loo else (job.group, job.candidates), []).append(job)
    for together in calls.values():
        first, group = together[0], work.groups[together[0].group]
        if work.splits[first.split].kind is SplitKind.LEAVE_ONE_OUT:
            counts = leave_one_out_counts(
                group.family, group.members(first.candidates),
                work.X, work.y, work.splits[first.split],
                pool=work.fitting_pool,
            )  # fmt: skip
            entries = tuple(
                fit_entry(counts, (row, 0), (number, first.split))
                for row, number in enumerate(first.candidates)
            )
            records.append(Record(first, entries))
            continue
        budget = ending if first.group in last_of else cache
        splits = [work.splits[job.split] for job in together]
        models = fit_splits(work, group, first.candidates, splits, budget)
        tokens: dict[tuple[int, int], str] = {}
        for column, job in enumerate(together):
            keys = [(number, job.split) for number in job.candidates]
            if keeps_models:
                tokens |= {key: model_token(models, *key) for key in keys}
            scores = zip(*(
                score_models(work, models, job.split, side)
                for side in range(len(work.splits[job.split].tests))
            ), strict=True)  # fmt: skip
            entries = tuple(
                fit_entry(models.counts, (row, column), key, tokens.get(key, ""), by)
                for row, (key, by) in enumerate(zip(keys, scores, strict=True))
            )
            nbytes = models.nbytes // len(together) if keeps_models else 0
            records.append(Record(job, entries, nbytes))
        if keeps_models:
            fitted[first] = KeptModels(models, tokens)
    cache.forget(ending.own_keys)
    return records, fitted


def fit_splits(
    work: Work,
    group: Group,
    candidates: Collection[int],
    splits: Sequence[Split],
    budget: Any = None,
) -> FittedGroup:
    """Fit candidates of a group on some splits, and count their errors."""
    fitted = group.family.fit(
        group.members(candidates), work.X, work.y, splits,
        pool=work.fitting_pool, budget=budget or process_cache(),
    )  # fmt: skip
    if any(has_function(each.estimator) for each in group.members(candidates)):
        for split in splits:
            refuse_batches(fitted, split, work.X)
    return fitted


def score_models(work: Work, fitted: FittedGroup, split: int, side: int) -> list[float]:
    """Return the loss of each candidate on one part of a split's test rows."""
    loss, rows = work.losses.main, work.splits[split].tests[side]
    counts, column = fitted.counts, fitted.splits.index(split)
    errors = (counts.test_errors, counts.train_errors)[side][:, column]
    known = [loss.score_errors(int(n), len(rows)) for n in errors]
    if None not in known:
        return cast(list[float], known)  # no row is predicted twice
    predictions = predict_rows(work, fitted, split, rows)
    labeled = Rows(work.X[rows], work.y[rows])
    return [loss.score(labeled, each) for each in predictions]


def predict_rows(
    work: Work, fitted: FittedGroup, split: int, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return what each candidate predicts for labeled rows, (n_candidates, n_rows).

    Where `predict` raises, or there is no model, that is `NO_PREDICTION`.
    """
    codes = np.full((len(fitted.candidates), len(rows)), NO_PREDICTION)
    if len(rows):
        with suppress(Exception):  # what it raised is in the counts
            codes = fitted.predict(work.X[rows], [np.array(split)])[0]
    return codes


def model_token(fitted: FittedGroup, candidate: int, split: int) -> str:
    """Return what tells a model from those of other fits; "" where fits repeat exactly.

    Families of ours give the same model for the same rows and seed. What any other
    learner draws without a seed shows in its pickle.
    """
    models = getattr(fitted, "models", None)
    if models is None or (candidate, split) not in models:
        return ""
    try:
        content = cloudpickle.dumps(models[candidate, split])
    except Exception:  # what cannot be pickled stays in this process
        return f"object-{id(models[candidate, split])}"
    return blake2b(content, digest_size=12).hexdigest()


@dataclass(frozen=True)
class ChosenModel:
    """The model of one candidate on one split, and what was counted of it."""

    group: FittedGroup
    token: str
    """What tells it from the model of another fit."""
    counts: tuple[NDArray[np.int64], ...]
    """By statistic of the plan, on the rows that it has not seen."""


def fit_chosen(
    work: Work, payloads: Sequence[Any], job: FitJob
) -> tuple[ChosenModel, None]:
    """Fit what was chosen; model and counts go to the driver in one message."""
    del payloads
    group, split = work.groups[job.group], work.splits[job.split]
    fitted = fit_splits(work, group, job.candidates, [split])
    rows = split.test_rows
    n_errors = int(fitted.counts.test_errors[0, 0])
    counts, statistics = [], work.losses.statistics
    for statistic in statistics:
        # Errors were counted when the model was fitted; one that failed has none.
        known = statistic.count_errors(n_errors) if n_errors >= 0 else None
        if known is None:
            labeled = Rows(work.X[rows], work.y[rows])
            [predictions] = predict_rows(work, fitted, job.split, rows)
            known = statistic.count(labeled, predictions)
        counts.append(known)
    token = model_token(fitted, job.candidates[0], job.split)
    return ChosenModel(fitted, token, tuple(counts)), None


def count_spans(
    work: Work,
    payloads: Sequence[Payload],
    sources: Sequence[list[Any]],
    jobs: Sequence[SpanJob],
    comparisons: Sequence[Comparison],
    round_key: str,
) -> tuple[list[Record], None]:
    """Count over spans of the pool where the compared models of candidates differ.

    All jobs have the same candidates.
    """
    members = jobs[0].candidates
    parts, tokens = process_cache().get(
        f"joined-{round_key}", lambda: _joined(work, payloads, members)
    )
    queries = sum(len(each.queries(NO_ROWS, members)) for each in comparisons)
    row_nbytes = max(p.row_nbytes for p in parts) + 16 * queries * len(members)
    records, are_frames = [], isinstance(work.X, Frame)
    for job, rows in zip(jobs, sources, strict=True):
        started = time.perf_counter()
        bins = {each.variable: each.n_bins for each in comparisons}
        differ = {k: np.zeros((len(members), n), np.int64) for k, n in bins.items()}
        seen = {k: np.zeros(n, np.int64) for k, n in bins.items()}
        for block in _blocks(
            rows, row_nbytes, are_frames=are_frames, allow_nan=work.allow_nan
        ):
            for part in parts:
                mine = [members.index(number) for number in part.candidates]
                with _naming_rows(block):
                    found = tallies(
                        comparisons, partial(part.predict, block.X), block.rows,
                        part.candidates,
                    )  # fmt: skip
                for comparison, more in zip(comparisons, found, strict=True):
                    differ[comparison.variable][mine] += more
            for comparison in comparisons:
                seen[comparison.variable] += comparison.rows_by_bin(block.rows)
            del block  # else it would be in memory beside the next one
        seconds = (time.perf_counter() - started) / len(members)
        common = {
            "start": job.start, "stop": job.stop, "seconds": round(seconds, 6),
            "rows": {name: counts.tolist() for name, counts in seen.items()},
        }  # fmt: skip
        entries = tuple(
            {
                **common,
                "token": token,
                "differences": {
                    k: counts[place].tolist() for k, counts in differ.items()
                },
            }
            for place, token in enumerate(tokens)
        )
        records.append(Record(job, entries))
    return records, None


def _joined(
    work: Work, payloads: Sequence[Payload], members: Sequence[int]
) -> tuple[list[FittedGroup], tuple[str, ...]]:
    """Return the models of the members joined, one group a family, and their tokens."""
    families: dict[int, tuple[Family, list[FittedGroup]]] = {}
    tokens: dict[int, dict[int, str]] = {number: {} for number in members}
    for job, kept in (item for payload in payloads for item in payload.items()):
        family = work.groups[job.group].family
        if any(number in tokens for number in kept.models.candidates):
            families.setdefault(id(family), (family, []))[1].append(kept.models)
        for (number, split), token in kept.tokens.items():
            if number in tokens:
                tokens[number][split] = token
    parts = []
    for family, fitted in families.values():
        there = {number for models in fitted for number in models.candidates}
        parts.append(family.join(fitted, sorted(there & set(members))))
    return parts, tuple(joined_tokens(tokens[number]) for number in members)


def joined_tokens(tokens: dict[int, str]) -> str:
    """Return one text of the tokens of a candidate's models, by split."""
    if not any(tokens.values()):
        return ""
    text = ".".join(f"{split}:{tokens[split]}" for split in sorted(tokens))
    return blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class ChosenModels:
    """What a pass over the pool needs to compare the chosen models; sent once."""

    models: Sequence[tuple[Sequence[int], FittedGroup]]
    """The splits of each group; that after the last fold is of all rows."""
    are_frames: bool
    allow_nan: bool
    statistics: Mapping[Statistic, NDArray[Any]]
    """What is counted, and what was counted on the folds, (n_folds, ...)."""
    find_duplicates: FindDuplicates | None
    """Which rows of a block equal labeled ones; None where the pool has none."""


def count_chosen(
    chosen: ChosenModels, payloads: Sequence[Any], sources: list[Any]
) -> tuple[list[NDArray[np.int64]], None]:
    """Compare each fold's model with that of all rows in a span, by each statistic.

    Returns what was counted of all rows and of duplicates of labeled rows,
    (2, n_folds, ...). What stands for a model that could not be fitted predicts
    nothing.
    """
    del payloads
    n_folds = len(next(iter(chosen.statistics.values())))
    row_nbytes = max(group.row_nbytes for _, group in chosen.models)
    totals: list[Any] = [0] * len(chosen.statistics)
    for block in _blocks(
        sources, row_nbytes + 8 * (n_folds + 1),
        are_frames=chosen.are_frames, allow_nan=chosen.allow_nan,
    ):  # fmt: skip
        codes = np.full((n_folds + 1, len(block.rows)), NO_PREDICTION)
        for splits, group in chosen.models:
            with _naming_rows(block):
                which = [np.array(split) for split in splits]
                codes[list(splits)] = group.predict(block.X, which)[:, 0]
        # Of most blocks no row equals a labeled one, and nothing of it is copied.
        stale = np.empty(0, np.int64)
        if chosen.find_duplicates is not None:
            # Hashing rows costs as much as six linear models do: where only rows count
            # on which models differ, others are not looked at.
            stale = np.arange(len(block.rows))
            if all(each.counts_differences for each in chosen.statistics):
                stale = np.flatnonzero((codes[:-1] != codes[-1]).any(axis=0))
            if len(stale):
                stale = stale[chosen.find_duplicates(block.X[stale])]
        parts = ((Rows(block.X), codes), (Rows(block.X[stale]), codes[:, stale]))
        for place, (statistic, folds) in enumerate(chosen.statistics.items()):
            totals[place] = totals[place] + np.array([
                [
                    statistic.count_pair(rows, predicted[fold], predicted[-1], counted)
                    for fold, counted in enumerate(folds)
                ]
                for rows, predicted in parts
            ])  # fmt: skip
        del block, parts  # else they would be in memory beside the next one
    return totals, None


def _blocks(
    sources: list[Any], row_nbytes: int, *, are_frames: bool, allow_nan: bool
) -> Iterator[Block]:
    """Yield the rows of a span: fewer at once where the process has little memory."""
    fewest, most = BLOCK_ROWS
    nbytes = min(FRAME_NBYTES if are_frames else BLOCK_NBYTES, spare_memory() // 16)
    most = FRAME_ROWS if are_frames else most
    n_rows = int(np.clip(nbytes // max(1, row_nbytes), fewest, most))
    return read_blocks(sources, n_rows, allow_nan=allow_nan)


@contextmanager
def _naming_rows(block: Block) -> Iterator[None]:
    """Say which rows of the pool models cannot predict."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Models cannot predict pool rows {block.rows[0]} to {block.rows[-1]}: "
            f"{error}. All rows of `pool` must be such as `predict` takes; where "
            f"it has categories of its own, encoders must take unknown ones, as "
            f'OneHotEncoder(handle_unknown="ignore") does.'
        ) from error
