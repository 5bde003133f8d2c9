"""Tasks over spans on a cluster that loses what would run them."""

import pytest

from dsel.errors import ClusterLostError
from dsel.runtime.tasks import values_in_order


class Waiting:
    """A future that nobody computes; or one whose task was late itself."""

    def __init__(self, ended=False):
        self.ended, self.status = ended, "error" if ended else "pending"

    def result(self, timeout=None):
        if timeout is None and not self.ended:
            pytest.fail("waits for ever")
        raise TimeoutError("of the task" if self.ended else "of the wait")


class Client:
    def __init__(self, future, status="running"):
        self.future, self.status, self.cancelled = future, status, []

    def nthreads(self):
        return {}

    def submit(self, *arguments, **options):
        return self.future

    def cancel(self, futures):
        self.cancelled += futures


def test_values_in_order__ends_where_workers_stay_away(caplog):
    client = Client(Waiting())
    with pytest.raises(ClusterLostError, match="has had no workers for 600 s; run"):
        list(values_in_order(abs, [lambda client: (1,)] * 2, client))
    assert caplog.messages == ["the cluster has no workers; waiting for some"]
    assert len(client.cancelled) == 2


@pytest.mark.parametrize("status", ["connecting", "closed"])
def test_values_in_order__ends_where_the_scheduler_is_gone(status):
    client = Client(Waiting(), status)
    with pytest.raises(ClusterLostError, match="the scheduler is gone; run the same"):
        list(values_in_order(abs, [lambda client: (1,)], client))


def test_values_in_order__raises_what_a_task_raised_of_its_own():
    client = Client(Waiting(ended=True))
    with pytest.raises(TimeoutError, match="of the task"):
        list(values_in_order(abs, [lambda client: (1,)], client))
