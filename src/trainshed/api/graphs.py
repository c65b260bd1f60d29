"""Graphs: what one job used and reported over a range, and up to 500 jobs beside each other."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.api.call import Call, RawAnswer, Reply
from trainshed.api.permitted import require
from trainshed.core.accounts.permission import Permission, Resource
from trainshed.core.errors import Invalid, Violation
from trainshed.core.graphs import GraphRange
from trainshed.core.metrics import Progress
from trainshed.service.graphs import GraphService
from trainshed.service.jobs import JobService
from trainshed.wire.comparison import parse_comparison
from trainshed.wire.graphs import render_comparison, render_graphs
from trainshed.wire.scalars import read_time

POINTS = 720  # where none are asked for
MOST_POINTS = 4000  # more than a screen is wide
_HEADERS = {"Content-Type": "application/json; charset=UTF-8"}


@dataclass(slots=True)
class GraphHandlers:
    jobs: JobService
    graphs: GraphService
    progress: Callable[[str], Progress | None]  # of a running job

    async def of_job(self, call: Call) -> Reply:
        """All series of a job from `startTime` to `endTime`, with about `points` moments."""
        asked = _range(call)
        path = call.path
        job = await self.jobs.get(path["project"], path["location"], path["job"])
        graphs = await self.graphs.graphs(job, asked)
        return RawAnswer(
            await asyncio.to_thread(render_graphs, graphs, self.progress(job.id)), headers=_HEADERS
        )

    async def compare(self, call: Call) -> Reply:
        asked = parse_comparison(call.body)
        for project in {project for project, _, _ in asked.names}:
            require(call, Permission.JOBS_GET, Resource(project))
        if asked.names:
            jobs, has_more = await self.graphs.jobs_named(asked.names), False
        else:
            place = (call.path["project"], call.path["location"])
            jobs, has_more = await self.graphs.jobs_like(*place, asked.where)
        comparison = await self.graphs.compare(jobs, asked.request)
        there = {(job.project, job.location, job.id) for job in jobs}
        missing = [
            f"projects/{project}/locations/{location}/customJobs/{identity}"
            for project, location, identity in asked.names
            if (project, location, identity) not in there
        ]
        return RawAnswer(
            await asyncio.to_thread(render_comparison, comparison, missing, has_more), headers=_HEADERS
        )


def _range(call: Call) -> GraphRange:
    violations: list[Violation] = []
    since, until = _time(call, "startTime", violations), _time(call, "endTime", violations)
    if since is not None and until is not None and since >= until:
        violations.append(Violation("endTime", "endTime must be after startTime."))
    points = POINTS
    try:
        points = call.number("points") or POINTS
    except Invalid as error:
        violations += error.violations
    if points > MOST_POINTS:
        violations.append(Violation("points", f"points must be at most {MOST_POINTS}, not {points}."))
    if violations:
        raise Invalid(tuple(violations))
    return GraphRange(since=since, until=until, points=max(2, points))


def _time(call: Call, name: str, violations: list[Violation]) -> datetime | None:
    if not (text := call.query.get(name, "")):
        return None
    try:
        return read_time(text).astimezone(UTC)
    except ValueError as error:
        violations.append(Violation(name, f"{name} {error}"))
        return None
