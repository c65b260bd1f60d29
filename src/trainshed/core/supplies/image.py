"""Names of container images, and what is known of an image. Pure.

The container backend, the API and the service use it. Names follow the grammar that registries and engines
share. `canonical` is the full form, equal for all spellings of a name; people see the short form
(`familiar`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from trainshed.core.accounts.permission import Principal

MOST = 255  # characters of a name, without tag and digest
HUB, LIBRARY = "docker.io", "library"
LOCAL = "localhost"  # where Podman puts what it builds under a short name
DERIVED = f"{LOCAL}/trainshed-derived-"  # begins the names of images that a server makes for jobs

# Of Google, for everybody.
_PUBLIC = frozenset(
    {
        "cloud-aiplatform",
        "cloud-builders",
        "deeplearning-platform-release",
        "distroless",
        "google-containers",
        "google-samples",
        "google.com",
        "kaggle-gpu-images",
        "kubeflow-images-public",
        "tpu-pytorch-releases",
        "vertex-ai",
        "vertex-ai-restricted",
    }
)

_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_ID = re.compile(r"[0-9a-f]{64}")
_DIGESTS = frozenset({"sha256", "sha512"})  # what follows the colon is the begin of an id to kubelets


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A parsed name of an image, with defaults filled in."""

    domain: str
    path: str
    tag: str = ""  # "" only where there is a digest
    digest: str = ""
    is_short: bool = False  # it was written without a registry

    @property
    def name(self) -> str:
        return f"{self.domain}/{self.path}"

    @property
    def canonical(self) -> str:
        """The full name. A digest wins over a tag, as it does in engines."""
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"

    @property
    def familiar(self) -> str:
        """As people write it."""
        return familiar(self.canonical)

    @property
    def places(self) -> tuple[str, ...]:
        """The full names under which an engine may have it: Podman puts its own builds below localhost.

        Ask engines only for these: for a short name Podman takes any image whose name ends so.
        """
        if not self.is_short:
            return (self.canonical,)
        path = self.canonical.split("/", 1)[1].removeprefix(f"{LIBRARY}/")
        return (self.canonical, f"{LOCAL}/{path}")


def parse(text: str) -> Reference:
    """The reference. Raises ValueError with the end of a sentence ("has …", "is …") for a wrong name."""
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError(f"has '{digest}' for a digest, which would read sha256: and 64 digits of 0-9a-f")
    head, colon, tag = name.rpartition(":")
    if colon and "/" not in tag:
        if not _TAG.fullmatch(tag):
            raise ValueError(
                f"has '{tag}' for a tag, which is at most 128 letters, digits, '_', '.' and '-', "
                "and begins with none of the last two"
            )
        name = head
    else:
        tag = ""
    if not name:
        raise ValueError("is empty")
    if len(name) > MOST:
        raise ValueError(f"is longer than {MOST} characters")
    first, slash, rest = name.partition("/")
    is_short = not (slash and _is_domain(first))
    domain, path = (HUB, name) if is_short else (first, rest)
    if not is_short and not _DOMAIN.fullmatch(domain):
        raise ValueError(f"has '{domain}' for a registry, which would read HOST or HOST:PORT")
    for part in path.split("/"):
        if not _PART.fullmatch(part):
            raise ValueError(
                f"has '{part}' in its path, where each part is small letters and digits, with single "
                "'.', '_', '__' or '-' between them"
            )
    if is_short and (_ID.fullmatch(path) or path in _DIGESTS):
        raise ValueError("is the id of an image and no name")
    if domain == HUB and "/" not in path:
        path = f"{LIBRARY}/{path}"
    return Reference(
        domain=domain, path=path, tag=tag or ("" if digest else "latest"), digest=digest, is_short=is_short
    )


def refusal(text: str) -> str | None:
    """A sentence on what is wrong with a name; None for a valid one."""
    try:
        parse(text)
    except ValueError as error:
        shown = text if len(text) <= MOST else f"{text[:60]}..."
        return f"Image '{shown}' cannot be: the name {error}."
    return None


def canonical(text: str) -> str:
    return parse(text).canonical


def project_in(name: str) -> str:
    """The project that a name of Google's registries has in it; empty where everybody may have the image."""
    registry, _, rest = name.partition("/")
    domain = registry.partition(":")[0].lower()  # a port or capitals lead to the same registry
    is_googles = domain == "gcr.io" or domain.endswith((".gcr.io", "-docker.pkg.dev"))
    project = rest.partition("/")[0] if is_googles and "/" in rest else ""
    return "" if project in _PUBLIC else project


def is_seen(name: str, principal: Principal) -> bool:
    """Whether the principal may know of an image with that name, and run it."""
    if principal.sees_all:
        return True
    project = project_in(name)
    return principal.sees(project) if project else not _is_derived(name)


def hidden_sentence(name: str) -> str:
    """Why somebody may not have an image that `is_seen` denies them; the same if it is not there."""
    if not project_in(name):
        return f"{name} is an image that the server makes for jobs: use the one that it is made of."
    return f"{name} is named after project {project_in(name)}, in which you have no role: use another name."


def _is_derived(name: str) -> bool:
    """Whether the name may lead to an image with what a job of some project installs."""
    return refusal(name) is None and any(place.startswith(DERIVED) for place in parse(name).places)


def familiar(name: str) -> str:
    """The canonical name without what people leave out."""
    return name.removeprefix(f"{HUB}/{LIBRARY}/").removeprefix(f"{HUB}/")


def _is_domain(first: str) -> bool:
    return first == LOCAL or "." in first or ":" in first or first != first.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """How an image is to be run, from its own configuration."""

    id: str  # sha256:..., the hash of its content
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    workdir: str = ""
    user: str = ""
    stop_signal: str = ""
    volumes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    architecture: str = ""
    size: int = 0  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that the engine has."""

    id: str
    names: tuple[str, ...] = ()  # familiar; none: it lost its name to a newer one
    digests: tuple[str, ...] = ()  # by which registries know it, each NAME@sha256:...
    size: int = 0  # bytes
    created_at: datetime | None = None
    used_at: datetime | None = None  # when a job last started from it, or it was pulled; None: not known
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageStep:
    """One step of a pull, push, build or load; the last step is the outcome."""

    text: str
    percent: int | None = None  # None: not known
    image: str = ""  # in the last step: the id of the new image


class ImageWorkKind(StrEnum):
    """What people do with images that takes a while. Scripts may rely on these words."""

    PULL = "PULL"
    PUSH = "PUSH"
    BUILD = "BUILD"
    LOAD = "LOAD"


@dataclass(slots=True, kw_only=True)
class ImageWork:
    """A pull, push, build or load that is going on, and its latest step."""

    kind: ImageWorkKind
    name: str  # of the image; empty where the archive that is loaded says it
    step: ImageStep
    by: str = ""  # for whom, where its steps tell more than its name


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecipe:
    """How an image is to be built from a context of files."""

    tags: tuple[str, ...]
    dockerfile: str = "Dockerfile"  # its path in the context
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    target: str = ""  # the stage to stop at
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    pull: bool = False  # ask the registry for newer bases
    cached: bool = True
