"""What every code store keeps to: the numbered promises of `core.supplies.code_port.CodeStore`, as tests.

Inherit, and give `make`. `survives` says whether another store over the same home finds what one took.
"""

import hashlib
import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.core.errors import Invalid, NotFound, Unavailable
from trainshed.core.supplies.code import File, FolderManifest, Header, Mode, Piece, manifest_of
from trainshed.core.supplies.code_port import CodeStore

Files = Mapping[str, tuple[Mode, bytes]]

SOME: Files = {
    "train.py": (Mode.PLAIN, b"print('hello')\n"),
    "bin/run": (Mode.EXECUTABLE, b"#!/bin/sh\n"),
    "a/b/c/deep.txt": (Mode.PLAIN, b"deep"),
    "a/b.txt": (Mode.PLAIN, b"deep"),  # the same content twice
    "a-b": (Mode.PLAIN, b""),  # sorts before a/… by bytes, and is empty
    "current": (Mode.LINK, b"a/b.txt"),
    "nowhere": (Mode.LINK, b"a/no/such/place"),
    "größe 大.txt": (Mode.PLAIN, b"\x00\xff"),
}


class Steps:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def wait(self, **length: float) -> None:
        self.at += timedelta(**length)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def manifest(files: Files) -> FolderManifest:
    return manifest_of(
        [File(path, sha256(content), len(content), mode) for path, (mode, content) in files.items()]
    )


