"""The values of a Dockerfile's ARGs before its first FROM, and words with such values in them. Pure.

`dockerfile.py` calls it. A word that is written in any other way than the usual ones has no value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DEEPEST = 10  # words inside of each other
LONGEST = 2000  # characters

_PLAIN = re.compile(r"[A-Za-z0-9._/:@+-]+")
_SHORT = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_LONG = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])(.*))?\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Values:
    known: dict[str, str] = field(default_factory=dict[str, str])

    def declare(self, words: Sequence[str], args: Mapping[str, str]) -> None:
        """The words of an ARG. What the build is given counts more than a default."""
        for word in words:
            name, equals, default = word.partition("=")
            if not _NAME.fullmatch(name):
                continue
            value = args.get(name, self._default(default) if equals else None)
            if value is None:
                self.known.pop(name, None)
            else:
                self.known[name] = value

    def expand(self, word: str, depth: int = 0) -> str | None:
        """The word with values for variables; None where one has none, or it is written otherwise."""
        made, at = "", 0
        while at < len(word):
            if depth > DEEPEST or len(made) > LONGEST:
                return None
            if plain := _PLAIN.match(word, at):
                value, at = plain[0], plain.end()
            elif short := _SHORT.match(word, at):
                value, at = self.known.get(short[1]), short.end()
            else:
                value, at = self._braced(word, at, depth)
            if value is None:
                return None
            made += value
        return made if len(made) <= LONGEST else None

    def _default(self, text: str) -> str | None:
        if text[:1] in ("'", '"'):
            inner = text[1:-1]
            if len(text) < 2 or text[-1] != text[0]:
                return None
            return inner if text[0] == "'" and _PLAIN.fullmatch(inner) else self.expand(inner)
        return self.expand(text)

    def _braced(self, word: str, at: int, depth: int) -> tuple[str | None, int]:
        end, level = at + 1, 0
        for end in range(at + 1, len(word)):
            level += (word[end] == "{") - (word[end] == "}")
            if not level:
                break
        if not (parts := _LONG.fullmatch(word, at, end + 1)):
            return None, end + 1
        value, how, other = self.known.get(parts[1]), parts[2], parts[3]
        is_set = value is not None and (value != "" or not (how or "").startswith(":"))
        match (how or "")[-1:]:
            case "-" if not is_set:
                return self.expand(other, depth + 1), end + 1
            case "+":
                return self.expand(other, depth + 1) if is_set else "", end + 1
            case _:
                return value, end + 1
