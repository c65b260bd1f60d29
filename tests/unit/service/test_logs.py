"""Lines and events of several jobs as one story, whichever way it is read."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, at
from tests.properties.effort import PROPERTY
from trainshed.core.event import Event, Reason
from trainshed.core.jobs.job import Job, JobState, Status
from trainshed.core.logs import Chunk, Line, LogQuery, OutputQuery, OutputStream
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.log_windows import MOST_OPEN, ProjectJobs, log_windows
from trainshed.service.logs import SERVICE_TASK, LogRow, LogService, event_row
from trainshed.testing.store import MemoryStore


def a_line(job: str, second: float, text: str = "", pool: int = 0) -> Line:
    at_ns = event_row(a_job(), Event(at=at(second), reason=Reason.RUNNING, message="")).at_ns
    return Line(job, 0, pool, 0, OutputStream.STDOUT, at_ns, int(second * 1000), text)


class FakeLines:
    """A LogStore of given lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = sorted(lines, key=lambda line: (line.at_ns, line.insert_id))
        self.more = asyncio.Event()
        self.reads = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> Sink:
        return Sink(stdout="", stderr="")

    async def output(self, job: str, query: OutputQuery, *, follow: bool) -> AsyncIterator[tuple[Chunk, ...]]:
        for batch in ():
            yield batch

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        self.reads += 1

        def asked(line: Line) -> bool:
            place = (line.at_ns, line.insert_id)
            return (
                line.job == job
                and (query.after is None or place > query.after)
                and (query.before is None or place < query.before)
                and (query.since_ns is None or line.at_ns >= query.since_ns)
                and (query.until_ns is None or line.at_ns < query.until_ns)
                and (query.task is None or line.task == query.task)
            )

        found = [line for line in self.lines if asked(line)]
        return tuple((found[::-1] if query.newest_first else found)[: query.limit])

    async def follow(self, job: str, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        await self.more.wait()
        yield await self.read(job, query)

    async def finish(self, job: str) -> None: ...

    async def remove(self, job: str) -> None: ...

    async def jobs(self) -> frozenset[str]:
        return frozenset(line.job for line in self.lines)

    def has_room(self) -> bool:
        return True


async def a_story(lines: Sequence[Line], events: dict[str, list[Event]]) -> tuple[LogService, list[Job]]:
    store = MemoryStore()
    jobs = [await store.insert(a_job(id=id), told) for id, told in events.items()]
    return LogService(store=store, lines=FakeLines(lines), notifier=JobNotifier()), jobs


def an_event(second: float, message: str = "") -> Event:
    return Event(at=at(second), reason=Reason.RUNNING, message=message)


async def words(logs: LogService, jobs: list[Job], query: LogQuery) -> list[str]:
    return [
        row.entry.text if isinstance(row.entry, Line) else row.entry.message
        async for _, row in logs.merged(jobs, query)
    ]


async def test_lines_and_events_of_two_jobs_come_in_one_order():
    lines = [a_line("1", 2, "one"), a_line("2", 3, "two"), a_line("1", 6, "three")]
    logs, jobs = await a_story(
        lines, {"1": [an_event(1, "begin"), an_event(7, "end")], "2": [an_event(4, "mid")]}
    )
    assert await words(logs, jobs, LogQuery()) == ["begin", "one", "two", "mid", "three", "end"]


async def test_newest_first_is_the_same_story_backwards():
    lines = [a_line("1", 2, "one"), a_line("2", 3, "two"), a_line("1", 6, "three")]
    logs, jobs = await a_story(
        lines, {"1": [an_event(1, "begin"), an_event(7, "end")], "2": [an_event(4, "mid")]}
    )
    forwards = await words(logs, jobs, LogQuery())
    assert await words(logs, jobs, LogQuery(newest_first=True)) == forwards[::-1]


async def test_the_services_own_lines_can_be_asked_for_alone_and_left_out():
    logs, jobs = await a_story([a_line("1", 2, "line")], {"1": [an_event(1, "event")]})
    assert await words(logs, jobs, LogQuery(task=SERVICE_TASK)) == ["event"]
    assert await words(logs, jobs, LogQuery(task="workerpool0-0")) == ["line"]


async def test_a_search_for_one_line_does_not_read_line_by_line():
    lines = FakeLines([a_line("1", n, str(n)) for n in range(2000)])
    job = await (store := MemoryStore()).insert(a_job(id="1"), ())
    found = await words(
        LogService(store=store, lines=lines, notifier=JobNotifier()), [job], LogQuery(limit=1)
    )
    assert found == [str(n) for n in range(2000)]
    assert lines.reads < 10


async def test_bounds_hold_for_events_as_for_lines():
    logs, jobs = await a_story([], {"1": [an_event(n, str(n)) for n in range(5)]})
    rows = [row async for _, row in logs.merged(jobs, LogQuery())]
    query = LogQuery(since_ns=rows[1].at_ns, until_ns=rows[3].at_ns)
    assert await words(logs, jobs, query) == ["1", "2"]
    assert await words(logs, jobs, LogQuery(after=rows[2].place)) == ["3", "4"]
    assert await words(logs, jobs, LogQuery(before=rows[2].place)) == ["0", "1"]


places = st.lists(st.integers(0, 12), max_size=12, unique=True)


@PROPERTY
@given(places, places, st.booleans(), st.integers(1, 3))
def test_any_story_comes_whole_in_order_and_once(
    lines: list[int], events: list[int], newest_first: bool, limit: int
):
    async def play() -> list[LogRow]:
        logs, jobs = await a_story(
            [a_line(str(n % 2), n) for n in lines],
            {id: [an_event(n) for n in events if n % 2 == int(id)] for id in "01"},
        )
        return [row async for _, row in logs.merged(jobs, LogQuery(newest_first=newest_first, limit=limit))]

    rows = asyncio.run(play())
    places = [row.place for row in rows]
    assert places == sorted(places, reverse=newest_first)
    assert len(rows) == len(lines) + len(events)


async def test_pages_give_every_line_and_the_newest_oldest_first():
    logs, jobs = await a_story([a_line("1", n, str(n)) for n in range(5)], {"1": []})
    everything = [line.text async for page in logs.pages(jobs[0], LogQuery(), None) for line in page]
    last = [line.text async for page in logs.pages(jobs[0], LogQuery(), 2) for line in page]
    assert everything == ["0", "1", "2", "3", "4"]
    assert last == ["3", "4"]


async def test_a_search_finds_only_jobs_of_its_project():
    logs, jobs = await a_story([], {"1": [], "2": []})
    assert await logs.jobs_of(["shed"], ["1", "7"]) == (jobs[0],)
    assert await logs.jobs_of(["other"], ["1"]) == ()
    assert await logs.jobs_of(["shed", "other"], None) == ProjectJobs(("shed", "other"))


async def many_jobs(count: int, minutes: int, lasts: int) -> LogService:
    """Jobs that begin so many minutes after each other; each has a line and, unless it lasts on, an end."""
    store, lines = MemoryStore(), list[Line]()
    for number in range(count):
        begun = number * minutes * 60
        ended_at = at(begun + lasts * 60) if lasts else None
        state = JobState.SUCCEEDED if lasts else JobState.RUNNING
        job = a_job(
            id=f"{number:05}",
            created_at=at(begun),
            status=Status(state=state, updated_at=at(begun), ended_at=ended_at),
        )
        await store.insert(job, [an_event(begun, f"event {number}")])
        lines.append(a_line(job.id, begun + 1 + number / 1000, f"line {number}"))
    return LogService(store=store, lines=FakeLines(lines), notifier=JobNotifier())


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    ("count", "minutes", "lasts"), [(210, 7, 5), (110, 0, 1), (110, 1, 0), (50, 60 * 24 * 30, 5)]
)
async def test_a_search_of_a_project_finds_the_entries_of_all_its_jobs(
    count: int, minutes: int, lasts: int, newest_first: bool
):
    logs = await many_jobs(count, minutes, lasts)
    query = LogQuery(newest_first=newest_first)
    rows = [row async for _, row in logs.merged(ProjectJobs(("shed", "empty")), query)]
    places = [row.place for row in rows]
    assert places == sorted(places, reverse=newest_first)
    assert len(set(places)) == len(places) == 2 * count
    behind = {"before": places[9]} if newest_first else {"after": places[9]}
    rest = [row async for _, row in logs.merged(ProjectJobs(("shed",)), replace(query, **behind))]
    assert [row.place for row in rest] == places[10:]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_search_opens_no_more_jobs_at_once_than_lived_at_one_time(newest_first: bool):
    logs = await many_jobs(250, 7, 5)
    query = LogQuery(newest_first=newest_first, since_ns=a_line("", 100 * 7 * 60).at_ns)
    windows = [window async for window in log_windows(logs.store, ProjectJobs(("shed",)), query)]
    assert max(len(window.jobs) for window in windows) <= MOST_OPEN
    assert {job.id for window in windows for job in window.jobs} >= {f"{n:05}" for n in range(100, 250)}
    assert min(job.id for window in windows for job in window.jobs) >= "00095"  # ended long before


async def test_news_is_a_new_line():
    logs, jobs = await a_story([], {"1": []})
    waiting = asyncio.create_task(logs.news(jobs[0], LogQuery(), patience=60))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert isinstance(logs.lines, FakeLines)
    logs.lines.more.set()
    await waiting


async def test_news_is_a_change_of_the_job():
    logs, jobs = await a_story([], {"1": []})
    waiting = asyncio.create_task(logs.news(jobs[0], LogQuery(), patience=60))
    await asyncio.sleep(0.01)
    logs.notifier.ring(await logs.store.write(jobs[0], replace(jobs[0].status, attempt=1)))
    await waiting


async def test_a_change_that_came_before_is_news_at_once():
    logs, jobs = await a_story([], {"1": []})
    await logs.store.write(jobs[0], replace(jobs[0].status, attempt=1))
    await logs.news(jobs[0], LogQuery(), patience=60)


async def test_without_news_patience_ends():
    logs, jobs = await a_story([], {"1": []})
    await logs.news(jobs[0], LogQuery(), patience=0.01)
