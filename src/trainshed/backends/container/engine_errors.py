"""Errors of Docker and Podman: the only module that knows their status numbers and their wording.

`engine.py` makes an EngineFault of every refusal; its callers look at `kind` and `passing` alone. `pull.py`
asks for the kind of a failure with an image, and `shell.py` for what a program's first output says. The two
engines word the same fault differently, and Podman answers 500 for most: so a rule names the call, the
status and the words. It calls no engine.
"""

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from trainshed.core.errors import TrainshedError


class FaultKind(Enum):
    """What an engine's refusal means to the caller."""

    MISSING = auto()  # what the call is about does not exist
    CONTAINER_MISSING = auto()  # the container that is to join a network
    NETWORK_MISSING = auto()  # the network that a container is to join
    NAME_TAKEN = auto()
    SUBNET_TAKEN = auto()
    ADDRESS_TAKEN = auto()  # another container has the address in the job's network
    NOT_RUNNING = auto()
    IN_USE = auto()
    CANNOT_START = auto()  # its user, folder, program, device or share: trying again cannot help
    NO_ARCHIVE = auto()  # what was sent is no archive of images
    OTHER = auto()


class EngineFault(TrainshedError):
    """The engine refused. `passing`: the reason passes by itself."""

    def __init__(self, kind: FaultKind, message: str, *, passing: bool = False) -> None:
        self.kind, self.passing = kind, passing
        super().__init__(message)

    @property
    def stable_message(self) -> str:
        """The message without the ids that differ at each try."""
        return " ".join(_IDS.sub("", self.message).split())


class ImageFaultKind(Enum):
    """Why an image cannot be pulled, pushed, built or loaded."""

    DISK_FULL = auto()
    OTHER_PROCESSOR = auto()
    PRIVATE_OR_UNKNOWN = auto()  # registries do not tell these apart
    CREDENTIALS = auto()
    RATE_LIMIT = auto()
    UNKNOWN_NAME = auto()
    PLAIN_HTTP = auto()
    CERTIFICATE = auto()
    UNREACHABLE = auto()
    LOCAL_NAME = auto()  # below localhost/, which is no registry
    OTHER = auto()


def fault_of(verb: str, path: str, status: int, body: bytes) -> EngineFault:
    """The fault that an answer tells; `path` is without the version of the API."""
    call, message = f"{verb} {path}", _message(status, body)
    words = " ".join(message.split())
    kind = next((rule.kind for rule in _RULES if rule.fits(call, status, words)), FaultKind.OTHER)
    passing = any(calls.fullmatch(call) and pattern.search(words) for calls, pattern in _PASSING)
    return EngineFault(kind, message, passing=passing)


def image_fault(words: str) -> ImageFaultKind:
    """The kind of a failure, from a message of an engine or of its registry (see `plain`)."""
    kind = next((kind for pattern, kind in _IMAGES if pattern.search(words)), ImageFaultKind.OTHER)
    if kind in _OF_NETWORK and "container registry localhost: " in words:
        return ImageFaultKind.LOCAL_NAME
    return kind


def plain(text: str) -> str:
    """The message without the engine's prefixes and repetitions."""
    words = " ".join(text.split())[: 4 * _MOST_WORDS]  # the search for repetitions is quadratic
    return _TWICE.sub(r"\1", _NOISE.sub("", words))[:_MOST_WORDS]


def is_exec_refusal(output: bytes) -> bool:
    """Whether the output of a program that ended at once is the engine's message instead."""
    return _EXEC_REFUSED.search(output) is not None


def says_no_such_program(output: bytes) -> bool:
    """Whether the engine's message is that the program does not exist."""
    return _NO_PROGRAM.search(output) is not None


@dataclass(frozen=True, slots=True)
class _Rule:
    call: re.Pattern[str]
    kind: FaultKind
    status: int
    words: re.Pattern[str] | None

    def fits(self, call: str, status: int, words: str) -> bool:
        """Either the status or the words are enough."""
        if self.call.fullmatch(call) is None:
            return False
        return status == self.status or (self.words is not None and self.words.search(words) is not None)


def _rule(call: str, kind: FaultKind, status: int = 0, words: str = "") -> _Rule:
    return _Rule(re.compile(call), kind, status, re.compile(words) if words else None)


