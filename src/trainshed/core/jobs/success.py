"""When a job has succeeded: with its primary replica, or with all replicas of the pools it names. Pure.

`core/jobs/decide.py` and `core/jobs/suspicion.py` call it (ADR 8).
"""

from datetime import UTC, datetime

from trainshed.core.jobs.job import Job, primary
from trainshed.core.jobs.replica import Replica

_NEVER = datetime.min.replace(tzinfo=UTC)


def deciding(job: Job, replicas: tuple[Replica, ...]) -> Replica | None:
    """The replica whose success was the job's; None while the job has not succeeded."""
    pools, first = job.spec.scheduling.success_pools, primary(job.spec)
    needed = [r for r in replicas if (r.pool in pools if pools else (r.pool, r.index) == first)]
    if not needed or any(r.exit is None or not r.exit.ok for r in needed):
        return None
    return max(needed, key=lambda r: r.noticed_at or _NEVER)
