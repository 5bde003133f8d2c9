"""Chosen candidates: their fits, their counts on folds and pool, and both bounds."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.bounds import binomial_tail_inversion, fold_shares, nested_all_rows
from dsel.bounds.cross_validation import LABEL_SHARE
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import fold_to_deploy
from dsel.results.caveats import Effect
from dsel.results.cube import cv_error, read_counts
from dsel.search.design.assumption_checks import PoolFacts
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL
from dsel.search.engine.counts import NestedCounts, PoolTable
from dsel.search.engine.inner_searches import ChosenCandidates, tie_ranks
from dsel.search.running.bound_chosen import make_choice
from dsel.search.running.count_chosen import count_chosen
from dsel.search.running.fit_chosen import choose_deployed_fold, fit_chosen
from dsel.search.running.run import Run, RunOptions, open_engine
from dsel.search.running.run_description import describe_run
from tests.executors import faulty_threads

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(150, 3)), RNG.normal(size=(2_000, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=150) > 0).astype(int)
DEPTHS = [1, 2, 8]
PLAN = dsel.plan_search(
    DecisionTreeClassifier(random_state=0), {"max_depth": DEPTHS}, X, Y, POOL,
    random_state=0,
)  # fmt: skip
SEARCH = PLAN.search
CANDIDATES = ChosenCandidates(1, (0, 1, 2, 1, 0))


def fit(shown=None, fault=lambda task: None):
    on_progress = None if shown is None else shown.append
    options = RunOptions(client=faulty_threads(fault))
    run = Run(SEARCH, PLAN.facts, options, on_progress=on_progress)
    client = run.options.client
    with open_engine(SEARCH.context, SEARCH.pool, client=client) as engine:
        fitted = fit_chosen(
            SEARCH.context, engine, CANDIDATES, models_to_fit=SEARCH.models_to_fit,
            on_turn=run.progress.show_chosen, raise_failures=False,
        )  # fmt: skip
        deployed_fold = choose_deployed_fold(
            SEARCH.context.losses, SEARCH.planned_delta, fitted, np.zeros(5)
        )
        return count_chosen(
            SEARCH.context, engine, fitted, deployed_fold, slices=SEARCH.slices,
            n_duplicates=0, query_draw=SEARCH.query_draw,
            on_turn=run.progress.show_chosen,
        )  # fmt: skip


@pytest.mark.parametrize("n_failures", [0, 2])
def test_fit_chosen__counts_each_model_on_its_fold_and_on_the_pool(n_failures):
    shown, failed = [], []

    def fault(task):
        if len(failed) < n_failures:
            failed.append(task)
            raise OSError("a file system")

    chosen = fit(shown, fault)
    models = [chosen.models[fold] for fold in (*range(5), ALL_ROWS_MODEL)]
    depths = [model.max_depth for model in models]
    assert depths == [DEPTHS[number] for number in (0, 1, 2, 1, 0, 1)]
    statistic, predictions = ERROR_RATE.statistic, models[5].predict(POOL)
    for split, model in zip(SEARCH.scheme.fold_splits, models, strict=False):
        rows, fold = split.test_rows, split.number
        errors = (model.predict(X[rows]) != Y[rows]).sum()
        assert chosen.fitted.fold_counts_of[statistic].counts[fold] == errors
        differ = (model.predict(POOL) != predictions).sum()
        assert chosen.on_pool.counts_of[statistic].counts[fold] == differ
    assert shown[0].fits_done == 0
    assert (shown[-1].fits_done, shown[-1].pool_rows_done) == (6, len(POOL))


def test_fit_chosen__ends_with_an_error_that_comes_again():
    def fault(task):
        raise OSError("a file system")

    with pytest.raises(OSError, match="a file system"):
        fit(fault=fault)


def test_bounds__are_not_made_of_a_part_of_the_pool(monkeypatch):
    def add_other_slices(table, model_set, result):
        if result.start:
            add_slice(table, model_set, result)

    add_slice = PoolTable.add_slice
    monkeypatch.setattr(PoolTable, "add_slice", add_other_slices)
    with pytest.raises(RuntimeError, match=r"1 of \d+ slices of the pool were not"):
        PLAN.run()


def test_bounds__are_those_of_the_counts():
    # With this seed the fold that is deployed has not the smallest limit.
    outcome = dsel.plan_search(
        DecisionTreeClassifier(random_state=0),
        {"min_samples_leaf": [1, 3, 6, 10, 15, 20]}, X, Y, POOL, random_state=2,
    ).run()  # fmt: skip
    counts = read_counts(outcome.results)
    errors, n_rows = counts["outer_errors"], counts["fold_rows"]
    deltas = LABEL_SHARE * 0.05 * fold_shares(5)
    limits = binomial_tail_inversion(errors, n_rows, delta=deltas)
    cv_errors = [cv_error(counts, number) for number in counts["outer_candidate"]]
    fold = fold_to_deploy(limits, np.full(5, True), tie_ranks(np.array(cv_errors)))
    certificates = outcome.certificates
    assert certificates["one_fold"].fold == fold != limits.argmin()
    assert certificates["one_fold"].bound == limits[fold]
    differ = counts["outer_disagreements"]
    _, terms = nested_all_rows(errors, n_rows, differ, len(POOL), delta=0.05)
    assert certificates["all_rows"].bound == terms.bound


def test_fold_to_deploy__takes_no_candidate_without_a_score_before_one_with_it():
    limits = np.array([0.100, 0.101, 0.102])
    ranks = tie_ranks(np.array([np.nan, 0.4, np.nan]))
    assert ranks.tolist() == [1, 0, 1]
    assert fold_to_deploy(limits, np.full(3, True), ranks) == 1
    assert tie_ranks(np.full(3, np.nan)).tolist() == [0, 0, 0]


def test_bounds__are_limits_of_beta_distributions_at_the_documented_shares():
    # Nothing here is taken from dsel but counts: 95% of delta is for labeled rows, and
    # of it half for the first fold; the folds share the pool's 5% equally.
    outcome = PLAN.run()
    counts = read_counts(outcome.results)
    errors, n_rows = counts["outer_errors"], counts["fold_rows"]
    differ = counts["outer_disagreements"]
    deltas = 0.05 * 0.95 * np.array([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16])
    limits = stats.beta.ppf(1 - deltas, errors + 1, n_rows - errors)
    pool_limits = stats.beta.ppf(1 - 0.05 * 0.05 / 5, differ + 1, 2_000 - differ)
    one_fold, all_rows = (outcome.certificates[n] for n in ("one_fold", "all_rows"))
    assert one_fold.bound == pytest.approx(limits[one_fold.fold], rel=1e-6)
    assert one_fold.bound <= 1.05 * limits.min() + 1e-9
    assert all_rows.bound == pytest.approx((limits + pool_limits).min(), rel=1e-6)


@pytest.mark.parametrize("has_pool", [True, False])
@pytest.mark.parametrize("report", [False, True])
def test_origin__has_the_delta_and_the_rows_that_give_the_bound(has_pool, report):
    outcome = dsel.plan_search(
        DecisionTreeClassifier(random_state=0), {"max_depth": DEPTHS}, X, Y,
        POOL if has_pool else None, report=report, random_state=0,
    ).run()  # fmt: skip
    certificate = outcome.certificates["one_fold"]
    errors = read_counts(outcome.results)["outer_errors"][certificate.fold]
    printed = re.search(
        r"the (\d+) rows of .* at delta=(\S+) of 0\.05", certificate.terms
    )
    n_rows, delta = int(printed[1]), float(printed[2])
    limit = stats.beta.ppf(1 - delta, errors + 1, n_rows - errors)
    assert certificate.bound == pytest.approx(
        limit, rel=0.003
    )  # delta has three digits


def bound(search=SEARCH, **changes):
    """Bound the chosen models of `fit`, of whose fits some fields are changed."""
    chosen = fit()
    chosen = replace(chosen, fitted=replace(chosen.fitted, **changes))
    description = describe_run(search, PLAN.facts, PoolFacts())
    counts = NestedCounts(
        data=description.data, status=np.zeros(3, np.int8), fold_rows=np.full(5, 30),
        train_rows=np.full(5, 120), fold_errors=np.full((3, 5), 12),
        fold_loss_mean=None, fold_predictions=np.full((3, 5), 120),
    )  # fmt: skip
    return chosen, make_choice(search, counts, chosen, description)


def test_bound_chosen__bounds_both_models_by_the_counts_alone():
    chosen, choice = bound()
    errors = chosen.fitted.fold_counts_of[ERROR_RATE.statistic].integers
    differ = chosen.on_pool.counts_of[ERROR_RATE.statistic].counts
    _, terms = nested_all_rows(
        errors, np.full(5, 30), differ, len(POOL), delta=SEARCH.delta
    )
    deltas = LABEL_SHARE * SEARCH.delta * fold_shares(5)
    limits = binomial_tail_inversion(errors, np.full(5, 30), delta=deltas)
    one_fold, all_rows = (choice.certificates[n] for n in ("one_fold", "all_rows"))
    fold = chosen.deployed_fold
    assert (one_fold.fold, one_fold.unclipped) == (fold, limits[fold])
    assert one_fold.estimate == errors.sum() / 150
    assert all_rows.unclipped == terms.bound
    parts = all_rows.label_term, all_rows.disagreement_term
    assert parts == (terms.label_term, terms.disagreement_term)
    assert choice.by_model("candidate") == {
        "one_fold": (0, 1, 2, 1, 0)[fold],
        "all_rows": 1,
    }
    assert choice.fold_params == tuple({"max_depth": d} for d in (1, 2, 8, 2, 1))
    assert choice.criterion_value == 0.1
    assert choice.caveats == ()


@pytest.mark.parametrize(
    ("deploy", "effect"), [("one_fold", Effect.INFO), ("all_rows", Effect.WARNS)]
)
def test_bound_chosen__bounds_the_model_of_a_fold_where_that_of_all_rows_failed(
    deploy, effect
):
    search = replace(SEARCH, deploy=deploy)
    models = {fold: fit().models[fold] for fold in range(5)}
    _, choice = bound(search, models=models, failures={ALL_ROWS_MODEL: "no memory"})
    assert (choice.deploy, [*choice.certificates]) == ("one_fold", ["one_fold"])
    certificate = choice.certificate
    assert certificate.certified
    [caveat] = [c for c in certificate.caveats if "no memory" in c.text]
    assert caveat.effect is effect


def test_bound_chosen__estimates_without_folds_that_failed():
    chosen, choice = bound(failures={4: "no class"})
    errors = chosen.fitted.fold_counts_of[ERROR_RATE.statistic].integers
    for certificate in choice.certificates.values():
        assert certificate.estimate == errors.sum() / 150
        assert certificate.estimate_of_models == errors[:4].sum() / 120
        [caveat] = certificate.caveats
        assert caveat.effect is Effect.WARNS
        assert "1 of 5 fits failed (fold 4: no class); its 30 rows" in caveat.text
