"""queue: the waiting jobs in their order. preparations: what is made or fetched before jobs can start."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.service.queue import QueueRow, QueueService
from trainshed.wire.page import fingerprint, parse_size
from trainshed.wire.queue import cursor_of, place_of, render_preparation, render_queued


@dataclass(slots=True)
class QueueHandlers:
    service: QueueService

    async def find(self, call: Call) -> Json:
        """With `eta=true` the first jobs of the queue have an `eta`, which takes longer."""
        project, location = call.path["project"], call.path["location"]
        question = fingerprint("queue", project, location)
        cursor = call.pages.decode(call.query.get("pageToken", ""), question)
        page = await self.service.page(
            project,
            location,
            {} if cursor is None else place_of(cursor),
            parse_size(call.query.get("pageSize")),
            with_eta=call.flag("eta"),
        )
        next_cursor = None if page.next is None else cursor_of(page.next)
        rows = [_rendered(row) for row in page.rows]
        return call.pages.render("jobs", rows, next_cursor, question) | {"totalSize": page.total}

    async def preparations(self, call: Call) -> Json:
        """Of the whole server: what one job brings others use as well. Without what only others wait for."""
        preparations: list[Json] = []
        for item, jobs in self.service.preparing():
            seen = [job for job in jobs if call.principal.sees(job.project)]
            if seen or not item.jobs or call.principal.sees_all:
                preparations.append(render_preparation(item, seen))
        return {"preparations": preparations}


def _rendered(row: QueueRow) -> Json:
    return render_queued(row.job, row.position, row.waiting, row.needs, row.eta)
