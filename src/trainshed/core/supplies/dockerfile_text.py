"""The text of a Dockerfile as instructions, read so that no engine can read another one in it. Pure.

`dockerfile.py` calls it. Engines differ: some know heredocs, some end a continued line at a comment or behind
two backslashes. So an instruction here is as long as any engine could take it, and all lines in it are handed
out as well: an engine could begin there. What is written in a way that engines take differently is refused.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainshed.core.errors import Invalid, Violation

MOST_TEXT = 128 * 1024  # characters
MOST_BREAKS = 50  # lines over which one word goes on
READING = frozenset({"add", "copy", "run"})  # may read images, by a flag
INSTRUCTIONS = READING | {
    *("arg", "cmd", "entrypoint", "env", "expose", "from", "healthcheck", "label", "maintainer"),
    *("onbuild", "shell", "stopsignal", "user", "volume", "workdir"),
}

_WORD = re.compile(r"\S+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85]")
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(.*)", re.IGNORECASE)
_SYNTAX = re.compile(r"#\s*syntax\s*=.*", re.IGNORECASE)
_SHIFT = re.compile(r"(?<!<)<<(?!<)(?=\S)")
_HEREDOC = re.compile(r"<<(-?)([\"']?)([A-Za-z0-9_.-]+)\2(?=\s|$)")


def refused(line: int, words: str) -> Invalid:
    """Why a Dockerfile is refused; lines count from 0."""
    return Invalid((Violation("dockerfile", f"Line {line + 1} of the Dockerfile {words}"),))


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    line: int  # on which it stands
    start: int  # in the text of the file; -1: it begins on one line and ends on another


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, with the lines in it at which an engine could begin another one."""

    line: int
    text: str  # without the backslashes at the ends of lines
    words: tuple[Word, ...]
    inner: tuple[int, ...]

    @property
    def keyword(self) -> str:
        return self.words[0].text.lower()


@dataclass(slots=True)
class DockerfileText:
    """What is in the text, and the spans of comments that an engine must not see (`blanks`)."""

    text: str
    blanks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _lines: list[str] = field(default_factory=list[str])
    _starts: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.text = self.text.removeprefix("\ufeff").replace("\r\n", "\n")
        if len(self.text) > MOST_TEXT:
            raise Invalid(
                (Violation("dockerfile", f"The Dockerfile is longer than {MOST_TEXT} characters."),)
            )
        if odd := _CONTROL.search(self.text):
            raise refused(self.text.count("\n", 0, odd.start()), "has a control character: remove it.")
        self._lines = self.text.split("\n")
        at = 0
        for line in self._lines:
            self._starts.append(at)
            at += len(line) + 1

    def instructions(self) -> Iterator[Instruction]:
        at, is_top = 0, True
        while at < len(self._lines):
            line = self._lines[at].strip()
            if line.startswith("#") and is_top:
                self._check_directive(at, line)
            if not line or line.startswith("#"):
                at += 1
                continue
            is_top = False
            instruction, end = self._instruction(at)
            if not instruction.words or instruction.keyword not in INSTRUCTIONS:
                raise refused(at, "begins with no instruction.")
            inner = [*range(at + 1, end)]
            if instruction.keyword in (*READING, "onbuild"):
                at, end = end, self._behind_heredocs(instruction, end)
                inner += range(at, end)
            yield Instruction(instruction.line, instruction.text, instruction.words, tuple(inner))
            at = end

    def words(self, line: int) -> Iterator[Word]:
        """The words of the instruction that would begin at that line, as they are asked for."""
        for segments, _ in self._parts(line):
            yield from self._split(segments)

    def is_continued(self, line: int) -> bool:
        return self._lines[line].rstrip(" \t").endswith("\\")

    def _check_directive(self, at: int, line: str) -> None:
        """Engines differ in where they still look for directives: none may matter."""
        if (escape := _ESCAPE.fullmatch(line)) and escape[1].strip() != "\\":
            raise refused(at, "sets another escape character: remove it, and end continued lines with \\.")
        if _SYNTAX.fullmatch(line):
            self.blanks.append((self._starts[at], self._starts[at] + len(self._lines[at])))

    def _instruction(self, line: int) -> tuple[Instruction, int]:
        """The instruction that begins at a line, and the line behind it."""
        parts = [*self._parts(line)]
        text = "".join(segment for segments, _ in parts for _, segment in segments)
        words = tuple(word for segments, _ in parts for word in self._split(segments))
        return Instruction(line, text, words, ()), parts[-1][1]

    def _parts(self, line: int) -> Iterator[tuple[list[tuple[int, str]], int]]:
        """Pieces of it that end where a word ends: (line, text) of each line, and the line behind them."""
        segments: list[tuple[int, str]] = []
        at = line
        while at < len(self._lines):
            body = self._lines[at].rstrip(" \t")
            is_skipped = at > line and (not body.strip() or body.lstrip().startswith("#"))
            if not is_skipped:
                is_last = not body.endswith("\\")
                body = body.removesuffix("\\")
                if segments and body[:1].isspace():
                    yield segments, at
                    segments = []
                segments.append((at, body))
                if len(segments) > MOST_BREAKS:
                    raise refused(line, "goes on over too many lines inside of a word: put spaces before \\.")
                if is_last:
                    at += 1
                    break
                if body[-1:].isspace():
                    yield segments, at + 1
                    segments = []
            at += 1
        yield segments, at

    def _split(self, segments: Sequence[tuple[int, str]]) -> Iterator[Word]:
        begins = [0]
        for _, segment in segments:
            begins.append(begins[-1] + len(segment))
        for match in _WORD.finditer("".join(segment for _, segment in segments)):
            part = bisect_right(begins, match.start()) - 1
            line = segments[part][0]
            is_whole = match.end() <= begins[part + 1]
            start = self._starts[line] + match.start() - begins[part] if is_whole else -1
            yield Word(match[0], line, start)

    def _behind_heredocs(self, instruction: Instruction, at: int) -> int:
        for shift in _SHIFT.finditer(instruction.text):
            here = _HEREDOC.match(instruction.text, shift.start())
            before = instruction.text[: shift.start()].rstrip("0123456789")
            if here is None or not before[-1:].isspace():
                raise refused(
                    instruction.line, "has << inside of a word: write << with the word behind it apart."
                )
            while at < len(self._lines):
                line = self._lines[at].lstrip("\t") if here[1] else self._lines[at]
                at += 1
                if line == here[3]:
                    break
            else:
                raise refused(instruction.line, f"begins a text that has no end: {here[3]}.")
        return at
