"""Mend the indentation of a manifest: each line is put where its field belongs. Pure.

Manifests on web pages often come with their indentation lost. What fields there are is known, so a line says
by itself where it belongs: `containers` is in a Pod's `spec`, and nowhere else. Where several places are
possible, the line next to which it is aligned decides, else the innermost. Nothing but the space at the
beginning of lines is changed: lines keep their numbers.
"""

import re
from dataclasses import dataclass, field

from trainshed.dialects.kubernetes.cli.shape import ANY, MANIFEST, MAPS, PLAIN, TEXTS, kind_of, shapes

_LINE = re.compile(r"(?P<space> *)(?P<dash>- +|-$)?(?P<rest>.*)")
_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s'"#\[\]{}&*!|>%@`,-][^\s#]*?)\s*:(?=\s|$)(?P<value>.*)""")
_KIND = re.compile(r"^\s*kind:\s*[\"']?(\w+)", re.MULTILINE)
_BLOCK = re.compile(r"[|>][0-9+-]*\s*(#.*)?$")
_STEP = 2


@dataclass(slots=True)
class _Frame:
    """Something that is open: fields, or items, may still come."""

    kind: str
    was: int  # the column of the line that opened it
    new: int  # the column its fields, or its dashes, are to have
    column: int | None = None  # where its first field, or dash, was
    seen: set[str] = field(default_factory=set[str])

    @property
    def is_list(self) -> bool:
        return self.kind == TEXTS or self.kind.startswith("[")


class Lost(Exception):
    """A line that belongs nowhere."""


def repair(text: str) -> tuple[str, list[int]] | None:
    """The text as it must have been, and the lines that moved; None where it cannot be told."""
    kind, *inner = [name for name in _KIND.findall(text) if name in shapes()] or [""]
    if not kind:
        return None
    mender = _Mender(kind, inner[0] if inner else kind)
    try:
        mender.read(text.splitlines())
    except Lost:
        return None
    return "\n".join(mender.lines) + "\n", mender.moved()


class _Mender:
    def __init__(self, kind: str, inner: str) -> None:
        self._inner = inner  # the kind of a manifest in the manifest
        self.lines: list[str] = []
        self._shifts: dict[int, int] = {}  # by line number, how far it went
        self._stack = [_Frame(kind, -1, 0)]
        self._block: tuple[int, int] | None = None  # a text of several lines: its column, and how far it goes

    def moved(self) -> list[int]:
        """Those that went elsewhere than most did: a whole text that stood further right is not wrong."""
        shifts = list(self._shifts.values())
        usual = max(set(shifts), key=shifts.count) if shifts else 0
        return [number for number, shift in self._shifts.items() if shift != usual]

    def read(self, lines: list[str]) -> None:
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            column = len(line) - len(line.lstrip(" "))
            if self._block and (not stripped or column > self._block[0]):
                self.lines.append(" " * max(0, column + self._block[1]) + stripped if stripped else "")
                continue
            self._block = None
            if not stripped or stripped.startswith("#"):
                self.lines.append(line)
                continue
            new = self._place(line, column)
            self.lines.append(" " * new + stripped)
            self._shifts[number] = column - new
            if _BLOCK.search(stripped):
                self._block = column, new - column

    def _place(self, line: str, column: int) -> int:
        """The column the line is to begin at."""
        match = _LINE.fullmatch(line.rstrip())
        assert match is not None
        key = _KEY.match(match["rest"])
        if match["dash"] is None:
            if key is None:
                raise Lost
            frame = self._chosen(self._holding(key, column), column)
            return self._enter(frame, key, column)
        frame = self._chosen(self._listing(key), column)
        frame.column = column if frame.column is None else frame.column
        if key is not None and frame.kind != TEXTS:
            inner = column + len(match["dash"])
            item = _Frame(frame.kind[1:-1], column, frame.new + _STEP, inner)
            self._stack.append(item)
            self._enter(item, key, inner)
        return frame.new

    def _chosen(self, frames: list[_Frame], column: int) -> _Frame:
        """The innermost in line with it, else the innermost; all within it are over."""
        if not frames:
            raise Lost
        chosen = frames[0]
        if chosen.column is not None or column < chosen.was:  # not one that was just opened
            chosen = next((frame for frame in frames if frame.column == column), chosen)
        while self._stack[-1] is not chosen:
            self._stack.pop()
        return chosen

    def _holding(self, key: re.Match[str], column: int) -> list[_Frame]:
        """What is open and may have the field, the innermost first; those that only would refuse it last."""
        name = key["key"].strip("'\"")
        outer = [f for f in self._stack if name in shapes().get(f.kind, {}) and name not in f.seen]
        inner = list(reversed(outer))
        frames = sorted(inner, key=lambda f: shapes()[f.kind][name][0] in "~!")
        top = self._stack[-1]
        if top.kind in MAPS and name not in top.seen:
            # Names that could be anything: told apart by their column, where that says something.
            is_within = top.column is not None and top.column > top.was and top.column == column
            if is_within or not outer or (top.column is None and column > top.was and top.was >= 0):
                return [top, *frames]
        return frames

    def _listing(self, key: re.Match[str] | None) -> list[_Frame]:
        name = key["key"].strip("'\"") if key else ""
        lists = [frame for frame in reversed(self._stack) if frame.is_list]
        objects = [f for f in lists if name and name in shapes().get(f.kind[1:-1], {})]
        return objects or [frame for frame in lists if frame.kind == TEXTS]

    def _enter(self, frame: _Frame, key: re.Match[str], column: int) -> int:
        name = key["key"].strip("'\"")
        frame.seen.add(name)
        frame.column = column if frame.column is None else frame.column
        kind = kind_of(shapes().get(frame.kind, {}).get(name, "text"))
        kind = self._inner if kind == MANIFEST else kind
        value = key["value"].partition(" #")[0].strip()
        if kind == ANY and not value:
            raise Lost  # what is in there is not known
        if not value and kind not in PLAIN:
            lists = kind == TEXTS or kind.startswith("[")
            self._stack.append(_Frame(kind, column, frame.new if lists else frame.new + _STEP))
        return frame.new
