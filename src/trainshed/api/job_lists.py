"""customJobs: list as in Google's API; our own view of it, counts, projects and values to complete."""

from collections.abc import Callable
from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.errors import Invalid, Violation
from trainshed.core.job import Job, Owner
from trainshed.core.metrics import Progress
from trainshed.core.ports import JobPage
from trainshed.core.query import JobQuery, QueryField
from trainshed.service.job_lists import JobLists
from trainshed.wire import job_filter, page, read_mask
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.job_row import render_counts, render_job_row, render_projects, render_values
from trainshed.wire.metrics import render_progress

OWN_VIEW = "trainshed"  # requested by our own clients: adds fields that Google's API lacks
MOST_VALUES = 50

_COMPLETED = {
    "display_name": QueryField.DISPLAY_NAME,
    "state": QueryField.STATE,
    "kind": QueryField.KIND,
    "submitter": QueryField.SUBMITTER,
    "project": QueryField.PROJECT,
    "labels": QueryField.LABEL,
}


@dataclass(slots=True)
class JobListHandlers:
    lists: JobLists
    progress: Callable[[str], Progress | None] = lambda _: None  # of a running job

    async def find(self, call: Call) -> Json:
        text, order = call.query.get("filter", ""), call.query.get("orderBy", "")
        is_own = call.query.get("view") == OWN_VIEW
        mask = read_mask.parse_mask(call.query.get("readMask", ""))
        project, location = call.path["project"], call.path["location"]
        owner = _owner(call)
        asked = (str(owner),) if owner else ()
        fingerprint = page.fingerprint(project, location, text, order, *asked)
        query = JobQuery(
            project=project,
            location=location,
            where=job_filter.parse_filter(text, is_own=is_own),
            limit=page.parse_size(call.query.get("pageSize")),
            order=job_filter.parse_order_by(order, is_own=is_own),
            cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
            owner=owner,
        )
        listing = await self.lists.jobs.find(query, reasons=is_own)
        rows = [read_mask.apply_mask(mask, _render(call, job)) for job in listing.jobs]
        if is_own:
            rows = await self._with_own_fields(rows, listing)
        return call.pages.render("customJobs", rows, listing.next_cursor, fingerprint)

    async def count(self, call: Call) -> Json:
        counted = await self.lists.count(_query(call))
        return {
            "count": sum(counted.by_state.values()),
            "elsewhere": counted.elsewhere,
            "byState": render_counts(counted.by_state),
        }

    async def complete(self, call: Call) -> Json:
        name = call.query.get("field", "")
        if name not in _COMPLETED:
            sentence = f"must be one of {', '.join(_COMPLETED)}, not '{name[:60]}'."
            raise Invalid((Violation("field", sentence),))
        prefix = call.query.get("prefix", "")
        values = await self.lists.complete(_query(call), _COMPLETED[name], prefix, MOST_VALUES)
        return {"values": render_values(values)}

    async def projects(self, _: Call) -> Json:
        return {"projects": render_projects(await self.lists.projects())}

    async def _with_own_fields(self, rows: list[Json], listing: JobPage) -> list[Json]:
        used = await self.lists.used(listing)
        return [
            row | render_job_row(job, used[job.id]) | self._progress(job)
            for row, job in zip(rows, listing.jobs, strict=True)
        ]

    def _progress(self, job: Job) -> Json:
        progress = {} if job.is_final else render_progress(self.progress(job.id))
        return {"progress": progress} if progress else {}


def _query(call: Call) -> JobQuery:
    """Of the methods that are our own."""
    where = job_filter.parse_filter(call.query.get("filter", ""), is_own=True)
    return JobQuery(project=call.path["project"], location=call.path["location"], where=where)


def _owner(call: Call) -> Owner | None:
    """The owner in our own parameter `owner`."""
    try:
        return Owner.parse(text) if (text := call.query.get("owner", "")) else None
    except ValueError as error:
        raise Invalid((Violation("owner", f"owner {error}."),)) from error


def _render(call: Call, job: Job) -> Json:
    return render_custom_job(job, enum_ints=call.enum_ints, base_url=call.base_url)
