"""The queue and what is being prepared, as JSON. The names are ours. Called by `api/queue.py`."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from trainshed.core.event import Waiting
from trainshed.core.explanation import Eta
from trainshed.core.job import Job
from trainshed.core.place import Amount
from trainshed.core.readiness import PreparationProgress
from trainshed.core.shape import Order
from trainshed.wire.explanation import render_eta
from trainshed.wire.job_status import render_waiting
from trainshed.wire.node import render_amount
from trainshed.wire.page import Cursor
from trainshed.wire.scalars import duration_text, time_text


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


def cursor_of(place: Order) -> Cursor:
    priority, created_at, job = place
    return f"{priority} {created_at.isoformat()}", job


def place_of(cursor: Cursor) -> Order:
    """Of a cursor that `cursor_of` made: page tokens are signed."""
    priority, _, created_at = cursor[0].partition(" ")
    return int(priority), datetime.fromisoformat(created_at), cursor[1]
