"""customJobs:lines and customJobs:find: a job's log by line number, and searches in it."""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TypeVar

from trainshed.api.beats import with_beats
from trainshed.api.call import Call, Json, Reply, StreamAnswer
from trainshed.api.stream_slots import StreamSlots
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.severity_words import LEVELS, severity_expression
from trainshed.core.log_lines import FindQuery, LineChoice, LinePattern, LineQuery
from trainshed.core.logs import OutputStream, place_of
from trainshed.service.jobs import JobService
from trainshed.service.log_lines import LogLineService
from trainshed.wire.log_lines import regex_pattern, render_page, render_step, text_pattern
from trainshed.wire.log_terms import instant

COUNT = 200
MOST_COUNT = 5000
MOST_GIVEN = 10_000  # matching lines
MOST_DIGITS = 15
MOST_SEARCHES = 16

T = TypeVar("T")


@dataclass(slots=True)
class LinesOfJobs:
    jobs: JobService
    logs: LogLineService
    searches: StreamSlots = field(default_factory=lambda: StreamSlots("searches", MOST_SEARCHES))

    async def lines(self, call: Call) -> Json:
        """`count` lines from `line`, `time` or `insertId` on, and `before` lines before."""
        asked = _Parameters(call)
        query = LineQuery(
            choice=asked.choice(),
            line=asked.line("line", 1),
            since_ns=asked.moment(),
            before=asked.number("before", 0, MOST_COUNT),
            count=asked.number("count", COUNT, MOST_COUNT),
            is_numbered=call.flag("numbered"),
        )
        asked.check()
        job = await self._job(call)
        return render_page(await self.logs.page(job, query))

    async def find(self, call: Call) -> Reply:
        """NDJSON: lines that match as they are found, how far the search is, and at last {"end": true}."""
        asked = _Parameters(call)
        backwards = asked.choose("direction", ("forward", "backward")) == "backward"
        query = FindQuery(
            choice=asked.choice(),
            pattern=asked.pattern(),
            line=asked.line("from", -1 if backwards else 1),
            backwards=backwards,
            limit=asked.number("limit", 1000, MOST_GIVEN),
        )
        asked.check()
        job = await self._job(call)
        steps = with_beats(self.searches.limited(self._steps(job, query)), b"\n")
        return StreamAnswer(steps, shows_end=True)

    async def _steps(self, job: Job, query: FindQuery) -> AsyncGenerator[bytes]:
        async with contextlib.aclosing(self.logs.find(job, query)) as steps:
            async for step in steps:
                yield json.dumps(render_step(step), ensure_ascii=False).encode() + b"\n"
        yield b'{"end": true}\n'

    async def _job(self, call: Call) -> Job:
        path = call.path
        if ":" in path["job"]:
            raise NotFound(f"There is no method or job '{path['job']}'.")
        return await self.jobs.get(path["project"], path["location"], path["job"])


class _Parameters:
    """Reads the parameters of a call, and keeps what is wrong with them until all are read."""

    def __init__(self, call: Call) -> None:
        self._call, self._query = call, call.query
        self._violations: list[Violation] = []

    def check(self) -> None:
        if self._violations:
            raise Invalid(tuple(self._violations))

    def choice(self) -> LineChoice:
        attempt = self._query.get("attempt", "")
        stream = self.choose("stream", ("", *OutputStream))
        return LineChoice(
            attempt=self.number("attempt", 0, 10**6) if attempt else None,
            task=self._query.get("task") or None,
            stream=OutputStream(stream) if stream else None,
        )

    def choose(self, name: str, values: tuple[str, ...]) -> str:
        text = self._query.get(name, "") or values[0]
        if text not in values:
            choices = " or ".join(filter(None, values))
            return self._wrong(name, f"must be {choices}, not '{text[:40]}'", values[0])
        return text

    def number(self, name: str, default: int, most: int) -> int:
        try:
            value = self._call.number(name)
        except Invalid as error:
            self._violations += error.violations
            return default
        if value is None:
            return default
        return value if value <= most else self._wrong(name, f"must be at most {most}, not {value}", default)

    def line(self, name: str, default: int) -> int:
        text = self._query.get(name, "")
        digits = text.removeprefix("-")
        if not text:
            return default
        if not (digits.isascii() and digits.isdigit()) or len(digits) > MOST_DIGITS or int(digits) == 0:
            wanted = "must be the number of a line, from 1 on, or from the end: -1 and less"
            return self._wrong(name, f"{wanted}; not '{text[:40]}'", default)
        return int(text)

    def moment(self) -> int | None:
        time, insert_id = self._query.get("time", ""), self._query.get("insertId", "")
        if sum(bool(self._query.get(name)) for name in ("time", "insertId", "line")) > 1:
            return self._wrong(
                "line", "line, time and insertId each say where to begin: give one of them", None
            )
        if time:
            at_ns = instant(time)
            if at_ns is None or at_ns < 0:
                return self._wrong(
                    "time", f"must be a time like 2026-01-31T09:00:00Z, not '{time[:40]}'", None
                )
            return at_ns
        if insert_id:
            place = place_of(insert_id)
            if place is None:
                return self._wrong(
                    "insertId", f"must be the insertId of a line, not '{insert_id[:60]}'", None
                )
            return place[0]
        return None

    def pattern(self) -> LinePattern:
        given = [name for name in ("text", "regex", "severity") if self._query.get(name)]
        nothing = text_pattern("x", is_exact=True)
        if len(given) != 1:
            return self._wrong(
                "text", "text, regex or severity say what to look for: give one of them", nothing
            )
        value = self._query[given[0]]
        is_exact = self._call.flag("matchCase")
        try:
            if given[0] == "text":
                return text_pattern(value, is_exact=is_exact)
            if given[0] == "regex":
                return regex_pattern(value, is_exact=is_exact)
            return regex_pattern(severity_expression(value), is_exact=True)
        except KeyError:
            names = ", ".join(level for level, _ in LEVELS)
            return self._wrong("severity", f"must be one of {names}, not '{value[:40]}'", nothing)
        except Invalid as error:
            self._violations += error.violations
            return nothing

    def _wrong(self, name: str, words: str, default: T) -> T:
        self._violations.append(
            Violation(name, f"{words}." if words.startswith(name) else f"{name} {words}.")
        )
        return default
