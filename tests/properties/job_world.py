"""A world for `decide`: processes that may die at any time, and a loop that loses what it can.

The world keeps the promises of the Backend port (launch is idempotent by run, and fences earlier runs of the
same name) and nothing more: actions and writes get lost, observations may be old by less than the time after
which a missing run counts as lost, turns come twice. Every rule that must always hold is asserted where it
could be broken, so a test only has to play.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.builders import T0, an_admission
from trainshed.core.day_use import DayUse, day_uses
from trainshed.core.jobs.decide import MISSING_FOR, Plan, Start, Stop, decide
from trainshed.core.jobs.job import Job, JobState, planned_replicas
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Exit, Observation, Sight
from trainshed.core.ledger import Interval, account
from trainshed.core.names import RunKey

KILLED = Exit(signal=9)


@dataclass(slots=True)
class Process:
    """One run in the world."""

    started_at: datetime
    exit: Exit | None = None
    ended_at: datetime | None = None
    asked: bool = False
    held: bool = False  # its program is dead, its place is kept
    forgotten: bool = False  # dead, and the backend shows nothing of it any more

    @property
    def alive(self) -> bool:
        return self.exit is None or self.held

    @property
    def sight(self) -> Sight:
        if self.exit is None:
            return Sight.RUNNING
        return Sight.HELD if self.held else Sight.LOST if self.exit == Exit() else Sight.ENDED

    def kill(self, now: datetime) -> None:
        if self.exit is None:
            self.exit, self.ended_at = KILLED, now
        self.held = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong in one turn."""

    actions_done: int = 99  # then the server is killed: the other actions and the write are lost
    write_lost: bool = False
    stale_by: float = 0.0  # seconds, less than MISSING_FOR
    twice: bool = False


NO_FAULT = Fault()


