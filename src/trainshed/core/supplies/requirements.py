"""Which lines of a requirements file a job may bring. Pure: nothing is looked up or installed.

`wire/` and `service/runtimes.py` check lines with `faults`; `runtimes/` stores them as `normal` returns them.
The server sets where packages come from (its pip configuration, its runtimes file). So lines that would
change that, or read files of the server's machine, are refused, each with a sentence.
"""

import re
from collections.abc import Sequence

MOST_LINES = 500
LONGEST_LINE = 500

_HARMLESS = ("--pre", "--prefer-binary")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = r"(?:\s*\[[A-Za-z0-9._,\s-]*\])?"
_VERSION = r"(?:~=|===|==|!=|<=|>=|<|>)\s*[A-Za-z0-9._*+!-]+"
_VERSIONS = rf"(?:\s*\(?\s*{_VERSION}(?:\s*,\s*{_VERSION})*\s*\)?)?"
_URL = r"(?:(?:git\+)?https?|git\+ssh)://(?:[^\s/@?#\\]*@)?(?P<host>[^\s/@?#\\]+)(?:[/?#]\S*)?"
# This machine, and the addresses at which clouds give a machine its credentials: refused at submit already.
# Names are decided on when they are resolved (core/supplies/inward.py).
_INWARD = re.compile(
    r"(?:localhost|127[.\d]*|0[.\d]*|0x[\da-f]+|\d+|169\.254[.\d]*|\[.*\]|metadata(?:\.google\.internal)?)\.?(?::|$)",
    re.IGNORECASE,
)
_MARKER = r"(?:\s*;[^;]*)?"
_HASHES = r"(?:\s+--hash=[a-z0-9]+:[0-9a-f]+)*"
_PACKAGE = re.compile(rf"{_NAME}{_EXTRAS}{_VERSIONS}{_MARKER}{_HASHES}")
_FROM_URL = re.compile(rf"(?:{_NAME}{_EXTRAS}\s*@\s*)?(?:{_URL}){_MARKER}{_HASHES}")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_PATH = re.compile(r"(?:[./~]|file:|[A-Za-z]:\\).*|.*(?:\.whl|\.tar\.gz|\.zip)|.*@\s*file:.*", re.IGNORECASE)


def normal(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines in one normal form (sorted, each once), so that equal requests have equal hashes."""
    options = sorted({line for line in map(_plain, lines) if line.startswith("-")})
    packages = sorted({line for line in map(_plain, lines) if line and not line.startswith("-")})
    return (*options, *packages)


def faults(lines: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Every refused line: its index, and why."""
    if len(lines) > MOST_LINES:
        return ((MOST_LINES, f"is one of {len(lines)} lines; at most {MOST_LINES} are read."),)
    return tuple((number, why) for number, line in enumerate(lines) if (why := _fault(line)))


def _plain(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())


def _fault(raw: str) -> str:
    line = _plain(raw)
    shown = f'"{line[:80]}"'
    if len(raw) > LONGEST_LINE:
        return f"has {len(raw)} characters; at most {LONGEST_LINE} are read."
    if not line or line in _HARMLESS:
        return ""
    if not line.isprintable():
        return f"holds characters that do not print: {line[:80]!a}."
    if "${" in line:
        return f"names a variable of the server's environment, which it may not read: {shown}."
    if line.startswith("-"):
        return _option(line.split("=")[0].split()[0])
    if ("://" not in line and _PATH.fullmatch(line)) or re.search(r"(?:^|[\s@])file:", line):
        return f"names a file, which the server cannot see: {shown}; give a package's name or a URL."
    if (url := _FROM_URL.fullmatch(line)) and _INWARD.match(url["host"]):
        return f"names an address of the server's own machine or network, which it does not follow: {shown}."
    if url or _PACKAGE.fullmatch(line):
        return ""
    return f"is not a requirement such as numpy>=2: {shown}."


def _option(option: str) -> str:
    if option in ("-r", "--requirement", "-c", "--constraint"):
        return f"{option} reads another file, which the server cannot see: put its lines in here."
    if option in ("-e", "--editable"):
        return f"{option} needs a folder of the server: submit the code itself, or give a URL alone."
    return (
        f"{option} is not for a job to say: where packages come from is set on the server "
        f"(its pip configuration, or its runtimes file); here may stand {' and '.join(_HARMLESS)}."
    )
