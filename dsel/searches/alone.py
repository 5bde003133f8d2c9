"""The fit whose errors a number rests on, made once more in a new process.

An estimator is cloned for each fit, and a function copied. But what code of the user's
own keeps in its class or its module all fits of a process see, so that a fold's model
may know the rows that are held out. In a new process nothing is left of earlier fits.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Final, cast

import cloudpickle
import numpy as np
import xarray as xr
from sklearn import config_context, get_config

from dsel import names
from dsel.bounds import best_fold_number
from dsel.criteria import get_criterion
from dsel.criteria.base import is_nested
from dsel.data.content import canonical_text, own_code
from dsel.errors import GuaranteeWarning, warn
from dsel.models.family import FitCounts
from dsel.results import Choice, evidence
from dsel.results.ledger import VIOLATED, assumptions_of, with_assumptions
from dsel.runtime.clients import resolve_client
from dsel.runtime.processes import IDLE_SECONDS, OtherProcess
from dsel.runtime.submission import in_order, make_executor
from dsel.runtime.tasks import Task
from dsel.runtime.threads import single_threaded
from dsel.searches.checkpoint import Checkpoint
from dsel.searches.engine.fit_task import FitJob, Payload, Work, fit_jobs
from dsel.searches.engine.time_limits import START_SECONDS
from dsel.searches.spec import SearchSpec

ENDING_SECONDS: Final = 2.0
_ASKING: Final = Lock()
_SERVERS: Final[list[OtherProcess]] = []
"""The process of this one that copies itself for each fit; at most one."""
_REFUSED: Final[set[Any]] = set()
"""What erred otherwise alone, in this process, whose classes may still hold rows."""


@dataclass(frozen=True)
class OwnCode:
    """What candidates hold that comes from no installed package."""

    name: tuple[Any, ...]
    """Its classes and functions, and the texts of the candidates."""
    kept: bytes
    """The groups of the plan, pickled before any fit; empty where they cannot be."""


@dataclass(frozen=True)
class FitAlone:
    """What a fit in a new process has shown."""

    errors: int
    """On its held-out rows; -1 where it failed."""


def own_code_of(work: Work) -> OwnCode | None:
    """Return the code that is not installed; None where there is none."""
    estimators = [each.estimator for g in work.groups for each in g.candidates]
    own = own_code(estimators)
    if not own:
        return None
    try:
        kept = cloudpickle.dumps(work.groups)
    except Exception:  # whatever an object raises that cannot be pickled
        kept = b""
    return OwnCode((own, *map(canonical_text, estimators)), kept)


def with_fit_alone(
    plan: SearchSpec,
    own: OwnCode,
    results: xr.Dataset,
    choice: Choice,
    checkpoint: Checkpoint,
    client: Any,
) -> xr.Dataset:
    """Return the cube, whose A3 is violated where a fit alone errs otherwise.

    It is the fit of the fold with the fewest errors, since the number rests on it.
    """
    said = _refused(own) or _finding(plan, own, results, choice, checkpoint, client)
    if not said:
        return results
    _REFUSED.add(own.name)
    ledger = (
        replace(each, state=VIOLATED, reason=said) if each.name == "A3" else each
        for each in assumptions_of(results)
    )
    return with_assumptions(results, ledger)


def _refused(own: OwnCode) -> str:
    if own.name not in _REFUSED:
        return ""
    return (
        "this learner erred otherwise when it was fitted alone, and this process may "
        "hold rows that it kept: mend it and start Python anew"
    )


def _finding(
    plan: SearchSpec,
    own: OwnCode,
    results: xr.Dataset,
    choice: Choice,
    checkpoint: Checkpoint,
    client: Any,
) -> str:
    """Return how a fit alone differs from the one that was counted; empty if not."""
    counts = evidence(results)
    is_outer = is_nested(get_criterion(choice.certificate.criterion))
    errors = counts.get(names.OUTER_ERRORS if is_outer else names.FOLD_ERRORS)
    if errors is None or not own.kept:
        return ""
    errors = errors if is_outer else errors[choice.candidate]
    rows = counts[names.FOLD_ROWS]
    fold = int(best_fold_number(np.where(errors < 0, rows, errors), rows))
    number = counts[names.OUTER_CANDIDATE][fold] if is_outer else choice.candidate
    found = _fit_alone(plan, own.kept, int(number), fold, checkpoint, client)
    if found is None or found.errors == errors[fold]:
        return ""
    erred = "fails" if found.errors < 0 else f"errs {found.errors} times"
    return (
        f"alone in a new process the model without fold {fold} {erred} on this fold, "
        f"where {errors[fold]} errors were counted: its code, or what it calls, keeps "
        f"something of earlier fits, which may be the held-out rows, or draws random "
        f"numbers without a fixed seed"
    )


def _fit_alone(
    plan: SearchSpec,
    kept: bytes,
    number: int,
    fold: int,
    checkpoint: Checkpoint,
    client: Any,
) -> FitAlone | None:
    """Fit in a new process, once in a store; None where no process can be started."""
    group, split = plan.work.group_of(number), plan.work.splits[fold]
    place = [each.number for each in group.candidates].index(number)
    path = f"alone/{group.keys[place]}/{split.name}"
    if record := checkpoint.read().get(path):
        return FitAlone(int(record["errors"]))
    job = FitJob(group.number, (number,), fold)
    task = Task("alone", fit_in_new_process, (kept, job, plan.fit_timeout or inf))
    work = replace(plan.work, groups=())  # they come as they were before the run
    try:
        with closing(make_executor(work, resolve_client(client), 1)) as executor:
            [counts] = in_order(executor, [task])
    except (TimeoutError, ChildProcessError):  # which it did not in the run
        return FitAlone(-1)
    except (OSError, RuntimeError) as error:
        warn(
            f"the chosen model could not be fitted in a process of its own ({error}), "
            f"so it was not seen whether its code keeps rows of earlier fits.",
            GuaranteeWarning,
        )
        return None
    found = FitAlone(int(counts.test_errors.item()))
    if not checkpoint.is_read_only:
        checkpoint.keep(path, found)
    return found


def fit_in_new_process(
    work: Work, payloads: Sequence[Payload], groups: bytes, job: FitJob, seconds: float
) -> tuple[FitCounts, None]:
    """Fit a job of pickled groups where nothing was fitted before."""
    del payloads  # a fit starts from nothing
    with _ASKING:
        found = next(iter(_SERVERS), None)
        if found is None or not found.is_alive():
            found = OtherProcess("dsel.searches.alone", "serve")
            _SERVERS[:] = [found]
        counts = found.ask((work, groups, job, get_config()), START_SECONDS + seconds)
    return cast(FitCounts, counts), None


def serve(handle: int) -> None:
    """Fit each job that comes in a new process: the main function of a server.

    The server itself never unpickles what is asked, so that its copies know of nothing.
    """
    pipe, can_ask = Connection(handle), True
    while can_ask and pipe.poll(IDLE_SECONDS):
        try:
            asked = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        if sys.platform != "linux":  # elsewhere a started process may not be copied
            _answer(asked, pipe)
            return
        if (child := os.fork()) == 0:
            _answer(asked, pipe)
            os._exit(0)
        can_ask = _has_answered(child, pipe)


def _answer(asked: bytes, pipe: Connection) -> None:
    try:
        work, groups, job, config = cloudpickle.loads(asked)
        # Only here: in a process that has their classes, it would change these.
        work = replace(work, groups=cloudpickle.loads(groups))
        with single_threaded(), config_context(**config):
            [record], _ = fit_jobs(work, (), [job], False)
        found: Any = record.counts
    except Exception as error:
        found = error
    pipe.send_bytes(cloudpickle.dumps(found))


def _has_answered(child: int, pipe: Connection) -> bool:
    """Wait for a copy to end; end it where nobody waits for its answer any more."""
    waited = 0.0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        if not pipe.poll(ENDING_SECONDS / 20):
            continue
        # Whoever asked is gone, or has the answer already, and asks for the next.
        time.sleep(ENDING_SECONDS / 20)
        waited += ENDING_SECONDS / 20
        if waited > ENDING_SECONDS:
            os.kill(child, signal.SIGKILL)
            return False
