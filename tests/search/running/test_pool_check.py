"""The check of the pool and its record in a store."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search.running.pool_check import POOL_FACTS_KEY, check_pool

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(100, 2)), RNG.normal(size=(500, 2))
PLAN = dsel.plan_search(
    DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]},
    X, X[:, 0] > 0, POOL, random_state=0,
)  # fmt: skip


@dataclass
class Store:
    """Keeps records in memory."""

    records: dict = field(default_factory=dict)
    place: str = "results"

    def append(self, key, record):
        self.records[key] = record


def check(store):
    return check_pool(PLAN.search, store, client=None)


def test_check_pool__reads_its_record_and_that_of_an_older_version():
    store = Store()
    checked = check(store).pool_facts
    record = store.records[POOL_FACTS_KEY]
    assert record["kind"] == "PoolFacts"
    # As 0.2 wrote it, without a kind; the changed number shows that it is read.
    store.records[POOL_FACTS_KEY] = {
        **{key: value for key, value in record.items() if key != "kind"},
        "equal_rows": 7,
    }
    assert check(store).pool_facts == replace(checked, n_duplicates=7)
    # A record that lacks a field is not read: the pool is checked again.
    del store.records[POOL_FACTS_KEY]["auc"]
    assert check(store).pool_facts == checked


def test_check_pool__names_the_place_of_a_record_of_other_types():
    store = Store()
    check(store)
    store.records[POOL_FACTS_KEY]["equal_rows"] = "seven"
    with pytest.raises(ValueError, match="`out` results holds a record"):
        check(store)
