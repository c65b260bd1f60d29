"""The code store of files: the promises, and those that only a disk can break."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.contracts.code_store import SOME, CodeStoreContract, Steps, found, keep, manifest, sha256, stream
from trainshed.code.blobs import Blobs
from trainshed.code.store import DiskCodeStore
from trainshed.core.errors import Exhausted, NotFound, Unavailable
from trainshed.core.supplies.code import Header, Mode, Piece
from trainshed.core.supplies.code_port import CodeStore


class TestDiskCodeStore(CodeStoreContract):
    survives = True

    def make(self, home: Path, clock: Steps) -> CodeStore:
        return DiskCodeStore(home, clock)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "code"


@pytest.fixture
async def store(home: Path) -> AsyncIterator[DiskCodeStore]:
    store = DiskCodeStore(home, Steps())
    await store.start()
    yield store
    await store.close()


def blob(home: Path, content: bytes) -> Path:
    return home / "blobs" / sha256(content)[:2] / sha256(content)[2:]


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(content)


async def test_everything_kept_is_read_only_and_for_nobody_else(store: DiskCodeStore, home: Path) -> None:
    await keep(store, SOME)
    for path in home.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o400), path


@pytest.mark.parametrize("content", [b"dEep", b"deeper", b""])
async def test_a_damaged_content_is_never_laid_out_and_asked_for_again(
    store: DiskCodeStore, home: Path, tmp_path: Path, content: bytes
) -> None:
    code = await keep(store, SOME)
    damage(blob(home, b"deep"), content)
    with pytest.raises(Unavailable, match=r"The file a/b.txt of code .* Submit the same folder again"):
        await store.lay_out(code, str(tmp_path / "work"))
    assert not list(tmp_path.glob("work*"))
    assert await store.missing(manifest(SOME)) == (sha256(b"deep"),)
    await store.take(stream(b"deep"))
    assert await store.missing(manifest(SOME)) == ()
    await store.lay_out(code, str(tmp_path / "work"))
    assert found(tmp_path / "work") == SOME


async def test_a_cut_content_is_noticed_before_anybody_needs_it(store: DiskCodeStore, home: Path) -> None:
    await keep(store, SOME)
    damage(blob(home, b"deep"), b"de")
    assert await store.missing(manifest(SOME)) == (sha256(b"deep"),)


async def test_a_damaged_target_of_a_link_is_asked_for_again(store: DiskCodeStore, home: Path) -> None:
    await keep(store, SOME)
    damage(blob(home, b"a/b.txt"), b"/etc/bad"[:7])
    assert await store.missing(manifest(SOME)) == (sha256(b"a/b.txt"),)


async def test_a_damaged_content_is_not_given_out_to_its_end(store: DiskCodeStore, home: Path) -> None:
    big = os.urandom(3 << 20)
    code = await keep(store, {"big": (Mode.PLAIN, big), "small": (Mode.PLAIN, b"small")})
    damage(blob(home, b"small"), b"smell")
    with pytest.raises(NotFound):
        await anext(store.read(code, sha256(b"small")))
    damage(blob(home, big), big[:-1] + b"?")
    got = 0
    with pytest.raises(NotFound):
        async for chunk in store.read(code, sha256(big)):
            got += len(chunk)
    assert got < len(big)


async def test_a_damaged_list_of_files_makes_the_folder_unknown(store: DiskCodeStore, home: Path) -> None:
    code = await keep(store, SOME)
    for content in (b"", b"100644 x", (home / "trees" / code).read_bytes().replace(b"train", b"brain")):
        damage(home / "trees" / code, content)
        other = DiskCodeStore(home, Steps())
        with pytest.raises(NotFound):
            await other.manifest(code)
        await other.close()
        assert await store.missing(manifest(SOME)) == ()  # nothing to send, and it is kept anew
        assert await store.manifest(code) == manifest(SOME)


async def test_what_was_being_written_when_a_server_was_killed_is_gone_with_the_next(
    store: DiskCodeStore, home: Path, tmp_path: Path
) -> None:
    code = await keep(store, SOME)
    (home / "new" / "half").write_bytes(b"half a blob")
    (tmp_path / "work.new" / "a").mkdir(parents=True)
    (tmp_path / "work.new" / "a" / "half").write_bytes(b"half a copy")
    successor = DiskCodeStore(home, Steps())
    await successor.start()
    assert not list((home / "new").iterdir())
    await successor.lay_out(code, str(tmp_path / "work"))
    assert found(tmp_path / "work") == SOME
    assert not (tmp_path / "work.new").exists()
    await successor.close()


async def test_a_refused_or_broken_upload_leaves_no_draft(store: DiskCodeStore, home: Path) -> None:
    async def pieces() -> AsyncIterator[Sequence[Piece]]:
        yield [Header(sha256(b"half"), 4), b"ha"]
        raise EOFError

    with pytest.raises(EOFError):
        await store.take(pieces())
    assert not list((home / "new").iterdir())


async def test_many_may_send_the_same_at_once(store: DiskCodeStore, home: Path) -> None:
    big = os.urandom(200_000)
    counts = await asyncio.gather(*(store.take(stream(big, b"small", size=10_000)) for _ in range(8)))
    assert counts == [2] * 8
    assert blob(home, big).read_bytes() == big
    assert not list((home / "new").iterdir())


async def test_tidying_beside_uploads_takes_nothing_of_theirs(store: DiskCodeStore) -> None:
    async def send(number: int) -> None:
        for turn in range(10):
            await keep(store, {f"{n}": (Mode.PLAIN, f"{number} {turn} {n}".encode()) for n in range(20)})

    async def tidy() -> None:
        for _ in range(50):
            await store.tidy(frozenset())
            await asyncio.sleep(0)

    await asyncio.gather(*(send(n) for n in range(3)), tidy())


async def test_a_full_disk_is_told_and_costs_nothing_that_was_there(
    store: DiskCodeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = await keep(store, SOME)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(Exhausted, match="disk of the server is full"):
            await store.take(stream(b"more"))
        with pytest.raises(Exhausted, match="disk of the server is full"):
            await store.lay_out(code, str(tmp_path / "work"))
    assert not list(tmp_path.glob("work*"))
    await store.lay_out(code, str(tmp_path / "work"))
    assert found(tmp_path / "work") == SOME


async def test_a_copy_cut_short_by_a_power_cut_is_mended_and_keeps_what_the_replica_wrote(
    store: DiskCodeStore, tmp_path: Path
) -> None:
    code = await keep(store, {**SOME, "kept.txt": (Mode.PLAIN, b"as sent"), "x/y/z": (Mode.PLAIN, b"z")})
    work = tmp_path / "work"
    await store.lay_out(code, str(work))
    (work / "train.py").write_bytes(b"")  # as a file system leaves what was not written out
    (work / "a/b/c/deep.txt").write_bytes(b"de")
    (work / "a/b.txt").write_bytes(b"do")
    (work / "bin/run").unlink()
    (work / "kept.txt").write_bytes(b"by the replica")
    (work / "model").write_bytes(b"by the replica")
    (work / "current").unlink()
    (work / "current").symlink_to("model")
    (tmp_path / "outside").mkdir()
    shutil.rmtree(work / "x")
    (work / "x").symlink_to(tmp_path / "outside")
    before = found(work)
    await store.lay_out(code, str(work))
    assert found(work) == before  # nothing is mended while the machine stays up
    (tmp_path / "work.boot").write_text("another boot")
    await store.lay_out(code, str(work))
    own = {
        "a/b.txt": (Mode.PLAIN, b"do"),
        "kept.txt": (Mode.PLAIN, b"by the replica"),
        "model": (Mode.PLAIN, b"by the replica"),
        "current": (Mode.LINK, b"model"),
        "x": (Mode.LINK, str(tmp_path / "outside").encode()),
    }
    assert found(work) == {**SOME, **own}
    assert not list((tmp_path / "outside").iterdir())


async def test_an_empty_place_made_before_is_taken(store: DiskCodeStore, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    await store.lay_out(await keep(store, SOME), str(tmp_path / "work"))
    assert found(tmp_path / "work") == SOME


async def test_a_copy_nobody_wants_any_more_stops_before_the_caller_hears_of_it(
    store: DiskCodeStore, tmp_path: Path
) -> None:
    code = await keep(store, {str(n): (Mode.PLAIN, str(n % 9).encode()) for n in range(3000)})
    laying = asyncio.create_task(store.lay_out(code, str(tmp_path / "work")))
    while not (tmp_path / "work.new").exists():
        await asyncio.sleep(0.001)
    laying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await laying
    assert not list(tmp_path.glob("work*"))


async def test_a_path_as_long_as_allowed_is_laid_out_below_a_long_home(
    store: DiskCodeStore, tmp_path: Path
) -> None:
    path = "/".join(["x" * 200] * 20)
    code = await keep(store, {path: (Mode.PLAIN, b"deep")})
    await store.lay_out(code, str(tmp_path / "work"))
    root = os.open(tmp_path / "work", os.O_RDONLY)
    try:
        assert os.stat(path, dir_fd=root).st_size == 4
    finally:
        os.close(root)


async def test_laying_out_ends_with_the_server_and_leaves_nothing(
    store: DiskCodeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {str(n): (Mode.PLAIN, b"x") for n in range(100)}
    code = await keep(store, files)
    read = Blobs.read

    def slow(self: Blobs, name: str) -> object:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
        begun.set()
        return read(self, name)

    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    monkeypatch.setattr(Blobs, "read", slow)
    laying = asyncio.create_task(store.lay_out(code, str(tmp_path / "work")))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    await store.close()
    with pytest.raises(Unavailable, match="server is ending"):
        await laying
    assert not list(tmp_path.glob("work*"))


async def test_a_fifo_that_a_replica_left_as_the_mark_of_its_copy_is_not_waited_for(
    store: DiskCodeStore, tmp_path: Path
) -> None:
    code = await keep(store, SOME)
    work = str(tmp_path / "work")
    await store.lay_out(code, work)
    os.unlink(f"{work}.boot")
    os.mkfifo(f"{work}.boot")
    await store.lay_out(code, work)
    assert stat.S_ISREG(os.lstat(f"{work}.boot").st_mode)
