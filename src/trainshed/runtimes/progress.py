"""What pip prints, as one sentence on how far it is, and as the lines that say why it failed. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_LINES = 200  # of pip's newest, kept for the case that it fails

_COLLECTING = re.compile(r"\s*Collecting ([A-Za-z0-9._-]+)")
_BUILDING = re.compile(r"\s*Building wheel for ([A-Za-z0-9._-]+)")
_INSTALLING = re.compile(r"\s*Installing collected packages: (.*)")
_NOISE = re.compile(
    r"WARNING: Location .* is ignored|\[notice\]|DEPRECATION:|WARNING: Running pip as"
    r"|^\s*(?:note: This (?:error originates|is an issue)|hint: See above|╰─> See above|│ exit code)"
)
_NOBODY = re.compile(r"Retrying \(Retry|NewConnectionError|NameResolutionError|ProxyError|ReadTimeoutError")
_NOTHING_FOUND = re.compile(
    r"No matching distribution found|Could not find a version that satisfies .*\(from versions: none\)"
)


def key(name: str) -> str:
    """A package's name as folders and indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(slots=True)
class Progress:
    doing: str = "making the environment"
    packages: tuple[str, ...] = ()  # in the order in which they are installed
    lines: list[str] = field(default_factory=list[str])

    def hear(self, line: str) -> None:
        if not line.strip() or _NOISE.search(line):
            return
        self.lines.append(line.rstrip())
        del self.lines[:-MOST_LINES]
        if match := _COLLECTING.match(line):
            self.doing = f"fetching {match[1]}"
        elif match := _BUILDING.match(line):
            self.doing = f"building {match[1]}"
        elif match := _INSTALLING.match(line):
            self.packages = tuple(name.strip() for name in match[1].split(","))
            self.doing = "installing"

    def sentence(self, installed: Iterable[str]) -> str:
        """How far it is, given the packages that lie in the environment already."""
        if not self.packages:
            return self.doing
        there = set(map(key, installed))
        left = [name for name in self.packages if key(name) not in there]
        if not left:
            return "finishing"
        count = len(self.packages)
        return f"installing {left[0]} ({count - len(left) + 1} of {count})"

    def last_words(self) -> tuple[str, ...]:
        """Pip says "no such version" also where it could ask nobody: then that is left out."""
        unreached = any(_NOBODY.search(line) for line in self.lines)
        return tuple(line for line in self.lines if not (unreached and _NOTHING_FOUND.search(line)))
