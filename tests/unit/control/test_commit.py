"""Files first, the manifest last: whoever sees a manifest sees all of its files, wherever the server dies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.builders import T0, a_job, at
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.commit import Committer, SweepResult
from trainshed.control.resume import committed_outputs, newest_checkpoint
from trainshed.core.bucket import ALWAYS, BucketInfo, DiskFull, ObjectDraft, ObjectInfo, Precondition
from trainshed.core.errors import Conflict, NotFound, Unavailable
from trainshed.core.outputs import MANIFEST, CommittedOutputs, EndedWriter, SettlingFiles, Writers, named_in
from trainshed.core.view import Stored, View, ViewScan, Written
from trainshed.testing.bucket import MemoryBucket, MemoryBuckets

JOB = a_job(output="gs://b/out")
WELL = Writers(ended=[EndedWriter(at(0), well=True)], succeeded=True)
KILLED = Writers(ended=[EndedWriter(at(100), well=False)])


class Died(BaseException):
    """kill -9, as far as a program can tell."""


@dataclass
class Folder:
    """A view in memory: what programs have written, and what was noted."""

    files: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    noted: dict[tuple[str, str], Stored] = field(default_factory=dict[tuple[str, str], Stored])
    moving: set[str] = field(default_factory=set[str])  # names that change while they are read
    stamps: dict[str, int] = field(default_factory=dict[str, int])

    def write(self, name: str, content: bytes, bucket: str = "b") -> None:
        self.files[bucket, name] = content
        self.stamps[name] = self.stamps.get(name, 0) + 1

    def on_want(self, hint: Callable[[str], None]) -> None: ...

    def wants(self, job: str) -> bool:
        return False

    async def make(self, job: str, view: View) -> None: ...

    def view_of(self, job: str) -> str | None:
        return "0.0"

    async def scan(self, job: str) -> ViewScan:
        files = [
            Written(
                bucket=bucket,
                name=name,
                path="",
                size=len(content),
                stamp=str(self.stamps[name]),
                changed_at=T0,
            )
            for (bucket, name), content in self.files.items()
        ]
        return ViewScan(files=tuple(files))

    async def tail(self, file: Written, offset: int, most: int) -> bytes:
        return self.files[file.bucket, file.name][offset : offset + most]

    async def read(self, file: Written) -> AsyncIterator[bytes]:
        yield self.files[file.bucket, file.name]
        if file.name in self.moving:
            raise Conflict("It was changed.")

    async def shows(self, job: str, bucket: str, name: str) -> bool:
        return (bucket, name) in self.files

    async def note(self, job: str, stored: Sequence[Stored]) -> None:
        self.noted |= {(one.bucket, one.name): one for one in stored}

    async def notes(self, job: str) -> tuple[Stored, ...]:
        return tuple(one for one in self.noted.values() if not one.gone)

    async def keep(self, job: str) -> str:
        return ""

    def kept(self, job: str) -> str:
        return ""

    async def discard(self, job: str) -> None: ...


class Mortal(MemoryBuckets):
    """Dies before or after the n-th change."""

    left: int | None = None

    def spend(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Died

    def open(self, bucket: str) -> "MortalBucket":
        return MortalBucket(bucket, self)


class MortalBucket(MemoryBucket):
    def __init__(self, name: str, home: Mortal) -> None:
        super().__init__(name, home)
        self._mortal = home

    async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo:
        self._mortal.spend()
        info = await super().put(draft, chunks)
        self._mortal.spend()
        return info

    async def delete(
        self,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> None:
        self._mortal.spend()
        await super().delete(name, generation, precondition, request)
        self._mortal.spend()


async def buckets_of() -> Mortal:
    buckets = Mortal(SteppedClock())
    info = BucketInfo(name="b", project="shed", location="US", created_at=T0, updated_at=T0)
    await buckets.create(info)
    return buckets


def a_committer(folder: Folder, buckets: MemoryBuckets) -> Committer:
    return Committer(folder, buckets, SteppedClock(), asyncio.Event())


async def sweep(folder: Folder, buckets: MemoryBuckets, end: Writers = WELL) -> SweepResult:
    """By a server that knows nothing but what was noted."""
    return await a_committer(folder, buckets).sweep(JOB, SettlingFiles(), end)


def objects(buckets: MemoryBuckets) -> dict[str, bytes]:
    return {name: content for name, (_, content) in buckets.objects["b"].items()}


def check(buckets: MemoryBuckets) -> int:
    """Every manifest that is there tells the truth; how many there are."""
    found = objects(buckets)
    manifests = [name for name in found if name.endswith(MANIFEST)]
    for name in manifests:
        for inner, (size, crc32c) in named_in(found[name]).items():
            info, _ = buckets.objects["b"][name.removesuffix(MANIFEST) + inner]
            assert (info.size, info.crc32c) == (size, crc32c), f"{name} lies about {inner}"
    return len(manifests)


async def dies_and_goes_on(folder: Folder, buckets: Mortal) -> int:
    """Let the server die at each of its changes in turn, with another that goes on; how often it died."""
    deaths = 0
    while True:
        buckets.left = deaths
        try:
            await sweep(folder, buckets)
        except BaseExceptionGroup as group:
            assert group.split(Died)[1] is None
        except Died:
            pass
        else:
            buckets.left = None
            return deaths
        deaths += 1
        check(buckets)


@in_stepped_time
async def test_a_server_that_dies_at_any_change_never_leaves_a_manifest_without_its_files():
    folder, buckets = Folder(), await buckets_of()
    for number in range(3):
        folder.write(f"out/model/{number}", b"first")
        folder.write(f"out/checkpoints/{number}/weights", b"first")
    assert await dies_and_goes_on(folder, buckets) > 0
    assert check(buckets) == 4
    for number in range(3):  # all of it is replaced, as by a second attempt
        folder.write(f"out/model/{number}", b"second one")
        folder.write(f"out/checkpoints/{number}/weights", b"second one")
    del folder.files["b", "out/model/2"]
    assert await dies_and_goes_on(folder, buckets) > 0
    assert check(buckets) == 4
    assert objects(buckets)["out/model/0"] == b"second one"
    assert "out/model/2" not in objects(buckets)


@pytest.mark.parametrize("lost", range(4))
@in_stepped_time
async def test_notes_that_were_lost_cost_work_and_nothing_else(lost: int):
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"1")
    folder.write("out/model/b", b"2")
    await sweep(folder, buckets)
    for key in list(folder.noted)[:lost]:
        del folder.noted[key]
    folder.write("out/model/a", b"changed")
    buckets.left = 3  # the manifest is taken away, one file is put
    with pytest.raises((Died, BaseExceptionGroup)):
        await sweep(folder, buckets)
    check(buckets)
    buckets.left = None
    await sweep(folder, buckets)
    assert check(buckets) == 1


@in_stepped_time
async def test_a_manifest_of_an_earlier_job_goes_before_anything_below_it_is_replaced():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"of the earlier job")
    await sweep(folder, buckets)
    another = Folder()
    another.write("out/model/a", b"new")
    await sweep(another, buckets, end=KILLED)
    assert check(buckets) == 0


@in_stepped_time
async def test_nothing_is_stored_twice():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"1")
    await sweep(folder, buckets)
    before = dict(buckets.objects["b"])
    await sweep(folder, buckets)
    assert buckets.objects["b"] == before


@in_stepped_time
async def test_a_file_that_changes_while_read_is_not_stored_nor_its_folder_complete_nor_the_end_reached():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/still", b"1")
    folder.write("out/model/moving", b"2")
    folder.moving.add("out/model/moving")
    with pytest.raises(Unavailable, match="changed while it was stored"):
        await sweep(folder, buckets)
    assert set(objects(buckets)) == {"out/model/still"}
    folder.moving.clear()
    await sweep(folder, buckets)
    assert check(buckets) == 1


@in_stepped_time
async def test_a_file_for_which_there_is_no_bucket_is_told_of_and_tried_once():
    folder, buckets = Folder(), await buckets_of()
    folder.write("x", b"1", bucket="nowhere")
    folder.write("out/model/a", b"1")
    committer, patience = a_committer(folder, buckets), SettlingFiles()
    first = await committer.sweep(JOB, patience, WELL)
    folder.files["nowhere", "x"] = b"never read"
    second = await committer.sweep(JOB, patience, WELL)
    assert first.faults == second.faults
    assert "/gcs/nowhere/x" in first.storing().fault
    assert check(buckets) == 1


@pytest.mark.parametrize("seen", [True, False])
@in_stepped_time
async def test_a_bucket_that_was_removed_and_made_anew_gets_all_of_it_again(seen: bool):
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"1")
    folder.write("free", b"1")
    committer, patience = a_committer(folder, buckets), SettlingFiles()
    await committer.sweep(JOB, patience, WELL)
    info = buckets.infos.pop("b")
    buckets.objects.pop("b")
    if seen:
        assert (await committer.sweep(JOB, patience, WELL)).faults
    await buckets.create(replace(info, created_at=at(50)))
    folder.write("out/model/b", b"2")
    assert not (await committer.sweep(JOB, patience, WELL)).faults
    assert {"out/model/a", "out/model/b", "free"} < set(objects(buckets))
    assert check(buckets) == 1


@in_stepped_time
async def test_a_file_beside_the_buckets_is_a_fault():
    class Beside(Folder):
        async def scan(self, job: str) -> ViewScan:
            return ViewScan(outside=("lost.bin",))

    tally = await sweep(Beside(), await buckets_of())
    assert "/gcs/lost.bin: it is in no bucket." in tally.storing().fault


@in_stepped_time
async def test_nothing_is_stored_or_removed_in_a_bucket_of_another_project():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"1")
    await sweep(folder, buckets)
    before = dict(buckets.objects["b"])
    buckets.infos["b"] = replace(buckets.infos["b"], project="another")
    intruder = Folder()
    intruder.write("out/model/a", b"2")
    intruder.write("free", b"2")
    tally = await sweep(intruder, buckets)
    assert len(tally.faults) == 2
    assert "another project" in tally.faults[0]
    assert buckets.objects["b"] == before


@in_stepped_time
async def test_a_full_disk_is_waited_for():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/model/a", b"1")
    bucket = buckets.open("b")

    class FullBuckets(Mortal):
        def open(self, bucket: str) -> "FullBucket":  # type: ignore[override]
            return FullBucket(bucket, self)

    class FullBucket(MortalBucket):
        async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo:
            raise DiskFull

    full = FullBuckets(SteppedClock())
    full.infos, full.objects = buckets.infos, buckets.objects
    with pytest.raises(DiskFull):
        await sweep(folder, full)
    await sweep(folder, buckets)
    assert (await bucket.get("out/model/a")).size == 1


@in_stepped_time
async def test_a_checkpoint_that_may_be_half_written_is_named():
    folder, buckets = Folder(), await buckets_of()
    for name in ("model/m", "checkpoints/1/a", "checkpoints/1/b"):
        folder.write(f"out/{name}", b"1")
    killed = Writers(ended=[EndedWriter(T0, well=False)])
    assert (await sweep(folder, buckets, replace(killed, alive=True))).cut_off == ()
    tally = await sweep(folder, buckets, killed)
    assert tally.storing().message == (
        "1 file with 1 bytes stored in gs://b. Not stored, because a program may have been killed or "
        "have failed while it wrote it: /gcs/b/out/checkpoints/1/."
    )


@in_stepped_time
async def test_a_checkpoint_with_a_copy_of_a_manifest_is_whole():
    folder, buckets = Folder(), await buckets_of()
    for name in ("a", MANIFEST):
        folder.write(f"out/checkpoints/1/{name}", b"1")
    assert (await sweep(folder, buckets)).cut_off == []


@in_stepped_time
async def test_a_checkpoint_that_is_being_removed_is_not_complete_any_more():
    folder, buckets = Folder(), await buckets_of()
    for name in "abc":
        folder.write(f"out/checkpoints/1/{name}", b"1")
    committer, patience = a_committer(folder, buckets), SettlingFiles()
    await committer.sweep(JOB, patience, WELL)
    assert await newest_checkpoint(buckets, "shed", "gs://b/out") == "gs://b/out/checkpoints/1/"
    del folder.files["b", "out/checkpoints/1/a"]
    await committer.sweep(JOB, patience, KILLED)
    assert check(buckets) == 0
    assert await newest_checkpoint(buckets, "shed", "gs://b/out") == ""
    folder.files.clear()
    await committer.sweep(JOB, patience, KILLED)
    assert not objects(buckets)


@in_stepped_time
async def test_the_newest_checkpoint_is_the_last_whose_files_are_all_what_its_manifest_says():
    folder, buckets = Folder(), await buckets_of()
    for step in ("9", "10", "11"):
        folder.write(f"out/checkpoints/{step}/w", step.encode())
        await sweep(folder, buckets)
    assert await newest_checkpoint(buckets, "shed", "gs://b/out/") == "gs://b/out/checkpoints/11/"
    del buckets.objects["b"]["out/checkpoints/11/w"]
    assert await newest_checkpoint(buckets, "shed", "gs://b/out") == "gs://b/out/checkpoints/10/"
    del buckets.objects["b"][f"out/checkpoints/10/{MANIFEST}"]
    assert await newest_checkpoint(buckets, "shed", "gs://b/out") == "gs://b/out/checkpoints/9/"


@in_stepped_time
async def test_checkpoints_that_are_plain_files_are_one_folder_to_go_on_from():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/checkpoints/epoch-1.pt", b"1")
    await sweep(folder, buckets)
    assert await newest_checkpoint(buckets, "shed", "gs://b/out") == "gs://b/out/checkpoints/"


@in_stepped_time
async def test_without_a_bucket_there_is_no_checkpoint():
    buckets = await buckets_of()
    assert await newest_checkpoint(buckets, "shed", "gs://nowhere/out") == ""
    assert await newest_checkpoint(buckets, "shed", "") == ""
    with pytest.raises(NotFound):
        await buckets.get("nowhere")


@in_stepped_time
async def test_what_is_committed_is_told_by_its_manifests_the_newest_checkpoint_first():
    folder, buckets = Folder(), await buckets_of()
    for step in ("9", "10"):
        folder.write(f"out/checkpoints/{step}/w", step.encode())
        await sweep(folder, buckets)
    folder.write("out/model/a", b"1")
    await sweep(folder, buckets)
    committed = await committed_outputs(buckets, "shed", "gs://b/out")
    assert [unit.uri for unit in committed.checkpoints] == [
        "gs://b/out/checkpoints/10/",
        "gs://b/out/checkpoints/9/",
    ]
    assert committed.model is not None
    assert committed.model.uri == "gs://b/out/model/"
    del buckets.objects["b"][f"out/model/{MANIFEST}"]
    assert (await committed_outputs(buckets, "shed", "gs://b/out")).model is None
    assert await committed_outputs(buckets, "shed", "") == CommittedOutputs()


@in_stepped_time
async def test_of_a_bucket_of_another_project_nothing_is_told_that_is_not_told_of_none():
    folder, buckets = Folder(), await buckets_of()
    folder.write("out/checkpoints/1/w", b"1")
    await sweep(folder, buckets)
    assert await newest_checkpoint(buckets, "other", "gs://b/out") == ""
    told = set[str]()
    for name in ("b", "nowhere"):
        with pytest.raises(NotFound) as refused:
            await committed_outputs(buckets, "other", f"gs://{name}/out")
        told.add(refused.value.message.replace(f"bucket {name}.", "bucket."))
    assert told == {"Project 'other' has no bucket."}
