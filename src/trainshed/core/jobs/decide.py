"""decide: from the facts about one job to a plan. Pure and total: no clock, no await.

`control/jobs.py` calls it at each turn of a job. One rule makes every crash harmless: *actions follow from
the stored status; new decisions only change the status*. A replica is launched or stopped only because the
status, as stored, says so. A new run or attempt number is a change of the status alone; the next turn acts on
it. So a lost action is repeated, and a lost write means that nothing was decided.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.event import Event, Reason, Severity
from trainshed.core.jobs import closing as closings
from trainshed.core.jobs import hold
from trainshed.core.jobs.crash import place_of_crash, repeats
from trainshed.core.jobs.job import Closing, Failure, Job, JobState, Outcome, Status, waits_since
from trainshed.core.jobs.moving import follow_moves
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Exit, Observation, Phase, Replica, Sight
from trainshed.core.jobs.restart import INTERRUPTIONS, STARTS, Meaning, interruptions, meaning, pause_before
from trainshed.core.jobs.starting import looks_again_at, mark_running
from trainshed.core.jobs.success import deciding
from trainshed.core.names import RunKey

MISSING_FOR = timedelta(seconds=2)  # a backend may show a run late; a run that is really gone is rare
BEGUN = timedelta(seconds=1)  # after failed starts, a program that runs so long counts as started
SERVERS = 2  # the pool of parameter servers or reducers, which never end by themselves


@dataclass(frozen=True, slots=True)
class Start:
    replica: Replica


@dataclass(frozen=True, slots=True)
class Stop:
    key: RunKey
    force: bool


Action: TypeAlias = Start | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The actions to take, the status and events to write, and when to decide again at the latest."""

    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    again_at: datetime | None = None
    held: Status | None = None  # where the plan ends an attempt: the status before, with its closing


def decide(job: Job, seen: Iterable[Observation], now: datetime, readiness: Readiness = READY) -> Plan:
    runs = {o.key: o for o in seen}
    status = job.status
    if job.is_final:
        return Plan(status=status, actions=tuple(Stop(k, True) for k, o in runs.items() if o.alive))
    if status.cancel_asked_at is not None and closings.may_become_cancelled(status):
        if status.admission is None:
            status = replace(status, replicas=())  # those of the next attempt: none was ever started
        status = replace(status, state=JobState.CANCELLING, closing=closings.cancelled(status, now))
        return _close_attempt(job, status, runs, now, durable=False)
    if status.closing is not None:
        return _close_attempt(job, status, runs, now, durable=True)
    if status.admission is None:
        # Runs of an earlier attempt that were counted as lost and came back.
        leftovers = tuple(Stop(k, True) for k, o in runs.items() if o.alive)
        return replace(_wait(job, now, readiness), actions=leftovers)
    return _prepared(job, _run(job, runs, now), runs, now, readiness)


def _prepared(
    job: Job, plan: Plan, runs: Mapping[RunKey, Observation], now: datetime, readiness: Readiness
) -> Plan:
    """The plan if what its starts need is ready; else the job waits, or fails if that cannot be had."""
    if readiness.is_ready or not any(isinstance(action, Start) for action in plan.actions):
        return plan
    if readiness.standing is ReadinessState.FAILED:
        return _close(job, plan.status, closings.unprepared(readiness, now), runs, now, plan.events)
    before = job.status.waiting
    waiting = before if before and before.reason is Reason.PREPARING else readiness.waiting
    return replace(plan, status=replace(plan.status, waiting=waiting), actions=())


def _wait(job: Job, now: datetime, readiness: Readiness) -> Plan:
    if readiness.standing is ReadinessState.FAILED:
        return _end(job, job.status, closings.unprepared(readiness, now), now)
    limit = job.spec.scheduling.max_wait
    if limit is None:
        return Plan(status=job.status)
    until = waits_since(job) + limit
    if now < until:
        return Plan(status=job.status, again_at=until)
    failure = Failure(
        reason=Reason.WAITED_TOO_LONG,
        message=f"The job was not admitted within its maxWaitDuration of {limit.total_seconds():g} s.",
    )
    return _end(job, job.status, Closing(outcome=Outcome.FAILED, since=now, failure=failure), now)


