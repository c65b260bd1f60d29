"""A whole server in this process, without its port: for tests of what has no method of the API of its own."""

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.live import IMAGE, LOCATION, PATIENCE, PROJECT, sweep
from trainshed.assembly.assembly import Assembly, assemble
from trainshed.assembly.services import make_jobs
from trainshed.core.bucket import BucketInfo
from trainshed.core.jobs.job import Job, JobSpec, Pool
from trainshed.core.tuning.measurement import TrialReport
from trainshed.service.jobs import JobRequest, JobService
from trainshed.service.named_secrets import NamedSecretService
from trainshed.serving.home_folder import make_home
from trainshed.settings.table import Settings

BUCKET = "trial-results"


@dataclass(slots=True)
class TrialWorld:
    home: Path
    assembly: Assembly
    jobs: JobService

    async def submit(self, *sources: str, output: str = "", env: dict[str, str] | None = None) -> Job:
        """A job with a replica for each piece of Python, the first of which is the primary."""
        pools = tuple(
            Pool(
                machine_type="n1-standard-4",
                cpus=1,
                memory=1 << 28,
                replicas=1,
                image=IMAGE,
                command=("python", "-c", source),
                env=tuple((env or {}).items()),
            )
            for source in sources
        )
        spec = JobSpec(pools=pools, output=output)
        return await self.jobs.submit(PROJECT, LOCATION, JobRequest(display_name="trial", spec=spec))

    async def get(self, job: Job) -> Job:
        return await self.jobs.get(PROJECT, LOCATION, job.id)

    async def ended(self, job: Job) -> Job:
        done = await self.jobs.wait(PROJECT, LOCATION, job.id, timedelta(seconds=PATIENCE))
        assert done.is_final, done.status
        return done

    async def read(self, job: Job, metrics: Sequence[str], pattern: str = "") -> TrialReport:
        return await self.assembly.measuring.measurements.read(await self.get(job), metrics, pattern)

    async def make_bucket(self, project: str = PROJECT) -> None:
        now = self.assembly.shared.clock.now()
        info = BucketInfo(name=BUCKET, project=project, location="US", created_at=now, updated_at=now)
        await self.assembly.storage.buckets.create(info)

    async def restart(self) -> None:
        await self.assembly.close()
        await self._open()

    async def _open(self) -> None:
        settings = Settings.from_args(
            ["--home", str(self.home), "--engine", "none", "--cpus", "32", "--memory", "64GiB"]
        )
        self.assembly = assemble(settings, "http://127.0.0.1:1")
        await self.assembly.open()
        shared, storage = self.assembly.shared, self.assembly.storage
        secrets = NamedSecretService(storage.named_secrets, shared.clock)
        self.jobs = make_jobs(shared, storage, self.assembly.backends, self.assembly.control, secrets)


@contextlib.asynccontextmanager
async def trial_world() -> AsyncIterator[TrialWorld]:
    base = Path(tempfile.mkdtemp(prefix="ts-"))  # short: sockets below it have at most 108 characters
    home = base / "h"
    make_home(home)
    world = TrialWorld.__new__(TrialWorld)
    world.home = home
    await world._open()  # pyright: ignore[reportPrivateUsage]
    try:
        yield world
    finally:
        await world.assembly.close()
        sweep(base)
        shutil.rmtree(base, ignore_errors=True)
