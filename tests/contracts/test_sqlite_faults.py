"""What SQLite does to us and we to it: damaged files, locks held by others, full disks, broken commits."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contracts.sql_store import filled, opened
from tests.contracts.store_values import RUNNING, a_job, an_event, ended
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.query import JobQuery
from trainshed.store import SqlStore
from trainshed.store.connection import SqlConnection, SqlError

Damage = Callable[[Path], None]


def overwritten(offset: int, with_: bytes) -> Damage:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(with_)

    return damage


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 8192 * 4096)


def cut_in_a_page(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def replaced_by_text(path: Path) -> None:
    path.write_text("this is not a database\n" * 100)


DAMAGES: dict[str, Damage] = {
    "cut in half": half,
    "cut in a page": cut_in_a_page,
    "cut to fifty bytes": lambda path: os.truncate(path, 50),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "flipped first byte": overwritten(0, b"\0"),
    "flipped page size": overwritten(16, b"\x07"),
    "flipped bytes inside": overwritten(4096 * 3, b"\xff" * 2000),
    "text": replaced_by_text,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_file_is_refused_by_name_and_left_as_it_is(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "jobs.db"
    await filled(path)
    damage(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(Unavailable, match="Restore it from a backup") as refused:
            await SqlStore(f"sqlite:///{path}").start()
        assert str(path) in str(refused.value)
        assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [half, overwritten(0, b"\0")], ids=["cut", "flipped"])
async def test_a_refusal_does_not_touch_the_log_of_a_crash_either(tmp_path: Path, damage: Damage) -> None:
    await filled(tmp_path / "jobs.db")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        connection.execute("UPDATE jobs SET version = 2")
        connection.commit()
        for name in ("jobs.db", "jobs.db-wal"):
            shutil.copy(tmp_path / name, crashed / name)
    damage(crashed / "jobs.db")
    before = {file.name: file.read_bytes() for file in crashed.iterdir()}
    assert len(before["jobs.db-wal"]) > 4096
    with pytest.raises(Unavailable, match="damaged"):
        await SqlStore(f"sqlite:///{crashed}/jobs.db").start()
    assert {name: (crashed / name).read_bytes() for name in before} == before


async def test_an_empty_file_with_a_log_beside_it_is_refused(tmp_path: Path) -> None:
    for number, content in enumerate((None, b"")):
        path = tmp_path / f"{number}.db"
        if content is not None:
            path.write_bytes(content)
        Path(f"{path}-wal").write_bytes(b"x" * 4096)
        with pytest.raises(Unavailable, match="damaged"):
            await SqlStore(f"sqlite:///{path}").start()
        assert Path(f"{path}-wal").read_bytes() == b"x" * 4096


async def test_a_first_start_that_crashed_before_anything_was_kept_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").touch()
    async with opened(tmp_path / "jobs.db") as store:
        assert await store.active() == ()


async def test_a_file_that_is_gone_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    await filled(tmp_path / "jobs.db", 1)
    (tmp_path / "jobs.db").rename(tmp_path / "old.db")
    with pytest.raises(Unavailable, match=r"is gone, and it was there before.*jobs\.db\.created"):
        await SqlStore(f"sqlite:///{tmp_path}/jobs.db").start()
    assert not (tmp_path / "jobs.db").exists()


async def test_a_file_moved_away_with_its_marker_lets_an_empty_store_start(tmp_path: Path) -> None:
    await filled(tmp_path / "jobs.db", 1)
    (tmp_path / "jobs.db").rename(tmp_path / "old.db")
    (tmp_path / "jobs.db.created").unlink()
    async with opened(tmp_path / "jobs.db") as store:
        assert await store.active() == ()
    async with opened(tmp_path / "old.db") as store:
        assert len(await store.active()) == 1


@pytest.mark.parametrize("name", ["jobs.db", "jobs.db-wal"])
async def test_a_file_that_is_removed_while_it_is_open_takes_no_more_writes(
    tmp_path: Path, name: str
) -> None:
    path, away = tmp_path / name, tmp_path / "away"
    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), ())
        path.rename(away)
        for flush in (True, False):
            with pytest.raises(Unavailable, match=rf"{name} was removed while the server ran.*move it back"):
                await store.write(job, RUNNING, flush=flush)
        with pytest.raises(Unavailable, match="was removed"):
            await store.insert(a_job(2), ())
        assert await store.load(job.id) == job
        assert not path.exists()
        away.rename(path)
        job = await store.write(job, RUNNING, flush=False)
        assert await store.insert(a_job(2), ())
    async with opened(tmp_path / "jobs.db") as store:
        assert len(await store.active()) == 2


async def test_a_file_that_is_replaced_while_it_is_open_takes_no_more_writes(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await filled(path, 1)
    shutil.copy(path, tmp_path / "backup")
    async with opened(path) as store:
        (job,) = await store.active()
        (tmp_path / "backup").replace(path)
        before = path.read_bytes()
        for flush in (True, False):
            with pytest.raises(Unavailable, match="replaced by another file"):
                await store.write(job, RUNNING, flush=flush)
        with pytest.raises(Unavailable, match="replaced by another file"):
            await store.insert(a_job(2), ())
    assert path.read_bytes() == before


async def test_only_its_owner_can_read_a_database_whatever_its_modes_were(tmp_path: Path) -> None:
    path, files = tmp_path / "jobs.db", ("jobs.db", "jobs.db-wal", "jobs.db-shm")
    before = os.umask(0o022)
    try:
        async with opened(path) as store:
            await store.insert(a_job(1), ())
            assert {(tmp_path / name).stat().st_mode & 0o777 for name in files} == {0o600}
        path.chmod(0o644)
        async with opened(path) as store:
            await store.insert(a_job(2), ())
            assert {(tmp_path / name).stat().st_mode & 0o777 for name in files} == {0o600}
    finally:
        os.umask(before)


async def test_a_store_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="cannot be used"):
        await SqlStore(f"sqlite:///{tmp_path}/file/jobs.db").start()
    for url in ("sqlite://", "sqlite:///:memory:", "mysql://h/d", "nonsense"):
        with pytest.raises(Unavailable):
            SqlStore(url)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        if other.in_transaction:
            other.execute("ROLLBACK")


async def test_while_another_program_holds_the_lock_writes_wait_and_reads_are_served(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), [an_event()])
        over = await store.insert(a_job(2, status=ended()), ())
        with locked(tmp_path / "jobs.db"):
            writes = [asyncio.ensure_future(store.write(job, RUNNING)), *(
                asyncio.ensure_future(store.insert(a_job(number), ())) for number in range(10, 20)
            )]  # fmt: skip
            for _ in range(20):
                assert await store.load(job.id) == job
                assert await store.load(over.id) == over
                assert len((await store.find(JobQuery(project="p"))).jobs) == 2
            assert not any(write.done() for write in writes)
        await asyncio.gather(*writes)
        assert len(await store.active()) == 11


async def test_a_lock_held_too_long_refuses_writes_and_loses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db", busy=timedelta(seconds=0.2)) as store:
        job = await store.insert(a_job(1), ())
        with locked(tmp_path / "jobs.db"), pytest.raises(Unavailable, match="locked by another program"):
            await store.write(job, RUNNING)
        assert await store.load(job.id) == job
        assert (await store.write(job, RUNNING)).version == 2


@pytest.mark.skipif(os.getuid() != 0, reason="a small disk to fill needs root (mount)")
async def test_a_full_disk_refuses_writes_and_it_goes_on_once_there_is_space(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk to fill needs the right to mount")
    try:
        async with opened(disk / "jobs.db") as store:
            job = await store.insert(a_job(0), ())
            (disk / "ballast").write_bytes(b"x" * 900_000)
            kept = 1
            with pytest.raises(Unavailable, match="disk"):
                for number in range(1, 100):
                    await store.insert(a_job(number), [an_event("x" * 50_000)])
                    kept += 1
            assert kept < 99
            assert len(await store.active()) == kept
            assert await store.load(job.id) == job
            (disk / "ballast").unlink()
            await store.insert(a_job(200), [an_event("x" * 50_000)])
            assert (await store.write(job, RUNNING)).version == 2
        async with opened(disk / "jobs.db") as store:
            assert len(await store.active()) == kept + 1
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


async def test_a_commit_that_broke_off_but_happened_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SqlConnection.commit

    def breaks_off(connection: SqlConnection) -> None:
        commit(connection)
        raise SqlError(OSError("the line went dead"))

    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), ())
        commits: list[Job] = []
        store.on_commit(lambda job, _: commits.append(job))
        with monkeypatch.context() as patch:
            patch.setattr(SqlConnection, "commit", breaks_off)
            with pytest.raises(Unavailable, match="the line went dead"):
                await store.write(job, RUNNING)
        current = await store.load(job.id)
        assert current is not None and current.version == 2 and current.status == RUNNING
        await store.catch_up()
        assert commits == [job, current]
        assert await store.active() == (current,)
        with pytest.raises(Conflict):
            await store.write(job, RUNNING)
        assert (await store.write(current, ended())).version == 3


async def test_after_a_conflict_with_another_program_memory_has_what_the_file_has(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), ())
        for flush in (True, False):
            with contextlib.closing(sqlite3.connect(tmp_path / "jobs.db")) as other:
                other.execute("UPDATE jobs SET version = version + 5")
                other.commit()
            with pytest.raises(Conflict):
                await store.write(job, RUNNING, flush=flush)
            current = await store.load(job.id)
            assert current is not None and current.version == job.version + 5
            job = await store.write(current, RUNNING, flush=flush)


async def test_the_end_of_a_job_whose_commit_broke_off_is_told_with_its_last_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SqlConnection.commit

    def breaks_off(connection: SqlConnection) -> None:
        commit(connection)
        raise SqlError(OSError("the line went dead"))

    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), ())
        other = await store.insert(a_job(2), ())
        commits: list[tuple[Job, bool]] = []
        store.on_commit(lambda job, is_deleted: commits.append((job, is_deleted)))
        with monkeypatch.context() as patch:
            patch.setattr(SqlConnection, "commit", breaks_off)
            with pytest.raises(Unavailable, match="the line went dead"):
                await store.write(job, ended())
        await store.catch_up()
        over = await store.load(job.id)
        assert over is not None and over.is_final and over.version == 2
        assert commits[2:] == [(other, False), (over, False)]
        assert await store.active() == (other,)


async def test_a_store_that_is_closed_says_so_and_lets_the_next_one_in(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as store:
        pending = [asyncio.ensure_future(store.insert(a_job(number), ())) for number in range(50)]
        await asyncio.sleep(0)
    assert len(await asyncio.gather(*pending)) == 50
    with pytest.raises(Unavailable):
        await store.insert(a_job(99), ())
    async with opened(tmp_path / "jobs.db") as again:
        assert len(await again.active()) == 50
    assert not (tmp_path / "jobs.db-wal").exists()