def _run(job: Job, runs: Mapping[RunKey, Observation], now: datetime) -> Plan:
    """The attempt runs: take in the observations, judge what ended, start what is planned."""
    replicas = tuple(_absorb(r, runs.get(job.key(r)), now) for r in job.status.replicas)
    status = replace(job.status, replicas=replicas)
    status, moves = follow_moves(status, runs.values(), now)
    status, events, closing = mark_running(job.status, status, runs.values(), now)
    events = moves + events
    succeeded = deciding(job, replicas)
    closing = _own_failure(job, replicas, now) or _timed_out(job, status, now) or closing
    if closing is None and succeeded:
        closing = _finished(job, replicas, succeeded, now)
    if closing is not None:
        return _close(job, status, closing, runs, now, events)
    if succeeded:
        events += tuple(_late_failure(job, new, now) for new in _newly_failed(job, replicas))
    else:
        status, more, closing = _judge(job, status, now)
        events += more
        if closing is not None:
            return _close(job, status, closing, runs, now, events)
    leftovers = tuple(Stop(k, True) for k, o in runs.items() if o.alive and k.name.attempt < status.attempt)
    if leftovers:  # runs that were counted as lost and came back: two attempts never run together
        return Plan(status=status, actions=leftovers, events=events, again_at=now + timedelta(seconds=1))
    starts = tuple(
        Start(r)
        for r in job.status.replicas
        if r.phase is Phase.PLANNED
        and job.key(r) not in runs
        and (r.not_before is None or r.not_before <= now)
        and not (succeeded and r.run > 0)
    )
    looks = (_next_look(job, status, succeeded, now), looks_again_at(status, runs.values()))
    again_at = min((look for look in looks if look is not None), default=None)
    return Plan(status=status, actions=starts, events=events, again_at=again_at)


def _absorb(replica: Replica, sight: Observation | None, now: datetime) -> Replica:
    if replica.phase is Phase.ENDED:
        return replica
    if sight is None:
        match replica.phase:
            case Phase.RUNNING:
                return replace(replica, phase=Phase.MISSING, missing_since=now)
            case Phase.MISSING if replica.missing_since and now - replica.missing_since >= MISSING_FOR:
                return replace(
                    replica, phase=Phase.ENDED, exit=Exit(), ended_at=now, noticed_at=now, missing_since=None
                )
            case _:
                return replica
    if sight.sight is Sight.STARTING:
        return replace(replica, missing_since=None)
    replica = replace(
        replica, missing_since=None, not_before=None, started_at=sight.started_at or replica.started_at or now
    )
    if sight.sight is Sight.RUNNING:
        # A program that cannot be started looks like a running one for a moment.
        fresh = sight.started_at is not None and now - sight.started_at < BEGUN
        return replace(replica, phase=Phase.RUNNING, unstarted=replica.unstarted if fresh else "")
    ended = replace(
        replica,
        phase=Phase.ENDED,
        exit=sight.exit or Exit(),
        over_limit=sight.over_limit,
        no_room=sight.no_room,
        unstarted=sight.unstarted,
        interrupted=sight.interrupted,
        ended_at=sight.ended_at or now,
        noticed_at=now,
    )
    place = place_of_crash(ended, sight.last_words)
    again = place == replica.crash
    return replace(ended, crash=place, crashes=(replica.crashes if again else 0) + 1 if place else 0)


def _timed_out(job: Job, status: Status, now: datetime) -> Closing | None:
    since = status.started_at or status.admitted_at
    limit = job.spec.scheduling.timeout
    if since is None or now - since < limit:
        return None
    failure = Failure(
        reason=Reason.TIMED_OUT,
        message=f"The job ran longer than its timeout of {limit.total_seconds():g} s and was stopped.",
    )
    return Closing(outcome=Outcome.FAILED, since=now, failure=failure)


