"""What pip prints, as one sentence on how far it is, and as the lines that say why it failed. Pure."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST_LINES = 200  # of pip's newest, kept for the case that it fails
MOST_SHOWN = 20  # of these while it goes on

_COLLECTING = re.compile(r"\s*Collecting ([A-Za-z0-9._-]+)")
_PROCESSING = re.compile(r"\s*Processing \S*/([^/\s]+)$")
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
_QUOTES = re.compile(r"\s*╰─> \[\d+ lines? of output\]")
_QUOTED = "[end of output]"


def key(name: str) -> str:
    """A package's name as folders and indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(slots=True)
class PipProgress:
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
        elif match := _PROCESSING.match(line):
            self.doing = f"unpacking {match[1]}"
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

    def newest(self) -> tuple[str, ...]:
        """The last few lines, for those who watch."""
        return tuple(self.lines[-MOST_SHOWN:])

    def last_words(self) -> tuple[str, ...]:
        """Pip says "no such version" also where it could ask nobody: then that is left out."""
        unreached = any(_NOBODY.search(line) for line in self.lines)
        lines = [line for line in self.lines if not (unreached and _NOTHING_FOUND.search(line))]
        return tuple(_quoted(lines) or lines)


def _quoted(lines: Sequence[str]) -> list[str]:
    """What pip quotes of a build that failed: the build's own words, below the step it was.

    Around them pip says only that a build has failed. Of quotes in quotes the innermost counts.
    """
    starts = [at for at, line in enumerate(lines) if _QUOTES.match(line)]
    ends = [at for at, line in enumerate(lines) if line.strip() == _QUOTED]
    if not ends:
        return []
    start = starts[-1] if starts else -1  # -1: so much was said that its beginning is not kept
    end = next((at for at in ends if at > start), len(lines))
    body = textwrap.dedent("\n".join(lines[start + 1 : end])).splitlines()
    step = [lines[start - 1].strip()] if start > 0 else []
    return [*step, *body] if body else []