async def stream(*contents: bytes, size: int = 3) -> AsyncIterator[Sequence[Piece]]:
    """The contents, headers before them, cut into pieces."""
    for content in contents:
        yield [Header(sha256(content), len(content))]
        step = max(size, len(content) // 20)  # a large one in few pieces: each costs a thread
        for at in range(0, len(content), step):
            yield [content[at : at + step]]


async def keep(store: CodeStore, files: Files) -> str:
    wanted = await store.missing(manifest(files))
    by_hash = {sha256(content): content for _, content in files.values()}
    assert await store.take(stream(*(by_hash[one] for one in wanted), size=7)) == len(wanted)
    assert await store.missing(manifest(files)) == ()
    return manifest(files).id


def found(folder: Path) -> dict[str, tuple[Mode, bytes]]:
    """What lies in a folder, as Files; a mode nobody asked for fails."""
    files: dict[str, tuple[Mode, bytes]] = {}
    for root, folders, names in os.walk(folder):
        for name in [*names, *(one for one in folders if os.path.islink(f"{root}/{one}"))]:
            path = f"{root}/{name}"
            place = os.path.relpath(path, folder)
            if os.path.islink(path):
                files[place] = (Mode.LINK, os.fsencode(os.readlink(path)))
                continue
            mode = {0o644: Mode.PLAIN, 0o755: Mode.EXECUTABLE}[stat.S_IMODE(os.stat(path).st_mode)]
            with open(path, "rb") as file:
                files[place] = (mode, file.read())
    return files


class CodeStoreContract:
    survives = False

    def make(self, home: Path, clock: Steps) -> CodeStore:
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Steps:
        return Steps()

    @pytest.fixture
    async def store(self, tmp_path: Path, clock: Steps) -> AsyncIterator[CodeStore]:
        store = self.make(tmp_path / "code", clock)
        await store.start()
        yield store
        await store.close()

    # 1, 2: keeping

    async def test_each_content_is_asked_for_once_and_the_folder_is_kept_when_none_is_missing(
        self, store: CodeStore
    ) -> None:
        wanted = await store.missing(manifest(SOME))
        assert sorted(wanted) == sorted({sha256(content) for _, content in SOME.values()})
        code = await keep(store, SOME)
        assert await store.manifest(code) == manifest(SOME)
        assert await store.hold(code)

    async def test_what_another_folder_brought_is_not_asked_for_again(self, store: CodeStore) -> None:
        await keep(store, SOME)
        changed = {**SOME, "train.py": (Mode.PLAIN, b"print('changed')\n")}
        assert await store.missing(manifest(changed)) == (sha256(b"print('changed')\n"),)

    async def test_an_unfinished_folder_is_not_known(self, store: CodeStore) -> None:
        await store.missing(manifest(SOME))
        assert not await store.hold(manifest(SOME).id)
        with pytest.raises(NotFound):
            await store.manifest(manifest(SOME).id)

    async def test_an_empty_folder_can_be_kept(self, store: CodeStore, tmp_path: Path) -> None:
        code = await keep(store, {})
        await store.lay_out(code, str(tmp_path / "work"))
        assert found(tmp_path / "work") == {}

    async def test_bytes_with_another_hash_are_refused_and_those_before_them_kept(
        self, store: CodeStore
    ) -> None:
        async def pieces() -> AsyncIterator[Sequence[Piece]]:
            yield [Header(sha256(b"good"), 4), b"good", Header(sha256(b"lost"), 4), b"list"]
            yield [Header(sha256(b"late"), 4), b"late"]

        with pytest.raises(Invalid) as caught:
            await store.take(pieces())
        assert caught.value.violations[0].field == "frames[1]"
        files = {name: (Mode.PLAIN, name.encode()) for name in ("good", "lost", "list")}
        assert set(await store.missing(manifest(files))) == {sha256(b"lost"), sha256(b"list")}

    async def test_an_upload_that_breaks_off_keeps_what_was_whole(self, store: CodeStore) -> None:
        async def pieces() -> AsyncIterator[Sequence[Piece]]:
            yield [Header(sha256(b"whole"), 5), b"whole", Header(sha256(b"broken"), 6), b"bro"]
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await store.take(pieces())
        files = {name: (Mode.PLAIN, name.encode()) for name in ("whole", "broken")}
        assert await store.missing(manifest(files)) == (sha256(b"broken"),)

    async def test_a_size_that_the_content_does_not_have_is_refused(self, store: CodeStore) -> None:
        await store.take(stream(b"four"))
        with pytest.raises(Invalid, match="4 bytes, not 5"):
            await store.missing(FolderManifest((File("a", sha256(b"four"), 5),)))

    async def test_a_link_whose_content_can_be_no_target_is_refused(self, store: CodeStore) -> None:
        await store.take(stream(b"a\0b"))
        with pytest.raises(Invalid, match="target of a link"):
            await store.missing(FolderManifest((File("a", sha256(b"a\0b"), 3, Mode.LINK),)))

    @pytest.mark.parametrize("target", [b"/etc/passwd", b"../../x", b"c/../../../x"])
    async def test_a_link_that_leads_out_is_refused_with_its_path(
        self, store: CodeStore, target: bytes
    ) -> None:
        await store.take(stream(target))
        with pytest.raises(Invalid, match="The file a/b is a link that leads out of the folder") as caught:
            await store.missing(FolderManifest((File("a/b", sha256(target), len(target), Mode.LINK),)))
        assert caught.value.violations[0].field == "files[0]"

    async def test_another_store_finds_what_the_first_took(
        self, store: CodeStore, tmp_path: Path, clock: Steps
    ) -> None:
        if not self.survives:
            pytest.skip("keeps nothing beyond its process")
        code = await keep(store, SOME)
        successor = self.make(tmp_path / "code", clock)  # the first never closed: as after kill -9
        await successor.start()
        assert await successor.missing(manifest(SOME)) == ()
        await successor.lay_out(code, str(tmp_path / "work"))
        assert found(tmp_path / "work") == SOME
        await successor.close()

    # 3: giving out

    async def test_contents_come_back_byte_for_byte(self, store: CodeStore) -> None:
        big = bytes(range(256)) * 12_000
        code = await keep(store, {"big": (Mode.PLAIN, big), "none": (Mode.PLAIN, b"")})
        assert b"".join([chunk async for chunk in store.read(code, sha256(big))]) == big
        assert b"".join([chunk async for chunk in store.read(code, sha256(b""))]) == b""

    async def test_only_what_belongs_to_the_folder_is_given_out(self, store: CodeStore) -> None:
        code = await keep(store, SOME)
        other = await keep(store, {"secret": (Mode.PLAIN, b"secret")})
        for folder, blob in ((code, sha256(b"secret")), ("0" * 64, sha256(b"deep")), (other, "../../x")):
            with pytest.raises(NotFound):
                await anext(store.read(folder, blob))

    @pytest.mark.parametrize("code", ["", "x", "../../etc", "0" * 64, "A" * 64, "a" * 64 + "\n"])
    async def test_what_is_no_id_of_a_folder_is_unknown(self, store: CodeStore, code: str) -> None:
        assert not await store.hold(code)
        with pytest.raises(NotFound):
            await store.manifest(code)

    # 4, 5: laying out

    async def test_a_copy_has_exactly_the_files_modes_and_links(
        self, store: CodeStore, tmp_path: Path
    ) -> None:
        code = await keep(store, SOME)
        before = os.umask(0o077)
        try:
            await store.lay_out(code, str(tmp_path / "work"))
        finally:
            os.umask(before)
        assert found(tmp_path / "work") == SOME

    async def test_copies_are_private(self, store: CodeStore, tmp_path: Path) -> None:
        code = await keep(store, SOME)
        one, two = tmp_path / "one", tmp_path / "two"
        await store.lay_out(code, str(one))
        (one / "train.py").write_text("changed")
        (one / "a/b/c/deep.txt").write_text("changed")
        await store.lay_out(code, str(two))
        assert found(two) == SOME

    async def test_a_folder_that_is_there_is_left_as_it_is(self, store: CodeStore, tmp_path: Path) -> None:
        code = await keep(store, SOME)
        await store.lay_out(code, str(tmp_path / "work"))
        (tmp_path / "work" / "train.py").unlink()
        (tmp_path / "work" / "model").write_bytes(b"mine")
        await store.lay_out(code, str(tmp_path / "work"))
        now = found(tmp_path / "work")
        assert now["model"] == (Mode.PLAIN, b"mine")
        assert "train.py" not in now

    async def test_many_files_are_laid_out_too(self, store: CodeStore, tmp_path: Path) -> None:
        files = {f"{n % 7}/{n}": (Mode.PLAIN, str(n % 100).encode()) for n in range(500)}
        await store.lay_out(await keep(store, files), str(tmp_path / "work"))
        assert found(tmp_path / "work") == files

    async def test_an_unknown_folder_cannot_be_laid_out_and_leaves_nothing(
        self, store: CodeStore, tmp_path: Path
    ) -> None:
        with pytest.raises(Unavailable, match="0000 is not on this server"):
            await store.lay_out("0" * 64, str(tmp_path / "work"))
        assert not [name for name in os.listdir(tmp_path) if name.startswith("work")]

    # 6: tidying

    async def test_a_folder_goes_a_day_after_its_last_job_was_seen_and_its_contents_with_it(
        self, store: CodeStore, clock: Steps
    ) -> None:
        code = await keep(store, SOME)
        other = await keep(store, {"b.txt": (Mode.PLAIN, b"deep")})
        for _ in range(3):
            clock.wait(days=2)
            assert await store.tidy(frozenset({code, other})) == 0
        assert await store.tidy(frozenset({other})) == 0  # noticed now
        clock.wait(hours=23)
        assert await store.tidy(frozenset({other})) == 0
        assert await store.hold(other)
        clock.wait(hours=2)
        assert await store.tidy(frozenset({other})) == 1
        assert not await store.hold(code)
        assert set(await store.missing(manifest(SOME))) == {
            sha256(content) for _, content in SOME.values() if content != b"deep"
        }

    async def test_a_folder_somebody_holds_stays_another_day(self, store: CodeStore, clock: Steps) -> None:
        code = await keep(store, SOME)
        await store.tidy(frozenset())
        clock.wait(hours=30)
        assert await store.hold(code)
        assert await store.tidy(frozenset()) == 0
        clock.wait(hours=20)
        assert await store.tidy(frozenset()) == 0
        clock.wait(hours=5)
        assert await store.tidy(frozenset()) == 1

    async def test_a_folder_in_use_again_is_not_gone_by_an_old_note(
        self, store: CodeStore, clock: Steps
    ) -> None:
        code = await keep(store, SOME)
        await store.tidy(frozenset())
        clock.wait(hours=30)
        assert await store.tidy(frozenset({code})) == 0
        assert await store.tidy(frozenset()) == 0
        assert await store.hold(code)

    async def test_what_is_being_sent_stays_until_its_folder_is_whole(
        self, store: CodeStore, clock: Steps
    ) -> None:
        await store.take(stream(b"print('hello')\n"))
        clock.wait(days=3)
        await store.missing(manifest(SOME))  # says that the first is here
        clock.wait(hours=20)
        await store.tidy(frozenset())
        assert sha256(b"print('hello')\n") not in await store.missing(manifest(SOME))
        clock.wait(hours=30)
        await store.tidy(frozenset())
        assert sha256(b"print('hello')\n") in await store.missing(manifest(SOME))
