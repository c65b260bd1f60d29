"""The last output of a program: the traceback it died of, and the few lines worth reading. Pure.

`core/jobs/verdict.py` and `core/jobs/stacks.py` call it. It accepts any text: cut lines, escape codes,
progress bars, several tracebacks. It masks secrets in what it returns. It never decides why a program failed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_LINES = 20
LONGEST_LINE = 400  # characters of one line that are kept
NEAR_THE_END = 40  # the program survived a traceback that has more lines after it
LONGEST_MESSAGE = 8  # lines of one exception's message that are looked at

# All patterns take (nearly) linear time, because the output may be written to make them slow.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}\x07")
_CONTROLS = dict.fromkeys([*range(9), *range(10, 32), *range(127, 160), 0x2028, 0x2029])
_RANK = re.compile(r"^\[rank\d+\]:\s?")
_CARETS = re.compile(r"^\s*[~^]+\s*$")
_PROGRESS = re.compile(
    r"\d%\|[^|]{0,200}\||[\d?] ?(?:it|s|step|batch|[kMG]?i?B)/(?:s|it|step)\b[^\]]{0,80}\]|"
    r"\[[=>.━╸ -]{8,200}\]|[━╸█]{5}"
)
_HEADER = re.compile(r"^(?:[ |+]*)(?:Original |Exception Group )?Traceback \(most recent call last\):")
_FATAL = re.compile(r"^Fatal Python error: ")
_JOINT = re.compile(
    r"^The above exception was the direct cause|^During handling of the above exception|"
    r"^-- Process \d+ terminated with the following error"
)
_LOGGED = re.compile(r"^[EWIF]\d{4} \d\d:|^\[?\d{4}-\d\d-\d\d[ T]\d\d:")
_FRAME = re.compile(r'^\s*(?:[|+] )?\s*File "(?P<file>[^"]*)", line \d+')
_RAISED = re.compile(r"^(?:[|+ ]*)(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: |:$|$)")
_NAMED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |:$|$)")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|<frozen ")

_ASSIGNED = re.compile(
    r"(?i)((?:token|secret|api_?key|access_?key|private_?key|credentials?)(?![a-z])[\w-]*"
    r"['\"]?\s*[=:]\s*['\"]?)(?=[^\s'\"]*\d)[\w+/.=~-]{8,}"
)
_PASSWORD = re.compile(r"(?i)(passw(?:or)?d[\w-]*['\"]?\s*[=:]\s*['\"]?)[^\s'\",;]+")
_BEARER = re.compile(r"(?i)\b(bearer |basic )[\w+/.=~-]{8,}")
_IN_URL = re.compile(r"(://[^\s/:@]+:)[^\s/@]+@")
_KNOWN = re.compile(
    r"\b(?:hf_\w{16,}|sk-[\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|AKIA[0-9A-Z]{16}|ya29\.[\w-]{16,}|"
    r"xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
)


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception of a traceback: its header, its frames, its message."""

    before: tuple[str, ...]  # the sentence that joins it to the one before, if any, and the header
    frames: tuple[tuple[str, ...], ...]  # each: the line naming the file, and the source line if shown
    message: tuple[str, ...]

    @property
    def line(self) -> str:
        return self.message[0].lstrip(" |+") if self.message else ""

    @property
    def text(self) -> str:
        return "\n".join(self.message)


Chain = tuple[Raised, ...]  # exceptions that led to each other, the last one raised last


def clean(text: str) -> str:
    """A line as a terminal would show it: no escape codes, only the text after the last carriage return."""
    if "\r" in text:
        text = text.rstrip("\r").rpartition("\r")[2]
    text = text[: 2 * LONGEST_LINE]
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = text.translate(_CONTROLS).expandtabs(4).rstrip()
    if (at := text.find("Traceback (most recent call last):")) > 0 and not _HEADER.match(text):
        text = text[at:]  # a progress bar, or a logger's prefix, stands before it on the same line
    return _RANK.sub("", text) if text.startswith("[rank") else text


def spoken(lines: Sequence[str]) -> list[str]:
    """The cleaned lines without progress bars. Blank lines stay: they show where a message ends."""
    return [text for text in map(clean, lines) if not _is_progress(text)]


def _is_progress(text: str) -> bool:
    # Check the characters first: most lines have none of these, and the pattern is slow.
    return any(mark in text for mark in "|]━█") and _PROGRESS.search(text) is not None


def mask(text: str) -> str:
    """The text with everything that looks like a password, token or key replaced."""
    text = _PASSWORD.sub(r"\1***", text)
    text = _ASSIGNED.sub(r"\1***", text)
    text = _BEARER.sub(r"\1***", text)
    return _KNOWN.sub("***", _IN_URL.sub(r"\1***@", text))


