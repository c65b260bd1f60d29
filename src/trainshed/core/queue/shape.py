"""The place of a waiting job in the queue, and its shape: all that decides its answer in a cycle. Pure.

`core/queue/admit.py`, `core/queue/waiting_jobs.py` and `core/queue/queue_order.py` use it. Jobs of one shape
have the same demand, timeout and sites, and belong to the same lane. Where no shares are set, there is one
lane.
"""

from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.jobs.job import Job
from trainshed.core.queue.share import ShareLane, ShareTree

Order: TypeAlias = tuple[int, datetime, str]  # a place in the queue; the last is the job's id
Demand: TypeAlias = tuple[tuple[int, float, int, int, str], ...]  # of each pool
Sites: TypeAlias = tuple[str, ...]  # where a job may be placed, the best first; empty: on any node
Kind: TypeAlias = tuple[Demand, Sites]


Shape: TypeAlias = tuple[Demand, timedelta, Sites, ShareLane]

ONE_LANE = ShareLane()


def shape_of(job: Job, sites: Sites = (), tree: ShareTree | None = None) -> Shape:
    """The part of a job that decides where it fits and whether it may pass the head."""
    spec = job.spec
    pools = [(p.replicas, p.cpus, p.memory, p.accelerators, p.accelerator) for p in spec.pools]
    return tuple(pools), spec.scheduling.timeout, sites, ONE_LANE if tree is None else tree.lane_of(job)


def order(job: Job) -> Order:
    """The place of a job among those of its share, or of all where no shares are set."""
    return (-job.spec.scheduling.priority, job.created_at, job.id)
