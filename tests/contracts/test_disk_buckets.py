"""Buckets on the disk: the promises, and those that only a disk can break."""

import asyncio
import base64
import contextlib
import errno
import hashlib
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.bucket import CHECK_CRC32C, BucketContract, Steps, content, info, pieces, put, whole
from trainshed.buckets.disk import LaterMd5
from trainshed.buckets.index_writer import IndexWriter
from trainshed.buckets.store import DiskBuckets
from trainshed.buckets.uploads import DiskBucket
from trainshed.core.bucket import DamagedObject, DiskFull, ObjectDraft, ObjectInfo, ObjectQuery, Span
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Invalid, NotFound, Unavailable


class TestDiskBuckets(BucketContract):
    survives = True

    def make(self, home: Path, clock: Steps) -> Buckets:
        return DiskBuckets(home, clock)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "buckets"


@pytest.fixture
async def bucket(home: Path) -> AsyncIterator[DiskBucket]:
    buckets = DiskBuckets(home, Steps())
    await buckets.start()
    await buckets.create(info())
    yield buckets.open("shed")
    await buckets.close()


async def test_an_index_that_is_removed_while_it_is_open_takes_no_more_objects(
    bucket: DiskBucket, home: Path
) -> None:
    index = home / ".trainshed" / "index.db"
    index.rename(home / "away")
    with pytest.raises(Unavailable, match=r"index\.db was removed while the server ran"):
        await put(bucket, "late", b"x")
    assert not index.exists()
    (home / "away").rename(index)
    await put(bucket, "kept", b"x")
    with pytest.raises(NotFound):
        await bucket.get("late")


async def test_a_change_that_fails_in_an_unknown_way_fails_alone(bucket: DiskBucket) -> None:
    writer = bucket._disk.writer  # pyright: ignore[reportPrivateUsage]
    number = 10**30  # more than SQLite takes
    with pytest.raises(OverflowError):
        await writer.write(lambda db: (db.execute("SELECT ?", (number,)).fetchone(), ()))
    await put(bucket, "kept", b"x")
    assert (await bucket.get("kept")).size == 1


def held(home: Path) -> list[Path]:
    return list((home / ".trainshed" / "held").iterdir())


def tree(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home / "shed")) for path in (home / "shed").rglob("*"))


async def again(home: Path) -> DiskBuckets:
    """As after a crash: another process over the same home."""
    other = DiskBuckets(home, Steps())
    await other.start()
    return other


# ---- browsable


async def test_a_person_finds_an_object_by_its_name(bucket: DiskBucket, home: Path) -> None:
    await put(bucket, "models/v1/größe: 大.pt", b"bytes")
    assert (home / "shed" / "models/v1/größe: 大.pt").read_bytes() == b"bytes"
    await put(bucket, "models/v1/größe: 大.pt", b"other")
    assert (home / "shed" / "models/v1/größe: 大.pt").read_bytes() == b"other"
    assert held(home) == []
    await bucket.delete("models/v1/größe: 大.pt")
    assert tree(home) == []  # no empty folders either


async def test_what_a_file_cannot_be_called_is_written_with_percent_signs(
    bucket: DiskBucket, home: Path
) -> None:
    for name in ("../x", "a//b", "c/", "100%", "nul\0"):
        await put(bucket, name)
    assert tree(home) == ["%2E%2E", "%2E%2E/x", "100%25", "a", "a/%", "a/%/b", "c", "c/%", "nul%00"]
    assert sorted(path.name for path in home.iterdir()) == [".trainshed", "shed"]


async def test_a_name_below_another_has_no_place_and_is_kept_all_the_same(
    bucket: DiskBucket, home: Path
) -> None:
    await put(bucket, "a", b"file")
    await put(bucket, "a/b", b"below")
    assert tree(home) == ["a"]
    assert len(held(home)) == 1
    await bucket.delete("a/b")
    assert held(home) == []
    await put(bucket, "c/d")
    await put(bucket, "c", b"above")
    assert tree(home) == ["a", "c", "c/d"]
    assert await content(bucket, "c") == b"above"
    await bucket.delete("c/d")
    await put(bucket, "c", b"now free")
    assert tree(home) == ["a", "c"]
    assert held(home) == []


async def test_everything_kept_is_for_its_owner_alone(bucket: DiskBucket, home: Path) -> None:
    await put(bucket, "a/b")
    assert stat.S_IMODE((home / "shed/a/b").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "shed/a").stat().st_mode) == 0o700


