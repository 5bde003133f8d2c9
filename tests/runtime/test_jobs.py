"""Independent tasks: taken as they end."""

from contextlib import closing

import pytest

from dsel.errors import ClusterLostError
from dsel.runtime.executors import LocalExecutor, check_alive
from dsel.runtime.jobs import AHEAD, Job, completed


def power(work, payloads, exponent):
    return work**exponent, f"payload {exponent}"


def failing(work, payloads):
    raise ValueError("no")


def test_completed__runs_every_job_once():
    jobs = [Job(f"job-{n}", power, (n,)) for n in range(9)]
    with closing(LocalExecutor(2, 2)) as executor:
        found = {each.key: each.result() for each in completed(executor, jobs)}
    assert found == {f"job-{n}": 2**n for n in range(9)}


def test_completed__asks_for_jobs_as_slots_become_free():
    asked = []

    def jobs():
        for n in range(20):
            asked.append(n)
            yield Job(f"job-{n}", power, (n,))

    with closing(LocalExecutor(2, 1)) as executor:
        for ended, _ in enumerate(completed(executor, jobs())):
            assert len(asked) <= ended + 2 * AHEAD


def test_completed__of_nothing_is_nothing():
    with closing(LocalExecutor(2, 1)) as executor:
        assert list(completed(executor, [])) == []


def test_completed__keeps_payloads_if_asked():
    with closing(LocalExecutor(2, 1)) as executor:
        list(completed(executor, [Job("one", power, (1,))], keeps_payloads=True))
        assert executor.fetch("one") == "payload 1"


def test_completed__an_error_is_raised_where_the_result_is_wanted():
    with closing(LocalExecutor(2, 1)) as executor:
        (ended,) = completed(executor, [Job("one", failing)])
        with pytest.raises(ValueError, match="no"):
            ended.result()


def test_check_alive__tells_a_lost_cluster_from_a_failed_task():
    class CancelledError(Exception):
        pass

    check_alive(None)
    check_alive(ValueError("of the task"))
    with pytest.raises(ClusterLostError, match="run the same command again"):
        check_alive(CancelledError())
