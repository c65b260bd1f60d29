"""The hang watch: updates the pulse of each watched job and acts once on a hang.

The collector calls `see` with what runs. The watch looks at a job at the job's own slow pace; a job that is
not watched costs a look-up. It acts by one guarded write of the status, with the stacks of all replicas in
the events. It stops nothing: the job loop does, because the status says so. After a start of the server it
begins with no history, so a job is never suspected for what this server has not seen. A failed look is
retried.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainshed.core.errors import Conflict, TrainshedError
from trainshed.core.event import Event
from trainshed.core.jobs.hang import Pulse, ReplicaLife, RunActivity, Stall, StallKind, felt, is_over, judge
from trainshed.core.jobs.job import Job, Status
from trainshed.core.jobs.stacks import MOST_REPLICAS, StackDump, grouped, print_of, spread
from trainshed.core.jobs.suspicion import is_watched, lives, may_hang, over, suspected
from trainshed.core.metrics import RunReading
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Clock, Store
from trainshed.core.stats_port import Stacks

log = logging.getLogger(__name__)

UNWATCHED = timedelta(hours=1)  # until a job that is not watched is looked up again
SAME = 5  # consecutive looks with equal stacks until a job that computes counts as stuck

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class _WatchedJob:
    """What is remembered of a job between looks."""

    due_at: datetime = _NEVER
    pulses: Mapping[RunKey, Pulse] = field(default_factory=dict[RunKey, Pulse])
    gpu: dict[RunKey, float] = field(default_factory=dict[RunKey, float])  # the most since the last look
    prints: Mapping[RunKey, object] = field(default_factory=dict[RunKey, object])
    same: int = 0  # consecutive looks with these stacks
    moved_at: datetime = _NEVER  # when stacks were last seen to differ


@dataclass(slots=True, kw_only=True)
class HangWatcher:
    store: Store
    clock: Clock
    stacks: Stacks | None  # None: the backend cannot take stacks
    printed: Callable[[ReplicaName], int]  # the bytes of output of a replica so far
    ring: Callable[[Job], None]
    hint_job: Callable[[str], None]
    _jobs: dict[str, _WatchedJob] = field(default_factory=dict[str, _WatchedJob])
    _latest: Mapping[str, list[RunReading]] = field(default_factory=dict[str, list[RunReading]])
    _some: asyncio.Event = field(default_factory=asyncio.Event)

    def see(self, readings: Sequence[RunReading]) -> None:
        """Take the readings of all live runs. The collector calls this at each look, so it must be cheap."""
        latest: dict[str, list[RunReading]] = {}
        for reading in readings:
            job = reading.key.name.job
            latest.setdefault(job, []).append(reading)
            if reading.usage is not None and reading.usage.gpus and (watched := self._jobs.get(job)):
                share = max(gpu.share for gpu in reading.usage.gpus)
                watched.gpu[reading.key] = max(share, watched.gpu.get(reading.key, 0.0))
        self._latest = latest
        if latest or self._jobs:
            self._some.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            await self.look()

    async def look(self) -> None:
        """Look at every job whose time has come."""
        self._jobs = {job: self._jobs.get(job) or _WatchedJob() for job in self._latest}
        now = self.clock.now()
        for job_id in [job_id for job_id, watched in self._jobs.items() if watched.due_at <= now]:
            try:
                await self._look_at(job_id, self._jobs[job_id])
            except TrainshedError as error:
                log.warning("job %s was not looked at for a hang: %s", job_id, error.message)

    async def _look_at(self, job_id: str, watched: _WatchedJob) -> None:
        job, now = await self.store.load(job_id), self.clock.now()
        if job is None or not is_watched(job):
            watched.due_at = now + UNWATCHED
            return
        watched.due_at = now + job.spec.scheduling.hang.pace()
        if not may_hang(job):
            watched.pulses = {}
            return
        seen = self._feel(job, watched)
        if job.status.hang is not None:
            if seen is None or is_over(job.status.hang, seen):
                await self._write(job, *over(job, now))
            return
        stall = judge(job.spec.scheduling.hang, seen, now) if seen is not None else None
        if stall is None or stall.kind is not StallKind.BUSY:
            watched.same = 0  # looks during an earlier stall do not count for the next
        if stall is None or (stall.kind is StallKind.BUSY and not await self._stuck(job, watched, now)):
            return
        await self._suspect(job, stall, watched)

    def _feel(self, job: Job, watched: _WatchedJob) -> tuple[ReplicaLife, ...] | None:
        """Update the pulse of each run of the job; None while a replica is between two runs."""
        now, pace = self.clock.now(), job.spec.scheduling.hang.pace()
        readings, before = self._latest.get(job.id, []), watched.pulses
        watched.pulses = {
            reading.key: felt(before.get(reading.key), self._sign(reading, watched), now, pace)
            for reading in readings
        }
        watched.gpu.clear()
        return lives(job, watched.pulses)

    def _sign(self, reading: RunReading, watched: _WatchedJob) -> RunActivity:
        usage, report = reading.usage, reading.report
        io = (usage.read_bytes, usage.written_bytes) if usage is not None else (None, None)
        return RunActivity(
            printed=self.printed(reading.key.name),
            # As text: NaN is not equal to itself, but the same report again is no movement.
            said=f"{report.step} {report.total} {sorted(report.values.items())}" if report else None,
            cpu_seconds=usage.cpu_seconds if usage is not None else None,
            disk_bytes=sum(item or 0 for item in io) if any(item is not None for item in io) else None,
            gpu=watched.gpu.get(reading.key),
        )

    async def _suspect(self, job: Job, stall: Stall, watched: _WatchedJob) -> None:
        dumps = await self._dumps(job)
        seen = self._feel(job, watched)  # taking the stacks took a while: what moved meanwhile does not hang
        now = self.clock.now()
        again = judge(job.spec.scheduling.hang, seen, now) if seen is not None else None
        if again is None or again.kind is not stall.kind:
            return
        groups = grouped({key.name.task: dump for key, dump in dumps.items()})
        of = sum(life.pulse is not None for life in seen or ())
        await self._write(job, *suspected(job, stall, groups, now, of=of))

    async def _write(self, job: Job, status: Status, events: Sequence[Event]) -> None:
        try:
            written = await self.store.write(job, status, events)
        except Conflict:
            return  # the job has changed: the next look decides anew
        self.ring(written)
        self.hint_job(job.id)

    async def _stuck(self, job: Job, watched: _WatchedJob, now: datetime) -> bool:
        """Whether a job that computes had the same stacks at several looks in a row."""
        if now - watched.moved_at < job.spec.scheduling.hang.after:
            return False
        dumps = await self._dumps(job)
        if not dumps or not all(dump.speaks for dump in dumps.values()):
            return False
        prints = {key: print_of(dump) for key, dump in dumps.items()}
        if watched.same and prints != watched.prints:
            watched.moved_at, watched.same = now, 0
            return False
        watched.prints, watched.same = prints, watched.same + 1
        return watched.same >= SAME

    async def _dumps(self, job: Job) -> Mapping[RunKey, StackDump]:
        """The stacks of its replicas; empty if the backend cannot take them."""
        alive = sorted(reading.key for reading in self._latest.get(job.id, []))
        if self.stacks is None:
            return {}
        try:
            return await self.stacks.stacks(spread(alive, MOST_REPLICAS))
        except TrainshedError as error:
            log.warning("job %s: its stacks cannot be taken: %s", job.id, error.message)
            return {}
