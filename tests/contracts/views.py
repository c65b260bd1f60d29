"""The promises of core.view.Views: a contract for every backend that shows buckets to its programs."""

import asyncio
import os
from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.backend_bench import launched
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.buckets.store import DiskBuckets
from trainshed.buckets.view import DiskViewSource
from trainshed.core.bucket import BucketInfo, ObjectDraft
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit, Observation
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.core.view import Stored, View, Written
from trainshed.testing.run_files import FolderRunFiles

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ODD = (
    "plain",
    "dir/inner",
    "ünï cödé/✓",
    "%2E%2E",
    "a b",
    "x" * 255,
    ".hidden",
    "tab\tname",
    "-rf",
    "a%b/c%",
)
NO_PATHS = ("a//b", "../up", "x/../y", "/abs", "y" * 300, "nul\0in")


class Ticking:
    def now(self) -> datetime:
        return datetime.now(UTC)


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class ViewWorld:
    """Buckets and a backend that shows them, in one home as a server has it."""

    image: str
    python: str

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, home / "run"  # the backend's own folder
        self.buckets = DiskBuckets(home / "buckets", Ticking())
        self.files = FolderRunFiles(home)
        self.storage = RunStorage(files=self.files, buckets=DiskViewSource(home / "buckets", most=5))
        self.backend: Any  # one with `views`

    @abstractmethod
    def make(self) -> Any:
        """The backend, not started."""

    async def start(self) -> None:
        self.backend = self.make()
        await self.backend.start()

    async def close(self) -> None:
        await self.backend.remove("job")
        await self.backend.close()
        await self.buckets.close()

    async def bucket(self, name: str, *objects: str, project: str = "p") -> None:
        info = BucketInfo(name=name, project=project, location="US", created_at=NOW, updated_at=NOW)
        await self.buckets.create(info)
        for one in objects:
            await self.put(name, one, one.encode())

    async def put(self, bucket: str, name: str, content: bytes) -> None:
        await self.buckets.open(bucket).put(ObjectDraft(name=name), once(content))

    async def content(self, bucket: str, name: str) -> bytes:
        reading = await self.buckets.open(bucket).read(name)
        return b"".join([chunk async for chunk in reading.chunks])

    def launch(self, source: str, *, view: View, index: int = 0, run: int = 0) -> Launch:
        return Launch(
            key=RunKey(ReplicaName("job", 0, 0, index), run),
            image=self.image,
            command=(self.python, "-c", f"import os\nroot = os.environ['TRAINSHED_GCS_ROOT']\n{source}"),
            args=(),
            placement=Placement(pool=0, index=index, node="n", host="127.0.0.1", cpus=1, memory=256 << 20),
            view=view,
        )

    def out(self, index: int = 0) -> Path:
        return Path(self.files.output(ReplicaName("job", 0, 0, index)).stdout)

    async def run(self, source: str, *, view: View | None = None, index: int = 0, run: int = 0) -> str:
        """What the program prints; it must end well."""
        launch = self.launch(source, view=view or a_view(), index=index, run=run)
        await launched(self.backend, launch)
        seen = await self.ended(launch.key)
        assert seen.exit == Exit(code=0), Path(self.files.output(launch.key.name).stderr).read_text()
        return self.out(index).read_text()

    async def ended(self, key: RunKey) -> Observation:
        while True:
            for one in await self.backend.observe("job"):
                if one.key == key and not one.alive:
                    return one
            await asyncio.sleep(0.01)

    async def written(self) -> dict[tuple[str, str], Written]:
        return {(one.bucket, one.name): one for one in (await self.backend.views.scan("job")).files}


def a_view(*named: str, label: str = "0.0", begin: bool = False) -> View:
    names = dict.fromkeys(named or ("mine",), ("",))
    return View(project="p", named=names, label=label, begin=begin, paths={"M": "gs://mine/m/"})


