"""The one-standard-error rule, TRI and ADJ, on counts and on real searches."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.criteria import Settings, get_criterion
from dsel.searches import count_pairs

X, Y = make_classification(900, 5, flip_y=0.2, random_state=1)


def evidence(**counts):
    n = len(next(iter(counts.values())))
    return {"status": np.zeros(n, np.int8)} | {
        name: np.array(values) for name, values in counts.items()
    }


def chosen(name, **counts):
    rule, found = get_criterion(name), evidence(**counts)
    n = len(found["status"])
    return rule.choose(rule.evaluate(found, Settings(np.full(n, 0.1), 0.5)), found)


def test_one_standard_error__is_the_first_within_it():
    errors = np.array([[9, 9, 9, 9], [3, 3, 3, 2], [1, 2, 4, 1]])
    # The best is the last with a mean of 2 and a standard error of sqrt(2 / 4) = .71.
    rows = np.full(4, 10)
    assert chosen("one_standard_error", fold_errors=errors, fold_rows=rows) == 2
    near = np.array([[9, 9, 9, 9], [3, 3, 3, 1], [1, 2, 4, 1]])
    assert chosen("one_standard_error", fold_errors=near, fold_rows=rows) == 1
    assert chosen("cv_error", fold_errors=near, fold_rows=rows) == 2


PAIRS = {
    "pair_disagreements": [[0, 10, 60], [10, 0, 60], [60, 60, 0]],
    "labeled_pair_disagreements": [[0, 5, 10], [5, 0, 4], [10, 4, 0]],
    "n_unlabeled": 200, "n_labeled": 50,
}  # fmt: skip


def test_tri__takes_the_last_whose_triangles_close():
    # Pool distances .05, .3, .3; errors .2, .1, .04: 0.3 > .2 + .04 is too far.
    assert chosen("tri", full_train_errors=[10, 5, 2], **PAIRS) == 1
    assert chosen("tri", full_train_errors=[12, 11, 9], **PAIRS) == 2


def test_adj__multiplies_by_the_largest_ratio():
    rule = get_criterion("adj")
    found = evidence(full_train_errors=[10, 5, 2], **PAIRS)
    terms = rule.evaluate(found, Settings(np.full(3, 0.1), 0.5))
    factors = [1.0, 0.05 / 0.1, max(0.3 / 0.2, 0.3 / 0.08)]
    np.testing.assert_allclose(terms.estimate, np.array([0.2, 0.1, 0.04]) * factors)


@pytest.fixture(scope="module")
def searched():
    # From smooth to wild: the last one knows its training rows by heart.
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [101, 31, 9, 1]},
        X[:200], Y[:200], X[200:], cv=5, random_state=0, prune=False,
        train_errors=True, criterion="cv_bound",
    )  # fmt: skip
    return plan, plan.run()


def test_count_pairs__are_those_of_refitted_models(searched):
    plan, results = searched
    cube = count_pairs(results, plan)
    one, other = (plan.model(j).predict(X[200:]) for j in (0, 3))
    assert cube.pair_disagreements[0, 3] == np.sum(one != other)
    near, far = (plan.model(j).predict(X[:200]) for j in (0, 3))
    assert cube.labeled_pair_disagreements[3, 0] == np.sum(near != far)
    assert dsel.select(cube).bound == dsel.select(results).bound


def test_metric_criteria__are_estimates_of_all_candidates(searched, tmp_path):
    plan, results = searched
    dsel.save_results(count_pairs(results, plan), tmp_path)
    cube = dsel.open_results(tmp_path)
    for name in ("tri", "adj", "one_standard_error"):
        choice = dsel.select(cube, name)
        # ADJ multiplies an error of 0, and overfits here as the training error does.
        assert (choice.params == {"n_neighbors": 1}) == (name == "adj")
        assert not choice.certificate.certified
    assert dsel.select(cube, "train_error").params == {"n_neighbors": 1}
    with pytest.raises(
        ValueError, match=r"select\(count_pairs\(results, plan\), 'tri'"
    ):
        dsel.select(results, "tri")
    with pytest.raises(ValueError, match="select from all of them"):
        dsel.select(cube.isel(n_neighbors=[0, 1]), "adj")
