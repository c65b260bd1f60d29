"""Obstacle: what keeps a launched run from beginning, as a typed reason, and how long that is borne. Pure.

A backend shows one for a run that is STARTING, or raises `Hindered` with one where it cannot even launch.
`core/jobs/starting.py` and `control/jobs.py` turn it into the job's waiting reason. A job that makes no
progress for longer than the reason's patience fails with that reason: none waits for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.event import Reason, Waiting

Patience: TypeAlias = Mapping[Reason, timedelta]

PATIENCE: Patience = {
    Reason.STARTING: timedelta(hours=1),  # a large image may take that long
    Reason.UNSCHEDULABLE: timedelta(hours=1),
    Reason.SCALING_UP: timedelta(hours=1),
    Reason.QUOTA_EXCEEDED: timedelta(hours=1),
    Reason.WAITS_IN_CLUSTER_QUEUE: timedelta(days=1),  # a queue is meant to be waited in
    Reason.CLUSTER_QUEUE_UNUSABLE: timedelta(minutes=10),
    Reason.CREATION_REFUSED: timedelta(minutes=10),
    Reason.IMAGE_UNAVAILABLE: timedelta(minutes=10),
    Reason.CONFIG_MISSING: timedelta(minutes=10),
    Reason.MOUNT_FAILED: timedelta(minutes=10),
    Reason.LAUNCH_FAILED: timedelta(minutes=10),
}

# How far a replica has come that such a reason holds up: to come further is progress, to fall back is none.
_STAGES: Mapping[Reason, int] = {
    Reason.QUOTA_EXCEEDED: 0,
    Reason.CREATION_REFUSED: 0,
    Reason.WAITS_IN_CLUSTER_QUEUE: 0,
    Reason.CLUSTER_QUEUE_UNUSABLE: 0,
    Reason.UNSCHEDULABLE: 1,
    Reason.SCALING_UP: 1,
    Reason.STARTING: 2,
}
_PLACED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    reason: Reason
    message: str
    remedy: str = ""
    patience: timedelta | None = None  # None: it is borne for ever

    def gives_up_at(self, since: datetime | None) -> datetime | None:
        return None if since is None or self.patience is None else since + self.patience


def stage(reason: Reason) -> int:
    return _STAGES.get(reason, _PLACED)


def waiting_for(
    obstacle: Obstacle, before: Waiting | None, now: datetime, *, words: str = "", progress: bool = False
) -> Waiting:
    """The waiting reason, with `words` before its sentence. Without progress its time goes on."""
    is_stuck = before is not None and before.since is not None and not progress
    if is_stuck and before is not None and stage(obstacle.reason) <= stage(before.reason):
        since = before.since
    else:
        since = now
    remedy = obstacle.remedy
    if (end := obstacle.gives_up_at(since)) is not None:
        remedy = f"{remedy} If nothing changes, the job fails at {end:%Y-%m-%d %H:%M:%S} UTC.".strip()
    return Waiting(
        reason=obstacle.reason, message=f"{words} {obstacle.message}".strip(), remedy=remedy, since=since
    )