@dataclass(slots=True)
class World:
    job: Job
    now: datetime = T0
    processes: dict[RunKey, Process] = field(default_factory=dict[RunKey, Process])
    history: list[tuple[datetime, tuple[Observation, ...]]] = field(
        default_factory=list[tuple[datetime, tuple[Observation, ...]]]
    )
    launches: int = 0
    readiness: Readiness = READY  # of what the job needs before it can start
    ledger: list[Interval] = field(default_factory=list[Interval])
    uses: list[DayUse] = field(default_factory=list[DayUse])
    skew: timedelta = timedelta()  # how much the backend's clock is ahead

    # What happens by itself

    def pass_time(self, seconds: float) -> None:
        self._remember()
        self.now += timedelta(seconds=seconds)

    def admit(self) -> None:
        """As the scheduler does it: a guarded write on a queued job that is ready."""
        status = self.job.status
        if status.state is JobState.QUEUED and status.admission is None and self.readiness.is_ready:
            self._write(
                replace(
                    self.job,
                    status=replace(
                        status,
                        state=JobState.PENDING,
                        admission=an_admission(self.job),
                        admitted_at=self.now,
                        replicas=planned_replicas(self.job.spec),
                    ),
                )
            )

    def cancel(self) -> None:
        """As the service does it."""
        status = self.job.status
        if not status.state.is_final and status.cancel_asked_at is None:
            asked = replace(status, state=JobState.CANCELLING, cancel_asked_at=self.now)
            self._write(replace(self.job, status=asked))

    def end(self, key: RunKey, how: Exit) -> None:
        self._remember()
        process = self.processes[key]
        if process.exit is None:
            process.exit, process.ended_at = how, self.now
            asked = bool(self.job.spec.scheduling.hold) and not process.asked
            process.held = asked and not (how.ok or how.lost)
        else:
            process.held = False  # who held its place is gone

    def forget(self, key: RunKey) -> None:
        """The run dies and the backend loses every trace of it."""
        self.end(key, Exit())
        self.processes[key].held = False
        self.processes[key].forgotten = True

    def alive(self) -> list[RunKey]:
        return [key for key, process in self.processes.items() if process.alive]

    def observe(self) -> tuple[Observation, ...]:
        return tuple(
            Observation(
                key=key,
                sight=p.sight,
                exit=p.exit,
                started_at=p.started_at + self.skew,
                ended_at=p.ended_at + self.skew if p.ended_at else None,
            )
            for key, p in self.processes.items()
            if not p.forgotten
        )

    # What the loop does

    def turn(self, fault: Fault = NO_FAULT) -> Plan:
        job, seen = self.job, self._seen(fault.stale_by)
        plan = decide(job, seen, self.now, self.readiness)
        self._check_plan(job, seen, plan)
        for _ in range(2 if fault.twice else 1):
            for action in plan.actions[: fault.actions_done]:
                if isinstance(action, Start):
                    self._launch(job, job.key(action.replica))
                else:
                    self._stop(action)
        if fault.actions_done >= len(plan.actions) and not fault.write_lost and plan.status != job.status:
            self._check_write(job, plan)
            self._write(replace(job, status=plan.status, version=job.version + 1))
        return plan

    def _seen(self, stale_by: float) -> tuple[Observation, ...]:
        """What is, or what was at most so long ago, where that is within what a backend may be late by."""
        oldest = self.now - min(timedelta(seconds=stale_by), MISSING_FOR - timedelta(microseconds=1))
        if stale_by:
            for when, seen in self.history:
                if when >= oldest:
                    return seen
        return self.observe()

    def _launch(self, job: Job, key: RunKey) -> None:
        self._remember()
        known = self.processes.get(key)
        if known is not None and not known.forgotten:
            return
        for other, process in self.processes.items():
            if process.alive and other.name == key.name:
                assert other.run < key.run, f"{key} was launched while the later {other} lives"
                process.kill(self.now)  # the backend fences
        living = {k.name.attempt for k in self.alive()}
        assert living <= {key.name.attempt}, f"{key} was launched while attempt {living} lives"
        assert not job.is_final, f"{key} was launched for an ended job"
        self.processes[key] = Process(started_at=self.now)
        self.launches += 1
        names = [k.name for k in self.alive()]
        assert len(names) == len(set(names)), "two runs of one replica are alive"

    def _stop(self, stop: Stop) -> None:
        self._remember()
        process = self.processes.get(stop.key)
        if process is None or not process.alive:
            return
        process.asked = True
        if stop.force or process.held:
            process.kill(self.now)

    def _write(self, job: Job) -> None:
        """As a store does it: with what the ledger is told."""
        status, closed = account(self.job, job.status, self.now)
        self.job = replace(job, status=status)
        for interval in closed:
            assert interval.from_at < interval.to_at or interval.exit is not None, f"{interval} is empty"
            assert interval.to_at <= self.now, f"{interval} ends in the future"
        self.ledger.extend(closed)
        self.uses.extend(day_uses(self.job, status, closed))

    def _remember(self) -> None:
        self.history.append((self.now, self.observe()))

    # What must always hold

    def _check_plan(self, job: Job, seen: tuple[Observation, ...], plan: Plan) -> None:
        durable = job.status
        for action in plan.actions:
            if isinstance(action, Start):
                assert action.replica in durable.replicas, "a start that the durable status does not ask for"
                assert not durable.state.is_final
                assert self.readiness.is_ready, "a start before what it needs was there"
                assert durable.closing is None
                assert durable.cancel_asked_at is None
            else:
                older = action.key.name.attempt < durable.attempt
                assert durable.closing or durable.state.is_final or older, "a stop nobody durably decided"
        if durable.state.is_final:
            assert plan.status == durable, "an ended job woke"
            assert not plan.events
        if plan.status.state.is_final and not durable.state.is_final:
            assert not [o.key for o in seen if o.alive], "final while the observation shows something alive"
            assert not self.alive(), "final while something is alive"

    def _check_write(self, job: Job, plan: Plan) -> None:
        old, new, rule = job.status, plan.status, job.spec.scheduling.restart
        assert new.attempt in (old.attempt, old.attempt + 1)
        assert new.attempt <= rule.job_retries
        runs = {(r.pool, r.index): r.run for r in old.replicas} if new.attempt == old.attempt else {}
        for replica in new.replicas:
            before = runs.get((replica.pool, replica.index), 0)
            assert before <= replica.run <= before + 1, "a run number jumped or fell"
            assert replica.run <= rule.replica_restarts, "more restarts than the budget allows"
        if not new.state.is_final and new.state is not JobState.RUNNING and old.state is not JobState.QUEUED:
            assert new.waiting is not None, f"{new.state} without a reason"
        if self.readiness.standing is ReadinessState.FAILED and old.state is JobState.QUEUED:
            assert new.state.is_final or new.cancel_asked_at, "what cannot be had leaves a job waiting"
        if new.state is JobState.FAILED:
            assert new.failure is not None, "failed without a verdict"
        if new.state.is_final:
            assert new.ended_at is not None
            assert new.closing is None
