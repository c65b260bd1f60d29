"""Reporter: adds the verdict to a plan before it is written: why the job failed, or why it is tried again.

The job loop calls it. It reads the newest lines of the replica that failed first; core/jobs/verdict.py judges
them. It changes messages only, never a decision. If a log cannot be read, the verdict has no lines; the end
of the job is written all the same.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainshed.core.errors import TrainshedError
from trainshed.core.event import Event, Reason
from trainshed.core.jobs.access import masked
from trainshed.core.jobs.crash import crash_signal, last_words
from trainshed.core.jobs.decide import Plan
from trainshed.core.jobs.job import Job, JobState, primary
from trainshed.core.jobs.replica import Exit, Observation, Replica
from trainshed.core.jobs.verdict import Cause, Evidence, Rules, Verdict, judge
from trainshed.core.log_port import LogStore
from trainshed.core.logs import LogQuery, OutputStream
from trainshed.core.names import task_name

log = logging.getLogger(__name__)

ERROR_LINES, OUTPUT_LINES = 300, 100  # how many of the newest lines of each stream are read
EARLY = timedelta(seconds=0.1)  # a program may print before its start is recorded

_TOLD_WHY = frozenset({Reason.REPLICA_RESTARTED, Reason.JOB_RETRIED, Reason.HELD})
_ALREADY_TOLD = frozenset({Cause.KILLED, Cause.LOST, Cause.UNKNOWN, Cause.PROGRAM_EXIT})
_OTHERS_FAULT = frozenset({Cause.PEER_LOST, Cause.COLLECTIVE_TIMEOUT, Cause.NETWORK_ERROR})


@dataclass(frozen=True, slots=True)
class Reporter:
    logs: LogStore
    rules: Callable[[], Rules]  # read when the first job fails

    async def explain(self, job: Job, plan: Plan, seen: Iterable[Observation]) -> Plan:
        """Add to the plan what is known about the failures in it."""
        if plan.status.state is JobState.FAILED:
            return await self._explain_end(job, plan, tuple(seen))
        if any(event.reason in _TOLD_WHY for event in plan.events):
            runs = tuple(seen)
            events = [await self._explain_event(job, event, runs) for event in plan.events]
            return replace(plan, events=tuple(events))
        return plan

    async def with_last_words(self, job: Job, seen: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """The observations, with the last lines of runs that crashed just now, and whether there was room."""
        fresh = {job.key(replica): replica for replica in job.status.replicas if replica.exit is None}
        failed = {item.key for item in seen if item.key in fresh and item.exit and not item.exit.ok}
        if failed and not self.logs.has_room():
            seen = tuple(replace(item, no_room=True) if item.key in failed else item for item in seen)
        crashed = {
            item.key: item for item in seen if item.key in fresh and crash_signal(item.exit) is not None
        }
        for key, run in crashed.items():
            replica = replace(fresh[key], started_at=run.started_at)
            stderr = await self._newest(job, replica, OutputStream.STDERR, ERROR_LINES)
            stdout = await self._newest(job, replica, OutputStream.STDOUT, OUTPUT_LINES)
            crashed[key] = replace(run, last_words=last_words(stderr, stdout))
        return tuple(crashed.get(item.key, item) for item in seen) if crashed else seen

    async def _explain_end(self, job: Job, plan: Plan, seen: tuple[Observation, ...]) -> Plan:
        failure = plan.status.failure
        if failure is None:
            return plan
        ended = plan.status.replicas
        replica = _first_failed(ended) if failure.task else _speaker(job, ended)
        if failure.verdict is not None:  # the preparation failed: no replica has output about it
            verdict = failure.verdict
        elif replica is None or failure.reason is Reason.OUTPUTS_LOST:  # nor does it about lost outputs
            verdict = judge(Evidence(reason=failure.reason), self.rules())
        else:
            verdict = await self._verdict(job, replica, seen, failure.reason, blame=bool(failure.task))
            verdict = _with_earlier(verdict, replica, ended)
        events = tuple(
            replace(event, message=f"{event.message} {verdict.sentence}")
            if event.reason is failure.reason
            else event
            for event in plan.events
        )
        status = replace(plan.status, failure=replace(failure, verdict=verdict))
        return replace(plan, status=status, events=events)

    async def _explain_event(self, job: Job, event: Event, seen: tuple[Observation, ...]) -> Event:
        if event.reason not in _TOLD_WHY:
            return event
        ends = {o.key: o for o in seen if o.exit is not None}
        replicas = tuple(
            replace(replica, exit=end.exit, started_at=end.started_at, ended_at=end.ended_at)
            for replica in job.status.replicas
            if (end := ends.get(job.key(replica)))
            and event.task in ("", task_name(replica.pool, replica.index))
        )
        replica = _first_failed(replicas)
        if replica is None:
            return event
        verdict = await self._verdict(job, replica, seen, event.reason, blame=True)
        if verdict.cause in _ALREADY_TOLD:
            return event
        return replace(event, message=f"{event.message} {verdict.cause.value}: {verdict.summary}")

    async def _verdict(
        self, job: Job, replica: Replica, seen: tuple[Observation, ...], reason: Reason, *, blame: bool
    ) -> Verdict:
        key = job.key(replica)
        own = next((o for o in seen if o.key == key), None)
        evidence = Evidence(
            reason=reason,
            exit=(replica.exit or Exit()) if blame else None,
            task=task_name(replica.pool, replica.index) if blame else "",
            stderr=await self._newest(job, replica, OutputStream.STDERR, ERROR_LINES),
            stdout=await self._newest(job, replica, OutputStream.STDOUT, OUTPUT_LINES),
            out_of_memory=own.out_of_memory if own else "",
            process_limit=own.process_limit if own else "",
            disk_full=own.disk_full if own else "",
            no_room=replica.no_room or (own is not None and own.no_room),
            no_gcs=own.no_gcs if own else "",
            without_gpus=_without_gpus(job, replica),
        )
        return judge(evidence, self.rules())

    async def _newest(self, job: Job, replica: Replica, stream: OutputStream, count: int) -> tuple[str, ...]:
        """The last lines of the replica's current run, oldest first."""
        query = LogQuery(
            attempt=job.status.attempt,
            task=task_name(replica.pool, replica.index),
            stream=stream,
            since_ns=_nanoseconds(replica.started_at - EARLY) if replica.run and replica.started_at else None,
            newest_first=True,
            limit=count,
        )
        try:
            lines = await self.logs.read(job.id, query)
        except TrainshedError as error:
            log.warning("job %s: its verdict has no lines: %s", job.id, error.message)
            return ()
        return tuple(masked(line.text) for line in reversed(lines))


