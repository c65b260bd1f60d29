"""customJobs: create, get, cancel and delete as in Google's API, and our own verbs. Lists: `job_lists.py`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from trainshed.api import gcloud
from trainshed.api.beats import with_beats
from trainshed.api.call import Call, Json, Reply, StreamAnswer
from trainshed.api.environment import environment
from trainshed.api.job_view import OwnJobFields, render_job, wants_own_view
from trainshed.api.line_stream import render_lines
from trainshed.api.output import read_since
from trainshed.api.stream_slots import StreamSlots
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.jobs.access import told_env
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.logs import LogQuery, place_of
from trainshed.core.ports import Clock
from trainshed.service.jobs import JobRequest, JobService
from trainshed.service.logs import LogService
from trainshed.wire.custom_job import parse_custom_job, render_custom_job
from trainshed.wire.job_status import render_events, render_job_status
from trainshed.wire.ledger import render_intervals
from trainshed.wire.operation import render_operation
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import read_duration

MOST_WAIT = timedelta(minutes=10)
MOST_TAIL = 100_000  # lines, counted from the end


@dataclass(slots=True)
class CustomJobHandlers:
    jobs: JobService
    logs: LogService
    offer: Offer
    clock: Clock
    own: OwnJobFields
    project_env: Callable[[str], Mapping[str, str]] = (
        told_env  # what jobs of a project find in their environment
    )
    streams: StreamSlots = field(default_factory=lambda: StreamSlots("streams of log lines"))

    async def create(self, call: Call) -> Json:
        key = call.idempotency_key()
        request = read_request(call, self.offer, await self._secrets_before(call))
        job = await self.jobs.submit(call.path["project"], call.path["location"], request, key)
        if wants_own_view(call):
            return await self._with_warnings(call, job)
        return render_job(call, job)

    async def retry(self, call: Call) -> Json:
        """Submits the same job once more, as a job of its own; the first stays as it is.

        The body may have a `displayName` for the new job, and nothing else.
        """
        if unknown := sorted(set(call.body) - {"displayName"}):
            raise Invalid(tuple(Violation(name, "is not known here; displayName is.") for name in unknown))
        first = await self._job(call)
        body = render_custom_job(first) | call.body  # what is not for the submitter to say is passed over
        secrets = await self.jobs.secrets_of(first.project, first.location, first.id)
        request = read_request(replace(call, body=body), self.offer, secrets)
        if first.origin is not None and first.origin.is_told:
            request = replace(request, origin=first.origin)
        job = await self.jobs.submit(first.project, first.location, request, call.idempotency_key())
        return await self._with_warnings(call, job)

    async def _with_warnings(self, call: Call, job: Job) -> Json:
        """The job, with a field of our own about what it will lack."""
        lacks = await self.jobs.lacks(job.spec)
        return render_job(call, job) | ({"warnings": [lacks]} if lacks else {})

    async def _secrets_before(self, call: Call) -> JobSecrets | None:
        """The secrets of the job in our own parameter `secretsOf`: values that the body has as masks."""
        before = call.query.get("secretsOf", "")
        path = call.path
        return await self.jobs.secrets_of(path["project"], path["location"], before) if before else None

    async def get(self, call: Call) -> Json:
        job = await self._job(call)
        answer = render_job(call, job)
        if wants_own_view(call):
            [added] = await self.own.of((job,))
            answer |= added
        if gcloud.streams_logs(call.user_agent):
            answer.setdefault("endTime", answer.get("updateTime"))
        return answer

    async def cancel(self, call: Call) -> Json:
        await self.jobs.cancel(call.path["project"], call.path["location"], call.path["job"])
        return {}

    async def delete(self, call: Call) -> Json:
        operation = await self.jobs.delete(call.path["project"], call.path["location"], call.path["job"])
        return render_operation(operation)

    async def wait(self, call: Call) -> Json:
        """Answers when the job is final or the timeout is over. It does not poll."""
        patience = min(_duration(call, "timeout", "60s"), MOST_WAIT)
        path = call.path
        return render_job(
            call, await self.jobs.wait(path["project"], path["location"], path["job"], patience)
        )

    async def status(self, call: Call) -> Json:
        job = await self._job(call)
        return render_job_status(job) | self.own.standing(job)

    async def events(self, call: Call) -> Json:
        path = call.path
        return {
            "events": render_events(await self.jobs.events(path["project"], path["location"], path["job"]))
        }

    async def intervals(self, call: Call) -> Json:
        path = call.path
        closed = await self.jobs.intervals(path["project"], path["location"], path["job"])
        return {"intervals": render_intervals(closed)}

    async def environment(self, call: Call) -> Json:
        job = await self._job(call)
        return environment(job, self.project_env(job.project), call.query.get("task", ""))

    async def tail(self, call: Call) -> Reply:
        """Lines as NDJSON. With `follow` the stream ends after the job has ended and all lines are sent."""
        job = await self._job(call)
        query = LogQuery(
            after=_after(call),
            since_ns=read_since(call, self.clock),
            task=call.query.get("task") or None,
            attempt=call.number("attempt"),
        )
        last = call.number("limit")
        if last is not None and last > MOST_TAIL:
            more = f"leave it out for all lines, or ask {call.path['job']}:output, which has no such bound."
            raise Invalid((Violation("limit", f"limit {last} is more than {MOST_TAIL} lines: {more}"),))
        if call.flag("follow"):
            lines = render_lines(self.logs.follow(job, query))
            return StreamAnswer(with_beats(self.streams.limited(lines), b"\n"))
        return StreamAnswer(self.streams.limited(render_lines(self.logs.pages(job, query, last))))

    async def _job(self, call: Call) -> Job:
        path = call.path
        if ":" in path["job"]:
            raise NotFound(f"There is no method or job '{path['job']}'.")
        return await self.jobs.get(path["project"], path["location"], path["job"])


def read_request(call: Call, offer: Offer, before: JobSecrets | None = None) -> JobRequest:
    """The requested job; Invalid with every violation."""
    draft = parse_custom_job(call.body, offer.to(call.principal), before)
    return JobRequest(
        display_name=draft.display_name,
        spec=draft.spec,
        labels=draft.labels,
        extras=draft.extras,
        secrets=draft.secrets,
        submitter=call.submitter(),
    )


def _after(call: Call) -> tuple[int, str] | None:
    """The place of the last line received, by its insertId. A follower resumes there and loses nothing."""
    if not (text := call.query.get("after", "")):
        return None
    if (place := place_of(text)) is None:
        raise Invalid((Violation("after", f"after must be the insertId of a line, not '{text[:60]}'."),))
    return place


def _duration(call: Call, name: str, default: str) -> timedelta:
    try:
        return max(read_duration(call.query.get(name, default)), timedelta())
    except ValueError as error:
        raise Invalid((Violation(name, f"{name} {error}"),)) from error
