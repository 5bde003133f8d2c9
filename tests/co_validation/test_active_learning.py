"""Active learning: what its estimates are made of."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import dsel
from dsel.co_validation import learn_actively

X, Y = make_moons(300, noise=0.3, random_state=0)


def steps(seed=3):
    options = {"n_rows": 40, "every": 15, "repeats": 3, "random_state": seed}
    return list(learn_actively(SVC(), X, Y.__getitem__, **options))


@pytest.fixture(scope="module")
def found():
    return steps()


def test_learn_actively__estimates_on_rows_that_were_not_picked(found):
    for step in found:
        assert int(step.results["n_unlabeled"]) == len(X) - len(step.rows)
        left = np.delete(X, step.rows, axis=0)
        again = dsel.covalidate(
            SVC(), None, step.X, step.y, left, repeats=3, random_state=3
        )
        # The same halves: their seed is that of the run.
        assert again["fold_errors"].equals(step.results["fold_errors"])


def test_learn_actively__says_that_picked_rows_are_no_random_sample(found):
    choice = dsel.select(found[-1].results, "max_dt_e")
    assert not choice.certificate.certified
    assert any(
        "A1 is violated (independent draws from one population)" in why
        for why in choice.certificate.reasons
    )
    at_random = dsel.covalidate(SVC(), None, X[:40], Y[:40], X[40:], repeats=3)
    reasons = dsel.select(at_random, "max_dt_e").certificate.reasons
    assert not any(
        "A1 is violated (independent draws from one population)" in why
        for why in reasons
    )


def test_learn_actively__depends_on_its_seed_alone(found):
    again, other = steps(), steps(seed=4)
    for one, two in zip(found, again, strict=True):
        assert one.rows.tolist() == two.rows.tolist()
        assert one.estimates == two.estimates
    assert found[0].rows.tolist() != other[0].rows.tolist()


def test_learn_actively__says_that_labels_are_asked_for_arrays_of_rows():
    with pytest.raises(TypeError, match="`label_of` must take an array of row numbers"):
        next(learn_actively(SVC(), X, int, n_rows=12, n_start=10))
