"""Which lines an expression is found in: the one place where a person's regular expression is run.

It runs here and not in the server: an expression that takes for ever keeps nobody waiting but who wrote it.
"""

import re
from collections.abc import Iterator

from trainshed.cli.failure import Misuse
from trainshed.client import Json

LONGEST = 1 << 20  # bytes: a longer line is looked at in parts of this size

# An expression that consists of these parts matches no newline, and looks at nothing around what it matches.
# So it finds the same in many lines at once as in each of them, in half the time.
_PLAIN = re.compile(r"(?:[^\\^$\[\n]|\\[dwb]|\\[^\w\s]|\[(?:[\w .,:=/-]|\\[dw])+\])*")
_NOT_PLAIN = re.compile(r"\(\?(?!:)|[*+?}]\+")


class Grep:
    def __init__(self, text: str) -> None:
        try:
            self._search = re.compile(text).search
        except re.error as error:
            raise Misuse(f"--grep {text}: this is not a regular expression: {error}") from error
        is_plain = _PLAIN.fullmatch(text) is not None and _NOT_PLAIN.search(text) is None
        self._lines_of = self._lines_at_once if is_plain else self._lines_one_by_one
        self._unended: dict[tuple[object, ...], tuple[Json, bytes]] = {}

    def is_in(self, line: Json) -> bool:
        return self._search(str(line.get("text", ""))) is not None

    def chosen(self, frames: "Iterator[tuple[Json, bytes]]") -> "Iterator[tuple[Json, bytes]]":
        """The same frames with the lines left in which the expression is found; none where no line is."""
        for head, data in frames:
            whole = self._whole_lines(head, data)
            if whole and (lines := self._matching(whole)):
                yield head, lines
        for head, rest in self._unended.values():
            if self._search(rest.decode("utf-8", "surrogateescape")):
                yield head, rest

    def _whole_lines(self, head: Json, data: bytes) -> bytes:
        """These bytes and what was left of their stream before, up to the last newline."""
        if head.get("marker"):
            return data
        who = (head["attempt"], head["task"], head["stream"])
        if who in self._unended:
            data = self._unended.pop(who)[1] + data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut >= LONGEST:
            return data + b"\n"
        if cut < len(data):
            self._unended[who] = (head, data[cut:])
        return data[:cut]

    def _matching(self, whole: bytes) -> bytes:
        matches = [*self._lines_of(whole.decode("utf-8", "surrogateescape")), ""]
        return "\n".join(matches).encode("utf-8", "surrogateescape") if len(matches) > 1 else b""

    def _lines_one_by_one(self, text: str) -> Iterator[str]:
        lines = text.split("\n")
        lines.pop()  # what is behind the last newline: nothing
        return filter(self._search, lines)

    def _lines_at_once(self, text: str) -> Iterator[str]:
        at, last = 0, len(text) - 1  # the last newline
        while at <= last and (match := self._search(text, at, last)):
            start = text.rfind("\n", at, match.start()) + 1 or at
            end = text.index("\n", match.end())
            yield text[start:end]
            at = end + 1