def shown(text: str) -> str:
    """A line as people may read it."""
    text = mask(text)
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def find_chains(lines: Sequence[str]) -> list[Chain]:
    """All complete tracebacks near the end of the lines, each with those that led to it."""
    chains: list[list[Raised]] = []
    at, joined = 0, False
    ends: list[int] = []
    while at < len(lines):
        text = lines[at]
        if _HEADER.match(text) or _FATAL.match(text):
            raised, stop = _read(lines, at)
            if raised is None:
                break  # cut off: the exception is not known
            if (joined or text.startswith("Original ")) and chains:
                chains[-1].append(raised)
                ends[-1] = stop
            else:
                chains.append([raised])
                ends.append(stop)
            at, joined = stop, False
            continue
        joined = joined or bool(_JOINT.match(text))
        at += 1
    near_end = [
        tuple(chain) for chain, end in zip(chains, ends, strict=True) if len(lines) - end <= NEAR_THE_END
    ]
    return near_end or _headless(lines)


def _read(lines: Sequence[str], at: int) -> tuple[Raised | None, int]:
    """The traceback whose header is at `at`, and where it ends. None where it is cut off."""
    first = lines[at]
    joints = [text for text in lines[max(0, at - 2) : at] if _JOINT.match(text)]
    before = (*joints[-1:], first)
    if _FATAL.match(first):
        return _read_fatal(lines, at)
    frames: list[tuple[str, ...]] = []
    at += 1
    while at < len(lines):
        text = lines[at]
        if _FRAME.match(text):
            frames.append((text,))
        elif _CARETS.match(text):
            pass
        elif frames and text.startswith(("    ", "  |  ")) and len(frames[-1]) == 1:
            frames[-1] = (*frames[-1], text)
        elif not text or text.startswith("  "):
            pass  # further source lines, "[Previous line repeated …]", notes in between
        else:
            break
        at += 1
    if at == len(lines) or not _RAISED.match(lines[at]):
        return None, at
    stop = at + 1
    while stop < len(lines) and stop - at < LONGEST_MESSAGE and lines[stop] and not _begins(lines[stop]):
        stop += 1
    return Raised(before, tuple(frames), tuple(lines[at:stop])), stop


def _read_fatal(lines: Sequence[str], at: int) -> tuple[Raised, int]:
    """What faulthandler prints when the interpreter dies: the innermost frame comes first."""
    stop = at + 1
    frames: list[tuple[str, ...]] = []
    while stop < len(lines):
        text = lines[stop]
        if _FRAME.match(text):
            frames.append((text,))
        elif text and not text.endswith("(most recent call first):"):
            break
        stop += 1
    return Raised((), tuple(reversed(frames)), (lines[at],)), stop


def _headless(lines: Sequence[str]) -> list[Chain]:
    """A syntax error has no header: the place, the source line, then the exception."""
    for at in range(len(lines) - 1, max(-1, len(lines) - NEAR_THE_END), -1):
        if _NAMED.match(lines[at]):
            start = next((i for i in range(at - 1, max(-1, at - 5), -1) if _FRAME.match(lines[i])), None)
            if start is not None:
                body = tuple(text for text in lines[start:at] if not _CARETS.match(text))
                return [(Raised((), (body,), (lines[at],)),)]
    return []


def _begins(text: str) -> bool:
    return bool(_HEADER.match(text) or _JOINT.match(text) or _FATAL.match(text) or _LOGGED.match(text))


def lines_that_matter(chain: Chain) -> tuple[str, ...]:
    """At most twenty lines: the last exception, with frames of the program's own files preferred."""
    last = chain[-1]
    earlier: list[str] = []
    for item in chain[:-1]:
        own = [frame for frame in item.frames if not _is_library(frame)] or list(item.frames)
        earlier += [*item.before[-1:], *(own[-1] if own else ()), *item.message[:1]]
    earlier = earlier[-(MOST_LINES // 2) :]
    ending = last.message[: 5 if len(last.frames) > 2 else LONGEST_MESSAGE]
    room = MOST_LINES - len(earlier) - len(last.before) - len(ending) - 1  # one for what is left out
    frames = _fitting(last.frames, room)
    left_out = len(last.frames) - len(frames)
    gap = [f"  … {left_out} more {'call' if left_out == 1 else 'calls'}"] if left_out else []
    body = [line for frame in frames for line in frame]
    return tuple(map(shown, [*earlier, *last.before, *gap, *body, *ending][:MOST_LINES]))


def _fitting(frames: tuple[tuple[str, ...], ...], room: int) -> list[tuple[str, ...]]:
    """The frames that fit: the innermost first, then the program's own, then any, latest first."""
    order = sorted(range(len(frames)), key=lambda i: (i < len(frames) - 1, _is_library(frames[i]), -i))
    kept: list[int] = []
    for at in order:
        if len(frames[at]) <= room:
            room -= len(frames[at])
            kept.append(at)
    return [frames[at] for at in sorted(kept)]


def _is_library(frame: tuple[str, ...]) -> bool:
    return bool(_LIBRARY.search(frame[0]))
