"""Why an image could not be had, from what engine and registry said: as a verdict, and as an error. Pure.

The registry's own words are always shown; what is added is their class and the way out.
"""

import re
from dataclasses import dataclass

from trainshed.core.errors import Exhausted, Forbidden, NotFound, TrainshedError, Unavailable
from trainshed.core.verdict import Cause, Verdict


class Unpulled(Exception):
    """An image cannot be pulled, pushed or built."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.summary)
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: re.Pattern[str]
    cause: Cause
    advice: str
    retry: bool = False


def _row(pattern: str, cause: Cause, advice: str, *, retry: bool = False) -> _Row:
    return _Row(re.compile(pattern, re.IGNORECASE), cause, advice, retry)


_CODE = r"(?:status|code|http)\D{0,20}"
_ROWS = (
    _row(
        r"no space left on device|disk quota exceeded",
        Cause.DISK_FULL,
        "The disk of the container engine is full: `trainshed images rm` frees what no job wants.",
        retry=True,
    ),
    _row(
        r"no image found in (?:manifest list|image index)|no matching manifest|no child with platform"
        r"|does not match the specified platform",
        Cause.NO_SUCH_IMAGE,
        "There is none for this machine's processor: build it here (`trainshed images build`), or for both.",
    ),
    _row(
        r"requested access to the resource is denied|pull access denied",
        Cause.NO_SUCH_IMAGE,
        "Check its name. If it is private, give the server the registry's credentials: "
        "`docker login` or `podman login` as the user the server runs as, or --registry-auth.",
    ),
    _row(
        r"unauthorized|authentication required|no basic auth credentials|access forbidden|denied"
        rf"|{_CODE}40[13]",
        Cause.PERMISSION,
        "The registry wants other credentials: `docker login` or `podman login` as the user the server "
        "runs as, or --registry-auth.",
    ),
    _row(
        r"toomanyrequests|too many requests|rate limit"
        rf"|{_CODE}429",
        Cause.NETWORK_ERROR,
        "The registry limits how much may be pulled: try again later, log in there, or copy the image into "
        "a registry of your own.",
        retry=True,
    ),
    _row(
        r"manifest unknown|manifest .*not found|name unknown|repository .*not (?:found|known)"
        rf"|image not known|No such image|not found: manifest|{_CODE}404",
        Cause.NO_SUCH_IMAGE,
        "Check its name and tag; `trainshed images ls` shows what is here, and what is here is not pulled: "
        "`trainshed images build`, `load` and `push` bring one.",
    ),
    _row(
        r"server gave HTTP response to HTTPS client",
        Cause.NETWORK_ERROR,
        "The registry speaks plain HTTP, which the engine has to be told: insecure = true in Podman's "
        "registries.conf, insecure-registries in Docker's daemon.json.",
    ),
    _row(
        r"x509|certificate|tls: ",
        Cause.NETWORK_ERROR,
        "The engine does not trust the registry's certificate: give it the authority's "
        "(certs.d/HOST:PORT/ca.crt of the engine).",
    ),
    _row(
        r"no such host|connection refused|connection reset|network is unreachable|no route to host"
        r"|timeout|deadline exceeded|\bEOF\b|lookup .* on|server misbehaving|temporary failure"
        rf"|{_CODE}50[0-4]",
        Cause.NETWORK_ERROR,
        "The registry cannot be reached from this machine: check the name's first part (without one it is "
        "docker.io) and the network; an image can also be brought by file (`trainshed images load`).",
        retry=True,
    ),
)
_LOCAL = _row(
    "",
    Cause.NO_SUCH_IMAGE,
    "Names below localhost/ are those of images that were built or loaded here: `trainshed images ls` shows "
    "them, `trainshed images build` and `load` bring one.",
)
_UNKNOWN = _row("", Cause.UNKNOWN, "These are the container engine's own words.")
_NOISE = re.compile(r"^(?:Error: |initializing source docker://\S+ |creating build container: )+")
_TWICE = re.compile(r"\b(.{4,}?): \1$")
MOST_WORDS = 1000


def unpulled(doing: str, said: str) -> Unpulled:
    """From the words of engine and registry. `doing` reads like "Image X could not be pulled"."""
    words = plain(said)
    row = next((row for row in _ROWS if row.pattern.search(words)), _UNKNOWN)
    if row.cause is Cause.NETWORK_ERROR and "container registry localhost: " in words:
        row = _LOCAL
    return Unpulled(_verdict(row, f"{doing}: {words}"))


def hung(doing: str, seconds: float, percent: int | None) -> Unpulled:
    when = "answered nothing" if percent is None else f"stopped at {percent} % and sent nothing more"
    row = _row(
        "",
        Cause.NETWORK_TIMEOUT,
        "Try again once the registry answers, or bring the image by file (`trainshed images load`).",
        retry=True,
    )
    return Unpulled(_verdict(row, f"{doing}: the registry {when} for {seconds:.0f} s, and was given up"))


def plain(said: str) -> str:
    """The words without the engine's own stammer."""
    return _TWICE.sub(r"\1", _NOISE.sub("", " ".join(said.split())))[:MOST_WORDS]


def error_of(verdict: Verdict) -> TrainshedError:
    """The same for people who wait for an answer."""
    message = f"{verdict.summary.rstrip('.')}. {verdict.advice}".strip()
    match verdict.cause:
        case Cause.NO_SUCH_IMAGE:
            return NotFound(message)
        case Cause.PERMISSION:
            return Forbidden(message)
        case Cause.DISK_FULL:
            return Exhausted(message)
        case _:
            return Unavailable(message)


def _verdict(row: _Row, summary: str) -> Verdict:
    return Verdict(
        cause=row.cause, summary=summary, lines=(summary,), advice=row.advice, retry_may_help=row.retry
    )