def _finished(job: Job, replicas: tuple[Replica, ...], chief: Replica, now: datetime) -> Closing | None:
    """The primary has succeeded: the job ends with the last worker, or after the drain time."""
    going = [
        r
        for r in replicas
        if r.pool != SERVERS
        and (r.phase in (Phase.RUNNING, Phase.MISSING) or (r.phase is Phase.PLANNED and r.run == 0))
    ]
    since = chief.noticed_at or now
    if going and now < since + job.spec.scheduling.drain:
        return None
    return Closing(outcome=Outcome.SUCCEEDED, since=now)


def _newly_failed(job: Job, replicas: tuple[Replica, ...]) -> list[Replica]:
    return [
        new
        for old, new in zip(job.status.replicas, replicas, strict=True)
        if old.phase is not Phase.ENDED and new.exit is not None and not new.exit.ok
    ]


def _failed(replicas: tuple[Replica, ...], now: datetime) -> list[Replica]:
    """The replicas that failed, in the order in which they ended."""
    return sorted(
        (r for r in replicas if r.exit is not None and not r.exit.ok and r.phase is Phase.ENDED),
        key=lambda r: (r.ended_at or now, r.pool, r.index),
    )


def _own_failure(job: Job, replicas: tuple[Replica, ...], now: datetime) -> Closing | None:
    """The end of the job, where a program failed by itself or exceeded a limit of its own."""
    rule = job.spec.scheduling.restart
    for replica in _failed(replicas, now):
        end = meaning(
            _exit(replica),
            rule,
            over_limit=replica.over_limit,
            given_up=bool(replica.unstarted) and replica.restarts + 1 >= STARTS,
            no_room=replica.no_room,
            interrupted=bool(replica.interrupted),
        )
        if end is Meaning.OWN_FAILURE:
            return closings.program_failed(replica, now)
    return None


def _judge(job: Job, status: Status, now: datetime) -> tuple[Status, tuple[Event, ...], Closing | None]:
    """What follows for interrupted replicas: a restart each, a new attempt, or the end of the job."""
    rule = job.spec.scheduling.restart
    ended = _failed(status.replicas, now)
    for replica in ended:
        if rule.disabled:
            return status, (), closings.interrupted(replica, now)
        if repeats(replica, rule):
            return status, (), closings.crashed_again(replica, now)
        if interruptions(replica) >= INTERRUPTIONS:
            return status, (), closings.interrupted_again(replica, now)
        counts = not replica.interrupted  # against the limits
        if rule.whole_gang or (counts and replica.restarts >= rule.replica_restarts):
            if counts and status.attempt - status.uncounted >= rule.job_retries:
                return status, (), closings.exhausted(job, replica, now)
            return status, (), closings.retry(replica, now)
    events: list[Event] = []
    again: dict[tuple[int, int], Replica] = {}
    for replica in ended:
        delay = pause_before(rule, replica)
        again[replica.pool, replica.index] = Replica(
            pool=replica.pool,
            index=replica.index,
            run=replica.run + 1,
            unstarted=replica.unstarted,
            crash=replica.crash,
            crashes=replica.crashes,
            interruptions=interruptions(replica),
            uncounted=replica.uncounted + bool(replica.interrupted),
            not_before=now + delay,
            previous=replica.as_ended(status.attempt),
        )
        text = closings.restarted(replica, rule, delay)
        events.append(_event(status, Reason.REPLICA_RESTARTED, text, now, Severity.WARNING, replica.task))
    replicas = tuple(again.get((r.pool, r.index), r) for r in status.replicas)
    if again and all(r.unstarted for r in replicas):  # no program of the job has ever started
        status = replace(status, state=JobState.PENDING, started_at=None)
    return replace(status, replicas=replicas), tuple(events), None


def _close(
    job: Job,
    status: Status,
    closing: Closing,
    runs: Mapping[RunKey, Observation],
    now: datetime,
    events: tuple[Event, ...],
) -> Plan:
    plan = _close_attempt(job, replace(status, closing=closing), runs, now, durable=False)
    return replace(plan, events=events + plan.events)


