"""Backups of a home without a server: what they hold, and every damage that is noticed before a restore."""

import asyncio
import json
import os
import shutil
import stat
import subprocess
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.bucket import info, pieces, put, whole
from tests.contracts.test_bucket_index_guard import index_of, lose, opened
from trainshed.backup.errors import DamagedBackup
from trainshed.backup.manifest import SavedEntry
from trainshed.backup.put_back import Restore
from trainshed.backup.take import BackupTaker, TakenBackup
from trainshed.buckets import index_snapshot
from trainshed.buckets.index_snapshot import BucketSnapshot
from trainshed.core.bucket import ObjectDraft, ObjectQuery
from trainshed.core.errors import AlreadyExists, Conflict, Exhausted, NotFound, TrainshedError, Unavailable
from trainshed.serving.serve import make_home
from trainshed.settings.table import Settings

LONG = "x" * 300
NAMES = ("backup.tar", "backup")
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    buckets = await opened(home)
    await buckets.create(replace(info(), versioning=True))
    shed = buckets.open("shed")
    for name in ("a/b", "größe 大", "100%", LONG, "a/b"):
        await put(shed, name, name.encode())
    upload = await shed.begin(ObjectDraft(name="later"))
    await shed.append(upload.id, 0, pieces(b"half"))
    await buckets.close()
    log = home / "logs" / "123"
    log.mkdir(parents=True)
    with (log / "0.0-0.out").open("wb") as file:
        file.write(b"first\n" * 2000)
        file.seek(64 << 20)
        file.write(b"last\n")
    (log / "empty").touch()
    log.chmod(0o1755)
    (home / "token").write_text("secret")
    (home / "token").chmod(0o600)
    (home / "trainshed.toml").write_text("cpus = 2\n")
    (home / os.fsdecode(b"odd-\xff-name")).write_bytes(b"odd")
    for path in ("server.json", "run/jobs/1/record", "runtimes/ab/complete", "containers/id", "x.tmp"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("of this machine")
    (home / "run/unstored/123").mkdir(parents=True)
    (home / "run/unstored/123/model").write_bytes(b"weights")
    return home


def take(home: Path, path: Path, **settings: str) -> TakenBackup:
    return BackupTaker(Settings(home=home, **settings), path).take()  # pyright: ignore[reportArgumentType]


def restored(backup: Path, home: Path) -> Path:
    Restore(backup, home).run()
    return home


def tree(home: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of each file, mode of each folder; without the buckets' own and what stays behind."""
    left_out = ("buckets/", "run/jobs/", "runtimes", "containers", "server.json", "x.tmp")
    paths = (path for path in home.rglob("*") if not f"{path.relative_to(home)}/".startswith(left_out))
    return {
        str(path.relative_to(home)): (
            stat.S_IMODE(path.stat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in paths
    }


@pytest.mark.parametrize("name", NAMES)
async def test_a_restored_home_is_the_one_that_was_saved(home: Path, tmp_path: Path, name: str) -> None:
    backup = tmp_path / name
    taken = take(home, backup)
    assert (taken.buckets, taken.objects, taken.damaged, taken.left_out) == (1, 5, [], [])
    assert Restore(backup, None).run().files == taken.files
    other = restored(backup, tmp_path / "other")
    assert tree(other) == tree(home)
    assert not any((other / path).exists() for path in ("run/jobs", "runtimes", "containers", "server.json"))
    log = other / "logs/123/0.0-0.out"
    assert log.stat().st_blocks * 512 < 4 << 20  # its hole is kept
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    old, new = await opened(home), await opened(other)
    query = ObjectQuery(versions=True)
    listing = await new.open("shed").find(query)
    assert listing == await old.open("shed").find(query)
    for item in listing.items:
        reading = await new.open("shed").read(item.name, generation=item.generation)
        assert await whole(reading) == item.name.encode()
    await old.close()
    await new.close()


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs the program tar")
def test_a_tar_is_read_by_the_program_tar(home: Path, tmp_path: Path) -> None:
    take(home, tmp_path / "backup.tar")
    (tmp_path / "by-tar").mkdir()
    subprocess.run(["tar", "-xf", "../backup.tar"], cwd=tmp_path / "by-tar", check=True)
    assert (tmp_path / "by-tar/home/logs/123/0.0-0.out").read_bytes() == (
        home / "logs/123/0.0-0.out"
    ).read_bytes()
    assert (tmp_path / "by-tar/home/buckets/shed/größe 大").read_text() == "größe 大"
    assert (tmp_path / "by-tar/manifest.jsonl").exists()


def refused(backup: Path, home: Path) -> str:
    with pytest.raises(DamagedBackup, match="Nothing was restored") as refusal:
        Restore(backup, home).run()
    with pytest.raises(DamagedBackup):
        Restore(backup, None).run()
    assert not home.exists()
    return str(refusal.value)


def test_a_tar_that_is_cut_off_is_refused(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    take(home, backup)
    size = backup.stat().st_size - 1024
    for left in (0.999, 0.9, 0.5, 0.1, 0.0):
        os.truncate(backup, int(size * left))
        refused(backup, tmp_path / "other")


def test_a_tar_with_changed_bytes_is_refused(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    take(home, backup)
    good = backup.read_bytes()
    for what in (b"first\nfirst", b"weights", b'"sha256"', b'{"format"', b"home/token", b'{"end"'):
        data = bytearray(good)
        data[good.index(what) + 3] ^= 1
        backup.write_bytes(data)
        refused(backup, tmp_path / "other")


def test_a_folder_with_a_missing_changed_or_longer_file_is_refused(home: Path, tmp_path: Path) -> None:
    for number, harm in enumerate(
        (Path.unlink, lambda p: p.write_text("other!"), lambda p: p.write_text("more"))
    ):
        backup = tmp_path / f"backup{number}"
        take(home, backup)
        harm(backup / "home/token")
        assert "token" in refused(backup, tmp_path / "other")


@pytest.mark.parametrize("lines", [0, 1, 3, -1])
def test_a_folder_whose_manifest_lacks_lines_is_refused(home: Path, tmp_path: Path, lines: int) -> None:
    take(home, tmp_path / "backup")
    manifest = tmp_path / "backup/manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:lines]))
    assert "manifest" in refused(tmp_path / "backup", tmp_path / "other")


def test_what_is_no_backup_or_a_newer_one_is_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Restore(tmp_path / "none", tmp_path / "other").run()
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", tmp_path / "other")
    (tmp_path / "file").write_bytes(os.urandom(4096))
    refused(tmp_path / "file", tmp_path / "other")
    take(home, tmp_path / "backup")
    manifest = tmp_path / "backup/manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2', 1))
    assert "its format is 2" in refused(tmp_path / "backup", tmp_path / "other")


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "."])
def test_a_path_that_leads_out_of_the_home_is_refused(path: str) -> None:
    line = json.dumps({"path": path, "mode": "0600", "modified": 0})
    with pytest.raises(ValueError, match="leads elsewhere"):
        SavedEntry.of(json.loads(line))


def test_places_that_a_backup_cannot_have_are_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    cases: list[tuple[Path, type[TrainshedError]]] = [
        (tmp_path / "there", AlreadyExists),
        (tmp_path / "no/backup.tar", NotFound),
        (home / "backup.tar", Conflict),
        (tmp_path / "backup.tar.gz", Conflict),
    ]
    for path, error in cases:
        with pytest.raises(error):
            take(home, path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1, 1, 1000))  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(Exhausted, match="Make room"):
        take(home, tmp_path / "backup.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "there"]
    assert not list(home.glob(".backup-*"))


def test_a_disk_without_room_for_the_home_is_noticed_before(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(home, tmp_path / "backup.tar")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1, 1, 1000))  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(Exhausted, match="Make room"):
        Restore(tmp_path / "backup.tar", tmp_path / "other").run()
    assert not (tmp_path / "other").exists()


def test_a_folder_that_is_a_link_to_another_disk_is_saved_with_what_is_in_it(
    home: Path, tmp_path: Path
) -> None:
    (home / "logs").rename(tmp_path / "elsewhere")
    (home / "logs").symlink_to(tmp_path / "elsewhere")
    take(home, tmp_path / "backup")
    other = restored(tmp_path / "backup", tmp_path / "other")
    assert not (other / "logs").is_symlink()
    assert (other / "logs/123/0.0-0.out").stat().st_size == (64 << 20) + 5


def test_jobs_in_another_database_are_said_to_be_missing(home: Path, tmp_path: Path) -> None:
    taken = take(home, tmp_path / "backup", database="postgresql://db/jobs")
    assert taken.jobs is None
    assert "pg_dump" in taken.left_out[0]
    assert Restore(tmp_path / "backup", tmp_path / "other").run().left_out == taken.left_out


def test_what_is_not_in_the_home_is_named(home: Path, tmp_path: Path) -> None:
    (home / "logs" / "pipe").symlink_to("/dev/null")
    outside = tmp_path / "rows.toml"
    taken = take(home, tmp_path / "backup", buckets=outside)  # pyright: ignore[reportArgumentType]
    assert [str(outside) in taken.left_out[0], "logs/pipe" in taken.left_out[1]] == [True, True]


def test_a_home_without_its_index_or_database_is_not_saved(home: Path, tmp_path: Path) -> None:
    (home / "trainshed.db.created").touch()
    with pytest.raises(Unavailable, match=r"trainshed\.db is gone"):
        take(home, tmp_path / "backup")
    lose(index_of(home))
    with pytest.raises(Unavailable, match=r"index\.db is gone"):
        take(home, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


async def test_an_object_that_was_damaged_before_is_named(home: Path, tmp_path: Path) -> None:
    path = home / "buckets/shed/100%25"
    path.chmod(0o600)
    path.write_bytes(b"100?")
    (home / "buckets/shed/größe 大").unlink()
    assert take(home, tmp_path / "backup").damaged == [
        "gs://shed/100%: its bytes are not those that were stored",
        "gs://shed/größe 大: its file cannot be read: No such file or directory",
    ]


def test_what_a_killed_backup_left_is_removed_by_the_next(home: Path, tmp_path: Path) -> None:
    left = home / ".backup-0000"
    left.mkdir()
    (left / "token").write_text("x")
    take(home, tmp_path / "backup")
    assert not left.exists()
    assert (home / "token").read_text() == "secret"


def test_a_restore_that_was_killed_is_noticed_by_restore_and_server(tmp_path: Path, home: Path) -> None:
    take(home, tmp_path / "backup")
    other = tmp_path / "other"
    (other / ".restoring").mkdir(parents=True)
    with pytest.raises(Conflict, match="was broken off"):
        Restore(tmp_path / "backup", other).run()
    with pytest.raises(Unavailable, match="was broken off"):
        make_home(other)


async def test_an_object_that_is_replaced_while_its_file_is_linked_keeps_its_bytes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = await opened(home)
    shed = buckets.open("shed")
    loop = asyncio.get_running_loop()
    seen: list[Path] = []
    share = index_snapshot.share

    def replaced_first(source: Path, target: Path) -> None:
        if source.name == "b" and not seen:
            seen.append(source)
            asyncio.run_coroutine_threadsafe(put(shed, "a/b", b"another"), loop).result(30)
        share(source, target)

    monkeypatch.setattr(index_snapshot, "share", replaced_first)
    snapshot = BucketSnapshot(home / "buckets", tmp_path)
    await asyncio.to_thread(snapshot.take)
    await buckets.close()
    files = [file for file in snapshot.files() if file.address == "gs://shed/a/b"]
    assert sorted(Path(file.source).read_bytes() for file in files) == [b"a/b", b"a/b", b"another"]
