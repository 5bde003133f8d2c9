"""The one-standard-error rule, on counts and on a real search."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.criteria import Settings, get_criterion

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


def test_one_standard_error__is_an_estimate_that_any_search_answers():
    # From smooth to wild: the last one knows its training rows by heart.
    plan = dsel.plan_search(
        KNeighborsClassifier(), {"n_neighbors": [101, 31, 9, 1]},
        X[:200], Y[:200], X[200:], cv=5, random_state=0, prune=False,
        train_errors=True, criterion="cv_bound",
    )  # fmt: skip
    results = plan.run()
    choice = dsel.select(results, "one_standard_error")
    assert choice.params != {"n_neighbors": 1}
    assert not choice.certificate.certified
    assert dsel.select(results, "train_error").params == {"n_neighbors": 1}
