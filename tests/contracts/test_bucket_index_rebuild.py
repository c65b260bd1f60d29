"""An index made anew from the files has every object that has a place; the rest is put aside, not removed."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.bucket import content, info, pieces, put
from tests.contracts.test_bucket_index_guard import index_of, lose, opened
from trainshed.buckets.index_rebuild import IndexRebuild, RebuiltIndex
from trainshed.core.bucket import Attributes, ObjectDraft, ObjectQuery
from trainshed.core.errors import Conflict

ODD = ("plain.txt", "a//b", "../x", "100%", "größe 大", "deep/down/here")
LONG = "x" * 300
BIG = b"0123456789abcdef" * 200_000


def rebuilt(home: Path) -> RebuiltIndex:
    return IndexRebuild(home / "buckets", lambda *_: None).make()


async def test_every_object_with_a_place_is_there_again_with_its_bytes_and_checksums(tmp_path: Path) -> None:
    buckets = await opened(tmp_path)
    await buckets.create(info())
    shed = buckets.open("shed")
    before = {name: await put(shed, name, name.encode()) for name in ODD}
    before["big"] = await put(shed, "big", BIG)
    attributes = Attributes(content_type="text/csv", metadata={"who": "me"})
    before["rows"] = await shed.put(ObjectDraft(name="rows", attributes=attributes), pieces(b"a,b"))
    await put(shed, LONG, b"held")
    await buckets.close()
    lose(index_of(tmp_path))

    result = rebuilt(tmp_path)
    assert (result.buckets, result.objects, result.nameless) == (1, len(before), 1)
    assert [path.read_bytes() for path in (Path(result.aside) / "held").iterdir()] == [b"held"]

    buckets = await opened(tmp_path)
    shed = buckets.open("shed")
    items = (await shed.find(ObjectQuery())).items
    assert {item.name for item in items} == before.keys()
    for item in items:
        old = before[item.name]
        assert (item.size, item.crc32c, item.md5) == (old.size, old.crc32c, old.md5)
        assert item.generation > old.generation
        assert item.attributes == Attributes()
    assert await content(shed, "big") == BIG  # and so the sums of its blocks are right
    made = await put(shed, "plain.txt", b"new")
    assert made.generation > max(item.generation for item in items)
    await buckets.close()


async def test_old_versions_and_unfinished_uploads_are_put_aside(tmp_path: Path) -> None:
    buckets = await opened(tmp_path)
    await buckets.create(replace(info(), versioning=True))
    shed = buckets.open("shed")
    for text in (b"old", b"new"):
        await put(shed, "x", text)
    upload = await shed.begin(ObjectDraft(name="y"))
    await shed.append(upload.id, 0, pieces(b"half"))
    await buckets.close()
    lose(index_of(tmp_path))
    result = rebuilt(tmp_path)
    kept = sorted(path.read_bytes() for path in (Path(result.aside) / "held").iterdir())
    assert kept == [b"half", b"old"]
    buckets = await opened(tmp_path)
    assert await content(buckets.open("shed"), "x") == b"new"
    await buckets.close()


async def test_what_cannot_be_an_object_is_named_and_left(tmp_path: Path) -> None:
    buckets = await opened(tmp_path)
    await buckets.create(info())
    await buckets.close()
    lose(index_of(tmp_path))
    root = tmp_path / "buckets"
    (root / "My Folder").mkdir()
    (root / "shed").mkdir(exist_ok=True)
    (root / "shed" / "link").symlink_to("/etc/passwd")
    (root / "shed" / "50%").write_bytes(b"")
    result = rebuilt(tmp_path)
    assert result.passed_over == [str(root / name) for name in ("My Folder", "shed/50%", "shed/link")]
    assert result.objects == 0
    assert (root / "shed" / "50%").exists()


async def test_a_sound_index_is_not_made_anew(tmp_path: Path) -> None:
    await (await opened(tmp_path)).close()
    before = index_of(tmp_path).read_bytes()
    with pytest.raises(Conflict, match="is sound"):
        rebuilt(tmp_path)
    assert index_of(tmp_path).read_bytes() == before


async def test_a_newer_or_damaged_index_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    buckets = await opened(tmp_path)
    await buckets.create(info())
    await put(buckets.open("shed"), "x", b"x")
    await buckets.close()
    with closing(sqlite3.connect(index_of(tmp_path))) as db:
        db.execute("PRAGMA user_version=99")
    result = rebuilt(tmp_path)
    with closing(sqlite3.connect(Path(result.aside) / "index.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)
        assert db.execute("SELECT COUNT(*) FROM objects").fetchone() == (1,)
