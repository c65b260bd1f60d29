"""Colour, and making foreign text harmless on a terminal.

Only a terminal is painted, and not where NO_COLOR asks for none. `main.py` puts a CleanTerminal before each
stream that is a terminal, so no command has to think of what is in a name. Text for a file or a pipe is
never touched, as ls and git leave it: whoever reads there wants what it is, and may show it harmlessly.
"""

import io
import os
import sys

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    import re
    from typing import TextIO

CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "bold": 1, "dim": 2}
STATES = {
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "FAILED": "red",
    "CANCELLED": "dim",
    "CANCELLING": "yellow",
    "PENDING": "yellow",
    "QUEUED": "yellow",
    "ACTIVE": "cyan",  # from here on: of trials and studies
    "INFEASIBLE": "red",
    "REQUESTED": "yellow",
    "STOPPING": "yellow",
}
_COLOUR = r"(\x1b\[[0-9;:]*m)"
_SEQUENCE = (
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # device control and its kin
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: cursor, erase
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]"
_TURNING = r"[\u202a-\u202e\u2066-\u2069]"  # makes what follows read in another order than it is
_OWN_COLOUR = r"(\x1b\[(?:0|1|2|3[1-6])m)"  # those of CODES
_RESET = "\x1b[0m"


class CleanTerminal(io.TextIOWrapper):
    """A terminal that is written lines, colours of ours, and nothing that moves its cursor or talks to it."""

    def write(self, text: str, /) -> int:
        super().write(clean(text))
        return len(text)

    def draw(self, text: str) -> None:
        """Write as it is: what moves the cursor on purpose. Foreign text in it is the caller's to clean."""
        super().write(text)


def guard(stream: "TextIO") -> "TextIO":
    """The stream itself, or the same terminal guarded."""
    if not stream.isatty() or not isinstance(stream, io.TextIOWrapper) or isinstance(stream, CleanTerminal):
        return stream
    # Click writes past a stream that says it is ASCII; as click would, it is taken for misconfigured.
    is_ascii = stream.encoding.lower().replace("_", "-") in ("ascii", "us-ascii", "ansi-x3.4-1968")
    encoding, errors = ("utf-8", "replace") if is_ascii else (stream.encoding, stream.errors)
    return CleanTerminal(
        stream.buffer,  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        encoding=encoding,
        errors=errors,
        line_buffering=True,
    )


def draw(stream: "TextIO", text: str) -> None:
    """Move the cursor of a terminal, with text that holds nothing foreign or was cleaned."""
    if isinstance(stream, CleanTerminal):
        stream.draw(text)
    else:
        stream.write(text)
    stream.flush()


def clean(text: str) -> str:
    """Lines for a terminal: line ends, tabs and our colours stay, each colour no longer than its line."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    import re

    return "\n".join(_clean_line(re.split(_OWN_COLOUR, line)) for line in text.split("\n"))


def _clean_line(pieces: list[str]) -> str:
    import re

    shown = [
        piece if at % 2 else re.sub(_TURNING, _visible, _plain(piece)) for at, piece in enumerate(pieces)
    ]
    return "".join(shown) + (_RESET if len(pieces) > 1 and pieces[-2] != _RESET else "")


class Paint:
    __slots__ = ("on",)

    def __init__(self, on: bool) -> None:
        self.on = on

    @classmethod
    def for_stdout(cls) -> "Paint":
        return cls(_wanted(sys.stdout))

    @classmethod
    def for_stderr(cls) -> "Paint":
        return cls(_wanted(sys.stderr))

    def __call__(self, text: str, colour: str | None) -> str:
        return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if self.on and colour else text

    def state(self, word: str) -> str:
        return self(word, STATES.get(word.strip()))


def _wanted(stream: "TextIO") -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def harmless(text: str) -> str:
    """A program's line for a terminal: its colours stay; what moves the cursor or talks to the terminal goes.

    Of a progress bar that redraws itself with carriage returns, the last picture is kept.
    """
    if text.isprintable():
        return text
    import re  # keeps what it has compiled

    text = next((part for part in reversed(text.split("\r")) if part), "")
    pieces = re.split(_COLOUR, text)
    # Odd places hold the colours, even places what is between them.
    shown = [piece if at % 2 else _plain(piece) for at, piece in enumerate(pieces)]
    return "".join(shown) + (_RESET if len(pieces) > 1 else "")


def _plain(text: str) -> str:
    import re

    return re.sub(_CONTROL, _visible, re.sub(_SEQUENCE, "", text))


def _visible(match: "re.Match[str]") -> str:
    code = ord(match.group())
    if 0x2000 <= code < 0xD800:
        return f"\\u{code:04x}"
    if code >= 0xD800:
        return "\ufffd"  # a byte that was no UTF-8
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"\\x{code:02x}"
