"""Nested searches: what is chosen without each fold, its counts and its bounds."""

from itertools import combinations, count, cycle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from dsel.bounds import best_fold, binomial_tail_inversion
from dsel.errors import AllFitsFailedError
from dsel.families.vote import FoldVote, plurality
from dsel.searches import Plan
from tests.estimators import FAMILIES

NESTED = ("nested", "nested_fold_model", "nested_vote")
GRID = {"C": [0.01, 1.0, 30.0], "gamma": [1e-4, 1e-3, 1e-2]}
LISTED = [SVC(gamma=1e-3), GaussianNB(), KNeighborsClassifier(3)]


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    labeled, pool = order[:181], order[200:1200]
    return X[labeled], y[labeled], X[pool], y[pool]


def planned(rows, estimator, grid, certificate="nested", **changed):
    X, y, pool, answers = rows
    options = {"random_state": 0, "pool_labels": answers} | changed
    return dsel.plan_search(
        estimator, grid, X, y, pool, certificate=certificate, **options
    )


@pytest.fixture(scope="module", params=["svm", "several"])
def searched(rows, request):
    """Return the estimators of a plan, the plan and its exhaustive cube."""
    if request.param == "several":
        found = LISTED, planned(rows, None, LISTED, prune=False)
    else:
        models = [SVC(**params) for params in ParameterGrid(GRID)]
        found = models, planned(rows, SVC(), GRID, prune=False)
    return *found, found[1].run(n_jobs=1)


def flat(results, name):
    """Return counts, candidates first."""
    values = results[name].values
    return values.reshape(-1, *values.shape[results.status.ndim :])


def test_plan_search__counts_both_folds_of_each_pair_by_one_model(searched, rows):
    models, plan, results = searched
    X, y, _, _ = rows
    folds = [split.test_rows for split in plan.work.splits[:3]]
    found = flat(results, "inner_errors")
    for i, j in combinations(range(3), 2):
        train = np.setdiff1d(np.arange(len(y)), np.concatenate([folds[i], folds[j]]))
        for number, model in enumerate(models):
            fitted = clone(model).fit(X[train], y[train])
            for chooses, tested in ((i, j), (j, i)):
                wrong = (fitted.predict(X[folds[tested]]) != y[folds[tested]]).sum()
                assert found[number, chooses, tested] == wrong
    assert np.isnan(np.diagonal(found, axis1=1, axis2=2)).all()


def test_outer_candidate__has_the_least_error_on_the_other_folds(searched):
    _, _, results = searched
    errors, sizes = flat(results, "inner_errors"), results.fold_rows.values
    for fold in range(3):
        others = np.arange(3) != fold
        rates = (errors[:, fold, others] / sizes[others]).mean(axis=1)
        chosen = int(results.outer_candidate[fold])
        assert rates[chosen] == pytest.approx(rates.min())
        assert chosen == np.flatnonzero(np.isclose(rates, rates.min()))[0]


def test_outer_errors__are_those_of_what_was_chosen(searched, rows):
    models, plan, results = searched
    X, y, pool, answers = rows
    chosen = results.outer_candidate.values.astype(int)
    codes = []
    for split, number in zip(plan.work.splits[:3], chosen, strict=True):
        model = clone(models[number]).fit(X[split.train_rows], y[split.train_rows])
        wrong = model.predict(X[split.test_rows]) != y[split.test_rows]
        assert results.outer_errors[split.number] == wrong.sum()
        codes.append(model.predict(pool))
    leader = dsel.select(results).candidate
    full = clone(models[leader]).fit(X, y).predict(pool)
    vote = plurality(np.stack(codes), 10)
    for fold, answer in enumerate(codes):
        assert results.outer_disagreements[fold] == (answer != full).sum()
        assert results.vote_disagreements[fold] == (answer != vote).sum()
        assert results.outer_test_errors[fold] == (answer != answers).sum()
    assert results.vote_test_errors == (vote != answers).sum()
    assert flat(results, "full_test_errors").ravel()[leader] == (full != answers).sum()


def test_select__reads_every_bound_of_one_cube_at_any_delta(searched):
    _, _, results = searched
    errors = results.outer_errors.values.astype(int)
    sizes, fold = results.fold_rows.values.astype(int), int(errors.argmin())
    for delta in (0.05, 0.01):
        found = {n: dsel.select(results, n, delta=delta).certificate for n in NESTED}
        limits = binomial_tail_inversion(errors, sizes, delta=delta / 3)
        assert found["nested_fold_model"].unclipped == pytest.approx(limits.min())
        assert found["nested_fold_model"].fold == fold
        for name, counts in (
            ("nested", results.outer_disagreements),
            ("nested_vote", results.vote_disagreements),
        ):
            wanted = best_fold(
                errors, sizes, int(counts[fold]), 1000, delta=delta, label_share=0.8
            )
            assert found[name].unclipped == pytest.approx(float(wanted.bound))
            assert found[name].fold is None