class ViewsContract:
    """Inherited with a fixture `one`: a ViewWorld that is started."""

    async def test_a_program_finds_every_object_whose_name_can_be_a_path(self, one: ViewWorld):
        await one.bucket("mine", *ODD, *NO_PATHS)
        source = """
for folder, _, names in os.walk(root + '/mine'):
    for name in names:
        path = os.path.join(folder, name)
        print(repr(path[len(root) + 6:]), open(path).read() == path[len(root) + 6:])
print(repr(os.environ['M'][len(root):]))
"""
        lines = (await one.run(source)).splitlines()
        assert sorted(lines) == sorted([f"{name!r} True" for name in ODD] + ["'/mine/m/'"])
        [seen] = await one.backend.observe("job")
        assert f"{len(NO_PATHS)} objects are not below /gcs" in seen.note

    async def test_what_a_program_does_to_a_file_never_reaches_the_object(self, one: ViewWorld):
        await one.bucket("mine", "append", "over", "cut", "gone", "mode", "moved")
        source = """
os.chdir(root + '/mine')
open('append', 'a').write('!')
open('over', 'w').write('new')
os.truncate('cut', 1)
os.remove('gone')
os.chmod('mode', 0o777)
os.rename('moved', 'there')
os.link('append', 'second')
"""
        await one.run(source)
        for name in ("append", "over", "cut", "gone", "mode", "moved"):
            assert await one.content("mine", name) == name.encode()
        found = await one.written()
        assert {("mine", name) for name in ("append", "over", "cut", "there", "second")} <= found.keys()
        assert ("mine", "gone") not in found
        views = one.backend.views
        assert not await views.shows("job", "mine", "gone")
        assert not await views.shows("job", "mine", "moved")
        assert await views.shows("job", "mine", "mode")
        assert await views.shows("job", "other", "x")

    async def test_a_folder_of_the_bucket_is_moved_by_copying_and_its_files_are_seen(self, one: ViewWorld):
        await one.bucket("mine", "old/a", "old/b/c")
        await one.run("import shutil; shutil.move(root + '/mine/old', root + '/mine/new')")
        found = await one.written()
        assert {("mine", "new/a"), ("mine", "new/b/c")} <= found.keys()

    async def test_the_view_is_also_below_s3(self, one: ViewWorld):
        await one.bucket("mine", "a")
        if (await one.run("print(root)")).strip() != "/gcs":
            return  # where nothing can be mounted there is neither
        source = "print(open('/s3/mine/a').read()); open('/s3/mine/b', 'w').write('1')"
        source += "; print(open(root + '/mine/b').read())"
        one.out().unlink()
        assert await one.run(source, run=1) == "a\n1\n"
        assert ("mine", "b") in await one.written()

    async def test_a_view_does_not_change_when_the_bucket_does(self, one: ViewWorld):
        await one.bucket("mine", "a")
        source = """
import time
print('ready', flush=True)
while not os.path.exists(root + '/mine/go'): time.sleep(0.01)
print(open(root + '/mine/a').read(), sorted(os.listdir(root + '/mine')))
"""
        launch = one.launch(source, view=a_view())
        await launched(one.backend, launch)
        out = one.out()
        while not out.exists() or "ready" not in out.read_text():
            await asyncio.sleep(0.01)
        await one.put("mine", "a", b"replaced")
        await one.put("mine", "b", b"new")
        await one.run("open(root + '/mine/go', 'w')", index=1)
        await one.ended(launch.key)
        assert out.read_text().splitlines()[1] == "a ['a', 'go']"

    async def test_buckets_of_other_projects_are_not_shown_and_many_objects_only_where_named(
        self, one: ViewWorld
    ):
        await one.bucket("mine", "a")
        await one.bucket("theirs", "a", project="q")
        await one.bucket("large", *(str(number) for number in range(6)))
        print_all = "print({name: len(os.listdir(root + '/' + name)) for name in sorted(os.listdir(root))})"
        shown = await one.run(print_all, view=a_view("mine", "theirs"))
        assert shown in ("{'large': 0, 'mine': 1}\n", "{'mine': 1}\n")  # the latter where all is copied
        [seen] = await one.backend.observe("job")
        assert "/gcs has no theirs" in seen.note
        await one.backend.remove("job")
        one.out().unlink()
        assert await one.run(print_all, view=a_view("mine", "large")) == "{'large': 6, 'mine': 1}\n"

    async def test_of_a_large_bucket_only_what_the_job_names_is_shown(self, one: ViewWorld):
        names = ("in/a", "in/b/c", "in.txt", "in", "inner/x", "out/y", "z/1", "z/2")
        await one.bucket("mine", *names)
        view = replace(a_view(), named={"mine": ("in/b", "inner", "z/1", "in.txt")})
        source = """
for folder, _, names in os.walk(root + '/mine'):
    for name in names: print(os.path.join(folder, name)[len(root) + 6:])
"""
        lines = (await one.run(source, view=view)).splitlines()
        assert sorted(lines) == ["in.txt", "in/b/c", "inner/x", "z/1"]
        [seen] = await one.backend.observe("job")
        assert "Of mine, which is large" in seen.note

    async def test_what_was_written_is_seen_once_with_its_bytes(self, one: ViewWorld):
        await one.bucket("mine", "before")
        source = """
os.makedirs(root + '/mine/deep/down')
open(root + '/mine/deep/down/größe', 'wb').write(b'x' * 2_500_000)
open(root + '/mine/empty', 'w')
os.symlink('empty', root + '/mine/link')
open(os.fsencode(root) + b'/mine/bad\\xff', 'w')
open(root + '/mine/line\\nfeed', 'w')
open(root + '/no-bucket', 'w')
"""
        await one.run(source)
        scan = await one.backend.views.scan("job")
        found = {one.name: one for one in scan.files}
        assert found.keys() == {"deep/down/größe", "empty"}
        assert len(scan.unnamed) == 3
        assert scan.outside == ("no-bucket",)
        chunks = [chunk async for chunk in one.backend.views.read(found["deep/down/größe"])]
        assert b"".join(chunks) == b"x" * 2_500_000

    async def test_a_file_that_is_changed_or_gone_is_refused(self, one: ViewWorld):
        await one.bucket("mine")
        await one.run("open(root + '/mine/a', 'wb').write(b'x' * 3_000_000)")
        file = (await one.written())["mine", "a"]
        reading = one.backend.views.read(file)
        await anext(reading)
        os.truncate(file.path, 10)
        with pytest.raises(Conflict):
            await anext(reading)
        os.unlink(file.path)
        with pytest.raises(Conflict):
            await anext(one.backend.views.read(file))
        with pytest.raises(Conflict):
            await one.backend.views.tail(file, 0, 10)

    async def test_a_file_that_grows_is_read_on_as_it_is_and_no_link_is_followed(self, one: ViewWorld):
        await one.bucket("mine")
        await one.run("open(root + '/mine/a', 'wb').write(b'0123456789')")
        file = (await one.written())["mine", "a"]
        assert await one.backend.views.tail(file, 4, 3) == b"456"
        with Path(file.path).open("ab") as grown:
            grown.write(b"abc")
        assert await one.backend.views.tail(file, 9, 100) == b"9abc"
        assert await one.backend.views.tail(file, 1 << 40, 100) == b""
        os.unlink(file.path)
        Path(file.path).symlink_to("/etc/passwd")
        with pytest.raises((Conflict, Unavailable)):
            await one.backend.views.tail(file, 0, 10)

    async def test_the_next_server_finds_the_view_and_what_was_noted(self, one: ViewWorld):
        await one.bucket("mine")
        await one.run("open(root + '/mine/a', 'w').write('1')")
        noted = Stored(bucket="mine", name="ä\n", stamp="s", size=1, crc32c="c", generation=2)
        gone = Stored(bucket="mine", name="b", stamp="s", size=1, crc32c="c", generation=2)
        await one.backend.views.note("job", [noted, gone])
        notes = one.place / "jobs/job/gcs/stored.jsonl"
        notes.write_bytes(notes.read_bytes() + b'{"bucket": "torn')
        await one.backend.close()
        await one.start()
        assert one.backend.views.view_of("job") == "0.0"
        assert ("mine", "a") in await one.written()
        await one.backend.views.note("job", [Stored(**{**_plain(gone), "gone": True})])  # type: ignore[arg-type]
        assert await one.backend.views.notes("job") == (noted,)

    async def test_a_run_after_all_are_gone_begins_with_what_is_stored_once_it_may(self, one: ViewWorld):
        await one.bucket("mine", "stored")
        await one.run("open(root + '/mine/half', 'w')")
        listing = "print(sorted(os.listdir(root + '/mine')))"
        assert await one.run(listing, view=a_view(label="0.1"), run=1) == "['half', 'stored']\n"
        one.out().unlink()
        assert await one.run(listing, view=a_view(label="0.2", begin=True), run=2) == "['stored']\n"
        assert one.backend.views.view_of("job") == "0.2"

    async def test_nothing_is_left_of_a_view_when_its_job_is_removed(self, one: ViewWorld):
        await one.bucket("mine", "a")
        await one.run("os.makedirs(root + '/mine/x/y'); os.remove(root + '/mine/a')")
        await one.backend.remove("job")
        assert one.backend.views.view_of("job") is None
        assert not list((one.place / "jobs").iterdir())
        assert not list((one.place / "trash").iterdir())
        assert await one.content("mine", "a") == b"a"

    async def test_what_is_to_be_kept_outlives_its_view_without_what_is_stored(self, one: ViewWorld):
        await one.bucket("mine", "old", "gone")
        source = "os.makedirs(root + '/mine/x'); os.makedirs(root + '/none')"
        for name in ("mine/x/kept", "mine/x/stored", "none/kept"):
            source += f"; open(root + '/{name}', 'w').write('{name}')"
        await one.run(f"{source}; os.remove(root + '/mine/gone')")
        views = one.backend.views
        stamp = (await one.written())["mine", "x/stored"].stamp
        done = Stored(bucket="mine", name="x/stored", stamp=stamp, size=1, crc32c="c", generation=2)
        await views.note("job", [done])
        place = Path(await views.keep("job"))
        assert ("mine", "x/stored") in await one.written()  # until it goes the view is as it was
        await one.backend.close()
        await one.start()
        await one.backend.remove("job")
        files = {
            str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()
        }
        assert files == {"0.0/mine/x/kept": "mine/x/kept", "0.0/none/kept": "none/kept"}
        assert not list((one.place / "jobs").iterdir())
        await one.backend.close()
        await one.start()
        await one.backend.views.discard("job")
        assert not place.exists()

    async def test_what_is_to_be_kept_outlives_the_next_view_too(self, one: ViewWorld):
        await one.bucket("mine", "stored")
        await one.run("open(root + '/mine/half', 'w').write('1')")
        place = Path(await one.backend.views.keep("job"))
        listing = "print(sorted(os.listdir(root + '/mine')))"
        assert await one.run(listing, view=a_view(label="1.0", begin=True), run=2) == "['stored']\n"
        assert (place / "0.0/mine/half").read_text() == "1"
        assert one.backend.views.kept("job") == str(place)

    async def test_nothing_is_kept_where_all_was_stored_after_all(self, one: ViewWorld):
        await one.bucket("mine", "old")
        await one.run("os.makedirs(root + '/mine/x'); open(root + '/mine/x/y', 'w').write('1')")
        place = Path(await one.backend.views.keep("job"))
        stamp = (await one.written())["mine", "x/y"].stamp
        done = Stored(bucket="mine", name="x/y", stamp=stamp, size=1, crc32c="c", generation=2)
        await one.backend.views.note("job", [done])
        await one.backend.remove("job")
        assert not place.exists()
        assert one.backend.views.kept("job") == ""

    async def test_a_view_that_was_on_its_way_aside_when_the_server_died_arrives(self, one: ViewWorld):
        await one.bucket("mine", "stored")
        await one.run("open(root + '/mine/half', 'w').write('1')")
        place = Path(await one.backend.views.keep("job"))
        await one.backend.close()
        place.mkdir(parents=True)
        (one.place / "jobs/job/gcs/0.0").rename(place / ".0.0")
        await one.start()
        assert [path.name for path in place.iterdir()] == ["0.0"]
        assert (place / "0.0/mine/half").read_text() == "1"
        assert one.backend.views.view_of("job") is None


def _plain(one: Stored) -> dict[str, object]:
    return {name: getattr(one, name) for name in Stored.__dataclass_fields__}
