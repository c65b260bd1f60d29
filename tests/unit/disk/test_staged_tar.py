"""Tar files of strangers: read in bounded memory, refused where they are odd, and written anew."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from trainshed.core.errors import Exhausted, Invalid, Unavailable
from trainshed.disk import staged_tar as module
from trainshed.disk.staged_tar import StagedTar, entry_again, in_batches, staged_tar, tar_end, text_entry

BLOCK = tarfile.BLOCKSIZE


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "", note: str = "") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = size, kind, link
    entry.pax_headers = {"GNU.sparse.map": note} if note else {}
    return entry.tobuf(tarfile.PAX_FORMAT)


def pax(record: bytes) -> bytes:
    record = b"%d %s\n" % (len(record) + 4, record)
    return header("x", len(record), tarfile.XHDTYPE) + record + bytes(-len(record) % BLOCK) + header("a")


def file(name: str, content: bytes = b"x") -> bytes:
    return header(name, len(content)) + content + bytes(-len(content) % BLOCK)


def tar(*entries: bytes) -> bytes:
    return b"".join(entries) + tar_end()


async def chunks(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def listed(data: bytes, folder: Path) -> list[tuple[str, bytes]]:
    async with staged_tar(chunks(data), folder) as staged:
        return [(entry.path, b"".join(staged.content(entry))) for entry in staged.entries()]


async def test_names_lose_what_spells_them_otherwise(tmp_path: Path) -> None:
    long = "folder/" * 40 + "name"
    data = tar(file("./a"), file("b//./c"), file("d/../e"), file("../../f"), file("/g"), file(long))
    names = [path for path, _ in await listed(data, tmp_path)]
    assert names == ["a", "b/c", "e", "f", "g", long]


async def test_links_lead_where_they_lead_in_the_archive(tmp_path: Path) -> None:
    links = [
        header("a/b", kind=tarfile.SYMTYPE, link="../c"),
        header("d", kind=tarfile.SYMTYPE, link="/e"),
        header("f/g", kind=tarfile.LNKTYPE, link="./h"),
        header("i", kind=tarfile.SYMTYPE, link="../../../etc/passwd"),
    ]
    async with staged_tar(chunks(tar(*links)), tmp_path) as staged:
        assert [entry.link for entry in staged.entries()] == ["c", "e", "h", "etc/passwd"]


async def test_many_small_files_are_no_header_that_is_too_long(tmp_path: Path) -> None:
    assert len(await listed(tar(*[header(f"{number}") for number in range(5000)]), tmp_path)) == 5000


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:])]
)
async def test_what_is_packed_by_gzip_is_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert await listed(pack(tar(file("a", b"1" * 600))), tmp_path) == [("a", b"1" * 600)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no tar file"),
        (b"PK\3\4" + bytes(2000), "no tar file"),
        (bz2.compress(tar(file("a"))), "send it as it is, or packed by gzip"),
        (lzma.compress(tar(file("a"))), "send it as it is, or packed by gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "send it as it is, or packed by gzip"),
        (gzip.compress(tar(file("a")), mtime=0)[:-9], "cannot be unpacked"),
        (gzip.compress(tar(file("a")), mtime=0) + b"more", "cannot be unpacked"),
        (tar(file("a", b"1" * 5000))[:3000], "no tar file"),
        (file("a") + b"rubbish" * 200, "no end"),
        (tar(header("a", kind=tarfile.FIFOTYPE)), "no file, folder or link"),
        (tar(header("a", kind=tarfile.CHRTYPE)), "no file, folder or link"),
        (tar(header("a", kind=b"V")), "no file, folder or link"),
        (tar(header("a", 3, note="0,1"), bytes(BLOCK)), "holes"),
        (tar(header("a", note="x" * (1 << 21))), "too long"),
        (tar(header("L", 1 << 30, tarfile.GNUTYPE_LONGNAME)), "too long"),
        (tar(*[header("x", 0, tarfile.XHDTYPE)] * 3000, header("a")), "no tar file"),
        (tar(pax(b"size=-512")), "no tar file"),
    ],
)
async def test_what_is_odd_or_not_whole_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(Invalid) as error:
        await listed(data, tmp_path)
    assert words in error.value.message, error.value.message


async def test_a_size_below_zero_ends_it(tmp_path: Path) -> None:
    raw = bytearray(header("a"))
    raw[124:136] = b"\xff" * 10 + b"\xfe\x00"
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    with pytest.raises(Invalid):
        await listed(tar(bytes(raw), file("b")), tmp_path)


async def test_entries_are_the_same_when_they_are_written_anew(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind, link in (
            ("ö/" * 80 + "n", tarfile.REGTYPE, ""),
            ("d", tarfile.DIRTYPE, ""),
            ("s", tarfile.SYMTYPE, "d/x"),
            ("h", tarfile.LNKTYPE, "n"),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode, entry.mtime, entry.uid = kind, link, 0o751, 12345, 7
            entry.size = 5 if kind == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(b"hello"))
    async with staged_tar(chunks(made.getvalue()), tmp_path) as staged:
        again = b"".join([b"".join(entry_again(staged, entry)) for entry in staged.entries()])
    made.seek(0)
    with tarfile.open(fileobj=made) as old, tarfile.open(fileobj=io.BytesIO(again + tar_end())) as new:
        for before, after in zip(old.getmembers(), new.getmembers(), strict=True):
            for field in ("name", "type", "linkname", "mode", "mtime", "uid", "size"):
                assert getattr(before, field) == getattr(after, field)


async def test_the_bytes_of_a_tar_file_come_in_pieces(tmp_path: Path) -> None:
    async with staged_tar(chunks(tar(file("a", b"1" * 3_000_000)), 1 << 20), tmp_path) as staged:
        [entry] = staged.entries()
        pieces = [piece async for piece in in_batches(entry_again(staged, entry, "b"))]
    assert len(pieces) > 3 and b"".join(pieces) == file("b", b"1" * 3_000_000)
    assert b"".join(text_entry("t", b"hello")) == file("t", b"hello")


async def test_nothing_of_it_has_a_name_on_the_disk(tmp_path: Path) -> None:
    async with staged_tar(chunks(gzip.compress(tar(file("a")))), tmp_path):
        assert [*tmp_path.iterdir()] == []


async def test_a_disk_without_room_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESERVE", 1 << 60)
    with pytest.raises(Exhausted):
        await listed(tar(file("a")), tmp_path)
    with pytest.raises(Unavailable):
        await listed(tar(file("a")), tmp_path / "none")


def test_a_name_that_is_no_text_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "t").open("w+b") as opened:
        opened.write(tar(header("a\udcff")))
        opened.flush()
        [entry] = StagedTar(opened).entries()
        assert entry.path == "a\udcff" and b"".join(entry_again(StagedTar(opened), entry)) == header(
            "a\udcff"
        )
