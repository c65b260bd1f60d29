"""Outputs: stores what programs write below /gcs as objects, while they run and once more at their end.

The job loop calls it at launches and before it ends a job (core/jobs/withhold.py). A work queue calls `turn`
for every job that has a view. A file that no longer changes is put; a complete folder gets its manifest last
(core/outputs.py decides both). All state can be read again from the disk, so the next server continues after
a kill at any point; putting a file twice does no harm. There is one server per home. It never changes a file
of a program and never decides when a job ends.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.control.commit import Committer, SweepResult
from trainshed.control.queue import WorkQueue
from trainshed.control.resume import newest_checkpoint
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Invalid, NotFound, NotYet, TrainshedError
from trainshed.core.jobs.job import Job, JobSpec, Outcome
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Observation, Replica
from trainshed.core.outputs import EndedWriter, SettlingFiles, Writers, ended_well
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.view import (
    LOCAL,
    S3,
    SCHEME,
    STORED,
    Storing,
    View,
    Views,
    address,
    buckets_by_path,
    named_buckets,
    wants_view,
)

EVERY = timedelta(seconds=2)  # between looks at a job; longer if a look is slow
SOON = timedelta(seconds=0.1)  # while a view is being laid out
AGAIN = timedelta(seconds=5)  # after the disk was full
PATIENCE = timedelta(hours=1)  # the end of a job waits no longer for a bucket that takes nothing
STORING = "What its programs wrote below /gcs is being stored."
_FOLDERS = {"MODEL_DIR": "model", "CHECKPOINT_DIR": "checkpoints", "TENSORBOARD_LOG_DIR": "logs"}


@dataclass(slots=True)
class _WatchedOutputs:
    """What is remembered of a job. All of it can be determined again."""

    committer: Committer
    patience: SettlingFiles = field(default_factory=SettlingFiles)
    trouble: str = ""
    stored: tuple[str, Storing] | None = None  # for which end of the job
    swept: str = ""  # the label of the view that may begin: the contents of the previous one are stored


@dataclass(slots=True, kw_only=True)
class Outputs:
    store: Store
    backend: Backend
    views: Views
    buckets: Buckets
    clock: Clock
    queue: WorkQueue
    hint_job: Callable[[str], None]
    every: timedelta = EVERY
    again: timedelta = AGAIN
    _jobs: dict[str, _WatchedOutputs] = field(default_factory=dict[str, _WatchedOutputs])
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.views.on_want(self.queue.hint)
        self.queue.serve(self.turn)  # before any hint: one may arrive while the backend is still starting

    def begin(self, jobs: Iterable[Job]) -> None:
        """Continue with the views that an earlier server left."""
        for job in jobs:
            if self.views.view_of(job.id) is not None or self.views.wants(job.id):
                self.queue.hint(job.id)

    async def close(self) -> None:
        """Stop between two pieces of a file; the next server continues."""
        self._ending.set()
        await self.queue.close()

    async def equip(self, job: Job, launch: Launch, replica: Replica) -> Launch:
        """Add the view and the checkpoint to resume from. NotYet while the previous view is being stored."""
        spec = await self._spelt(job.spec) if job.spec.output.startswith(S3) else job.spec
        before = self.views.view_of(job.id)
        if before is None and not wants_view(spec):
            return replace(launch, view=_lazy(job))
        label = _label(job)
        watched = self._watched(job.id)
        begin = before is not None and watched.swept == label
        if before not in (None, label) and not begin and not await self._is_alive(job):
            self.queue.hint(job.id)
            raise NotYet(STORING)
        own = dict(job.spec.pools[replica.pool].env)
        paths, env = _paths(spec.output, own), dict[str, str]()
        if replica.run or job.status.attempt:
            checkpoint = await newest_checkpoint(self.buckets, job.project, spec.output)
            if checkpoint:
                paths["TRAINSHED_RESUME_DIR"] = checkpoint
                (paths if LOCAL in own else env)["TRAINSHED_RESUME_FROM"] = checkpoint
        named = named_buckets(spec)
        far = buckets_by_path(spec)
        view = View(project=job.project, named=named, by_path=far, label=label, begin=begin, paths=paths)
        return replace(launch, view=view, env={**env, **launch.env})

    def launched(self, job: str) -> None:
        """A replica was started: look at what it writes from now on, if it has a view."""
        if self.views.view_of(job) is not None:
            self.queue.hint(job)

    def standing(self, job: Job) -> Storing:
        """Whether the outputs of a job that may be ending are stored. Cheap: mostly a look-up."""
        if self.views.view_of(job.id) is None:
            return STORED
        watched = self._watched(job.id)
        if watched.stored is not None and watched.stored[0] == _ending(job):
            return watched.stored[1]
        if (
            job.status.closing is not None and not watched.trouble
        ):  # after an error the queue knows when to retry
            self.queue.hint(job.id)
        return Storing(done=False, message=watched.trouble or STORING)

    def forget(self, job: str) -> None:
        self._jobs.pop(job, None)

    async def turn(self, job_id: str) -> datetime | None:
        """Store what the programs of a job have written so far. The work queue calls this."""
        job = await self.store.load(job_id)
        if job is None or job.is_final:
            self.forget(job_id)
            return None
        seen = await self.backend.observe(job_id)
        alive, began = any(item.alive for item in seen), self.clock.now()
        closing = job.status.closing
        if (view := self.views.view_of(job_id)) is None:
            if closing or not alive or not self.views.wants(job_id):
                return None if closing else began + self.every  # the view is being laid out
            return await self._make(job)
        watched = self._watched(job_id)
        if watched.stored is not None and watched.stored[0] == _ending(job):
            return None
        try:
            tally = await watched.committer.sweep(job, watched.patience, _writers(job, view, seen, began))
            watched.trouble = ""
        except TrainshedError as error:
            watched.trouble = f"What its programs wrote cannot be stored now: {error.message}"
            if closing is None or alive or began - closing.since < PATIENCE:
                self.hint_job(job_id)
                return self.clock.now() + self.again
            tally = SweepResult(faults=[error.message])
        if alive:
            return self.clock.now() + max(self.every, 20 * (self.clock.now() - began))
        storing = await self._with_fate(
            job_id, tally.storing()
        )  # also before a restart, which begins with a new view
        if closing is not None:
            watched.stored = (_ending(job), storing)
        watched.swept = _label(job)
        self.hint_job(job_id)
        return None if closing else self.clock.now() + self.every

    async def _make(self, job: Job) -> datetime:
        """Make the view that a program of the job has opened and waits for."""
        try:
            await self.views.make(job.id, _lazy(job))
        except NotYet:
            return self.clock.now() + SOON
        except TrainshedError:
            return self.clock.now() + self.again
        return self.clock.now() + self.every

    async def _spelt(self, spec: JobSpec) -> JobSpec:
        """The spec with its s3:// output as gs://, if that bucket is on this server's disk."""
        place = address(spec.output)
        try:
            info = await self.buckets.get(place[0] if place else "")
        except (NotFound, Invalid):
            return spec  # in a store that only the program knows
        if f"{info.scheme}://" != SCHEME:
            return spec  # in a remote bucket: nothing of it is below /gcs
        return replace(spec, output=f"{SCHEME}{spec.output.removeprefix(S3)}")

    async def _with_fate(self, job: str, storing: Storing) -> Storing:
        """Add where files that could not be stored are kept: they are not removed with the view."""
        kept = "is kept on the server's disk, in {}, until the job is deleted."
        if storing.fault:
            where = await self.views.keep(job)
            fate = f"It {kept.format(where)}" if where else "It is lost."
            return replace(storing, fault=f"{storing.fault} {fate}")
        if where := self.views.kept(job):
            fate = f"What an earlier run wrote when no bucket took it {kept.format(where)}"
            return replace(storing, message=f"{storing.message} {fate}".strip())
        return storing

    async def discard(self, job: str) -> None:
        """Remove the files of a deleted job that no bucket took."""
        await self.views.discard(job)

    async def _is_alive(self, job: Job) -> bool:
        return any(item.alive for item in await self.backend.observe(job.id))

    def _watched(self, job: str) -> _WatchedOutputs:
        if (result := self._jobs.get(job)) is None:
            result = self._jobs[job] = _WatchedOutputs(
                Committer(self.views, self.buckets, self.clock, self._ending)
            )
        return result


