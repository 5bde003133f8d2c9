"""Every penalty, with and without an intercept, and a store that dies."""

import pytest

from dsel.results.run_store import Store
from tests.executors import Killed


@pytest.fixture(params=["coefficients", "rkhs"])
def penalty(request):
    return request.param


@pytest.fixture(params=[False, True])
def fit_intercept(request):
    return request.param


@pytest.fixture
def records_left(monkeypatch):
    """Let a run die when it stores more than so many records."""
    append = Store.append

    def allow(n_records):
        left = iter(range(n_records))

        def dying(self, key, record):
            if next(left, None) is None:
                raise Killed
            append(self, key, record)

        monkeypatch.setattr(Store, "append", dying)

    return allow
