"""Whether there is a place where a job's results can land, and what to tell of one for which there is none.

A job may name any place: guides print names of buckets that are yet to be made, and a store that only the
program knows is nobody else's business. So nothing is refused here; it is said, while something can be done.
"""

from dataclasses import dataclass
from datetime import datetime

from trainshed.core.bucket import check_new_bucket_name
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Invalid, NotFound, TrainshedError
from trainshed.core.event import Event, Reason, Severity
from trainshed.core.job import LEGACY, PIPELINE, Job
from trainshed.core.view import ROOT, S3, SCHEME, address

# Where people have written it.
_FIELDS = {PIPELINE: "trainingTaskInputs.baseOutputDirectory", LEGACY: "trainingInput.jobDir"}
_FIELD = "jobSpec.baseOutputDirectory"


@dataclass(frozen=True, slots=True)
class ResultsCheck:
    buckets: Buckets

    async def told(self, job: Job, now: datetime) -> tuple[Event, ...]:
        """What its owner should know of its output, as it is now: nothing, or one event."""
        output, field = job.spec.output, _FIELDS.get(job.kind, _FIELD)
        local = output.startswith(f"{ROOT}/")
        found = address(SCHEME + output.removeprefix(f"{ROOT}/") if local else output)
        if found is None:
            return ()
        bucket = found[0]
        try:
            info = await self.buckets.get(bucket)
        except (NotFound, Invalid):
            if output.startswith(S3):
                return (_elsewhere(field, output, now),)
            return (_missing(field, bucket, job.project, now),)
        except TrainshedError:
            return ()  # not known now; the end of the job will tell
        if output.startswith(S3) and f"{info.scheme}://" != SCHEME:
            return (_elsewhere(field, output, now),)
        return () if info.is_open_to(job.project) else (_foreign(field, bucket, job.project, now),)


def _missing(field: str, bucket: str, project: str, now: datetime) -> Event:
    try:
        check_new_bucket_name(bucket)
        command = f"trainshed storage buckets create {SCHEME}{bucket} --project {project}"
        way = f"make it before the job ends: {command}"
    except Invalid:
        way = "no bucket can be called so, name another one"
    return _warning(
        f"{field}: there is no bucket {SCHEME}{bucket[:100]}, so what the job writes below "
        f"{ROOT}/{bucket[:100]} cannot be stored; {way}",
        now,
    )


def _foreign(field: str, bucket: str, project: str, now: datetime) -> Event:
    return _warning(
        f"{field}: {SCHEME}{bucket} belongs to another project than {project}, so what the job writes below "
        f"{ROOT}/{bucket} cannot be stored; name a bucket of its own project",
        now,
    )


def _warning(message: str, now: datetime) -> Event:
    return Event(at=now, reason=Reason.NO_BUCKET, message=message, severity=Severity.WARNING)


def _elsewhere(field: str, output: str, now: datetime) -> Event:
    message = (
        f"{field}: {output[:200]} is not in a bucket on this server's disk: Trainshed stores nothing there "
        f"and has nothing of it below {ROOT}; the program reads and writes it itself."
    )
    return Event(at=now, reason=Reason.OUTPUTS_ELSEWHERE, message=message)
