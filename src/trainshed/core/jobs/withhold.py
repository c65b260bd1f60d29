"""Holds back the end of an attempt until what the job wrote is stored. Pure.

`control/jobs.py` calls it with the plan that `decide` made. While files are still being stored, the decision
is kept as a `Closing` and the end waits. So a job that has succeeded has its model, and a new attempt finds
all checkpoints of the one before. Files that cannot be stored become an event, and turn a success into a
failure.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs import closing as closings
from trainshed.core.jobs.decide import Plan
from trainshed.core.jobs.job import Closing, Failure, Outcome
from trainshed.core.view import Storing

LOOK = timedelta(seconds=5)  # until the next look; a hint comes earlier when all is stored


def withhold(plan: Plan, storing: Storing, now: datetime) -> Plan:
    before = plan.held
    if before is None or before.closing is None:
        return plan
    events, end = plan.events[:-1], plan.events[-1]
    if not storing.done:
        waiting = Waiting(
            reason=Reason.STORING_OUTPUTS,
            message=storing.message,
            remedy="Nothing to do: it ends once all is stored.",
        )
        return Plan(status=replace(before, waiting=waiting), events=events, again_at=now + LOOK)
    if not storing.fault:
        if not storing.message:
            return plan
        stored = Event(at=now, reason=Reason.OUTPUTS_STORED, message=storing.message, attempt=end.attempt)
        return replace(plan, events=(*events, stored, end))
    if before.closing.outcome is Outcome.SUCCEEDED:
        message = f"The program succeeded, but {storing.fault[:1].lower()}{storing.fault[1:]}"
        failure = Failure(reason=Reason.OUTPUTS_LOST, message=message)
        closing = Closing(outcome=Outcome.FAILED, since=before.closing.since, failure=failure)
        status, end = closings.final(before, closing, now)
        return replace(plan, status=status, events=(*events, end))
    lost = Event(
        at=now,
        reason=Reason.OUTPUTS_LOST,
        message=storing.fault,
        severity=Severity.WARNING,
        attempt=before.attempt,
    )
    return replace(plan, events=(*events, lost, end))