async def test_a_copy_shares_its_bytes_until_one_of_the_two_is_replaced(
    bucket: DiskBucket, home: Path
) -> None:
    source = await put(bucket, "x", b"bytes")
    await bucket.copy(ObjectDraft(name="y"), source)
    assert (home / "shed/x").stat().st_ino == (home / "shed/y").stat().st_ino
    await put(bucket, "x", b"new")
    assert await content(bucket, "y") == b"bytes"


async def test_a_copy_is_made_of_bytes_where_no_link_can_be(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await put(bucket, "x", b"bytes")

    def no_more(*_: object, **__: object) -> None:
        raise OSError(errno.EMLINK, "Too many links")

    monkeypatch.setattr(os, "link", no_more)
    await bucket.copy(ObjectDraft(name="y"), source)
    assert (home / "shed/x").stat().st_ino != (home / "shed/y").stat().st_ino
    assert await content(bucket, "y") == b"bytes"


# ---- damage


@pytest.mark.parametrize("size", [5, 3 << 20])
@pytest.mark.parametrize("where", [0.0, 0.5, 0.99])
async def test_a_flipped_bit_is_noticed_by_who_reads_it(
    bucket: DiskBucket, home: Path, size: int, where: float
) -> None:
    await put(bucket, "x", os.urandom(size))
    path, at = home / "shed/x", int(size * where)
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(DamagedObject, match="gs://shed/x is damaged"):
        await content(bucket, "x")
    with pytest.raises(DamagedObject):
        await whole(await bucket.read("x", Span(first=at, last=at)))
    await put(bucket, "x", b"mended")
    assert await content(bucket, "x") == b"mended"


async def test_a_part_that_is_whole_can_be_read_of_a_damaged_object(bucket: DiskBucket, home: Path) -> None:
    data = os.urandom(3 << 20)
    await put(bucket, "x", data)
    path = home / "shed/x"
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.write(bytes([data[0] ^ 1]))
    assert await whole(await bucket.read("x", Span(first=2 << 20))) == data[2 << 20 :]


async def test_a_file_that_is_cut_or_gone_is_damage_and_can_be_deleted(
    bucket: DiskBucket, home: Path
) -> None:
    for name in ("cut", "gone"):
        await put(bucket, name, b"bytes")
    (home / "shed/cut").chmod(0o600)
    (home / "shed/cut").write_bytes(b"byt")
    (home / "shed/gone").unlink()
    for name in ("cut", "gone"):
        with pytest.raises(DamagedObject):
            await bucket.read(name)
        await bucket.delete(name)
        with pytest.raises(NotFound):
            await bucket.read(name)


# ---- crashes, at the lines that matter


async def test_a_crash_between_the_commit_and_the_rename_loses_nothing(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(bucket, "x", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "settle", lambda *_: None)
        await put(bucket, "x", b"new")
        await put(bucket, "y/z", b"too")
    assert (home / "shed/x").read_bytes() == b"old"
    assert await content(bucket, "x") == b"new"
    other = await again(home)
    assert (home / "shed/x").read_bytes() == b"new"
    assert (home / "shed/y/z").read_bytes() == b"too"
    assert await content(other.open("shed"), "x") == b"new"
    assert held(home) == []
    await other.close()


async def test_a_crash_before_the_commit_leaves_the_old_object_and_no_file(
    bucket: DiskBucket, home: Path
) -> None:
    await put(bucket, "x", b"old")
    (home / ".trainshed/held/half").write_bytes(b"never acknowledged")
    other = await again(home)
    assert held(home) == []
    assert await content(other.open("shed"), "x") == b"old"
    await other.close()


async def test_a_crash_after_a_deletion_removes_the_file_later_but_never_a_new_one(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x", "y"):
        await put(bucket, name, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "discard", lambda *_: None)
        await bucket.delete("x")
        await bucket.delete("y")
    await put(bucket, "y", b"new")
    other = await again(home)
    assert tree(home) == ["y"]
    assert await content(other.open("shed"), "y") == b"new"
    await other.close()


async def test_bytes_of_an_upload_behind_the_acknowledged_do_not_count(
    bucket: DiskBucket, home: Path
) -> None:
    upload = await bucket.begin(ObjectDraft(name="x"))
    await bucket.append(upload.id, 0, pieces(b"1234"))
    path = home / ".trainshed/held" / upload.id
    path.chmod(0o600)
    path.write_bytes(b"1234torn, and longer than what comes")
    other = await again(home)
    await other.open("shed").append(upload.id, 4, pieces(b"56789"))
    assert (await other.open("shed").finish(upload.id)).crc32c == CHECK_CRC32C
    assert await content(other.open("shed"), "x") == b"123456789"
    await other.close()


async def test_uploads_of_last_week_are_forgotten(bucket: DiskBucket, home: Path) -> None:
    upload = await bucket.begin(ObjectDraft(name="x"))
    await bucket.append(upload.id, 0, pieces(b"1234"))
    clock = Steps()
    clock.wait(days=8)
    other = DiskBuckets(home, clock)
    await other.start()
    with pytest.raises(NotFound):
        await other.open("shed").upload(upload.id)
    assert held(home) == []
    await other.close()


# ---- a full disk


async def test_a_full_disk_is_told_and_costs_nothing_that_was_there(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(bucket, "x", b"old")
    upload = await bucket.begin(ObjectDraft(name="up"))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        for size in (3, 9 << 20):
            with pytest.raises(DiskFull, match="disk of the server is full"):
                await put(bucket, "x", b"n" * size)
        with pytest.raises(DiskFull):
            await bucket.append(upload.id, 0, pieces(b"1234"))
    assert await content(bucket, "x") == b"old"
    assert (await bucket.append(upload.id, 0, pieces(b"123456789"))).received == 9
    assert (await bucket.finish(upload.id)).crc32c == CHECK_CRC32C
    assert await put(bucket, "x", b"new")
    assert held(home) == []


# ---- many at once


async def test_many_writers_of_many_names_are_all_kept(bucket: DiskBucket, home: Path) -> None:
    async def write(number: int) -> None:
        for turn in range(20):
            name = f"{number % 5}/{turn % 7}"
            await put(bucket, name, name.encode())
            if turn % 3 == 0:
                with contextlib.suppress(NotFound):
                    await bucket.delete(name)

    await asyncio.gather(*(write(number) for number in range(20)))
    listing = await bucket.find(ObjectQuery())
    for item in listing.items:
        assert await content(bucket, item.name) == item.name.encode()
    files = [path for path in tree(home) if (home / "shed" / path).is_file()]
    assert sorted(files) == sorted(item.name for item in listing.items)
    assert held(home) == []


# ---- MD5 of large objects


async def test_the_md5_of_a_large_object_follows_unless_it_is_asked_for_at_once(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainshed.buckets.sums.LATER", 1 << 20)
    data = os.urandom(9 << 20)
    expected = base64.b64encode(hashlib.md5(data).digest()).decode()

    async def big(**draft: str | bool) -> ObjectInfo:
        chunks = (data[at : at + (1 << 20)] for at in range(0, len(data), 1 << 20))
        return await bucket.put(ObjectDraft(name="x", **draft), pieces(*chunks))  # pyright: ignore[reportArgumentType]

    assert (await big(md5_at_once=True)).md5 == expected
    assert (await big(md5=expected)).md5 == expected
    with pytest.raises(Invalid):
        await big(md5="1B2M2Y8AsgTpgAmY7PhCfg==")
    made = await big()
    assert made.md5 == ""
    while not (now := await bucket.get("x")).md5:
        await asyncio.sleep(0.001)
    assert now == replace(made, md5=expected)


async def test_an_md5_that_was_not_made_before_a_crash_is_made_after_it(
    bucket: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainshed.buckets.sums.LATER", 1 << 20)
    monkeypatch.setattr(LaterMd5, "add", lambda *_: None)
    data = os.urandom(9 << 20)
    chunks = (data[at : at + (1 << 20)] for at in range(0, len(data), 1 << 20))
    assert (await bucket.put(ObjectDraft(name="x"), pieces(*chunks))).md5 == ""
    monkeypatch.undo()
    other = await again(home)
    while not (now := await other.open("shed").get("x")).md5:
        await asyncio.sleep(0.001)
    assert now.md5 == base64.b64encode(hashlib.md5(data).digest()).decode()
    await other.close()


async def test_a_fault_in_the_writer_is_told_and_not_waited_for(
    bucket: DiskBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(IndexWriter, "_commit", faulty)
    monkeypatch.setattr("threading.excepthook", lambda *_: None)
    for _ in range(2):
        with pytest.raises(Unavailable, match="take no changes any more"):
            await put(bucket, "x")


async def test_an_index_of_an_earlier_version_is_brought_to_this_one(bucket: DiskBucket, home: Path) -> None:
    made = await put(bucket, "x", b"old")
    with contextlib.closing(sqlite3.connect(home / ".trainshed" / "index.db")) as db:
        for table in ("answers", "versions", "home"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version=0")
        db.commit()
    other = await again(home)
    assert await other.open("shed").get("x") == made
    again_made = await other.open("shed").put(ObjectDraft(name="y", request="r"), pieces(b"y"))
    assert await other.open("shed").answered("r") == again_made
    await other.close()


async def test_an_index_of_a_later_version_is_left_alone(home: Path) -> None:
    await (await again(home)).close()
    with contextlib.closing(sqlite3.connect(home / ".trainshed" / "index.db")) as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(Unavailable, match="has version 99"):
        await again(home)


async def test_answers_outlive_the_process_and_go_after_a_day(home: Path) -> None:
    clock = Steps()
    buckets = DiskBuckets(home, clock)
    await buckets.start()
    await buckets.create(info())
    made = await buckets.open("shed").put(ObjectDraft(name="x", request="r1"), pieces(b"x"))
    await buckets.close()
    other = DiskBuckets(home, clock)
    await other.start()
    shed = other.open("shed")
    assert await shed.answered("r1") == made
    clock.wait(hours=25)
    await shed.put(ObjectDraft(name="y", request="r2"), pieces(b"y"))
    assert await shed.answered("r1") is None
    await other.close()


# ---- old versions


@pytest.fixture
async def keeping(home: Path) -> AsyncIterator[DiskBucket]:
    buckets = DiskBuckets(home, Steps())
    await buckets.start()
    await buckets.create(replace(info(), versioning=True))
    yield buckets.open("shed")
    await buckets.close()


async def test_the_live_object_is_at_its_place_and_old_versions_are_held(
    keeping: DiskBucket, home: Path
) -> None:
    first = await put(keeping, "x", b"first")
    assert (tree(home), held(home)) == (["x"], [])
    await put(keeping, "x", b"second")
    assert (home / "shed" / "x").read_bytes() == b"second"
    assert [path.read_bytes() for path in held(home)] == [b"first"]
    await keeping.delete("x")
    assert tree(home) == []
    assert sorted(path.read_bytes() for path in held(home)) == [b"first", b"second"]
    await keeping.delete("x", first.generation)
    assert [path.read_bytes() for path in held(home)] == [b"second"]


async def test_versions_outlive_a_crash_before_their_files_were_moved(
    keeping: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await put(keeping, "x", b"first")
    gone = await put(keeping, "y", b"gone")
    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "settle", lambda *_: None)
        patch.setattr(IndexWriter, "discard", lambda *_: None)
        second = await put(keeping, "x", b"second")
        await keeping.delete("y")
        assert (home / "shed" / "x").read_bytes() == b"first"
        assert await whole(await keeping.read("x", generation=first.generation)) == b"first"
        assert await content(keeping, "x") == b"second"
    other = await again(home)
    shed = other.open("shed")
    for version, expected in ((first, b"first"), (second, b"second")):
        assert await whole(await shed.read("x", generation=version.generation)) == expected
    assert await whole(await shed.read("y", generation=gone.generation)) == b"gone"
    assert (tree(home), (home / "shed" / "x").read_bytes()) == (["x"], b"second")
    await other.close()


async def test_a_crash_before_the_commit_leaves_the_live_object_and_no_second_name(
    keeping: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(keeping, "x", b"first")

    def die(*_: object) -> None:
        raise sqlite3.OperationalError("the process died here")

    with monkeypatch.context() as patch:
        patch.setattr("trainshed.buckets.versions.retire", die)
        with pytest.raises(Unavailable):
            await put(keeping, "x", b"second")
    assert len(held(home)) == 1  # the second name of the first
    assert await content(keeping, "x") == b"first"
    other = await again(home)
    assert (held(home), await content(other.open("shed"), "x")) == ([], b"first")
    await other.close()


async def test_a_version_that_cannot_be_kept_leaves_everything_as_it_was(
    keeping: DiskBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, old = await put(keeping, "part"), await put(keeping, "x", b"old")

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refused)
        with pytest.raises(Unavailable, match="The old version cannot be kept: Operation not permitted"):
            await keeping.put(ObjectDraft(name="new", removes=(source,)), pieces(b"new"))
        with pytest.raises(Unavailable):
            await keeping.delete("x")
    listing = await keeping.find(ObjectQuery(versions=True))
    assert listing.items == (source, old)
    assert held(home) == []
