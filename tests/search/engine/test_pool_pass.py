"""A pass over the pool: what its tasks count, and what it adds to its table."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.data.pool import PoolSlice
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import FoldCounts
from dsel.results.records import from_record, to_record
from dsel.search.design.comparisons import AllFolds
from dsel.search.engine.count_batch import (
    ChosenCountBatch,
    ComparedModels,
    JoinedModels,
    ModelSets,
    count_slice,
)
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.fit_batch import fit_splits
from dsel.search.engine.jobs import CountJob, CountResult, UnpredictedRows
from dsel.search.engine.pool_pass import PoolPass
from dsel.search.running.run import open_engine
from tests.executors import faulty_threads

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(150, 3)), RNG.normal(size=(2_000, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=150) > 0).astype(int)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
PLAN = dsel.plan_search(TREE, {"max_depth": [3]}, X, Y, POOL, random_state=0)
SEARCH = PLAN.search
FITTED = fit_splits(
    SEARCH.context, SEARCH.context.candidate_groups[0], (0,), SEARCH.scheme.outer_splits
)
ANSWERS = [FITTED.model(0, split).predict(POOL) for split in range(6)]
N_DIFFERING = [int((answers != ANSWERS[5]).sum()) for answers in ANSWERS[:5]]
FOLDS = {ERROR_RATE.statistic: FoldCounts(np.zeros(5, int), SEARCH.scheme.fold_rows)}
COMPARISON = AllFolds(SEARCH.scheme.all_rows_number, FOLDS, None)
COMPARED = ComparedModels(
    [ModelSets((0,), JoinedModels((FITTED,)))],
    ("counted",), (COMPARISON,), SEARCH.context.reading,
)  # fmt: skip
SLICES = (PoolSlice(0, 800, 800), PoolSlice(800, 2_000, 1_200))


def count(pool_slice):
    job = CountJob(*pool_slice[:2], (0,))
    sources = SEARCH.pool.sources(pool_slice, None)
    [result] = count_slice(job, sources, COMPARED).results
    return result


def differences(counts):
    return COMPARISON.unpack(np.array(counts), 2_000, 0)[ERROR_RATE.statistic].counts


def run_pass(table, adopt_models=lambda model_sets: None):
    tasks, shown = [], []
    client = faulty_threads(tasks.append)
    with open_engine(SEARCH.context, SEARCH.pool, client=client) as engine:
        pool_pass = PoolPass(
            engine, table, ChosenCountBatch, partial(shown.append, 0),
            context_key=engine.executor.put(COMPARED),
        )  # fmt: skip
        for counted_job in pool_pass.run((0,)):
            if changed := table.sets_of_other_models(counted_job):
                adopt_models(changed)
            pool_pass.add_counts(counted_job)
    assert shown
    return [(job.start, job.stop) for task in tasks for job in task.work.jobs]


def test_count_slice__counts_where_models_differ_and_slices_add_up():
    results = [count(pool_slice) for pool_slice in SLICES]
    total = sum(np.array(result.counts["chosen"]) for result in results)
    assert differences(total).tolist() == N_DIFFERING
    assert [result.token for result in results] == ["counted"] * 2


def test_table__adds_up_the_rows_on_which_models_raised_in_any_order():
    results = []
    for pool_slice, row in zip(SLICES, (790, 801), strict=True):
        rows = UnpredictedRows(2, row, f"ValueError: of row {row}")
        result = replace(count(pool_slice), unpredicted=rows)
        results.append(from_record(CountResult, to_record(result)))
    for ordered in (results, results[::-1]):
        table = PoolTable(SLICES, (COMPARISON,), ["key"], ["counted"])
        for result in ordered:
            table.add_slice(0, result)
        assert table.unpredicted == UnpredictedRows(4, 790, "ValueError: of row 790")
        table.forget_counts(0)
        assert table.unpredicted == UnpredictedRows()


def test_pass__reads_only_slices_that_are_not_counted():
    table = PoolTable(SLICES, (COMPARISON,), ["key"], ["counted"])
    table.add_slice(0, count(SLICES[0]))
    assert run_pass(table) == [(800, 2_000)]
    assert differences(table.differences[0][0]).tolist() == N_DIFFERING
    assert run_pass(table) == []


@pytest.mark.parametrize("is_adopted", [True, False])
def test_pass__adds_counts_of_other_models_only_if_they_are_adopted(is_adopted):
    asked = []
    table = PoolTable(SLICES, (COMPARISON,), ["key"], ["earlier"])

    def adopt_models(model_sets):
        asked.append(model_sets)
        if is_adopted:
            table.tokens[0] = "counted"

    run_pass(table, adopt_models)
    assert asked == [[0]] * (1 if is_adopted else 2)
    assert table.is_complete.tolist() == [is_adopted]
    if is_adopted:
        [counts] = table.whole_counts(0)
        assert differences(counts).tolist() == N_DIFFERING
    else:
        with pytest.raises(RuntimeError, match="2 of 2 slices of the pool were not"):
            table.whole_counts(0)


@pytest.mark.parametrize(
    ("transform", "has_failed"),
    [(np.tanh, False), (lambda rows: rows - rows.mean(axis=0), True)],
)
def test_fit_splits__fails_models_that_answer_a_row_otherwise_alone(
    transform, has_failed
):
    learner = make_pipeline(FunctionTransformer(transform), TREE)
    grid = {"decisiontreeclassifier__max_depth": [3]}
    plan = dsel.plan_search(learner, grid, X, Y, random_state=0)
    context, split = plan.search.context, plan.search.scheme.fold_splits[0]
    fitted = fit_splits(context, context.candidate_groups[0], (0,), [split])
    assert fitted.fit_counts.has_failed.tolist() == [[has_failed]]
