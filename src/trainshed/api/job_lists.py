"""customJobs: list as in Google's API; our own view of it, counts, projects and values to complete."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.api.job_view import OwnJobFields, render_job, wants_own_view
from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import Owner
from trainshed.core.query import JobQuery, QueryField
from trainshed.service.job_lists import JobLists
from trainshed.wire import job_filter, page, read_mask
from trainshed.wire.job_row import render_counts, render_projects, render_values

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
    own: OwnJobFields

    async def find(self, call: Call) -> Json:
        text, order = call.query.get("filter", ""), call.query.get("orderBy", "")
        is_own = wants_own_view(call)
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
        rows = [read_mask.apply_mask(mask, render_job(call, job)) for job in listing.jobs]
        if is_own:
            added = await self.own.of(listing.jobs)
            rows = [row | fields for row, fields in zip(rows, added, strict=True)]
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

    async def projects(self, call: Call) -> Json:
        """Those in which the caller may see jobs."""
        projects = await self.lists.projects()
        seen = {name: counts for name, counts in projects.items() if call.principal.sees(name)}
        return {"projects": render_projects(seen)}


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
