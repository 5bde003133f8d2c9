import pytest

from dsel.runtime.clients import count_threads, local_threads, resolve_client


def test_count_threads__reads_n_jobs_as_scikit_learn_does():
    assert count_threads(None) == count_threads(-1) == local_threads()
    assert count_threads(3) == 3
    assert count_threads(-1000) == 1


@pytest.mark.parametrize(
    ("n_jobs", "error"), [(0, ValueError), ("2", TypeError), (1.5, TypeError)]
)
def test_count_threads__refuses_what_is_no_number_of_threads(n_jobs, error):
    with pytest.raises(error, match="`n_jobs` must"):
        count_threads(n_jobs)


def test_resolve_client__refuses_an_address():
    with pytest.raises(TypeError, match=r"`client` must be a distributed\.Client"):
        resolve_client("tcp://127.0.0.1:8786")
