"""What every log store keeps to: the numbered promises of `core.log_port.LogStore`, as tests.

Inherit, and give `make`. Programs write into the files the store names, as replicas do.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from trainshed.core.log_lines import FindQuery, LineChoice, LineQuery
from trainshed.core.log_port import LogStore, NumberedLogs
from trainshed.core.logs import Line, LogQuery, OutputStream
from trainshed.core.names import ReplicaName

FIRST = ReplicaName("j1", 0, 0, 0)
SECOND = ReplicaName("j1", 0, 1, 0)


def append(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def texts(lines: tuple[Line, ...]) -> list[str]:
    return [line.text for line in lines]


def place(line: Line) -> tuple[int, str]:
    return line.at_ns, line.insert_id


async def everything(store: LogStore, job: str = "j1", page: int = 1000) -> list[Line]:
    """All lines, page by page, as a polling client asks for them."""
    found: list[Line] = []
    while lines := await store.read(job, LogQuery(limit=page, after=place(found[-1]) if found else None)):
        found.extend(lines)
    return found


async def gather(store: LogStore, query: LogQuery, into: list[Line]) -> None:
    async for batch in store.follow("j1", query):
        into.extend(batch)


async def print_in_turn(store: LogStore, names: Sequence[ReplicaName], times: int) -> None:
    """Two lines by one replica after the other, to either stream. Each finds all before it dated."""
    for number in range(times):
        sink = store.sink(names[number % len(names)])
        append(sink.stdout if number % 3 else sink.stderr, b"%d a\n%d b\n" % (number, number))
        await store.read("j1", LogQuery(limit=1))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


class NumberedStore(LogStore, NumberedLogs, Protocol):
    """A store whose lines have numbers, as that of the server."""


class LogStoreContract:
    def make(self, home: Path, quota: int = 1024**3) -> NumberedStore:
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[NumberedStore]:
        store = self.make(tmp_path / "logs")
        await store.start()
        yield store
        await store.close()

    async def test_a_job_nobody_knows_has_no_lines(self, store: LogStore) -> None:
        assert await store.read("nobody", LogQuery()) == ()
        assert await store.read("../../etc", LogQuery()) == ()

    async def test_a_sink_asked_for_twice_is_the_same_and_keeps_what_is_there(self, store: LogStore) -> None:
        sink = store.sink(FIRST)
        append(sink.stdout, b"kept\n")
        assert store.sink(FIRST) == sink
        assert texts(await store.read("j1", LogQuery())) == ["kept"]

    async def test_a_line_says_who_printed_it_and_where(self, store: LogStore) -> None:
        append(store.sink(SECOND).stderr, b"one\ntwo\n")
        first, second = await store.read("j1", LogQuery())
        assert (first.job, first.attempt, first.pool, first.index) == ("j1", 0, 1, 0)
        assert (first.stream, first.task, first.text) == (OutputStream.STDERR, "workerpool1-0", "one")
        assert (first.sequence, second.sequence) == (0, 4)

    async def test_asked_twice_the_answer_is_the_same(self, store: LogStore) -> None:
        sink = store.sink(FIRST)
        append(sink.stdout, b"one\ntwo\nbegun")
        before = await store.read("j1", LogQuery())
        append(sink.stdout, b" and ended\n")
        append(sink.stderr, b"three\n")
        after = await store.read("j1", LogQuery())
        assert after[:2] == before
        assert texts(after[2:]) == ["begun and ended", "three"]

    async def test_lines_come_in_one_order_forwards_and_backwards(self, store: LogStore) -> None:
        names = [ReplicaName("j1", attempt, pool, 0) for attempt in (0, 1) for pool in (0, 1)]
        await print_in_turn(store, names, 30)
        lines = await store.read("j1", LogQuery())
        places = [place(line) for line in lines]
        assert places == sorted(set(places))
        assert [line.insert_id for line in lines] == sorted(line.insert_id for line in lines)
        assert texts(lines) == [f"{number} {letter}" for number in range(30) for letter in "ab"]
        assert await store.read("j1", LogQuery(newest_first=True)) == lines[::-1]
        assert await store.read("j1", LogQuery(newest_first=True, limit=7)) == lines[:-8:-1]

    async def test_a_piece_decided_later_is_found_behind_lines_given_out_before(
        self, store: LogStore
    ) -> None:
        for size in (32 * 1024, 64 * 1024):  # where an overlong line may be broken
            for name in (ReplicaName(f"j{size}", 0, 0, 0), ReplicaName(f"j{size}", 0, 1, 0)):
                store.sink(name)
            out = store.sink(ReplicaName(f"j{size}", 0, 0, 0)).stdout
            append(out, b"x" * size)
            first = await store.read(f"j{size}", LogQuery())
            append(store.sink(ReplicaName(f"j{size}", 0, 1, 0)).stdout, b"between\n")
            between = (await store.read(f"j{size}", LogQuery()))[-1]
            assert between.text == "between"
            append(out, b"y\n")
            later = await store.read(f"j{size}", LogQuery(after=place(between)))
            whole = "".join(texts(first)) + "".join(texts(later))
            assert whole == "x" * size + "y"

    async def test_pages_put_together_are_the_whole(self, store: LogStore) -> None:
        for name in (FIRST, SECOND):
            append(store.sink(name).stdout, b"".join(b"line %d\n" % number for number in range(500)))
        whole = await store.read("j1", LogQuery(limit=5000))
        assert len(whole) == 1000
        for page in (1, 7, 333):
            assert tuple(await everything(store, page=page)) == whole
        backwards: list[Line] = []
        before = None
        while lines := await store.read("j1", LogQuery(newest_first=True, before=before, limit=77)):
            backwards.extend(lines)
            before = place(lines[-1])
        assert tuple(backwards) == whole[::-1]

    async def test_a_query_chooses_by_time_attempt_task_and_stream(self, store: LogStore) -> None:
        for attempt in (0, 1):
            for pool in (0, 1):
                sink = store.sink(ReplicaName("j1", attempt, pool, 0))
                append(sink.stdout, b"%d.%d out\n" % (attempt, pool))
                append(sink.stderr, b"%d.%d err\n" % (attempt, pool))
        whole = await store.read("j1", LogQuery())
        assert len(whole) == 8
        for newest_first in (False, True):
            for query, expected in (
                (LogQuery(attempt=1), [line for line in whole if line.attempt == 1]),
                (LogQuery(task="workerpool1-0"), [line for line in whole if line.pool == 1]),
                (
                    LogQuery(stream=OutputStream.STDERR),
                    [line for line in whole if line.stream is OutputStream.STDERR],
                ),
                (LogQuery(since_ns=whole[3].at_ns), list(whole[3:])),
                (LogQuery(until_ns=whole[3].at_ns), list(whole[:3])),
                (LogQuery(after=place(whole[3])), list(whole[4:])),
                (LogQuery(before=place(whole[3])), list(whole[:3])),
                (LogQuery(after=place(whole[1]), before=place(whole[5])), list(whole[2:5])),
                (LogQuery(limit=0), []),
            ):
                found = await store.read("j1", _turned(query, newest_first))
                assert list(found) == (expected[::-1] if newest_first else expected)

    async def test_any_bytes_come_out_as_text(self, store: LogStore) -> None:
        append(store.sink(FIRST).stdout, b"\0nul\n\x1b[31mred\x1b[0m\r\n\xff\xfe\n\xe2\x82\xac\n\n\xe2\x82\n")
        lines = await store.read("j1", LogQuery())
        assert texts(lines) == ["\0nul", "\x1b[31mred\x1b[0m\r", "\ufffd\ufffd", "€", "", "\ufffd"]

    async def test_a_hundred_megabytes_without_a_newline_come_in_pieces(self, store: LogStore) -> None:
        sink = store.sink(FIRST)
        with Path(sink.stdout).open("ab") as file:
            for _ in range(100):
                file.write(b"x" * 1024 * 1024)
        append(sink.stderr, b"\xff" * 300_000 + b"\n")
        length, pieces, after = 0, 0, None
        while lines := await store.read("j1", LogQuery(stream=OutputStream.STDOUT, after=after, limit=100)):
            assert all(len(line.text.encode()) <= 256 * 1024 for line in lines)
            length += sum(len(line.text) for line in lines)
            pieces += len(lines)
            after = place(lines[-1])
        await store.finish("j1")
        rest = await store.read("j1", LogQuery(stream=OutputStream.STDOUT, after=after))
        assert length + sum(len(line.text) for line in rest) == 100 * 1024 * 1024
        broken = await store.read("j1", LogQuery(stream=OutputStream.STDERR))
        assert all(len(line.text.encode()) <= 256 * 1024 for line in broken)
        assert sum(len(line.text) for line in broken) == 300_000
        newest = await store.read("j1", LogQuery(stream=OutputStream.STDOUT, newest_first=True, limit=1))
        assert newest == rest[-1:]

    async def test_a_last_line_without_newline_is_given_out_at_the_end_and_stays(
        self, store: LogStore, tmp_path: Path
    ) -> None:
        append(store.sink(FIRST).stdout, b"whole\nbegun")
        append(store.sink(SECOND).stdout, b"later\n")
        seen = await store.read("j1", LogQuery())
        assert sorted(texts(seen)) == ["later", "whole"]
        await store.finish("j1")
        lines = await store.read("j1", LogQuery())
        assert lines[:2] == seen
        assert texts(lines[2:]) == ["begun"]
        await store.finish("j1")
        again = self.make(tmp_path / "logs")
        await again.start()
        assert await again.read("j1", LogQuery()) == lines
        await again.close()

    async def test_nothing_is_lost_or_moved_when_the_server_is_killed(self, tmp_path: Path) -> None:
        first = self.make(tmp_path / "logs")
        await first.start()
        sink = first.sink(FIRST)
        append(sink.stdout, b"one\ntwo\nthr")
        seen = await first.read("j1", LogQuery())
        # Killed: nobody calls close, and the program prints on.
        append(sink.stdout, b"ee\nfour\n")
        second = self.make(tmp_path / "logs")
        await second.start()
        assert second.sink(FIRST) == sink
        lines = await second.read("j1", LogQuery())
        assert lines[:2] == seen
        assert texts(lines) == ["one", "two", "three", "four"]
        third = self.make(tmp_path / "logs")
        await third.start()
        assert await third.read("j1", LogQuery()) == lines
        for store in (first, second, third):
            await store.close()

    async def test_a_follower_sees_every_line_once_and_in_order_and_ends(self, store: LogStore) -> None:
        seen: list[Line] = []
        follower = asyncio.create_task(gather(store, LogQuery(), seen))
        await asyncio.sleep(0)
        sinks = [store.sink(FIRST), store.sink(SECOND)]
        for number in range(200):
            append(sinks[number % 2].stdout, b"%d\n" % number)
            if number % 20 == 0:
                await asyncio.sleep(0.003)
        append(sinks[0].stderr, b"unended")
        await until(lambda: len(seen) == 200)
        await store.finish("j1")
        async with asyncio.timeout(60):
            await follower
        assert seen == await everything(store)
        assert sorted(texts(tuple(seen))) == sorted([*map(str, range(200)), "unended"])

    async def test_many_followers_see_the_same_and_one_may_go(self, store: LogStore) -> None:
        views: list[list[Line]] = [[] for _ in range(5)]
        followers = [asyncio.create_task(gather(store, LogQuery(limit=3), seen)) for seen in views]
        sink = store.sink(FIRST)
        for number in range(20):
            append(sink.stdout, b"%d\n" % number)
            await asyncio.sleep(0.001)
        await until(lambda: len(views[0]) > 5)
        followers[0].cancel()
        await store.finish("j1")
        async with asyncio.timeout(60):
            await asyncio.gather(*followers[1:])
        assert all(texts(tuple(seen)) == [str(number) for number in range(20)] for seen in views[1:])

    async def test_a_follower_begins_behind_the_line_it_knows(self, store: LogStore) -> None:
        append(store.sink(FIRST).stdout, b"one\ntwo\nthree\n")
        known = (await store.read("j1", LogQuery()))[1]
        await store.finish("j1")
        seen: list[Line] = []
        await gather(store, LogQuery(after=place(known)), seen)
        assert texts(tuple(seen)) == ["three"]

    async def test_a_flood_reaches_a_follower_whole(self, store: LogStore) -> None:
        sink = store.sink(FIRST)
        seen = 0
        program = "import sys\nfor n in range(300000): sys.stdout.write(f'line {n}\\n')"
        with Path(sink.stdout).open("ab") as out:
            child = await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", program], stdout=out)
            waiting = asyncio.create_task(asyncio.to_thread(child.wait))
            waiting.add_done_callback(lambda _: ending.append(asyncio.ensure_future(store.finish("j1"))))
            ending: list[asyncio.Future[None]] = []
            async for batch in store.follow("j1", LogQuery(limit=5000)):
                for line in batch:
                    assert line.text == f"line {seen}"
                    seen += 1
        assert await waiting == 0
        await ending[0]
        assert seen == 300_000

    async def test_a_job_over_its_quota_loses_the_middle_and_says_so(self, tmp_path: Path) -> None:
        quota = 400_000
        store = self.make(tmp_path / "logs", quota)
        await store.start()
        sink = store.sink(FIRST)
        append(store.sink(SECOND).stdout, b"small\n")
        for number in range(20_000):
            append(sink.stdout, b"line %015d %079d\n" % (number, 0))
            if number % 500 == 0:
                await store.read("j1", LogQuery(limit=1))
                await asyncio.sleep(0.001)
        await store.finish("j1")
        lines = await everything(store)
        shown = [line for line in lines if line.pool == 0]
        marked = [number for number, line in enumerate(shown) if line.text.startswith("[trainshed:")]
        assert len(marked) == 1
        gap = marked[0]
        assert texts(tuple(shown[:gap])) == [f"line {number:015d} {0:079d}" for number in range(gap)]
        tail = 20_000 - (len(shown) - gap - 1)
        assert texts(tuple(shown[gap + 1 :])) == [f"line {n:015d} {0:079d}" for n in range(tail, 20_000)]
        assert shown[gap].text == (
            f"[trainshed: {(tail - gap) * 101} bytes of output dropped here: "
            f"the job is over its log quota of {quota} bytes]"
        )
        assert "small" in texts(tuple(lines))
        assert gap > 100
        assert 1000 < len(shown) < quota // 101 + 10
        assert [place(line) for line in lines] == sorted({place(line) for line in lines})
        backwards = await store.read("j1", LogQuery(newest_first=True, limit=100_000))
        assert backwards == tuple(lines[::-1])
        again = self.make(tmp_path / "logs", quota)
        await again.start()
        assert await everything(again) == lines
        await again.close()
        await store.close()

    async def test_lines_are_numbered_in_one_order_of_all_or_of_some(self, store: NumberedStore) -> None:
        await print_in_turn(store, (FIRST, SECOND), 40)
        for choice in (
            LineChoice(),
            LineChoice(task="workerpool1-0"),
            LineChoice(stream=OutputStream.STDERR),
            LineChoice(attempt=1),
        ):
            asked = LogQuery(task=choice.task, stream=choice.stream, attempt=choice.attempt)
            shown = await store.read("j1", asked)
            whole = await store.lines("j1", LineQuery(choice=choice, count=1000))
            assert (whole.lines, whole.first, whole.total.lines) == (shown, 1, len(shown))
            assert whole.total.is_complete
            for line in range(1, len(shown) + 1, 7):
                page = await store.lines("j1", LineQuery(choice=choice, line=line, count=5))
                assert (page.lines, page.first) == (shown[line - 1 :][:5], line)
                by_time = LineQuery(choice=choice, since_ns=shown[line - 1].at_ns, before=2, count=5)
                around = await store.lines("j1", by_time)
                assert (around.lines, around.first) == (shown[max(0, line - 3) :][:5], max(1, line - 2))
            last = await store.lines("j1", LineQuery(choice=choice, line=-3, count=9))
            assert last.lines == shown[-3:]

    async def test_lines_that_are_not_there_are_none(self, store: NumberedStore) -> None:
        nothing = await store.lines("nobody", LineQuery(choice=LineChoice(), count=5))
        assert (nothing.lines, nothing.total.lines, nothing.total.is_complete) == ((), 0, True)
        append(store.sink(FIRST).stdout, b"one\nbegun")
        beyond = await store.lines("j1", LineQuery(choice=LineChoice(), line=10**12, count=5))
        assert (beyond.lines, beyond.total.lines) == ((), 1)

    async def test_a_search_gives_lines_with_numbers_and_may_be_given_up(self, store: NumberedStore) -> None:
        append(store.sink(FIRST).stdout, b"a needle\nhay\n" * 50)
        query = FindQuery(choice=LineChoice(), pattern=re.compile(rb"needle"), line=4)
        async with contextlib.aclosing(store.find("j1", query)) as steps:
            step = await anext(steps)
        assert [(row.number, row.line.text) for row in step.lines[:2]] == [(5, "a needle"), (7, "a needle")]
        assert step.matches == 48
        assert [step async for step in store.find("nobody", query)] == []

    async def test_growth_is_told_until_the_job_is_finished(self, store: NumberedStore) -> None:
        seen: list[int] = []

        async def watch() -> None:
            async for _ in store.growth("j1"):
                seen.append(len(await store.read("j1", LogQuery())))

        watching = asyncio.create_task(watch())
        await until(lambda: seen == [0])
        sink = store.sink(FIRST)
        append(sink.stdout, b"one\n")
        await until(lambda: 1 in seen)
        append(sink.stderr, b"two\n")
        await until(lambda: 2 in seen)
        await store.finish("j1")
        await asyncio.wait_for(watching, 60)

    async def test_a_removed_job_is_gone(self, store: LogStore) -> None:
        sink = store.sink(FIRST)
        append(sink.stdout, b"one\n")
        seen: list[Line] = []
        follower = asyncio.create_task(gather(store, LogQuery(), seen))
        await until(lambda: bool(seen))
        await store.remove("j1")
        async with asyncio.timeout(60):
            await follower
        assert not os.path.exists(sink.stdout)
        assert await store.read("j1", LogQuery()) == ()
        await store.remove("j1")
        assert texts(await store.read("j1", LogQuery())) == []

    async def test_every_job_with_output_is_told(self, store: LogStore) -> None:
        assert await store.jobs() == frozenset()
        store.sink(FIRST)
        store.sink(ReplicaName("j2", 0, 0, 0))
        await store.finish("j2")
        assert await store.jobs() == {"j1", "j2"}
        await store.remove("j1")
        assert await store.jobs() == {"j2"}


def _turned(query: LogQuery, newest_first: bool) -> LogQuery:
    fields = {name: getattr(query, name) for name in query.__dataclass_fields__}
    return LogQuery(**{**fields, "newest_first": newest_first})
