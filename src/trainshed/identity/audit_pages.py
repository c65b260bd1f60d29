"""Pages of the audit log, read backwards from its files. For `audit_files`, which writes them.

Most lines of a log are not asked for. So a line is looked at as bytes first, and becomes a row only where
the query fits. It is our own JSON: `"project": "` stands in it as a name only, since quotes in a text are
escaped. One page looks at MOST_LOOKED bytes.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from trainshed.core.accounts.audit import AuditPage, AuditPlace, AuditQuery, AuditRow
from trainshed.identity.audit_line import row_of

log = logging.getLogger(__name__)

MOST_LOOKED = 16 << 20  # bytes
_PIECE = 1 << 16  # bytes
_TEXT = rb'"%s": ("(?:[^"\\]|\\.)*")'
_PROJECT, _WHO = re.compile(_TEXT % b"project"), re.compile(_TEXT % b"who")
_REFUSED = re.compile(rb'"code": 40[13]\b')


def read_page(folder: Path, query: AuditQuery, limit: int, place: AuditPlace | None) -> AuditPage:
    """The newest rows before `place`; all where there is none."""
    rows, looked, may_fit = list[AuditRow](), 0, _first_look(query)
    for path, end in _files(folder, place):
        with path.open("rb") as file:
            for start, line in _lines_backwards(file, end):
                if may_fit(line) and (row := _row(path, line)) is not None and query.fits(row):
                    rows.append(row)
                looked += len(line)
                if len(rows) >= limit or looked >= MOST_LOOKED:
                    return AuditPage(tuple(rows), (path.name, str(start)))
    return AuditPage(tuple(rows), None)


def _files(folder: Path, place: AuditPlace | None) -> Iterator[tuple[Path, int | None]]:
    """The files from `place` on, the newest first, and where to begin in each; None: at its end."""
    for path in sorted(folder.glob("????-??.jsonl"), reverse=True) if folder.is_dir() else []:
        if place is None or path.name < place[0]:
            yield path, None
        elif path.name == place[0]:
            yield path, int(place[1])


def _first_look(query: AuditQuery) -> Callable[[bytes], bool]:
    """Whether a line may be of a row that fits."""
    projects = query.projects

    @lru_cache(maxsize=1000)
    def is_of_project(text: bytes) -> bool:
        return projects is not None and _text(text) in projects

    @lru_cache(maxsize=1000)
    def is_of_who(text: bytes) -> bool:
        return query.who in _text(text).split()

    def may_fit(line: bytes) -> bool:
        if projects is not None:
            project = _PROJECT.search(line)
            if not is_of_project(project[1] if project else b'""'):
                return False
        if query.who and not ((who := _WHO.search(line)) and is_of_who(who[1])):
            return False
        return not query.only_refused or _REFUSED.search(line) is not None

    return may_fit


def _text(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return ""


def _row(path: Path, line: bytes) -> AuditRow | None:
    try:
        return row_of(line)
    except ValueError:
        log.warning("a line of %s cannot be read", path)
        return None


def _lines_backwards(file: BinaryIO, end: int | None) -> Iterator[tuple[int, bytes]]:
    """The lines that end there, the last first, and where each begins."""
    size = file.seek(0, os.SEEK_END)
    at, rest = size if end is None else min(end, size), b""
    while at > 0:
        piece = min(_PIECE, at)
        at -= piece
        file.seek(at)
        block = file.read(piece) + rest
        rest, *lines = block.split(b"\n")
        start = at + len(block)
        for line in reversed(lines):
            start -= len(line)
            if line:
                yield start, line
            start -= 1  # the end of the line before it
    if rest:
        yield 0, rest
