"""An end is held back until what the job wrote is stored. Pure.

`decide` says that an attempt is over; where its files are still on their way the decision is kept as a
`Closing` and the end waits. So a job that has succeeded has its model, and a new attempt finds all
checkpoints of the one before. What cannot be stored at all is told, and makes a success a failure.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from trainshed.core import closing as wind
from trainshed.core.decide import Plan
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.job import Closing, Failure, Outcome
from trainshed.core.view import Storing

LOOK = timedelta(seconds=5)  # at the latest: who stores hints when it is done


def withhold(plan: Plan, storing: Storing, now: datetime) -> Plan:
    held = plan.held
    if held is None or held.closing is None:
        return plan
    before, end = plan.events[:-1], plan.events[-1]
    if not storing.done:
        waiting = Waiting(
            reason=Reason.STORING_OUTPUTS,
            message=storing.message,
            remedy="Nothing to do: it ends once all is stored.",
        )
        return Plan(status=replace(held, waiting=waiting), events=before, again_at=now + LOOK)
    if not storing.fault:
        if not storing.message:
            return plan
        told = Event(at=now, reason=Reason.OUTPUTS_STORED, message=storing.message, attempt=end.attempt)
        return replace(plan, events=(*before, told, end))
    if held.closing.outcome is Outcome.SUCCEEDED:
        message = f"The program succeeded, but {storing.fault[:1].lower()}{storing.fault[1:]}"
        failure = Failure(reason=Reason.OUTPUTS_LOST, message=message)
        closing = Closing(outcome=Outcome.FAILED, since=held.closing.since, failure=failure)
        status, end = wind.final(held, closing, now)
        return replace(plan, status=status, events=(*before, end))
    lost = Event(
        at=now,
        reason=Reason.OUTPUTS_LOST,
        message=storing.fault,
        severity=Severity.WARNING,
        attempt=held.attempt,
    )
    return replace(plan, events=(*before, lost, end))
