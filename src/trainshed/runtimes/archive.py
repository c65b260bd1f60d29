"""Looks into a package before anything unpacks it: is it whole, is it what its name says, is it harmless.

Started as a script of its own, with little memory and time, because an archive may be made to exhaust both.
It writes nothing, and prints one line of JSON: the hash of the file, why the package is refused (or nothing),
and what building it needs. It may assume the file's name; it believes nothing the archive says of itself.
"""

import gzip
import hashlib
import json
import re
import resource
import stat
import struct
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_MEMORY = 1 << 29  # bytes
_SECONDS = 600
_SMALL = 1 << 20  # bytes of a file that is read whole
_LONGEST = 1024  # bytes of a name
_NOT_WHOLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError),
)
_NAMED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class ArchiveRefused(Exception):
    """The package is not to be unpacked; the sentence says why."""


@dataclass(slots=True)
class ArchiveLimits:
    unpacked: int
    files: int
    free: int
    ratio: int


@dataclass(slots=True)
class ArchiveCount:
    """What comes out of an archive, counted as it is told and stopped where it is too much."""

    limits: ArchiveLimits
    packed: int
    size: int = 0
    files: int = 0
    names: list[str] = field(default_factory=list[str])  # of the few that decide what it is
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def count(self, name: str, size: int) -> None:
        check_name(name)
        self.files += 1
        self.size += size
        if self.files > self.limits.files:
            raise ArchiveRefused(f"holds more than {self.limits.files} files")
        if self.size > self.limits.unpacked:
            raise ArchiveRefused(f"would unpack to more than {self.limits.unpacked} bytes")
        if self.size > self.limits.free and self.size > self.packed * self.limits.ratio:
            raise ArchiveRefused(
                f"would unpack to more than {self.limits.ratio} times its size, as archives do that are made "
                "to fill a disk"
            )

    def wants(self, name: str, size: int) -> bool:
        """Whether the file decides what the package is, and so is read."""
        parts = name.removeprefix("./").split("/")
        last = parts[-1]
        if len(parts) <= 2 and last in ("setup.py", "pyproject.toml", "setup.cfg"):
            self.names.append(last)
        if len(parts) == 2 and parts[0].endswith(".dist-info"):
            self.names.append(last)
        return size <= _SMALL and last in ("pyproject.toml", "entry_points.txt") and last in self.names


def check_name(name: str) -> None:
    shown = ascii(name[:200])
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        raise ArchiveRefused(f"holds {shown}, an absolute name, which would be written outside of it")
    if ".." in parts:
        raise ArchiveRefused(f"holds {shown}, which leads outside of it")
    if "\0" in name or "\n" in name or "\r" in name:
        raise ArchiveRefused(f"holds {shown}, which cannot be the name of a file")
    if len(name.encode(errors="surrogateescape")) > _LONGEST:
        raise ArchiveRefused(f"holds a name of more than {_LONGEST} bytes: {shown}...")


def look_into(path: str, limits: ArchiveLimits) -> list[str] | None:
    """What has to be there for it to be built; None where nothing has to be: it is a wheel."""
    tally = ArchiveCount(limits, Path(path).stat().st_size)
    try:
        if path.endswith(".tar.gz"):
            _count_tar(path, tally)
        else:
            _count_zip(path, tally)
    except _NOT_WHOLE as error:
        kind = "gzipped tar" if path.endswith(".tar.gz") else "zip"
        raise ArchiveRefused(f"is no whole {kind} archive ({error})") from error
    if path.endswith(".whl"):
        return _wheel(tally)
    if not tally.names:
        raise ArchiveRefused("holds neither setup.py nor pyproject.toml, so it is no Python package")
    return _build_needs(tally.texts.get("pyproject.toml"))


def _count_tar(path: str, tally: ArchiveCount) -> None:
    with gzip.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as tar:
        for member in tar:
            shown = ascii(member.name[:200])
            tally.count(member.name, member.size)
            if member.issym() or member.islnk():
                raise ArchiveRefused(f"holds a link, {shown}, which could lead anywhere")
            if not (member.isreg() or member.isdir()) or member.issparse():
                raise ArchiveRefused(f"holds {shown}, which is neither a file nor a folder")
            if member.isreg() and tally.wants(member.name, member.size):
                source = tar.extractfile(member)
                tally.texts[member.name.rpartition("/")[2]] = source.read() if source else b""
        # To its very end, where gzip has its checksum: half a file may look like a shorter archive.
        if len(unpacked.read(_SMALL)) == _SMALL:
            raise ArchiveRefused("goes on behind its end")
        if not tally.files:
            raise ArchiveRefused("is empty")


def _count_zip(path: str, tally: ArchiveCount) -> None:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            shown, mode = ascii(info.orig_filename[:200]), info.external_attr >> 16
            check_name(info.orig_filename)
            tally.count(info.filename, info.file_size)
            if stat.S_ISLNK(mode):
                raise ArchiveRefused(f"holds a link, {shown}, which could lead anywhere")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ArchiveRefused(f"holds {shown}, which is neither a file nor a folder")
            if info.flag_bits & 1:
                raise ArchiveRefused(f"holds {shown}, which is encrypted")
            if not info.is_dir() and tally.wants(info.filename, info.file_size):
                tally.texts[info.filename.rpartition("/")[2]] = archive.read(info)


def _wheel(tally: ArchiveCount) -> None:
    if not {"METADATA", "WHEEL"} <= set(tally.names):
        raise ArchiveRefused("holds no .dist-info folder with METADATA and WHEEL, so it is no wheel")
    for line in tally.texts.get("entry_points.txt", b"").decode(errors="replace").splitlines():
        command = line.partition("=")[0].strip()
        if not line.lstrip().startswith(("#", ";", "[")) and re.search(r"[/\\\0]|^\.\.?$", command):
            raise ArchiveRefused(f"has a command named {command[:200]!a}, which leads outside of it")


def _build_needs(pyproject: bytes | None) -> list[str]:
    """The names of what builds it, in small letters. Without a word on it that is setuptools."""
    try:
        project = tomllib.loads((pyproject or b"").decode())
        needs = project.get("build-system", {}).get("requires", ["setuptools"])
        names = [match[1] if (match := _NAMED.match(need)) else need for need in needs]
    except (ValueError, AttributeError, TypeError):
        return ["setuptools"]  # pip will say what is wrong with it
    return sorted({item.lower() for item in names})


def _blocks(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def main(argv: list[str]) -> int:
    path, *numbers = argv
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    result: dict[str, object] = {"sha256": digest.hexdigest(), "refused": "", "needs": None}
    try:
        result["needs"] = look_into(path, ArchiveLimits(*map(int, numbers)))
    except ArchiveRefused as refused:
        result["refused"] = str(refused)
    except (MemoryError, RecursionError):
        result["refused"] = "takes more memory to look into than any package needs"
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
