"""The other systems, each through its public names."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.bounds import (
    binomial_tail_inversion,
    error_from_disagreement,
    holdout_bound,
    threshold_bound,
)
from tests.contract import runs
from tests.contract.runs import (
    HALF_CRITERIA,
    LEARNERS,
    LEAST_SQUARES_CRITERIA,
    digits,
    read_rows,
    select_least_squares,
    three_classes,
)

pytestmark = pytest.mark.contract

# Co-validation

HALVED = {
    "SVC": {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3]},
    "tree": {"max_depth": [2, 8]},
}


def covalidate(learner="SVC", **options):
    X, y, pool = digits(100)
    rows = (LEARNERS[learner][0], HALVED[learner], X, y, pool[:400])
    return runs.covalidate(*rows, **{"repeats": 4, **options})


@pytest.mark.parametrize("learner", HALVED)
def test_covalidate__counts_errors_and_disagreement_of_random_halves(learner):
    cube = covalidate(learner)
    grid = tuple(HALVED[learner])
    assert cube["fold_errors"].dims == (*grid, "repeat", "half")
    assert cube["disagreements"].dims == (*grid, "repeat")
    assert (cube["fold_rows"] == 50).all()
    assert (cube["disagreements"] <= 400).all()
    assert covalidate(learner)["disagreements"].equals(cube["disagreements"])


def test_covalidate__estimates_are_functions_of_the_counts():
    cube = covalidate()
    share = cube["disagreements"].mean("repeat") / 400
    estimates = cube["estimate"]
    found = estimates.sel(criterion="disagreement")
    assert np.allclose(found, share, atol=1e-12)
    expected = error_from_disagreement(share.values, n_classes=10)
    assert np.allclose(estimates.sel(criterion="dis_error"), expected, atol=1e-12)
    two_fold = (cube["fold_errors"] / cube["fold_rows"]).mean(("repeat", "half"))
    assert np.allclose(estimates.sel(criterion="two_fold_cv"), two_fold, atol=1e-12)


@pytest.mark.parametrize("criterion", HALF_CRITERIA[:-1])
def test_covalidate__chooses_the_smallest_estimate_and_certifies_nothing(criterion):
    choice = dsel.select(covalidate(), criterion)
    estimates = covalidate()["estimate"].sel(criterion=criterion).values.ravel()
    assert choice.candidate == estimates.argmin()
    assert not choice.certificate.certified


def test_covalidate__goes_on_from_its_out(tmp_path):
    cube = covalidate(out=tmp_path)
    again = covalidate(out=tmp_path)
    for name in ("fold_errors", "train_errors", "disagreements", "estimate"):
        assert again[name].equals(cube[name])


def test_covalidate__has_no_folds_to_choose_by():
    with pytest.raises(ValueError, match="needs folds, and `results` are of random"):
        dsel.select(covalidate("tree"), "cv_error")


@pytest.mark.cluster
def test_covalidate__worker_processes_count_the_same(processes):
    cube, found = covalidate("tree"), covalidate("tree", client=processes)
    for name in ("fold_errors", "train_errors", "disagreements"):
        assert found[name].equals(cube[name])


# Leave-one-out


@pytest.mark.parametrize("name", ["SVC", "k-NN"])
def test_loo_error__counts_what_refits_count(name):
    X, y, _ = digits(60)
    learner, grid = {
        "SVC": (SVC(gamma=5e-4), {"C": [1.0, 8.0]}),
        "k-NN": (KNeighborsClassifier(), {"n_neighbors": [1, 3]}),
    }[name]
    counted = runs.results_of(runs.loo_run(learner, grid, X, y))["loo_errors"]
    ((parameter, options),) = grid.items()
    for option, count in zip(options, counted.values.ravel(), strict=True):
        model = clone(learner).set_params(**{parameter: option})
        assert count == (cross_val_predict(model, X, y, cv=LeaveOneOut()) != y).sum()


# Least squares


@pytest.fixture(scope="module")
def least_squares():
    X, y, dense = runs.sinc_rows()
    return runs.least_squares_search(cv=10).fit(X, y, dense, np.sinc(dense[:, 0]))


def test_least_squares__leave_one_out_is_that_of_refits(least_squares):
    X, y, _ = runs.sinc_rows()
    width, regularization = least_squares.best_params_.values()
    model = runs.KernelLeastSquares(
        width=width, regularization=regularization, centers=X
    )
    errors = cross_val_predict(model, X, y, cv=LeaveOneOut()) - y
    found = select_least_squares(least_squares.results_, "loo").estimate
    assert found == pytest.approx(np.mean(errors**2), rel=1e-5)


@pytest.mark.parametrize("criterion", LEAST_SQUARES_CRITERIA)
def test_least_squares__chooses_the_smallest_loss(least_squares, criterion):
    results = least_squares.results_
    assert set(results.sizes) == {"width", "regularization", "fold", "criterion"}
    choice = select_least_squares(results, criterion)
    losses = results["estimate"].sel(criterion=criterion).values.ravel()
    assert choice.candidate == np.nanargmin(losses)
    assert choice.estimate == pytest.approx(np.nanmin(losses), abs=1e-12)


def test_least_squares__with_out_is_the_search_without(least_squares, tmp_path):
    X, y, dense = runs.sinc_rows()
    rows = (X, y, dense, np.sinc(dense[:, 0]))
    kept = runs.least_squares_search(cv=10).fit(*rows, out=tmp_path)
    again = runs.least_squares_search(cv=10).fit(*rows, out=tmp_path)
    for search in (kept, again):
        assert search.best_params_ == least_squares.best_params_
        assert np.allclose(search.predict(dense), least_squares.predict(dense))


@pytest.mark.parametrize("chunk", [50, 400])
def test_streamed__dask_arrays_give_what_arrays_give(chunk):
    X, y, dense = runs.sinc_rows(400)
    expected = runs.streamed_search().fit(X, y)
    lazy = da.from_array(X, chunks=(chunk, 1)), da.from_array(y, chunks=chunk)
    found = runs.streamed_search().fit(*lazy)
    assert found.best_params_ == expected.best_params_
    assert np.allclose(found.predict(dense), expected.predict(dense), atol=1e-6)
    assert np.abs(found.predict(dense) - np.sinc(dense[:, 0])).max() < 0.2


# Nonconformity


@pytest.fixture(scope="module", params=["random", "literal"])
def nonconformity(request):
    return runs.nonconformity_model(request.param).fit(*digits(200)[:2])


def test_nonconformity__predicts_labels_and_knows_how_typical_they_are(nonconformity):
    pool, labels = digits(200)[2][:300], digits(1797)[1][200:500]
    predicted = nonconformity.predict(pool)
    assert (predicted == labels).mean() > 0.85
    p_values = nonconformity.p_values(pool)
    assert p_values.shape == (300, 10)
    assert ((p_values > 0) & (p_values <= 1)).all()
    if nonconformity.ties == "random":
        likeliest = nonconformity.classes_[p_values.argmax(axis=1)]
        assert (likeliest == predicted).mean() > 0.9
    epsilon = nonconformity.critical_epsilon(pool)
    assert ((epsilon >= 0) & (epsilon <= 1)).all()


def test_nonconformity__sets_hold_labels_of_large_p_values(nonconformity):
    pool = digits(200)[2][:100]
    p_values = nonconformity.p_values(pool)
    for epsilon in (0.05, 0.3):
        labels = nonconformity.predict_set(pool, epsilon)
        assert (labels == (p_values >= epsilon)).all()


def test_nonconformity__bounds_are_those_of_the_formulas(nonconformity):
    pool, labels = digits(200)[2], digits(1797)[1][200:]
    certificate = nonconformity.certify(pool, labels)
    wrong = int((nonconformity.predict(pool) != labels).sum())
    expected = holdout_bound(wrong, len(pool), delta=0.05)
    assert certificate.bound == pytest.approx(float(expected), abs=1e-12)
    counts = np.rint(nonconformity.critical_epsilon(pool[:20]) * 40).astype(int)
    limits = threshold_bound(counts, 40, n_models=9, delta=0.05)
    assert np.allclose(nonconformity.bound_threshold(pool[:20]), limits, atol=1e-12)


def test_nonconformity__a_pool_is_predicted_row_by_row(nonconformity, tmp_path):
    pool = digits(200)[2][:300]
    expected = nonconformity.predict(pool)
    lazy = da.from_array(pool, chunks=(70, 64))
    assert (nonconformity.predict(lazy).compute() == expected).all()
    nonconformity.predict_pool(lazy, tmp_path / "answers")
    parts = [codes for _, codes in read_rows(tmp_path / "answers", "label")]
    assert (nonconformity.classes_[np.concatenate(parts)] == expected).all()


# Semi-supervised discriminant analysis


def test_lda__without_a_pool_is_the_supervised_fit():
    X, y, pool, _ = three_classes()
    supervised = runs.fit_lda("supervised", X, y, None, None)
    alone = runs.fit_lda("semi-supervised", X, y, None, None)
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert np.allclose(supervised.means_, alone.means_, atol=1e-9)
    assert (supervised.predict(pool) == reference.predict(pool)).all()
    assert (alone.predict(pool) == reference.predict(pool)).all()


def test_lda__the_pool_never_makes_the_true_labels_less_likely():
    X, y, pool, truth = three_classes(400)
    likelihoods = [
        log_likelihood(runs.fit_lda(kind, X, y, pool, truth), X, y, pool, truth)
        for kind in ("supervised", "semi-supervised", "oracle")
    ]
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[0] < likelihoods[1]


def log_likelihood(model, X, y, pool, truth):
    rows, labels = np.vstack([X, pool]), np.concatenate([y, truth])
    covariance = np.asarray(model.covariance_)
    away = rows - model.means_[labels]
    inside = np.einsum("ij,ij->i", away @ np.linalg.inv(covariance), away)
    constant = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return float(np.sum(np.log(model.priors_)[labels] - (inside + constant) / 2))


def test_lda__says_how_near_it_is_to_the_saddle_point():
    X, y, pool, _ = three_classes()
    model = runs.fit_lda("semi-supervised", X, y, pool, None)
    assert 0 <= model.duality_gap_ <= 1e-9
    assert model.contrast_lower_ > 0


@pytest.mark.parametrize("chunk", [100, 1234])
def test_lda__any_pool_gives_the_same_means(chunk):
    X, y, pool, _ = three_classes()
    expected = runs.fit_lda("semi-supervised", X, y, pool, None)
    lazy = da.from_array(pool, chunks=(chunk, 4))
    found = runs.fit_lda("semi-supervised", X, y, lazy, None)
    assert np.allclose(found.means_, expected.means_, atol=1e-6)


def test_lda__learns_from_one_half_of_the_pool_and_is_counted_on_the_other():
    X, y, pool, _ = three_classes()
    grid = {"ridge": [0.1, 1.0]}
    rows = (runs.SemiSupervisedLDA(), grid, X, y, pool)
    run = runs.run_search(*rows, certificate="cv_bound", cv=3)
    cube = runs.results_of(run)
    assert 1300 < float(cube["pool_rows"].isel(ridge=0).sum()) < 1700
    assert runs.choice_of(run).certificate.bound < 1


# Any selection procedure


def best_of_two(X, y):
    """Choose between two learners by hand."""
    learners = [KNeighborsClassifier(1), make_pipeline(StandardScaler(), SVC())]
    models = [learner.fit(X[::2], y[::2]) for learner in learners]
    return max(models, key=lambda model: model.score(X[1::2], y[1::2]))


def test_certify_selection__hands_over_the_procedure_and_its_bound():
    X, y, pool = digits(300)
    found = runs.certify_grid_search(X, y, pool)
    assert isinstance(found.model, GridSearchCV)
    assert found.certificate.certified
    truth = digits(1797)[1][300:]
    assert (found.model.predict(pool) != truth).mean() <= found.certificate.bound < 1


def test_certify_selection__without_a_pool_bounds_the_best_fold_by_its_errors():
    X, y, _ = digits(300)
    found = runs.certify_grid_search(X, y)
    errors = found.results["fold_errors"].values.ravel().astype(int)
    limits = binomial_tail_inversion(errors, 100, delta=0.05 / 3)
    assert found.certificate.bound == pytest.approx(limits.min(), abs=1e-12)


def test_certify_selection__takes_a_function():
    X, y, pool = digits(300)
    options = {"cv": 3, "random_state": 0}
    found = dsel.certify_selection(best_of_two, X, y, pool, **options)
    handed_over = found.models["all_rows"].predict(pool)
    assert (handed_over == best_of_two(X, y).predict(pool)).all()
    assert found.certificate.certified


@pytest.mark.cluster
def test_certify_selection__worker_processes_count_the_same(processes):
    X, y, pool = digits(200)
    expected = runs.certify_grid_search(X, y, pool)
    found = runs.certify_grid_search(X, y, pool, client=processes)
    assert found.certificate == expected.certificate


# Planning, and the audit


def test_plan_bound__more_labels_and_fewer_candidates_make_it_smaller():
    tables = [
        runs.expected_bounds(),
        runs.expected_bounds(n_labeled=2000),
        runs.expected_bounds(n_candidates=500),
    ]
    for name, bound in tables[0].items():
        assert (tables[1][name] < bound).all(), name
        assert (tables[2][name] >= bound).all(), name
        assert ((bound > 0.08) & (bound < 1)).all(), name


def test_plan_bound__nested_bounds_do_not_depend_on_the_number_of_candidates():
    few, many = runs.expected_bounds(), runs.expected_bounds(n_candidates=5000)
    for name in few:
        assert bool((many[name] == few[name]).all()) == (
            name in ("one_fold", "all_rows")
        )


def test_audit__counts_failures_where_the_truth_is_known():
    names = ["cv_bound", "best_fold", "nested"]
    counts, report = runs.audit_of(names, delta=0.2, n_draws=20, random_state=0)
    for certified, failures in counts.values():
        assert certified == 20
        assert failures <= 8
    assert report["holds"].all()


def test_audit__catches_a_broken_bound():
    counts, report = runs.audit_of(
        ["a broken bound"], delta=0.2, n_draws=60, random_state=0
    )
    ((_, failures),) = counts.values()
    assert failures > 12
    assert report["is_control"].all()
