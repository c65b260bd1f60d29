"""One pull of an image: its progress, its outcome, and why it failed. It sends nothing to the engine.

`EngineImages` follows pulls with it, and `ImageCalls` feeds it the engine's messages. Docker names all
layers first; Podman names each when it starts it. So a layer of unknown size counts like the others, and
the percent never decreases. A failure always shows the registry's own words; this module adds the cause and
the advice.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainshed.backends.container.engine_errors import ImageFaultKind, image_fault, plain
from trainshed.core.errors import Exhausted, Forbidden, NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.image import ImageConfig, ImageStep, Reference
from trainshed.preparation import Preparation

MIB = 1 << 20
_OVER = frozenset(
    {"Already exists", "Layer already exists", "Download complete", "Pull complete", "Pushed", "Mounted from"}
)
_UNPACKING = frozenset({"Extracting", "Verifying Checksum"})
QUARTER = 25  # percent: each is a line in the history of the waiting jobs
_ONCE = "It is pulled once and kept; the job starts by itself then."


@dataclass(slots=True)
class Layer:
    done: int = 0
    total: int = 0
    is_over: bool = False


@dataclass(slots=True)
class Layers:
    doing: str  # "Pulling image X"
    layers: dict[str, Layer] = field(default_factory=dict[str, Layer])
    percent: int | None = None
    digest: str = ""

    def update(self, message: Mapping[str, Any]) -> None:
        status, key = str(message.get("status", "")), str(message.get("id", ""))
        if not key:
            return
        if status.startswith("Pulling from"):  # Docker reports the tag as if it were a layer
            return
        layer = self.layers.setdefault(key, Layer())
        detail: Mapping[str, Any] = message.get("progressDetail") or {}
        if status in _UNPACKING or status.partition(" (")[0] in _OVER or status.startswith("Mounted from"):
            layer.is_over = True
        elif detail.get("total"):
            layer.done, layer.total = int(detail.get("current") or 0), max(0, int(detail["total"]))
        self._count()

    def _count(self) -> None:
        # A layer that was done before its size was reported is too small to count.
        coming = [layer for layer in self.layers.values() if layer.total or not layer.is_over]
        known = [layer.total for layer in coming if layer.total]
        if not known:
            return
        usual = sum(known) / len(known)
        total = sum(layer.total or usual for layer in coming)
        done = sum(layer.total if layer.is_over else min(layer.done, layer.total) for layer in coming)
        self.percent = max(self.percent or 0, min(99, int(100 * done / total)))

    @property
    def is_moving(self) -> bool:
        """Whether bytes are still to come: then silence is a stall."""
        return not self.layers or not all(layer.is_over for layer in self.layers.values())

    @property
    def step(self) -> ImageStep:
        coming = [layer for layer in self.layers.values() if layer.total]
        total = sum(layer.total for layer in coming)
        done = sum(layer.total if layer.is_over else layer.done for layer in coming)
        if not self.layers:
            state = "asking its registry"
        elif not self.is_moving:
            state = "all is here, it is unpacked"
        elif self.percent is None:
            state = f"{sum(layer.is_over for layer in self.layers.values())} of {len(self.layers)} layers"
        else:
            state = f"{self.percent} %, {done / MIB:.0f} of {total / MIB:.0f} MiB"
        return ImageStep(text=f"{self.doing}: {state}", percent=self.percent)


class ImageFailure(Exception):
    """An image cannot be pulled, pushed or built."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.summary)
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class _Row:
    cause: Cause
    advice: str
    retry: bool = False


_ROWS = {
    ImageFaultKind.DISK_FULL: _Row(
        Cause.DISK_FULL,
        "The disk of the container engine is full: `trainshed images rm` frees what no job wants.",
        retry=True,
    ),
    ImageFaultKind.OTHER_PROCESSOR: _Row(
        Cause.NO_SUCH_IMAGE,
        "There is none for this machine's processor: build it here (`trainshed images build`), or for both.",
    ),
    ImageFaultKind.PRIVATE_OR_UNKNOWN: _Row(
        Cause.NO_SUCH_IMAGE,
        "Check its name. If it is private, give the server the registry's credentials: "
        "`docker login` or `podman login` as the user the server runs as, or --registry-auth.",
    ),
    ImageFaultKind.CREDENTIALS: _Row(
        Cause.PERMISSION,
        "The registry wants other credentials: `docker login` or `podman login` as the user the server "
        "runs as, or --registry-auth.",
    ),
    ImageFaultKind.RATE_LIMIT: _Row(
        Cause.NETWORK_ERROR,
        "The registry limits how much may be pulled: try again later, log in there, or copy the image into "
        "a registry of your own.",
        retry=True,
    ),
    ImageFaultKind.UNKNOWN_NAME: _Row(
        Cause.NO_SUCH_IMAGE,
        "Check its name and tag; `trainshed images ls` shows what is here, and what is here is not pulled: "
        "`trainshed images build`, `load` and `push` bring one.",
    ),
    ImageFaultKind.PLAIN_HTTP: _Row(
        Cause.NETWORK_ERROR,
        "The registry speaks plain HTTP, which the engine has to be told: insecure = true in Podman's "
        "registries.conf, insecure-registries in Docker's daemon.json.",
    ),
    ImageFaultKind.CERTIFICATE: _Row(
        Cause.NETWORK_ERROR,
        "The engine does not trust the registry's certificate: give it the authority's "
        "(certs.d/HOST:PORT/ca.crt of the engine).",
    ),
    ImageFaultKind.UNREACHABLE: _Row(
        Cause.NETWORK_ERROR,
        "The registry cannot be reached from this machine: check the name's first part (without one it is "
        "docker.io) and the network; an image can also be brought by file (`trainshed images load`).",
        retry=True,
    ),
    ImageFaultKind.LOCAL_NAME: _Row(
        Cause.NO_SUCH_IMAGE,
        "Names below localhost/ are those of images that were built or loaded here: `trainshed images ls` "
        "shows them, `trainshed images build` and `load` bring one.",
    ),
    ImageFaultKind.OTHER: _Row(Cause.UNKNOWN, "These are the container engine's own words."),
}