def _without_gpus(job: Job, replica: Replica) -> bool:
    admission, pool = job.status.admission, job.spec.pools[replica.pool]
    place = admission.by_replica().get((replica.pool, replica.index)) if admission else None
    return place is not None and pool.accelerators > 0 and not place.gpus


def _first_failed(replicas: Iterable[Replica]) -> Replica | None:
    """The replica that failed first: later failures may only have followed from it."""
    ended = [r for r in replicas if r.exit is not None and not r.exit.ok]
    latest = datetime.max.replace(tzinfo=UTC)
    return min(ended, key=lambda r: (r.ended_at or latest, r.pool, r.index), default=None)


def _speaker(job: Job, replicas: Iterable[Replica]) -> Replica | None:
    first = primary(job.spec)
    return next((r for r in replicas if (r.pool, r.index) == first and r.started_at is not None), None)


def _with_earlier(verdict: Verdict, replica: Replica, replicas: Iterable[Replica]) -> Verdict:
    """If another replica is at fault: name those that were restarted before, to look at first."""
    if verdict.cause not in _OTHERS_FAULT:
        return verdict
    others = [r for r in replicas if r.run and (r.pool, r.index) != (replica.pool, replica.index)]
    if not others:
        return verdict
    names = ", ".join(task_name(r.pool, r.index) for r in others[:3])
    return replace(verdict, advice=f"{verdict.advice} Restarted before that: {names}.")


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000_000)
