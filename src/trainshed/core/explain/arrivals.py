"""arrivals: jobs that are still to come: such as came lately, as many in the same time. Pure.

`service/past_runs.py` looks up who came lately. `core/explain/foresee.py` lets them come again in each of its
simulations, each time from another one on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count

from trainshed.core.jobs.job import Job, Status

TO_COME = "~~"  # begins the ids of jobs that are not submitted yet
SHORTEST = timedelta(hours=1)  # to see how many come: a few at once do not mean that as many follow


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The jobs that were submitted since then, the oldest first."""

    jobs: tuple[Job, ...] = ()
    since: datetime | None = None  # None: nobody knows


NOBODY = Arrivals()


def to_come(arrivals: Arrivals, now: datetime, share: float) -> Iterator[Job]:
    """The jobs come again and again, by their time; first those after so much of the period."""
    if arrivals.since is None or not arrivals.jobs:
        return
    period = max(now - arrivals.since, SHORTEST)
    begin = now - period * (1 - share)
    turned = [
        *(job for job in arrivals.jobs if job.created_at > begin),
        *(job for job in arrivals.jobs if job.created_at <= begin),
    ]
    for number in count():
        for job in turned:
            at = now + (job.created_at - begin) % period + number * period
            yield replace(job, id=f"{TO_COME}{number}{TO_COME}{job.id}", created_at=at, status=Status())


def original(id: str) -> str:
    """The id of the job that comes again; of any other job its own."""
    return id.rpartition(TO_COME)[2]