def image_failure(doing: str, text: str) -> ImageFailure:
    """The failure for a message of engine or registry. `doing` reads like "Image X could not be pulled"."""
    words = plain(text)
    return ImageFailure(_verdict(_ROWS[image_fault(words)], f"{doing}: {words}"))


def timed_out(doing: str, seconds: float, percent: int | None) -> ImageFailure:
    when = "answered nothing" if percent is None else f"stopped at {percent} % and sent nothing more"
    row = _Row(
        Cause.NETWORK_TIMEOUT,
        "Try again once the registry answers, or bring the image by file (`trainshed images load`).",
        retry=True,
    )
    return ImageFailure(_verdict(row, f"{doing}: the registry {when} for {seconds:.0f} s, and was given up"))


def inward_failure(doing: str, why: str) -> ImageFailure:
    row = _Row(
        Cause.PERMISSION,
        "No registry is asked there: name this machine's own as localhost:PORT, or log in to it "
        "(`docker login`, `podman login`, --registry-auth).",
    )
    return ImageFailure(_verdict(row, f"{doing}: {why}"))


def error_of(verdict: Verdict) -> TrainshedError:
    """The verdict as the error for somebody who waits for an answer."""
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


@dataclass(slots=True, eq=False, kw_only=True)
class Fetch(Preparation):
    """A sentence, where there is one, replaces the progress of the layers."""

    reference: Reference
    layers: Layers
    fresh: bool = False  # ask the registry even where the image is here
    pulled: bool = False
    config: ImageConfig | None = None  # once it is here
    verdict: Verdict | None = None  # once the pull has failed
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self) -> None:
        self.move()

    def move(self) -> None:
        """Wake the followers: the step has changed."""
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self.config is not None or self.verdict is not None

    @property
    def step(self) -> ImageStep:
        if self.sentence:
            return ImageStep(text=f"{self.layers.doing}: {self.sentence}", percent=self.layers.percent)
        return self.layers.step

    @property
    def title(self) -> str:
        return self.reference.familiar

    @property
    def percent(self) -> int | None:
        return self.layers.percent

    def readiness(self) -> Readiness:
        return Readiness(
            standing=ReadinessState.PREPARING,
            message=f"{self.step.text}.",
            remedy=_ONCE,
            mark=(self.step.percent or 0) // QUARTER,
        )

    async def follow(self) -> AsyncIterator[ImageStep]:
        """Every new step, and the outcome; raises the error of a failed pull."""
        last: ImageStep | None = None
        while not self.is_over:
            moved = self._moved
            if self.step != last:
                last = self.step
                yield last
            await moved.wait()
        if self.verdict is not None:
            raise error_of(self.verdict)
        assert self.config is not None
        yield ImageStep(text=self.outcome, percent=100, image=self.config.id)

    @property
    def outcome(self) -> str:
        assert self.config is not None
        size, name = self.config.size / 1e6, self.reference.familiar
        if not self.pulled:
            return f"Image {name} is here ({self.config.id[:19]})"
        return f"Pulled image {name} ({self.config.id[:19]}, {size:.0f} MB) in {self.took:.1f} s"


def absent(reference: Reference) -> Readiness:
    """Readiness of an image that is not here and that no job has asked for."""
    return Readiness(
        standing=ReadinessState.PREPARING,
        message=f"Image {reference.familiar} is not here: it is pulled from {reference.domain} first.",
        remedy=_ONCE,
    )


def failed(reference: Reference, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Image {reference.familiar} could not be pulled.",
        remedy=verdict.advice,
        verdict=verdict,
    )
