"""A .tar.gz whose bytes follow from its files alone: sorted, no owners, one time for all.

The same folder then has the same hash, wherever and whenever it is packed. Contents are streamed: no file is
ever in memory whole.
"""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

MODIFIED = 315532800  # 1980-01-01: what is made of it may become a zip, and zips know no time before
LEVEL = 6

Entry = tuple[str, Path | bytes]  # the name inside, and the file or what it holds


def write(entries: Iterable[Entry], into: Path) -> None:
    """Names are sorted; of two of one name the first stays."""
    whole: dict[str, Path | bytes] = {}
    for name, source in entries:
        whole.setdefault(name, source)
    with into.open("wb") as file, _compressed(file) as packed, _tar(packed) as tar:
        for name in sorted(whole):
            source = whole[name]
            if isinstance(source, bytes):
                _add(tar, name, io.BytesIO(source), len(source), executable=False)
                continue
            with source.open("rb") as content:
                status = source.stat()
                _add(tar, name, content, status.st_size, executable=bool(status.st_mode & 0o111))


def rewrite(archive: Path, into: Path) -> None:
    """The same for a .tar.gz that somebody else wrote; only its files stay, links and devices go."""
    with (
        tarfile.open(archive) as old,
        into.open("wb") as file,
        _compressed(file) as packed,
        _tar(packed) as tar,
    ):
        files = {member.name: member for member in old.getmembers() if member.isfile()}
        for name in sorted(files):
            content = old.extractfile(files[name])
            assert content is not None, "it is a file"
            _add(tar, name, content, files[name].size, executable=bool(files[name].mode & 0o111))


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def _compressed(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0)


def _tar(file: gzip.GzipFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes], size: int, *, executable: bool) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mtime = MODIFIED
    member.mode = 0o755 if executable else 0o644
    tar.addfile(member, content)
