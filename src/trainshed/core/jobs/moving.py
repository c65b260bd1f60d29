"""Replicas that run elsewhere than they were placed: the admission follows them. Pure.

`core/jobs/decide.py` calls it with what backends see. A backend may start a replica on another node where its
own takes none any more. Queue, ledger and answers count it where it is.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trainshed.core.event import Event, Reason
from trainshed.core.jobs.job import Status
from trainshed.core.jobs.replica import Observation
from trainshed.core.names import task_name
from trainshed.core.queue.fleet import Placement


def follow_moves(
    status: Status, seen: Iterable[Observation], now: datetime
) -> tuple[Status, tuple[Event, ...]]:
    """The status with every replica on the node where it is, and an event for each that was elsewhere."""
    admission = status.admission
    runs = {(r.pool, r.index): r.run for r in status.replicas}
    nodes = {
        (item.key.name.pool, item.key.name.index): item.node
        for item in seen
        if item.node and item.key.name.attempt == status.attempt
        if runs.get((item.key.name.pool, item.key.name.index)) == item.key.run
    }
    if admission is None or not nodes:
        return status, ()
    events: list[Event] = []
    placements: list[Placement] = []
    for place in admission.placements:
        node = nodes.get((place.pool, place.index), place.node)
        if node != place.node:
            task = task_name(place.pool, place.index)
            text = f"{task} is on node {node} now, not on {place.node}, where it was placed."
            events.append(
                Event(at=now, reason=Reason.REPLICA_MOVED, message=text, attempt=status.attempt, task=task)
            )
        placements.append(replace(place, node=node))
    if not events:
        return status, ()
    return replace(status, admission=replace(admission, placements=tuple(placements))), tuple(events)
