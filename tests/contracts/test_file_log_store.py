"""The file store keeps the contract, and a few promises of its own."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.log_store import (
    FIRST,
    SECOND,
    LogStoreContract,
    NumberedStore,
    append,
    everything,
    place,
    texts,
    until,
)
from trainshed.core.errors import Invalid, Unavailable
from trainshed.core.log_lines import LineChoice, LineQuery
from trainshed.core.log_port import LogStore
from trainshed.core.logs import Line, LogQuery, OutputQuery
from trainshed.core.names import ReplicaName
from trainshed.disk import inotify
from trainshed.logs import line_numbers, merge
from trainshed.logs import store as log_store
from trainshed.logs.file import LogFile
from trainshed.logs.job import JobLog
from trainshed.logs.quota import Quota
from trainshed.logs.store import FileLogStore


class TestFileLogStore(LogStoreContract):
    def make(self, home: Path, quota: int = 1024**3) -> NumberedStore:
        return FileLogStore(home, quota)


class TestFileLogStoreWithoutInotify(TestFileLogStore):
    @pytest.fixture(autouse=True)
    def no_inotify(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inotify, "_libc", object())


class Wall:
    def __init__(self) -> None:
        self.now = time.time_ns()

    def __call__(self) -> int:
        return self.now


async def test_a_wall_clock_that_jumps_back_moves_no_line_back(tmp_path: Path) -> None:
    wall = Wall()
    store = FileLogStore(tmp_path, wall=wall)
    await store.start()
    sink = store.sink(FIRST)
    append(sink.stdout, b"one\n")
    await store.read("j1", LogQuery())
    wall.now -= 3600 * 10**9
    append(sink.stderr, b"two\n")
    await store.read("j1", LogQuery())
    append(sink.stdout, b"three\n")
    lines = await store.read("j1", LogQuery())
    assert texts(lines) == ["one", "two", "three"]
    assert [place(line) for line in lines] == sorted(place(line) for line in lines)
    await store.close()


async def test_lines_printed_while_no_server_ran_have_the_time_they_were_printed(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    sink = store.sink(FIRST)
    await store.close()
    append(sink.stdout, b"long ago\n")
    printed = time.time_ns() - 3600 * 10**9
    os.utime(sink.stdout, ns=(printed, printed))
    again = FileLogStore(tmp_path)
    await again.start()
    (line,) = await again.read("j1", LogQuery())
    assert abs(line.at_ns - printed) < 1000
    await again.close()


async def test_a_line_is_never_dated_before_one_already_given_out(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    first, second = store.sink(FIRST), store.sink(SECOND)
    append(first.stdout, b"begun")
    await store.read("j1", LogQuery())
    append(second.stdout, b"whole\n")
    (known,) = await store.read("j1", LogQuery())
    append(first.stdout, b" and ended\n")
    os.utime(first.stdout, ns=(0, 0))
    assert texts(await store.read("j1", LogQuery(after=place(known)))) == ["begun and ended"]
    await store.close()


async def test_a_torn_index_record_is_cut_off(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    sink = store.sink(FIRST)
    append(sink.stdout, b"one\n")
    before = await store.read("j1", LogQuery())
    append(f"{sink.stdout}.idx", b"torn")
    again = FileLogStore(tmp_path)
    await again.start()
    assert await again.read("j1", LogQuery()) == before
    append(sink.stdout, b"two\n")
    lines = await again.read("j1", LogQuery())
    assert lines[:1] == before
    assert texts(lines) == ["one", "two"]
    await store.close()
    await again.close()


async def test_a_program_that_empties_its_output_loses_only_what_it_emptied(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    sink = store.sink(FIRST)
    append(sink.stderr, b"one line\nanother line\n")
    await store.read("j1", LogQuery())
    with Path(sink.stderr).open("wb") as file:  # as `echo again > /dev/stderr` does
        file.write(b"again\n")
    append(sink.stderr, b"and on\n")
    lines = texts(await store.read("j1", LogQuery()))
    assert lines[0] == "[trainshed: 22 bytes of output are gone here: the program emptied its output file]"
    assert lines[1:] == ["again", "and on"]
    append(sink.stderr, b"and on\n")
    assert texts(await store.read("j1", LogQuery()))[1:] == ["again", "and on", "and on"]
    await store.close()


async def test_a_drop_is_told_once_a_job(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    store = FileLogStore(tmp_path, quota=200_000, on_drop=lambda job, _, size: told.append((job, size)))
    await store.start()
    sink = store.sink(FIRST)
    for _ in range(10):
        append(sink.stdout, b"".join(b"%099d\n" % number for number in range(1000)))
        await store.read("j1", LogQuery(limit=1))
        await asyncio.sleep(0.01)
    await store.finish("j1")
    assert len(told) == 1
    assert told[0][0] == "j1"
    assert os.stat(sink.stdout).st_size == 1_000_000
    assert os.stat(sink.stdout).st_blocks * 512 < 300_000
    await store.close()


async def test_a_quota_holds_while_a_program_floods_and_a_follower_reads(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path, quota=4 * 1024 * 1024)
    await store.start()
    sink = store.sink(FIRST)
    program = "import sys\nfor n in range(400000): sys.stdout.write(f'line {n:060d}\\n')"
    seen: list[Line] = []
    with Path(sink.stdout).open("ab") as out:
        child = subprocess.Popen([sys.executable, "-c", program], stdout=out)
        waiting = asyncio.create_task(asyncio.to_thread(child.wait))
        ending = asyncio.create_task(_finish_after(store, waiting))
        async for batch in store.follow("j1", LogQuery(limit=2000)):
            assert all(
                line.text.startswith(("line 0", "[trainshed")) and "\0" not in line.text for line in batch
            )
            seen.extend(batch)
        await ending
    assert [place(line) for line in seen] == sorted({place(line) for line in seen})
    assert seen[-1].text == f"line {399_999:060d}"
    kept = await everything(store)
    assert sum(line.text.startswith("[trainshed") for line in kept) == 1
    assert sum(len(line.text) + 1 for line in kept) <= 4 * 1024 * 1024
    await store.close()


async def _finish_after(store: LogStore, waiting: "asyncio.Task[int]") -> None:
    await waiting
    await store.finish("j1")


async def test_a_job_finished_without_any_output_ends_its_followers_also_later(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    await store.finish("j1")
    async with asyncio.timeout(60):
        assert [batch async for batch in store.follow("j1", LogQuery())] == []
    await store.close()
    again = FileLogStore(tmp_path)
    await again.start()
    async with asyncio.timeout(60):
        assert [batch async for batch in again.follow("j1", LogQuery())] == []
    await again.close()


async def test_closing_the_store_ends_its_followers(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    store.sink(FIRST)
    seen: list[Line] = []
    follower = asyncio.create_task(_follow(store, seen))
    await asyncio.sleep(0.01)
    await store.close()
    async with asyncio.timeout(60):
        await follower
    assert seen == []


async def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path / "logs")
    with pytest.raises(Invalid):
        store.sink(ReplicaName("..", 0, 0, 0))


async def test_a_thousand_replicas_are_read_in_order_with_few_descriptors(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    for index in range(1000):
        append(store.sink(ReplicaName("j1", 0, 0, index)).stdout, b"%d\n" % index)
    lines = await store.read("j1", LogQuery(limit=5000))
    assert sorted(int(line.text) for line in lines) == list(range(1000))
    assert len(os.listdir("/proc/self/fd")) < 100
    await store.finish("j1")
    assert await store.read("j1", LogQuery(limit=5000)) == lines
    await store.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"mounting a small file system is not permitted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_loses_no_line_that_was_written(tiny_disk: Path) -> None:
    store = FileLogStore(tiny_disk / "logs")
    await store.start()
    sink = store.sink(FIRST)
    append(sink.stdout, b"before\n")
    before = await store.read("j1", LogQuery())
    ballast = tiny_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    append(sink.stdout, b"while full\n")  # its page is there already
    assert texts(await store.read("j1", LogQuery())) == ["before", "while full"]
    await store.finish("j1")
    ballast.unlink()
    lines = await store.read("j1", LogQuery())
    assert lines[:1] == before
    assert texts(lines) == ["before", "while full"]
    await store.close()


async def test_lines_that_cannot_be_dated_are_given_out_once_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    sink = store.sink(FIRST)
    real = os.write
    full = True

    def write(descriptor: int, data: bytes) -> int:
        if full and os.readlink(f"/proc/self/fd/{descriptor}").endswith(".idx"):
            return real(descriptor, data[:5])  # as a disk does that fills up in the midst
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    seen: list[Line] = []
    append(sink.stdout, b"one\ntwo")
    assert await store.read("j1", LogQuery()) == ()
    full = False
    async with asyncio.timeout(60):
        async for batch in store.follow("j1", LogQuery()):
            seen.extend(batch)
            full = True
            await store.finish("j1")  # the last line cannot be dated now either
    assert texts(tuple(seen)) == ["one"]
    full = False
    assert texts(await store.read("j1", LogQuery())) == ["one", "two"]
    await store.close()


async def test_an_idle_store_does_nothing(tmp_path: Path) -> None:
    looks = 0

    def wall() -> int:
        nonlocal looks
        looks += 1
        return time.time_ns()

    store = FileLogStore(tmp_path, wall=wall)
    await store.start()
    sink = store.sink(FIRST)
    seen: list[Line] = []
    follower = asyncio.create_task(_follow(store, seen))
    append(sink.stdout, b"one\n")
    await until(lambda: len(seen) == 1)
    await asyncio.sleep(0.2)
    before = looks
    await asyncio.sleep(0.5)
    assert looks == before
    append(sink.stdout, b"two\n")
    await until(lambda: len(seen) == 2)
    await store.finish("j1")
    await follower
    await store.close()


async def _follow(store: LogStore, into: list[Line]) -> None:
    async for batch in store.follow("j1", LogQuery()):
        into.extend(batch)


async def test_a_follower_after_a_restart_sees_what_was_printed_meanwhile_by_replicas_since_gone(
    tmp_path: Path,
) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    gone, running = store.sink(FIRST), store.sink(SECOND)
    await store.close()
    append(gone.stdout, b"last words\n")
    os.utime(gone.stdout, (0, 0))
    append(running.stdout, b"still here\n")
    again = FileLogStore(tmp_path)
    await again.start()
    again.sink(SECOND)
    seen: list[Line] = []
    follower = asyncio.create_task(_follow(again, seen))
    await until(lambda: len(seen) == 2)
    append(running.stdout, b"on\n")
    await until(lambda: len(seen) == 3)
    await again.finish("j1")
    await follower
    assert texts(tuple(seen)) == ["last words", "still here", "on"]
    await again.close()


async def test_a_write_just_before_the_kernel_is_asked_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = inotify.InotifyWatcher.arm
    missed: list[str] = []

    def late(watcher: inotify.InotifyWatcher, path: str) -> bool:
        if path.endswith(".out") and not missed:
            missed.append(path)
            append(path, b"in between\n")
        return arm(watcher, path)

    monkeypatch.setattr(inotify.InotifyWatcher, "arm", late)
    store = FileLogStore(tmp_path)
    await store.start()
    seen: list[Line] = []
    follower = asyncio.create_task(_follow(store, seen))
    await asyncio.sleep(0.01)
    store.sink(FIRST)
    await until(lambda: bool(missed))
    await until(lambda: bool(seen))
    await store.finish("j1")
    await follower
    await store.close()


@pytest.mark.parametrize("newest_first", [False, True])
async def test_what_is_dropped_in_the_midst_of_reading_is_never_given_out_as_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    log = JobLog(tmp_path / "j1")
    log.begin()
    file, _ = log.open(FIRST)
    append(file.path, b"".join(b"%099d\n" % number for number in range(2000)))
    log.stamp([file], time.time_ns())
    real = LogFile.read

    def read(self: LogFile, offset: int, length: int) -> bytes:
        if length > 10_000 and file.drop is None:
            assert Quota(100_000, str(tmp_path)).enforce([file])
        return real(self, offset, length)

    monkeypatch.setattr(LogFile, "read", read)
    lines = merge.read(log.views(), LogQuery(limit=5000, newest_first=newest_first))
    assert file.drop is not None
    assert sum("\0" in line.text for line in lines) == 0
    assert sum(line.text.startswith("[trainshed") for line in lines) == 1
    assert sum(len(line.text) + 1 for line in lines if line.text.isdigit()) == 200_000 - file.drop.size


async def test_output_that_a_job_replaced_by_a_fifo_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    first, second = store.sink(FIRST), store.sink(SECOND)
    append(first.stdout, b"gone\n")
    append(second.stdout, b"kept\n")
    assert texts(await store.read("j1", LogQuery())) == ["gone", "kept"]
    Path(first.stdout).unlink()
    os.mkfifo(first.stdout)
    append(second.stdout, b"kept too\n")
    assert texts(await store.read("j1", LogQuery())) == ["kept", "kept too"]
    output = [chunks async for chunks in store.output("j1", OutputQuery(), follow=False)]
    assert b"".join(chunk.data for chunks in output for chunk in chunks) == b"kept\nkept too\n"
    assert store.sink(FIRST) == first  # a restarted replica can print again
    append(first.stdout, b"again\n")
    await store.finish("j1")
    await store.close()
    later = FileLogStore(tmp_path)
    assert [text for text in texts(await later.read("j1", LogQuery())) if not text.startswith("[")] == [
        "kept",
        "kept too",
        "again",
    ]


@pytest.mark.parametrize("suffix", ["idx", "drop", "drop.new"])
async def test_a_fifo_beside_the_output_holds_nothing_up(tmp_path: Path, suffix: str) -> None:
    store = FileLogStore(tmp_path, quota=1000)
    await store.start()
    first, second = store.sink(FIRST), store.sink(SECOND)
    beside = Path(f"{first.stdout}.{suffix}")
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    append(first.stdout, b"line\n" * 1000)
    append(second.stdout, b"kept\n")
    await store.read("j1", LogQuery())
    Path(first.stdout).write_bytes(b"")  # emptied by its program
    await store.read("j1", LogQuery())
    await store.finish("j1")
    await store.close()
    later = FileLogStore(tmp_path)
    assert "kept" in texts(await later.read("j1", LogQuery(task=SECOND.task)))


async def test_an_index_that_a_job_cut_short_is_told_as_such(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    append(store.sink(FIRST).stdout, b"line\n")
    await store.read("j1", LogQuery())
    os.truncate(f"{store.sink(FIRST).stdout}.idx", 0)
    with pytest.raises(Unavailable, match="cannot be read"):
        await store.read("j1", LogQuery())
    await store.close()


async def test_a_large_log_is_counted_in_the_background_and_meanwhile_shown_without_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_numbers, "AT_ONCE", 1000)
    store = FileLogStore(tmp_path)
    await store.start()
    append(store.sink(FIRST).stdout, b"".join(b"line %d\n" % number for number in range(1, 100_001)))
    await store.finish("j1")
    last = await store.lines("j1", LineQuery(choice=LineChoice(), line=-2, count=10))
    assert texts(last.lines) == ["line 99999", "line 100000"]
    assert last.first is None
    assert not last.total.is_complete
    since = LineQuery(choice=LineChoice(), since_ns=last.lines[0].at_ns, before=2, count=3)
    assert texts((await store.lines("j1", since)).lines) == ["line 99997", "line 99998", "line 99999"]
    page = await store.lines("j1", LineQuery(choice=LineChoice(), line=50_000, count=2))
    assert (texts(page.lines), page.first) == (["line 50000", "line 50001"], 50_000)
    assert page.total.lines == 100_000
    await store.close()
    again = FileLogStore(tmp_path)  # counts are kept
    await again.start()
    last = await again.lines("j1", LineQuery(choice=LineChoice(), line=-2, count=10))
    assert (last.first, last.total.is_complete) == (99_999, True)
    await again.close()


async def test_a_live_log_that_grows_fast_is_counted_before_anybody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "COUNTED_AHEAD", 1000)
    store = FileLogStore(tmp_path)
    await store.start()
    sink = store.sink(FIRST)
    append(sink.stdout, b"a line\n" * 100_000)
    await until(lambda: Path(f"{sink.stdout}.lines").exists())
    await store.close()


async def test_lines_of_a_file_that_the_job_replaced_are_left_out(tmp_path: Path) -> None:
    store = FileLogStore(tmp_path)
    await store.start()
    first, second = store.sink(FIRST), store.sink(SECOND)
    append(first.stdout, b"one\n")
    append(second.stdout, b"two\n")
    await store.read("j1", LogQuery())
    Path(first.stdout).unlink()
    os.mkfifo(first.stdout)
    page = await store.lines("j1", LineQuery(choice=LineChoice(), count=10))
    assert (texts(page.lines), page.total.lines) == (["two"], 1)
    await store.close()
