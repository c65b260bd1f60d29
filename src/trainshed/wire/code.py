"""Code folders on the wire: a manifest as JSON, and blobs as a stream of frames.

    {"files": [{"path": "train.py", "sha256": "ab…", "size": 120, "mode": "100644"}]}

    SHA256 SP SIZE LF, then SIZE bytes; any number of such frames, one after the other

Called by `api/code.py`. A wrong manifest raises Invalid with every violation and its path. `FrameReader` is
incremental and buffers only an unfinished header, so a stream may have any length. It does not compare the
bytes with their hash; the store does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.code import (
    LONGEST_PATH,
    MOST_FILES,
    MOST_SIZE,
    File,
    FolderManifest,
    Header,
    Mode,
    Piece,
    collisions,
    contradictions,
    is_hash,
    manifest_of,
    path_fault,
)
from trainshed.wire import scalars
from trainshed.wire.faults import Faults
from trainshed.wire.json_body import parse_object

_FIELDS = frozenset({"path", "sha256", "size", "mode"})
_MODES = {mode.value: mode for mode in Mode}
_SHOWN_MODES = ", ".join(f'"{mode.value}"' for mode in Mode)
_HEADER = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,12})")
_LONGEST_HEADER = 64 + 1 + 12


def parse_manifest(data: bytes) -> FolderManifest:
    """The manifest in a request body; Invalid with every violation."""
    faults = Faults("manifest")
    rows = _rows(data, faults)
    faults.settle()
    files = [_file(row, f"files[{number}]", faults) for number, row in enumerate(rows)]
    faults.settle()
    for number, sentence in collisions(files):
        faults.add(f"files[{number}].path", sentence)
    for number, sentence in contradictions(files):
        faults.add(f"files[{number}].size", sentence)
    if (size := sum(file.size for file in files)) > MOST_SIZE:
        faults.add("files", f"must have at most {MOST_SIZE} bytes together, not {size}: leave data out.")
    faults.settle()
    return manifest_of(files)


def render_manifest(manifest: FolderManifest) -> dict[str, object]:
    return {
        "files": [
            {"path": file.path, "sha256": file.sha256, "size": file.size, "mode": file.mode.value}
            for file in manifest.files
        ]
    }


def _rows(data: bytes, faults: Faults) -> Sequence[object]:
    fields = parse_object(data)
    for name in fields.keys() - {"files"}:
        faults.unknown("", name)
    rows = fields.get("files")
    if not isinstance(rows, list):
        faults.lose("files", f"must be a list of files, not {scalars.kind_of(rows)}.")
        return ()
    result = cast("list[object]", rows)
    if len(result) > MOST_FILES:
        faults.lose("files", f"must be at most {MOST_FILES} files, not {len(result)}: leave data out.")
    return result


def _file(row: object, where: str, faults: Faults) -> File:
    """One file. Where a field is wrong the fault is recorded and the returned file is a placeholder."""
    if not isinstance(row, Mapping):
        faults.lose(where, f"must be an object, not {scalars.kind_of(row)}.")
        return File("", "", 0)
    fields = cast("Mapping[str, object]", row)
    if len(fields) != len(_FIELDS) or fields.keys() - _FIELDS:
        for name in fields.keys() - _FIELDS:
            faults.unknown(where, name)
        for name in sorted(_FIELDS - fields.keys()):
            faults.lose(f"{where}.{name}", "is required.")
    path, sha256, mode = fields.get("path"), fields.get("sha256"), fields.get("mode")
    try:
        path = scalars.read_text(path)
        if sentence := path_fault(path):
            faults.add(f"{where}.path", sentence)
    except ValueError as error:
        faults.add(f"{where}.path", str(error))
    if not isinstance(sha256, str) or not is_hash(sha256):
        faults.add(f"{where}.sha256", f"must be 64 hexadecimal digits, not {scalars.shown(sha256)}.")
    if not isinstance(mode, str) or mode not in _MODES:
        faults.add(f"{where}.mode", f"must be one of {_SHOWN_MODES}, not {scalars.shown(mode)}.")
    kind = _MODES.get(str(mode), Mode.PLAIN)
    return File(str(path), str(sha256), _size(fields.get("size"), kind, f"{where}.size", faults), kind)


def _size(value: object, mode: Mode, where: str, faults: Faults) -> int:
    try:
        size = scalars.read_int(value, scalars.INT64_MOST)
    except ValueError as error:
        faults.add(where, str(error))
        return 0
    if not 0 <= size <= MOST_SIZE:
        faults.add(where, f"must be from 0 to {MOST_SIZE} bytes, not {size}.")
    elif mode is Mode.LINK and not 1 <= size <= LONGEST_PATH:
        faults.add(where, f"must be from 1 to {LONGEST_PATH} bytes, the length of the link's target.")
    return size


class FrameReader:
    """Splits a stream into headers and the bytes that follow each, in order."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0  # bytes of the present frame still to come
        self._frame = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yields piece by piece, so that the caller has everything before a fault when Invalid is raised."""
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                at += len(piece)
                yield piece
                continue
            end = data.find(b"\n", at, at + _LONGEST_HEADER + 1)
            self._head += data[at : end if end != -1 else at + _LONGEST_HEADER + 1]
            if end == -1:
                if len(self._head) > _LONGEST_HEADER:
                    raise self._refusal()
                return
            at = end + 1
            yield self._header()

    def finish(self) -> None:
        """Call at the end of the stream; Invalid where a frame is unfinished."""
        if self._left or self._head:
            place = f"frames[{self._frame - bool(self._left)}]"
            missing = f"{self._left} bytes too early" if self._left else "in its header"
            raise Invalid((Violation(place, f"The stream ends inside of it, {missing}."),))

    def _header(self) -> Header:
        match = _HEADER.fullmatch(bytes(self._head))
        if match is None or int(match[2]) > MOST_SIZE:
            raise self._refusal()
        self._head.clear()
        self._frame += 1
        self._left = int(match[2])
        return Header(match[1].decode(), self._left)

    def _refusal(self) -> Invalid:
        sentence = (
            f"A frame must begin with the hash of its bytes (64 hexadecimal digits), a space, its size (at "
            f"most {MOST_SIZE}) and a line feed, not with {bytes(self._head[:80])!r}."
        )
        return Invalid((Violation(f"frames[{self._frame}]", sentence),))