@pytest.mark.parametrize("certificate", NESTED)
def test_select__certifies_what_was_declared(rows, certificate):
    plan = planned(rows, SVC(), GRID, certificate)
    results = plan.run(n_jobs=1)
    choice = dsel.select(results)
    assert choice.certificate.criterion == certificate
    assert choice.certificate.certified
    for other in set(NESTED) - {certificate}:
        certified = dsel.select(results, other).certificate
        assert not certified.certified
        assert "not declared" in certified.reasons[0]


def test_choice__shows_what_can_be_handed_over_side_by_side(searched):
    _, _, results = searched
    shown = dsel.select(results).deployments
    assert tuple(each.certificate for each in shown) == NESTED
    for each in shown:
        certificate = dsel.select(results, each.certificate).certificate
        assert each.bound == certificate.unclipped
    full = flat(results, "full_test_errors")[dsel.select(results).candidate]
    best = results.outer_test_errors[int(results.outer_errors.values.argmin())]
    wrong = (float(full), float(best), results.vote_test_errors.item())
    assert [1000 * each.observed for each in shown] == pytest.approx(wrong)
    line = dsel.select(results).summary().split("\n")[4]
    assert line.startswith("Models   all rows ")
    assert line.count("observed") == 3
    half = dsel.select(results, delta=0.5)
    assert all(a.bound < b.bound for a, b in zip(half.deployments, shown, strict=True))


def test_select__certifies_the_fold_model_beside_the_full_one(rows):
    results = planned(rows, SVC(), GRID, label_share=0.8).run(n_jobs=1)
    beside = dsel.select(results, "nested_fold_model", delta=0.8 * 0.05)
    assert beside.certificate.certified
    assert beside.bound == dsel.select(results).certificate.label_term


@pytest.mark.parametrize(
    ("name", "certificate"), [*zip(FAMILIES, cycle(NESTED), strict=False)]
)
def test_fit__hands_over_the_model_that_was_counted(rows, name, certificate):
    X, y, pool, answers = rows
    few, unseen = y < 3, answers < 3
    X, y, pool = X[few, 18:24] / 16, y[few], pool[unseen, 18:24] / 16
    answers = answers[unseen]
    estimator, grid = FAMILIES[name]
    search = dsel.SemiSupervisedSearchCV(
        estimator, grid, certificate=certificate, duplicates="keep", random_state=0,
        n_jobs=1,
    )  # fmt: skip
    search.fit(X, y, pool, pool_labels=answers)
    wrong = int((search.predict(pool) != answers).sum())
    results, choice = search.results_, search.choice_
    if "pool" in name:  # learners see a part of it, which is not counted
        return
    counted = {
        "nested": results.full_test_errors.values.ravel()[choice.candidate],
        "nested_fold_model": results.outer_test_errors.values[choice.fold or 0],
        "nested_vote": results.vote_test_errors.item(),
    }
    assert wrong == counted[certificate]
    again = search.plan_.deployed(choice).predict(pool)
    np.testing.assert_array_equal(again, search.predict(pool))
    assert isinstance(search.best_estimator_, FoldVote) == bool(choice.voters)


def test_select__takes_candidates_in_the_order_of_the_search_alone(searched, tmp_path):
    _, plan, results = searched
    choice = dsel.select(results)
    dsel.save_results(results, tmp_path / "kept")
    assert dsel.select(dsel.open_results(tmp_path / "kept")) == choice
    along = results.status.dims[0]
    backwards = results.isel({along: slice(None, None, -1)})
    for name in ("nested", "nested_fold_model", "nested_vote"):
        with pytest.raises(ValueError, match=r"all candidates.*in their order"):
            dsel.select(backwards, certificate=name)
    with pytest.raises(ValueError, match="in their order"):
        plan.deployed(dsel.select(backwards, "cv_error", certificate="cv_error"))


def test_run__makes_the_same_choices_pruned_and_exhaustive(rows):
    grid = {"C": list(np.geomspace(1e-3, 100, 6)), "gamma": [1e-5, 1e-4, 1e-3, 1e-2]}
    for seed in range(4):
        whole, pruned = (
            planned(rows, SVC(), grid, cv=4, prune=prune, random_state=seed).run()
            for prune in (False, True)
        )
        assert (pruned.status == 1).sum() > 0
        for name in ("outer_candidate", "outer_errors", "outer_disagreements"):
            np.testing.assert_array_equal(pruned[name], whole[name])
        assert repr(dsel.select(pruned)) == repr(dsel.select(whole))