_GONE, _CONFLICT = 404, 409
_CREATE = r"POST (?:/libpod)?/containers/create"
_CREATE_OR_START = r"POST (?:/libpod)?/containers/(?:create|[^/]+/start)"
_CREATE_NETWORK = r"POST (?:/libpod)?/networks/create"
_CONNECT = r"POST /libpod/networks/[^/]+/connect"
# The first rule that fits counts.
_RULES = (
    _rule(_CREATE, FaultKind.NAME_TAKEN, _CONFLICT, "already in use"),
    _rule(
        _CREATE_OR_START,
        FaultKind.CANNOT_START,
        words="(?i)passwd|find user|find group|chdir|exec format|not a directory|CDI device|nvidia"
        "|unknown filesystem type|access denied by server",
    ),
    _rule(_CREATE_OR_START, FaultKind.ADDRESS_TAKEN, words="is already allocated to container"),
    _rule(_CONNECT, FaultKind.CONTAINER_MISSING, words="no such container"),
    _rule(f"{_CONNECT}|{_CREATE_OR_START}", FaultKind.NETWORK_MISSING, words="network not found"),
    _rule(
        "POST /containers/[^/]+/kill",
        FaultKind.NOT_RUNNING,
        _CONFLICT,
        "not running|state improper|no such process",
    ),
    _rule("POST /containers/[^/]+/exec|POST /exec/[^/]+/start", FaultKind.NOT_RUNNING, _CONFLICT),
    _rule("POST /volumes/create", FaultKind.NAME_TAKEN, _CONFLICT, "already exists"),
    _rule(_CREATE_NETWORK, FaultKind.NAME_TAKEN, _CONFLICT, "(?i)already exists|already used: network"),
    _rule(_CREATE_NETWORK, FaultKind.SUBNET_TAKEN, words="(?i)overlap|already used|subnet"),
    _rule(
        "POST /images/load",
        FaultKind.NO_ARCHIVE,
        words="supported image formats|invalid tar header|unexpected EOF|no such file or directory",
    ),
    _rule(".*", FaultKind.MISSING, _GONE),
    _rule("DELETE /images/.+|POST /images/.+/tag", FaultKind.IN_USE, _CONFLICT, "in use"),
)
# Conditions that pass without anybody doing anything, however long it takes.
_PASSING = (
    (
        re.compile(_CREATE_OR_START),
        re.compile(
            "(?i)no space left|cannot allocate memory|temporarily unavailable|too many"
            "|timeout|timed out|deadline"
        ),
    ),
    # Another network was removed while the engine listed all.
    (re.compile(_CREATE_NETWORK), re.compile("(?i)no such network interface")),
    # A container of the image is being removed.
    (
        re.compile("DELETE /images/.+"),
        re.compile("no such container|not exist in database|being removed|already in progress"),
    ),
)

_CODE = r"(?:status|code|http)\D{0,20}"
# The first pattern that matches counts.
_IMAGES = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"no space left on device|disk quota exceeded", ImageFaultKind.DISK_FULL),
        (
            r"no image found in (?:manifest list|image index)|no matching manifest|no child with platform"
            r"|does not match the specified platform",
            ImageFaultKind.OTHER_PROCESSOR,
        ),
        (
            r"requested access to the resource is denied|pull access denied",
            ImageFaultKind.PRIVATE_OR_UNKNOWN,
        ),
        (
            r"unauthorized|authentication required|no basic auth credentials|access forbidden|denied"
            rf"|{_CODE}40[13]",
            ImageFaultKind.CREDENTIALS,
        ),
        (rf"toomanyrequests|too many requests|rate limit|{_CODE}429", ImageFaultKind.RATE_LIMIT),
        (
            r"manifest unknown|manifest .*not found|name unknown|repository .*not (?:found|known)"
            rf"|image not known|No such image|not found: manifest|{_CODE}404",
            ImageFaultKind.UNKNOWN_NAME,
        ),
        (r"server gave HTTP response to HTTPS client", ImageFaultKind.PLAIN_HTTP),
        (r"x509|certificate|tls: ", ImageFaultKind.CERTIFICATE),
        (
            r"no such host|connection refused|connection reset|network is unreachable|no route to host"
            r"|timeout|deadline exceeded|\bEOF\b|lookup .* on|server misbehaving|temporary failure"
            rf"|{_CODE}50[0-4]",
            ImageFaultKind.UNREACHABLE,
        ),
    )
)
_OF_NETWORK = frozenset(
    {
        ImageFaultKind.RATE_LIMIT,
        ImageFaultKind.PLAIN_HTTP,
        ImageFaultKind.CERTIFICATE,
        ImageFaultKind.UNREACHABLE,
    }
)
_NOISE = re.compile(r"^(?:Error: |initializing source docker://\S+ |creating build container: )+")
_TWICE = re.compile(r"\b(.{4,}?): \1$")
_MOST_WORDS = 1000
_IDS = re.compile(r" for container [0-9a-f]{12,64}|\b[0-9a-f]{64}\b")
_EXEC_REFUSED = re.compile(
    rb"executable file not found|no such file or directory|OCI runtime|exec failed", re.I
)
_NO_PROGRAM = re.compile(rb"OCI runtime exec failed.*(?:executable file not found|no such file)", re.I | re.S)


def _message(status: int, body: bytes) -> str:
    try:
        answer: Any = json.loads(body)
        message = str(answer["message"] or answer.get("cause") or "")
    except (ValueError, LookupError, TypeError):
        message = body.decode(errors="replace").strip()[:500]
    return message or f"The container engine answers {status}."
