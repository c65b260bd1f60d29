"""The queue and what is being prepared, as JSON. The names are ours. Called by `api/queue.py`."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from trainshed.core.event import Waiting
from trainshed.core.explain.explanation import Eta
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import PreparationProgress
from trainshed.core.queue.place import Amount
from trainshed.core.queue.queue_walk import ALL, QueuePlace
from trainshed.core.queue.shape import Order
from trainshed.wire.explanation import render_eta
from trainshed.wire.job_status import render_waiting
from trainshed.wire.node import render_amount
from trainshed.wire.page import Cursor
from trainshed.wire.scalars import duration_text, time_text

_LANES = "lanes"


def render_queued(
    job: Job, position: int | None, waiting: Waiting | None, needs: Amount, eta: Eta | None
) -> dict[str, Any]:
    """A job in preparation has no position; unknown parts are left out."""
    answer: dict[str, Any] = {
        "name": job.name,
        "displayName": job.display_name,
        "priority": job.spec.scheduling.priority,
        "createTime": time_text(job.created_at),
        "replicas": sum(pool.replicas for pool in job.spec.pools),
        "needs": render_amount(needs),
    }
    if position is not None:
        answer["position"] = position
    if waiting is not None:
        answer["waiting"] = render_waiting(waiting)
    return answer if eta is None else answer | {"eta": render_eta(eta)}


def render_preparation(item: PreparationProgress, jobs: Iterable[Job]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "kind": item.kind.value,
        "name": item.name,
        "message": item.message,
        "elapsed": duration_text(timedelta(seconds=round(item.took, 1))),
        "jobs": [{"name": job.name, "displayName": job.display_name} for job in jobs],
    }
    return answer if item.percent is None else answer | {"percent": item.percent}


def cursor_of(place: QueuePlace) -> Cursor:
    if (behind := place.get(ALL)) is not None:
        return _text(behind), behind[-1]
    return _LANES, json.dumps([[lane, _text(at), at[-1]] for lane, at in place.items()])


def place_of(cursor: Cursor) -> QueuePlace:
    """Of a cursor that `cursor_of` made: page tokens are signed."""
    if cursor[0] != _LANES:
        return {ALL: _order(*cursor)}
    return {lane: _order(text, job) for lane, text, job in json.loads(cursor[1])}


def _text(place: Order) -> str:
    return f"{place[0]} {place[1].isoformat()}"


def _order(text: str, job: str) -> Order:
    priority, _, created_at = text.partition(" ")
    return int(priority), datetime.fromisoformat(created_at), job
