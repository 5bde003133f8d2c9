"""One log line for each finished task, which people and programs can read.

Lines go to the logger ``dsel.searches`` as ``event name=value ...``; a handler that
wants fields finds them in the record's attribute `dsel`.
"""

import logging
from typing import Any, Final

from dsel.searches.engine.fit_task import FitRecord, SpanRecord
from dsel.searches.engine.scheme import Scheme

logger: Final = logging.getLogger("dsel.searches")


def log_fit(scheme: Scheme, record: FitRecord) -> None:
    """Say which candidates were fitted on which training, in what time."""
    _log(
        logging.INFO,
        "fit",
        candidates=",".join(map(str, record.job.candidates)),
        training=scheme.trainings[record.job.training].name,
        seconds=round(float(record.counts.seconds.sum()), 6),
        bytes=record.nbytes,
        failed=len(record.counts.messages),
    )


def log_span(record: SpanRecord, nbytes: int) -> None:
    """Say which rows of the pool, of so many bytes, were compared for whom."""
    job = record.job
    _log(
        logging.INFO,
        "span",
        rows=f"{job.start}-{job.stop}",
        candidates=",".join(map(str, job.candidates)),
        seconds=round(record.seconds, 6),
        bytes=nbytes,
    )


def log_retry(what: str, reason: BaseException) -> None:
    """Say that a task is submitted again, and what became of it."""
    _log(logging.WARNING, "retry", task=what, reason=type(reason).__name__)


def _log(level: int, event: str, **fields: Any) -> None:
    if logger.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in fields.items())
        extra = {"dsel": {"event": event, **fields}}
        logger.log(level, "%s %s", event, text, extra=extra)
