"""A home whose buckets' index is missing, damaged, newer or another's is refused, and nothing changes."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts.bucket import Steps, content, info, put
from trainshed.buckets.store import DiskBuckets
from trainshed.core.errors import Unavailable

LONG = "long/" + "x" * 300  # too long for a file: its bytes are held


async def opened(home: Path) -> DiskBuckets:
    buckets = DiskBuckets(home / "buckets", Steps())
    await buckets.start()
    return buckets


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """One with a bucket, a placed object and a held one; no server runs on it."""
    home = tmp_path / "home"
    buckets = await opened(home)
    await buckets.create(info())
    for name in ("a/b", LONG):
        await put(buckets.open("shed"), name, name.encode())
    await buckets.close()
    return home


def index_of(home: Path) -> Path:
    return home / "buckets" / ".trainshed" / "index.db"


def lose(index: Path) -> None:
    for path in index.parent.glob("index.db*"):
        path.unlink()


def empty(index: Path) -> None:
    lose(index)
    index.touch()


def cut(index: Path) -> None:
    os.truncate(index, index.stat().st_size // 2)


def overwrite(index: Path) -> None:
    with index.open("r+b") as file:
        file.write(b"x" * 200)


def swap_for_empty(index: Path) -> None:
    lose(index)
    with contextlib.closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA journal_mode=WAL")


def swap_for_other(index: Path) -> None:
    lose(index)
    with contextlib.closing(sqlite3.connect(index)) as db:
        db.execute("CREATE TABLE notes(text)")


def raise_version(index: Path) -> None:
    with contextlib.closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA user_version=99")


def tree(home: Path) -> dict[str, bytes]:
    left_out = ("-shm", "-wal")  # SQLite makes these to look
    files = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith(left_out))
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lose, "is gone, and there is the bucket"),
        (empty, "is empty, and there is the bucket"),
        (cut, "malformed|damaged"),
        (overwrite, "not a database"),
        (swap_for_empty, "is empty, and there is the bucket"),
        (swap_for_other, "is a database of something else"),
        (raise_version, "has version 99"),
    ],
)
async def test_buckets_without_their_index_are_refused_and_left_as_they_are(
    home: Path, harm: Callable[[Path], None], words: str
) -> None:
    harm(index_of(home))
    before = tree(home)
    with pytest.raises(Unavailable, match=words) as refusal:
        await opened(home)
    for part in (str(index_of(home)), "trainshed restore BACKUP", "trainshed restore --rebuild-index"):
        assert part in str(refusal.value)
    assert tree(home) == before


async def test_a_held_file_alone_says_that_there_was_an_index(home: Path) -> None:
    lose(index_of(home))
    shutil.rmtree(home / "buckets" / "shed")
    with pytest.raises(Unavailable, match="files of objects in"):
        await opened(home)


async def test_a_folder_of_buckets_that_is_not_there_any_more_is_noticed(home: Path) -> None:
    shutil.rmtree(home / "buckets")  # as a disk that is not mounted
    with pytest.raises(Unavailable, match="is gone, and it was there before"):
        await opened(home)


async def test_the_index_of_another_home_is_refused(home: Path, tmp_path: Path) -> None:
    await (await opened(tmp_path / "other")).close()
    lose(index_of(home))
    shutil.copy(index_of(tmp_path / "other"), index_of(home))
    with pytest.raises(Unavailable, match="is that of another home"):
        await opened(home)


async def test_a_home_from_before_the_marker_is_taken_over(home: Path) -> None:
    (home / "buckets.created").unlink()
    with contextlib.closing(sqlite3.connect(index_of(home))) as db:
        db.execute("DROP TABLE home")
        db.execute("PRAGMA user_version=3")
    buckets = await opened(home)
    assert await content(buckets.open("shed"), "a/b") == b"a/b"
    await buckets.close()
    shutil.rmtree(home / "buckets")
    with pytest.raises(Unavailable):
        await opened(home)


async def test_an_earlier_copy_of_the_index_is_taken_back(home: Path, tmp_path: Path) -> None:
    shutil.copy(index_of(home), tmp_path / "copy")
    lose(index_of(home))
    shutil.copy(tmp_path / "copy", index_of(home))
    buckets = await opened(home)
    assert await content(buckets.open("shed"), LONG) == LONG.encode()
    await buckets.close()


async def test_a_first_start_that_was_broken_off_is_begun_again(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    index.parent.mkdir(parents=True)
    swap_for_empty(index)
    await (await opened(tmp_path)).close()


async def test_the_index_is_for_nobody_else(home: Path) -> None:
    for path in (index_of(home), home / "buckets.created"):
        assert path.stat().st_mode & 0o777 == 0o600
    for path in (home / "buckets", index_of(home).parent):
        assert path.stat().st_mode & 0o777 == 0o700
