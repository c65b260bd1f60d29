"""A folder as the context of an image's build: its files as a tar, less what .dockerignore leaves out.

It reads each file once, as it is sent, and keeps none. A file that becomes shorter meanwhile ends the build:
half of it must not become an image.
"""

import io
import os
import re
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainshed.cli.failure import CommandFailed, Misuse

IGNORING = ".dockerignore"
PIECE = 1 << 20


class Ignored:
    """The lines of a .dockerignore: all from the top of the folder, the last that matches wins."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[re.Pattern[str], bool]] = []
        for line in lines:
            text = line.strip()
            if line.startswith("#") or not text:
                continue
            ignores = not text.startswith("!")
            text = os.path.normpath(text.removeprefix("!").strip()).lstrip("/")
            if text not in ("", "."):
                self._rules.append((re.compile(_expression(text), re.DOTALL), ignores))
        self.has_exceptions = not all(ignores for _, ignores in self._rules)

    def holds(self, path: str) -> bool:
        """Whether the path is left out, by its own name or by that of a folder above."""
        parts = path.split("/")
        places = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        result = False
        for pattern, ignores in self._rules:
            if result is not ignores and any(map(pattern.fullmatch, places)):
                result = ignores
        return result


def _expression(text: str) -> str:
    made, at = "", 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith("**"):
            at += 2
            if text[at : at + 1] == "/":
                made, at = made + "(?:.*/)?", at + 1
            else:
                made += ".*"
            continue
        at += 1
        if rest[0] == "*":
            made += "[^/]*"
        elif rest[0] == "?":
            made += "[^/]"
        elif rest[0] == "[" and (end := rest.find("]", 2)) > 0:
            made += "[" + rest[1:end].replace("\\", "\\\\") + "]"
            at += end
        else:
            if rest[0] == "\\" and len(rest) > 1:
                at, rest = at + 1, rest[1:]
            made += re.escape(rest[0])
    return made


class Context:
    """The files of a folder that a build gets, and the path of the Dockerfile among them."""

    def __init__(self, folder: Path, dockerfile: str = "") -> None:
        if not folder.is_dir():
            raise Misuse(f"{folder} is no folder", ["give the one with the Dockerfile"])
        self._root = folder
        named = Path(dockerfile) if dockerfile else folder / "Dockerfile"
        if not dockerfile and not named.exists() and (folder / "Containerfile").exists():
            named = folder / "Containerfile"
        if not named.is_file() and not named.is_absolute() and (folder / named).is_file():
            named = folder / named
        if not named.is_file():
            raise Misuse(f"there is no {named}", ["name the Dockerfile with -f, and its folder"])
        inner = os.path.relpath(named.resolve(), folder.resolve())
        self._outside: Path | None = named if inner.startswith("..") else None
        # Below a name of its own, where it lies elsewhere.
        self.dockerfile = f".trainshed-{named.name}" if self._outside else inner
        self._lines = _lines(Path(f"{named}{IGNORING}")) or _lines(folder / IGNORING)
        self.ignored = Ignored(self._lines)

    def paths(self) -> Iterator[str]:
        """What is part of it, folders before what is in them, in order."""
        waiting = [""]
        while waiting:
            base = waiting.pop()
            try:
                names = sorted(item.name for item in (self._root / base).iterdir())
            except OSError as error:
                raise CommandFailed(
                    f"cannot read the folder {self._root / base}: {error.strerror}"
                ) from error
            folders: list[str] = []
            for name in names:
                path = f"{base}/{name}" if base else name
                is_folder = stat.S_ISDIR(os.lstat(self._root / path).st_mode)
                is_out = self.ignored.holds(path) and path != self.dockerfile
                if not is_out:
                    yield path
                if is_folder and (not is_out or self.ignored.has_exceptions or self._leads_to(path)):
                    folders.append(path)
            waiting += reversed(folders)

    def _leads_to(self, path: str) -> bool:
        return self.dockerfile.startswith(f"{path}/")

    def tar(self) -> Iterator[bytes]:
        """The files in tar's form, in pieces as they are read."""
        if self._outside is not None:
            yield _text(self.dockerfile, self._outside.read_bytes())
        if self._lines:  # for the engine: what is sent although it is left out is not to be copied
            yield _text(IGNORING, "".join(self._lines).encode(errors="surrogateescape"))
        for path in self.paths():
            if path != IGNORING or not self._lines:
                yield from _member(self._root / path, path)
        yield bytes(2 * tarfile.BLOCKSIZE)


def _text(name: str, text: bytes) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    return _head(entry) + text + _padding(len(text))


def _member(full: Path, path: str) -> Iterator[bytes]:
    seen = os.lstat(full)
    entry = tarfile.TarInfo(path)
    entry.mode, entry.mtime = stat.S_IMODE(seen.st_mode), int(seen.st_mtime)
    if stat.S_ISDIR(seen.st_mode):
        entry.type = tarfile.DIRTYPE
        yield _head(entry)
    elif stat.S_ISLNK(seen.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, str(full.readlink())
        yield _head(entry)
    elif stat.S_ISREG(seen.st_mode):  # of sockets and devices nothing can be sent
        try:
            with full.open("rb") as file:
                entry.size = left = os.fstat(file.fileno()).st_size
                yield _head(entry)
                while left and (piece := file.read(min(PIECE, left))):
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise CommandFailed(f"cannot read {full}: {error.strerror}") from error
        if left:
            raise CommandFailed(f"{full} became shorter while it was sent", ["build again"])
        yield _padding(entry.size)


def _head(entry: tarfile.TarInfo) -> bytes:
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _lines(path: Path) -> list[str]:
    try:
        return io.StringIO(path.read_text(encoding="utf-8-sig", errors="surrogateescape")).readlines()
    except OSError:
        return []
