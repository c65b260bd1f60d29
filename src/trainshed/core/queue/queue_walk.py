"""The queue of shares, walked page by page. Pure. `service/queue.py` calls it.

Which lane is next changes with each job that starts; within a lane the order never does. So a page ends at a
place of each lane: whatever leaves, comes or changes its turn meanwhile, a job that stays is behind the place
of its lane until it has been shown. Jobs that cannot start yet stand in their lane too: once they can, they
are where they were.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TypeAlias

from trainshed.core.jobs.job import Job
from trainshed.core.queue.shape import Order, order
from trainshed.core.queue.share import ShareTree

QueuePlace: TypeAlias = Mapping[str, Order]  # by lane, behind which jobs a page begins; not named: at its top

ALL = ""  # in place of a lane: all jobs by priority and age
TOP: Order = (-(1 << 62), datetime.min.replace(tzinfo=UTC), "")
MOST_LANES = 30  # in a place: more do not fit into a page token


def walk(turns: Iterable[Job], others: Iterable[Job], tree: ShareTree) -> Iterator[tuple[str, Job]]:
    """Each job once, with its lane. `turns` are tried in this order; `others` cannot start as things are."""
    names: dict[tuple[str, bool], str] = {}
    apart: dict[str, deque[Job]] = {}
    unable = {job.id: job for job in others}
    for job in sorted(unable.values(), key=order):
        apart.setdefault(_lane(job, tree, names), deque()).append(job)
    for job in turns:
        if job.id in unable:
            continue
        lane = _lane(job, tree, names)
        before = apart.get(lane)
        while before and order(before[0]) < order(job):
            yield lane, before.popleft()
        yield lane, job
    left = [(lane, job) for lane, jobs in apart.items() for job in jobs]
    yield from sorted(left, key=lambda item: order(item[1]))


def following(place: QueuePlace) -> QueuePlace:
    """Where the next page begins. Beyond some lanes all jobs are shown anew, by priority and age."""
    return place if len(place) <= MOST_LANES else {ALL: TOP}


def _lane(job: Job, tree: ShareTree, names: dict[tuple[str, bool], str]) -> str:
    """Short, whatever the name of the share is."""
    lane = tree.lane_of(job)[:2]
    if lane not in names:
        names[lane] = blake2b(repr(lane).encode(), digest_size=6).hexdigest()
    return names[lane]
