"""Which lines an expression is found in: the one place where a person's regular expression is run.

It runs here and not in the server: an expression that takes for ever keeps nobody waiting but who wrote it.
"""

import re
from collections.abc import Iterator

from trainshed.cli.failure import Misuse
from trainshed.client import Json

LONGEST = 1 << 20  # bytes: a longer line is looked at in parts of this size


class Grep:
    def __init__(self, text: str) -> None:
        try:
            self._search = re.compile(text).search
        except re.error as error:
            raise Misuse(f"--grep {text}: this is not a regular expression: {error}") from error
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
        search = self._search
        lines = whole.decode("utf-8", "surrogateescape").split("\n")
        lines.pop()  # what is behind the last newline: nothing
        matches = [line for line in lines if search(line)]
        matches.append("")
        return "\n".join(matches).encode("utf-8", "surrogateescape") if len(matches) > 1 else b""
