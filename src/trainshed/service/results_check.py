"""Checks whether the results of a job can be stored where the job says.

`service/jobs.py` calls it at a submit, `service/why.py` when somebody asks about a job. It never refuses a
job: the bucket may be created later, and an s3:// store may be known to the program alone. It only returns
events, while there is still time to act.
"""

from dataclasses import dataclass
from datetime import datetime

from trainshed.core.bucket import check_new_bucket_name
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Invalid, NotFound, TrainshedError
from trainshed.core.event import Event, Reason, Severity
from trainshed.core.jobs.job import Job
from trainshed.core.view import ROOT, S3, SCHEME, address

_FIELD = "jobSpec.baseOutputDirectory"  # in which a customJob names the output


@dataclass(frozen=True, slots=True)
class ResultsCheck:
    buckets: Buckets

    async def events(self, job: Job, now: datetime) -> tuple[Event, ...]:
        """What the owner should know about the output now: no event, or one."""
        output, field = job.spec.output, (job.origin and job.origin.output_field) or _FIELD
        local = output.startswith(f"{ROOT}/")
        place = address(SCHEME + output.removeprefix(f"{ROOT}/") if local else output)
        if place is None:
            return ()
        bucket = place[0]
        try:
            info = await self.buckets.get(bucket)
        except (NotFound, Invalid):
            if output.startswith(S3):
                return (_elsewhere(field, output, now),)
            return (_missing(field, bucket, job.project, now),)
        except TrainshedError:
            return ()  # not known now; it is checked again when the job ends
        if output.startswith(S3) and f"{info.scheme}://" != SCHEME:
            return (_elsewhere(field, output, now),)
        return () if info.is_open_to(job.project) else (_foreign(field, bucket, job.project, now),)


def _missing(field: str, bucket: str, project: str, now: datetime) -> Event:
    try:
        check_new_bucket_name(bucket)
        command = f"trainshed storage buckets create {SCHEME}{bucket} --project {project}"
        advice = f"make it before the job ends: {command}"
    except Invalid:
        advice = "no bucket can be called so, name another one"
    return _warning(
        f"{field}: there is no bucket {SCHEME}{bucket[:100]}, so what the job writes below "
        f"{ROOT}/{bucket[:100]} cannot be stored; {advice}",
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