def _label(job: Job) -> str:
    """A new label after every restart, so that programs find what is stored and nothing else."""
    return f"{job.status.attempt}.{sum(replica.run for replica in job.status.replicas)}"


def _lazy(job: Job) -> View:
    """A view that is made when first used; the same for all replicas of an attempt."""
    label = f"{job.status.attempt}.0"
    return View(project=job.project, named=named_buckets(job.spec), label=label, lazy=True)


def _ending(job: Job) -> str:
    closing = job.status.closing
    return f"{job.status.attempt} {closing.outcome} {closing.since.isoformat()}" if closing else ""


def _writers(job: Job, view: str, seen: tuple[Observation, ...], now: datetime) -> Writers:
    """What may write in the view, or wrote there: the last run of each replica of its attempt."""
    attempt = int(view.partition(".")[0])
    last = {item.key.name: item for item in sorted(seen, key=lambda run: run.key.run)}
    ended = [
        EndedWriter(run.ended_at or now, ended_well(run.exit))
        for name, run in last.items()
        if name.attempt == attempt and not run.alive
    ]
    alive = any(run.alive for run in seen)
    if not ended and not alive:
        ended = [EndedWriter(now, well=False)]  # nobody saw their end
    closing = job.status.closing
    succeeded = not alive and closing is not None and closing.outcome is Outcome.SUCCEEDED
    return Writers(ended=ended, alive=alive, succeeded=succeeded)


def _paths(output: str, own: dict[str, str]) -> dict[str, str]:
    """The variables that get a local path, and the address that each stands for."""
    paths: dict[str, str] = {}
    if output.startswith(SCHEME):
        for name, folder in _FOLDERS.items():
            uri = f"{output.rstrip('/')}/{folder}/"
            paths[f"TRAINSHED_{name}"] = uri
            if LOCAL in own and f"AIP_{name}" not in own:
                paths[f"AIP_{name}"] = uri
    return paths
