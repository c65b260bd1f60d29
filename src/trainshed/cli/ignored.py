"""Lines of a .gitignore as a test on paths: for folders that git does not manage, and for our own options.

It knows comments, `!`, anchors, folders, `*`, `?`, `[...]` and `**`, as gitignore(5) has them, and reads no
files.
"""

import re

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable


class Patterns:
    """The lines of one place, later ones winning; `base` is the folder they stand in, "" or ending in /."""

    def __init__(self, lines: "Iterable[str]", base: str = "") -> None:
        self._base = base
        self._rules = [rule for line in lines if (rule := _rule(line)) is not None]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether the path is ignored; None where nothing is said of it."""
        if not path.startswith(self._base):
            return None
        inner = path[len(self._base) :]
        for expression, only_folders, ignores in reversed(self._rules):
            if (is_folder or not only_folders) and expression.fullmatch(inner):
                return ignores
        return None

    def holds(self, path: str) -> bool:
        """Whether a file is meant, by its own path or by that of a folder it is in."""
        parts = path.split("/")
        folders = ["/".join(parts[:at]) for at in range(1, len(parts))]
        if any(self.verdict(folder, is_folder=True) for folder in folders):
            return True
        return bool(self.verdict(path, is_folder=False))


def _rule(line: str) -> "tuple[re.Pattern[str], bool, bool] | None":
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    text = line if ignores else line[1:]
    only_folders = text.endswith("/")
    text = text.rstrip("/").removeprefix("./")
    if not text:
        return None
    anchored = "/" in text
    expression = _expression(text.removeprefix("/"))
    return re.compile(expression if anchored else f"(?:.*/)?{expression}", re.DOTALL), only_folders, ignores


def _expression(text: str) -> str:
    made: list[str] = []
    at = 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith("**/") and (at == 0 or text[at - 1] == "/"):
            made.append("(?:.*/)?")
            at += 3
        elif rest == "**" and text[at - 1 : at] == "/":
            made.append(".+")
            at += 2
        elif rest[0] == "*":
            made.append("[^/]*")
            at += 1
        elif rest[0] == "?":
            made.append("[^/]")
            at += 1
        elif rest[0] == "[" and (end := _end_of_set(rest)):
            inner = rest[1:end].replace("\\", "\\\\")
            made.append("[" + ("^/" + inner[1:] if inner[0] in "!^" else inner.replace("[", "\\[")) + "]")
            at += end + 1
        else:
            at += rest[0] == "\\" and len(rest) > 1
            made.append(re.escape(text[at]))
            at += 1
    return "".join(made)


def _end_of_set(text: str) -> int:
    """Where the set that begins the text ends; 0 where it does not."""
    start = 2 if text[1:2] in ("!", "^") else 1
    return max(0, text.find("]", start + 1))
