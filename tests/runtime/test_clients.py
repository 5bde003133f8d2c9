from dsel.runtime.clients import count_threads, local_threads


def test_count_threads__reads_n_jobs_as_scikit_learn_does():
    assert count_threads(None) == count_threads(-1) == local_threads()
    assert count_threads(3) == 3
    assert count_threads(-1000) == 1