def _close_attempt(
    job: Job, status: Status, runs: Mapping[RunKey, Observation], now: datetime, *, durable: bool
) -> Plan:
    """Stop what is alive, once that decision is stored; when all is gone, turn to the outcome.

    Replicas of a failed job that are held for inspection stay until their time is over.
    """
    closing = status.closing
    assert closing is not None
    replicas = tuple(_absorb_closing(r, runs.get(job.key(r)), closing, now) for r in status.replicas)
    status = replace(status, replicas=replicas)
    kept = hold.kept_runs(job, status, runs, now)
    alive = [o.key for o in runs.values() if o.alive and o.key not in kept]
    unsure = [at for r in replicas if (at := hold.gone_at(job, r, runs, MISSING_FOR)) and now < at]
    if not alive and not unsure:
        return _hold(job, status, kept, now) if kept else _end(job, status, closing, now)
    kill_at = closing.since + job.spec.scheduling.grace
    force = now >= kill_at
    waiting = closings.waiting(closing, len(alive) + len(unsure), kill_at)
    if status.waiting is None or status.waiting.reason is not waiting.reason:
        status = replace(status, waiting=waiting)
    stops = tuple(Stop(key, force) for key in alive) if durable else ()
    looks = unsure + ([now + timedelta(seconds=1) if force else kill_at] if alive else [])
    return Plan(status=status, actions=stops, again_at=min(looks))


def _hold(job: Job, status: Status, kept: frozenset[RunKey], now: datetime) -> Plan:
    until = hold.held_until(job, status)
    assert until is not None
    if status.waiting is not None and status.waiting.reason is Reason.HELD:
        return Plan(status=status, again_at=until)
    waiting = hold.waiting(job, kept, until)
    event = hold.event(job, status, waiting, now)
    return Plan(status=replace(status, waiting=waiting), events=(event,), again_at=until)


def _absorb_closing(replica: Replica, sight: Observation | None, closing: Closing, now: datetime) -> Replica:
    """As _absorb, but also wait for a run that may have been launched just before the end was decided."""
    if sight is None and replica.phase is Phase.PLANNED and replica.missing_since is None:
        could_start = replica.not_before is None or replica.not_before <= closing.since
        return replace(replica, missing_since=now) if could_start else replica
    return _absorb(replica, sight, now)


def _end(job: Job, status: Status, closing: Closing, now: datetime) -> Plan:
    before = replace(status, closing=closing)
    if closing.outcome is Outcome.RETRY:
        status, event = closings.next_attempt(job, status, closing, now)
    elif closing.outcome is Outcome.PREEMPTED:
        status, event = closings.requeued(job, status, closing, now)
    else:
        status, event = closings.final(status, closing, now)
    again = min((r.not_before for r in status.replicas if r.not_before), default=None)
    look = None if status.state.is_final else again
    return Plan(status=status, events=(event,), again_at=look, held=before)


def _next_look(job: Job, status: Status, succeeded: Replica | None, now: datetime) -> datetime | None:
    scheduling = job.spec.scheduling
    times = [r.not_before for r in status.replicas if r.not_before and r.not_before > now]
    times += [r.missing_since + MISSING_FOR for r in status.replicas if r.missing_since]
    times += [now + BEGUN for r in status.replicas if r.unstarted and r.phase is Phase.RUNNING]
    if since := status.started_at or status.admitted_at:
        times.append(since + scheduling.timeout)
    if succeeded:
        times.append((succeeded.noticed_at or now) + scheduling.drain)
    return min(times, default=None)


def _late_failure(job: Job, replica: Replica, now: datetime) -> Event:
    text = f"{replica.task} {replica.exit} after the primary had succeeded; it is not restarted."
    return _event(job.status, Reason.REPLICA_FAILED_LATE, text, now, Severity.WARNING, replica.task)


def _event(
    status: Status,
    reason: Reason,
    message: str,
    at: datetime,
    severity: Severity = Severity.INFO,
    task: str = "",
) -> Event:
    return Event(at=at, reason=reason, message=message, severity=severity, attempt=status.attempt, task=task)


def _exit(replica: Replica) -> Exit:
    return replica.exit or Exit()
