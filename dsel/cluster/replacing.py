"""Jobs of workers that ended are begun again."""

import time
from collections.abc import Mapping
from typing import Any, Final

ENDED_SECONDS: Final = 30.0
"""Without any of its workers a job has ended; they restart in less, one by one."""


def replacing_adaptive() -> type[Any]:
    """Return what replaces jobs that ended, for `SpecCluster.adapt`.

    Dask itself counts the jobs that it has asked for, not those that are there: one of
    several workers is missed for good, and one of a single worker once
    ``lost-worker-timeout`` has passed, which `connect` makes long.
    """
    from distributed.deploy.adaptive import Adaptive

    class Replacing(Adaptive):
        """Gives up the jobs of which no worker is left; then there are too few."""

        def __init__(self, cluster: Any, **options: Any) -> None:
            self.jobs = cluster.worker_spec
            self.seen: dict[str, float] = {}
            super().__init__(cluster, **options)

        async def recommendations(self, target: int) -> dict[str, Any]:
            """Say what to begin or to end."""
            now = time.monotonic()
            self.seen |= dict.fromkeys(map(str, self.observed), now)
            ended = [
                name
                for job, spec in self.jobs.items()
                for name in _ended(job, spec, self.seen, now)
            ]
            if ended:
                for name in ended:  # a job to come may bear the same
                    self.seen.pop(name, None)
                return {"status": "down", "workers": ended}
            said: dict[str, Any] = await super().recommendations(target)
            return said

    return Replacing


def _ended(
    job: str, spec: Mapping[str, Any], seen: Mapping[str, float], now: float
) -> list[str]:
    """Return the workers of a job that had some, and has none any more."""
    names = [f"{job}{suffix}" for suffix in spec.get("group", [""])]
    last = max((seen[name] for name in names if name in seen), default=now)
    return names if now - last > ENDED_SECONDS else []
