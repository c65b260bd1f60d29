"""The files of a pod, without a cluster: a real init in a process namespace of its own, asked by PodFiles."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.contracts.test_pod_channel import TOKEN, Pod, pod
from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.local_copy import LocalCopy, are_equal
from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.cluster.pod_files import Brought, PodEntry, PodFiles, Refused

__all__ = ["pod"]  # a fixture


@asynccontextmanager
async def files_of(pod: Pod) -> AsyncIterator[PodFiles]:
    door = PodDoor(api=cast(ClusterApi, None), pod="pod", token=TOKEN, port=pod.port)
    while True:
        try:
            async with door.connect("127.0.0.1", "files") as streams:
                yield PodFiles(streams)
                return
        except ChannelBroken as broken:
            if "does not listen" not in str(broken):
                raise
            await asyncio.sleep(0.05)


@pytest.fixture
async def files(pod: Pod) -> AsyncIterator[PodFiles]:
    pod.start("sleep", "1000")
    async with files_of(pod) as files:
        yield files


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    (tmp_path / "here").mkdir()
    return LocalCopy(str(tmp_path / "here"), "gcs")


async def whole(files: PodFiles, *paths: str) -> list[tuple[PodEntry, bytes, PodEntry] | Refused]:
    result: list[tuple[PodEntry, bytes, PodEntry] | Refused] = []
    begun: PodEntry | None = None
    data = b""
    async for item in files.fetch(paths):
        if isinstance(item, Refused):
            result.append(item)
        elif isinstance(item, bytes):
            data += item
        elif begun is None:
            begun, data = item, b""
        else:
            result.append((begun, data, item))
            begun = None
    return result


async def test_a_folder_is_brought_as_it_is_and_its_files_come_back_with_the_same_bytes(
    files: PodFiles, copy: LocalCopy
):
    top = Path(copy.top)
    (top / "a/b").mkdir(parents=True)
    (top / "a/empty").mkdir()
    contents = {"a/b/large": os.urandom(3_000_001), "größe\n": b"x", "none": b""}
    for name, content in contents.items():
        (top / name).write_bytes(content)
    (top / "a/b/large").chmod(0o755)
    os.utime(top / "none", ns=(123_456_789, 1_600_000_000_123_456_789))
    (top / "link").symlink_to("a/b/large")
    items = list(copy.all())
    assert await files.bring(items) == []
    _, entries = await files.look("gcs")
    there = {entry.path: entry for entry in entries or ()}
    assert there.keys() == {item.entry.path for item in items}
    assert all(are_equal(item.entry, there[item.entry.path]) for item in items)
    assert there["gcs/a/b/large"].mode & 0o111 == 0o111
    fetched = await whole(files, *(f"gcs/{name}" for name in contents))
    for got, content in zip(fetched, contents.values(), strict=True):
        assert not isinstance(got, Refused)
        assert got[1] == content and got[0].is_same(got[2])


async def test_thousands_of_small_files_go_and_come_in_one_go(files: PodFiles, copy: LocalCopy):
    top = Path(copy.top)
    for number in range(3000):
        (top / str(number)).write_bytes(b"%d" % number)
    assert await files.bring(copy.all()) == []
    fetched = await whole(files, *(f"gcs/{number}" for number in range(3000)))
    assert [got[1] for got in fetched if not isinstance(got, Refused)] == [b"%d" % n for n in range(3000)]
    assert await files.remove(f"gcs/{number}" for number in range(3000)) == []
    assert (await files.look("gcs"))[1] == []


PATHS = ["..", "gcs", "gcs/../../x", "gcs//x", "/etc/passwd", "run/x", "", "gcs/./x", "gcs/out/x", "tmp/x"]


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_leads_out_of_its_root(pod: Pod, files: PodFiles, copy: LocalCopy, path: str):
    (pod.folder / "outside").mkdir()
    (pod.folder / "outside/x").write_text("secret")
    (pod.folder / "files/gcs/out").symlink_to(pod.folder / "outside")
    (Path(copy.top) / "x").write_text("changed")
    [refused] = await whole(files, path)
    assert isinstance(refused, Refused)
    [item] = list(copy.all())
    brought = Brought(PodEntry(path=path, kind="f"), item.source)
    assert [one.path for one in await files.bring([brought])] == [path]
    await files.remove([path])
    assert (pod.folder / "outside/x").read_text() == "secret"
    _, entries = await files.look("gcs")
    assert {entry.path for entry in entries or ()} <= {"gcs/out"}


async def test_a_list_that_waits_comes_when_something_changes_and_when_somebody_asks(
    pod: Pod, files: PodFiles
):
    number, entries = await files.look("gcs report")
    assert entries == []
    waiting = asyncio.create_task(files.look("gcs report", number, wait=True))
    await asyncio.sleep(0)
    report = pod.folder / "report"  # one change, not a new file and its first byte
    report.write_text("1")
    report.rename(pod.folder / "files/report/report")
    number, entries = await waiting
    assert [entry.path for entry in entries or ()] == ["report/report"]
    waiting = asyncio.create_task(files.look("gcs report", number, wait=True))
    await asyncio.sleep(0)
    files.nudge()
    assert await waiting == (number, None)
    assert await files.look("gcs report", number) == (number, None)


async def test_what_cannot_be_brought_is_told_and_the_rest_is_there(
    pod: Pod, files: PodFiles, copy: LocalCopy
):
    top = Path(copy.top)
    (top / "taken").write_bytes(b"1" * 1_000_000)
    (top / "well").write_bytes(b"2")
    (pod.folder / "files/gcs/taken").mkdir()
    (pod.folder / "files/gcs/taken/x").mkdir()
    [refused] = await files.bring(copy.all())
    assert (refused.path, refused.number) == ("gcs/taken", errno.EISDIR)
    assert (pod.folder / "files/gcs/well").read_bytes() == b"2"
    assert list((pod.folder / "files/.new").iterdir()) == []


async def test_a_record_says_that_a_program_has_written_nothing_below_gcs(pod: Pod):
    pod.start("sh", "-c", f"test {'$0'} = no || echo 1 > {pod.folder}/files/gcs/x; true", "no")
    channel = pod.channel()
    await pod.follow(channel, lambda: channel.order("done" if pod.record.exit else "go"))
    assert pod.record.exit is not None and pod.record.unchanged


async def test_a_program_begins_in_its_folder_and_its_files_are_there_after_its_end(pod: Pod):
    pod.start("sh", "-c", "pwd; echo $TMPDIR; echo 1 > ../../gcs/x", start=f"{pod.folder}/files/code/sub")
    channel = pod.channel()
    following = asyncio.create_task(pod.follow(channel, lambda: channel.order("go")))
    while pod.record.exit is None:
        await asyncio.sleep(0.01)
    assert pod.out == f"{pod.folder}/files/code/sub\n{pod.folder}/files/tmp\n"
    assert not pod.record.unchanged
    async with files_of(pod) as files:
        [got] = await whole(files, "gcs/x")
        assert not isinstance(got, Refused) and got[1] == b"1\n"
    following.cancel()
