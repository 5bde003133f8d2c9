"""Run the widths of a least-squares search as tasks, here or on a cluster."""

import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from dsel.errors import ClusterLostError
from dsel.searches.executors import ClusterExecutor, Executor, Finished, LocalExecutor
from dsel.searches.least_squares_tasks import LeastSquaresWork, WidthRecord, judge_width

BEAT_SECONDS = 1.0
LOST = {"FutureCancelledError", "CancelledError", "NoWorkerError"}


def judge_widths(
    work: LeastSquaresWork, widths: Sequence[float], client: Any, n_jobs: int | None
) -> tuple[dict[int, WidthRecord], dict[int, str]]:
    """Judge every width; each is one task.

    Returns
    -------
    tuple
        Records by the place of the width, and messages of those that failed.
    """
    records: dict[int, WidthRecord] = {}
    messages: dict[int, str] = {}
    with closing(make_executor(work, client, n_jobs)) as executor:
        places = {f"width-{place}": place for place in range(len(widths))}
        for key, place in places.items():
            executor.submit(key, judge_width, widths[place])
        while places:
            for finished in executor.wait(BEAT_SECONDS):
                place = places.pop(finished.key)
                executor.forget(finished.key)
                if finished.error is None:
                    records[place] = finished.record
                else:
                    messages[place] = error_message(finished)
    return records, messages


def make_executor(work: Any, client: Any, n_jobs: int | None) -> Executor:
    """Return local threads, or the workers of a client."""
    if client is None:
        return LocalExecutor(work, n_jobs)
    return ClusterExecutor(work, client, uuid.uuid4().hex[:12])


def error_message(finished: Finished) -> str:
    """Say why a width failed; raise where the cluster is gone."""
    error = finished.error
    if type(error).__name__ in LOST:
        raise ClusterLostError(
            "the scheduler or all workers are gone; run the search again."
        ) from error
    return f"{type(error).__name__}: {error}"