def test_run__drops_who_can_be_no_choice_after_few_fits(rows):
    hopeless = KNeighborsClassifier(100)
    listed = [SVC(gamma=1e-3), hopeless, hopeless]
    results = planned(rows, None, listed, cv=5).run(n_jobs=1)
    fits = np.isfinite(results.fold_errors).sum("fold")
    fits += np.isfinite(results.inner_errors).sum(("inner_fold", "fold")) // 2
    # A fold, and three pairs: each fold of the five is in one of them.
    assert fits.values.tolist() == [15, 4, 4]


@pytest.mark.parametrize("n_folds", [3, 4, 7, 10])
def test_order__has_every_split_once_and_soon_one_of_each_choice(rows, n_folds):
    scheme = planned(rows, SVC(), GRID, cv=n_folds).scheme
    order = scheme.order.tolist()
    assert sorted(order) == list(range(len(scheme.splits)))
    assert order[-1] == scheme.full
    first = set(order[: 1 + (n_folds + 1) // 2])
    assert all(first & set(search) for search in scheme.searches)


def test_run__shows_the_same_counts_whatever_ended_first(rows):
    first, *others = (
        planned(rows, SVC(), GRID).run(n_jobs=n_jobs) for n_jobs in (1, 2, 2, 3)
    )
    for other in others:
        for name in ("fold_errors", "inner_errors", "status", "outer_errors"):
            np.testing.assert_array_equal(first[name], other[name])


class Fragile(ClassifierMixin, BaseEstimator):
    """Nearest neighbours that cannot be fitted where one row is there, or is not."""

    def __init__(self, fails_with=None, fails_without=None):
        self.fails_with, self.fails_without = fails_with, fails_without

    def fit(self, X, y):
        there = {tuple(row) for row in X}
        if self.fails_with in there:
            raise ValueError("a row is there")
        if self.fails_without is not None and self.fails_without not in there:
            raise ValueError("a row is not there")
        self.model_ = KNeighborsClassifier(1).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def poor():
    return KNeighborsClassifier(60)


@pytest.mark.parametrize("prune", [True, False])
def test_run__lets_no_fit_that_has_seen_a_fold_rule_out_its_choice(rows, prune):
    X = rows[0]
    probe = planned(rows, None, [poor()])
    tenth = tuple(X[probe.work.splits[0].test_rows[10]])
    # It cannot be fitted on any row set with a row of fold 0: of the pairs, those
    # without fold 0 remain, which decide the choice without it.
    with pytest.warns(dsel.errors.FitFailedWarning):
        results = planned(
            rows, None, [poor(), Fragile(fails_with=tenth)], prune=prune
        ).run(n_jobs=1)
    assert results.outer_candidate.values.tolist() == [1, 0, 0]
    assert dsel.select(results).candidate == 0
    choice = dsel.select(results, "nested_fold_model")
    assert (choice.candidate, choice.fold) == (1, 0)
    assert np.isfinite(choice.bound)


def test_run__says_where_nothing_can_be_chosen_or_fitted(rows):
    X = rows[0]
    first = tuple(X[planned(rows, None, [poor()]).work.splits[0].test_rows[0]])
    broken = [Fragile(fails_without=first)]
    with pytest.raises(AllFitsFailedError, match="chosen by all folds"):
        planned(rows, None, broken).run(n_jobs=1)
    # All choices are made, but what was chosen cannot be fitted on all rows.
    with pytest.raises(AllFitsFailedError, match="what was chosen cannot be fitted"):
        planned(rows, None, [FailsOnAll(len(X))]).run(n_jobs=1)


class FailsOnAll(Fragile):
    """Cannot be fitted on all rows."""

    def __init__(self, n_rows=0):
        super().__init__()
        self.n_rows = n_rows

    def fit(self, X, y):
        if len(X) == self.n_rows:
            raise ValueError("too many rows")
        return super().fit(X, y)


def test_plan_search__refuses_what_cannot_be_nested(rows):
    X, y, _, _ = rows
    with pytest.raises(ValueError, match="at least 3"):
        planned(rows, SVC(), GRID, cv=2)
    with pytest.raises(ValueError, match="folds of a splitter"):
        planned(rows, SVC(), GRID, cv=StratifiedKFold(3))
    with pytest.raises(ValueError, match="choose by the cross-validation error"):
        planned(rows, SVC(), GRID, criterion="cv_bound")
    with pytest.raises(ValueError, match=r"needs unlabeled rows.*nested_fold_model"):
        dsel.plan_search(SVC(), GRID, X, y, certificate="nested")
    reading = dsel.searches.PoolReading(stop_within=0.01)
    with pytest.raises(ValueError, match="stop_within"):
        planned(rows, SVC(), GRID, reading=reading, pool_labels=None)


def test_run__names_weights_that_were_computed_from_all_labels(rows):
    X, y, pool, _ = rows
    weights = {
        c: len(y) / n for c, n in zip(*np.unique(y, return_counts=True), strict=True)
    }
    model = SVC(class_weight=weights)
    plan = dsel.plan_search(
        model, GRID, X, y, pool, certificate="nested", random_state=0
    )
    certificate = dsel.select(plan.run(n_jobs=1)).certificate
    assert "A3 is violated" in certificate.reasons[0]


N_FITS = count()


class Forgetful(Fragile):
    """Gives another model each time that it is fitted."""

    def fit(self, X, y):
        rng = np.random.default_rng(next(N_FITS))
        return super().fit(X, rng.permutation(y))


def test_run__refuses_what_is_not_reproducible(rows):
    with pytest.raises(RuntimeError, match=r"another model.*fixed seed"):
        planned(rows, None, [Forgetful()]).run(n_jobs=1)


def test_run__without_a_pool_certifies_the_best_folds_model(rows):
    X, y, _, _ = rows
    plan = dsel.plan_search(
        SVC(), GRID, X, y, certificate="nested_fold_model", random_state=0
    )
    results = plan.run(n_jobs=1)
    assert "outer_disagreements" not in results
    choice = dsel.select(results)
    assert choice.certificate.certified
    (only,) = choice.deployments
    assert (only.certificate, only.bound) == ("nested_fold_model", choice.bound)
    assert only.observed is None
    assert isinstance(plan, Plan)
    assert "3 pairs of folds" in repr(plan)


def test_run__is_kept_and_read_again_without_a_fit(rows, tmp_path):
    plan = planned(rows, SVC(), GRID)
    results = plan.run(n_jobs=1, out=tmp_path / "run")
    stored = dsel.open_results(tmp_path / "run")
    assert dsel.select(stored) == dsel.select(results)
    np.testing.assert_array_equal(stored.inner_errors, results.inner_errors)
    seen = []
    again = plan.run(n_jobs=1, out=tmp_path / "run", on_progress=seen.append)
    assert again.drop_vars("score_seconds").equals(results.drop_vars("score_seconds"))


def test_run__adds_the_progress_of_what_is_chosen_to_that_of_the_search(rows):
    seen = []
    planned(rows, SVC(), GRID).run(n_jobs=1, on_progress=seen.append)
    totals = [each.fits_total for each in seen]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1] == seen[-1].fits_done + seen[-1].fits_dropped
    assert seen[-1].spans_done > 0


def test_run__pays_for_no_other_set_of_candidates_in_its_place(rows, tmp_path):
    out = tmp_path / "run"
    options = {"delta": 0.05, "reserve": 0.4}
    planned(rows, SVC(), GRID, **options).run(n_jobs=1, out=out)
    again = planned(rows, SVC(), GRID, **options).run(n_jobs=1, out=out)
    assert dsel.select(again).certificate.certified
    grid = {**GRID, "C": [0.01, 1.0]}
    results = planned(rows, SVC(), grid, **options).run(n_jobs=1, out=out)
    certificate = dsel.select(results).certificate
    assert not certificate.certified
    assert "not paid for" in certificate.reasons[0]
    assert "which no `reserve` covers" in certificate.reasons[0]


def test_plurality__of_equally_many_votes_takes_the_first_class():
    codes = np.array([[2, 1, -5], [1, 1, -5], [0, 2, 1]])
    assert plurality(codes, 3).tolist() == [0, 1, 1]


@pytest.mark.cluster
def test_run__on_a_cluster_is_the_same(rows, processes):
    local = planned(rows, SVC(), GRID).run(n_jobs=1)
    there = planned(rows, SVC(), GRID).run(processes)
    for name in ("fold_errors", "inner_errors", "outer_disagreements", "status"):
        np.testing.assert_array_equal(local[name], there[name])


@pytest.mark.parametrize("certificate", NESTED)
def test_compare__shows_the_bound_and_not_the_inner_estimate(searched, certificate):
    _, _, results = searched
    answer = results.dsel.compare().sel(criterion=certificate)
    assert answer.estimate == dsel.select(results, certificate).bound
