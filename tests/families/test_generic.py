"""Any classifier: what its fits count, and what its failures cost."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dsel.data.cache import ByteCache
from dsel.data.splits import fold_splits, pair_splits
from dsel.families.assignment import assign_families
from dsel.families.family import FIT_DONE, Candidate

FOLDS = np.arange(60) % 3


def counts_of(estimator, X, y):
    """Fit on the rows of fold 2, and count errors on folds 0 and 1 apart."""
    (assigned,) = assign_families(
        [Candidate(0, {}, estimator)], X, classes=np.unique(y), seed=0, fit_params={}
    )
    split = pair_splits(fold_splits(FOLDS)[:3])[0]
    return assigned.family.fit(
        assigned.groups[0], X, y, [split], budget=ByteCache(2**28)
    ).counts


class Choosy(KNeighborsClassifier):
    """Refuses rows whose first feature is large."""

    def predict(self, X):
        if X[:, 0].max() > 100:
            raise ValueError("too large for me")
        return super().predict(X)


@pytest.mark.parametrize(
    "estimator",
    [
        Choosy(3),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), Choosy(3)),
        make_pipeline(OneHotEncoder(), KNeighborsClassifier(3)),
        make_pipeline(OneHotEncoder(), SVC()),
    ],
)
@pytest.mark.parametrize("part", [0, 1])
def test_fit__a_part_that_predict_refuses_is_all_errors_and_the_other_one_as_ever(
    estimator, part, rng
):
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
    before = counts_of(estimator, X, y)
    X[part] = 1000.0
    counts = counts_of(estimator, X, y)
    assert counts.status.tolist() == [[FIT_DONE]]
    errors, usual = (
        (int(each.test_errors[0, 0]), int(each.train_errors[0, 0]))
        for each in (counts, before)
    )
    assert errors[part] == 20
    assert errors[1 - part] == usual[1 - part]
    assert "ValueError" in counts.messages[0, 3]
