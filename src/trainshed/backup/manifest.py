"""The manifest of a backup: a JSON line for each file and folder, between a first line and a last one.

The first line says what the backup is of. The last one has the hash of all lines before it, so a manifest
that is cut off or changed is noticed. Lines are in the order in which the backup was written. Neither side
holds them in memory.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEntry:
    """A file, or a folder if it has no size. The same entry is always the same line."""

    path: str  # below the home
    mode: int
    modified: int  # seconds since the epoch
    size: int | None = None
    sha256: str = ""

    @property
    def line(self) -> bytes:
        fields: dict[str, object] = {
            "path": self.path,
            "mode": f"{self.mode:04o}",
            "modified": self.modified,
        }
        if self.size is not None:
            fields |= {"size": self.size, "sha256": self.sha256}
        return json.dumps(fields).encode() + b"\n"

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "SavedEntry":
        return cls(
            path=checked(str(fields["path"])),
            mode=int(fields["mode"], 8),
            modified=int(fields["modified"]),
            size=int(fields["size"]) if "size" in fields else None,
            sha256=str(fields.get("sha256", "")),
        )


class ManifestWriter:
    def __init__(self, file: IO[bytes], about: Mapping[str, object]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.entries = self.bytes = 0
        self._write(json.dumps({"format": FORMAT, **about}).encode() + b"\n")

    def add(self, entry: SavedEntry) -> None:
        self.entries += 1
        self.bytes += entry.size or 0
        self._write(entry.line)

    def end(self) -> None:
        last = {"entries": self.entries, "bytes": self.bytes, "sha256": self._digest.hexdigest()}
        self._write(json.dumps({"end": last}).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        self._digest.update(line)
        self._file.write(line)


class ManifestReader:
    """Iterating gives the entries, and raises ValueError with a reason where the manifest is not whole."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._digest = hashlib.sha256()
        self.about = self._parsed(next(self._lines, b""))
        if self.about.get("format") != FORMAT:
            raise ValueError(f"its format is {self.about.get('format')}, and this Trainshed knows {FORMAT}")

    def __iter__(self) -> Iterator[SavedEntry]:
        for line in self._lines:
            so_far = self._digest.hexdigest()
            fields = self._parsed(line)
            if "end" in fields:
                if fields["end"].get("sha256") != so_far:
                    raise ValueError("its manifest has changed")
                return
            try:
                yield SavedEntry.of(fields)
            except (KeyError, TypeError) as error:
                raise ValueError(f"its manifest has a line without {error}") from error
        raise ValueError("its manifest is cut off")

    def _parsed(self, line: bytes) -> dict[str, Any]:
        self._digest.update(line)
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise ValueError("its manifest cannot be read") from error
        if not isinstance(fields, dict):
            raise ValueError("its manifest cannot be read")
        return fields  # pyright: ignore[reportUnknownVariableType]


def checked(path: str) -> str:
    """The path, where it leads to something below the home."""
    if not path or any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise ValueError(f"it has the path {path[:200]!r}, which leads elsewhere")
    return path
