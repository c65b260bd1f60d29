"""docker's command line as gcloud writes it: which words are options, which image is meant, and where. Pure.

Registries are told apart by the first part of an image's name. Each may be mapped: to another registry, to
`server` (it is enough that Trainshed's server has the image), or to itself. Google's are `server` unless told
otherwise, as nobody here can push there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

SERVER = "server"
GOOGLES = {"gcr.io": SERVER, "*.gcr.io": SERVER, "*-docker.pkg.dev": SERVER}

# The options that take the next word, where no = is in theirs.
_BUILD = (
    *("-t", "--tag", "-f", "--file", "--build-arg", "--target", "--label", "--platform", "--network"),
    *("--cache-from", "--secret", "--add-host", "--shm-size", "--progress", "-o", "--output", "--iidfile"),
)
_RUN = (
    *("-v", "--volume", "-e", "--env", "--env-file", "--runtime", "--ipc", "--name", "-w", "--workdir"),
    *("-u", "--user", "--network", "--net", "--entrypoint", "--gpus", "-p", "--publish", "--mount", "-m"),
    *("--memory", "--cpus", "--shm-size", "-l", "--label", "--device", "--add-host", "-h", "--hostname"),
    *("--platform", "--pull", "--ulimit", "--cap-add", "--cap-drop", "--security-opt", "--tmpfs", "--pid"),
)
_LOGIN = ("-u", "--username", "-p", "--password")
VALUED: Mapping[str, tuple[str, ...]] = {"build": _BUILD, "run": _RUN, "login": _LOGIN}


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    value: str | None = None  # None: it takes none

    @property
    def words(self) -> tuple[str, ...]:
        if self.value is None:
            return (self.name,)
        return (self.name, self.value) if len(self.name) == 2 else (f"{self.name}={self.value}",)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command taken apart: its options up to the first other word, then all that follows."""

    verb: str
    options: tuple[Option, ...] = ()
    words: tuple[str, ...] = ()

    def values(self, *names: str) -> list[str]:
        return [option.value for option in self.options if option.name in names and option.value is not None]

    def value(self, *names: str) -> str:
        return next(reversed(self.values(*names)), "")

    def has(self, *names: str) -> bool:
        return any(option.name in names for option in self.options)


def asked(argv: Sequence[str]) -> Asked:
    verb, rest = (argv[0], list(argv[1:])) if argv else ("", [])
    if verb in ("image", "container", "buildx") and rest and not rest[0].startswith("-"):
        verb, rest = {"ls": "images", "rm": "rmi"}.get(rest[0], rest[0]), rest[1:]
    valued = VALUED.get(verb, ())
    options: list[Option] = []
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("--") and word[:2] in valued and len(word) > 2:  # -f-
            options.append(Option(word[:2], word[2:].removeprefix("=")))
        elif equals:
            options.append(Option(name, value))
        elif name in valued and rest:
            options.append(Option(name, rest.pop(0)))
        else:
            options.append(Option(name))
    return Asked(verb, tuple(options), tuple(rest))


@dataclass(frozen=True, slots=True)
class Registries:
    """Where each registry is, by the pattern of its name; of several the first that was given."""

    places: Mapping[str, str] = field(default_factory=dict[str, str])

    def place(self, image: str) -> str:
        """Where the image's registry is: another host, `server`, or empty where it is what it says."""
        host = host_of(image)
        for pattern, place in (*self.places.items(), *GOOGLES.items()):
            if host and fnmatchcase(host, pattern):
                return "" if place == host else place
        return ""

    def elsewhere(self, image: str) -> str:
        """The image's name in the registry that stands in for its own; empty where none does."""
        place = self.place(image)
        return f"{place}/{image.partition('/')[2]}" if place not in ("", SERVER) else ""


def host_of(image: str) -> str:
    """The registry that a name begins with; empty where it begins with none."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def registries(texts: Sequence[str]) -> Registries:
    """From HOST=PLACE, each. ValueError for what is no such thing."""
    hosts: dict[str, str] = {}
    for text in texts:
        host, equals, place = text.partition("=")
        if not host or not equals or "/" in text:
            raise ValueError(f"{text!r} is not HOST=PLACE, such as gcr.io=127.0.0.1:5000")
        hosts[host] = place.strip() or host
    return Registries(hosts)


def bases(dockerfile: str) -> list[str]:
    """The images a Dockerfile begins its stages with, where they are written out."""
    result: list[str] = []
    stages: set[str] = {"scratch"}
    for line in dockerfile.splitlines():
        words = [word for word in line.split() if not word.startswith("--")]
        if len(words) < 2 or words[0].upper() != "FROM":
            continue
        if words[1] not in stages and "$" not in words[1] and words[1] not in result:
            result.append(words[1])
        if len(words) > 3 and words[2].upper() == "AS":
            stages.add(words[3])
    return result


def for_podman(run: Asked, exists: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """`docker run` in Podman's words, and what is other than was asked for.

    A file that is not there cannot be mounted: Docker makes a folder in its place, Podman refuses. NVIDIA's
    runtime is Docker's; Podman knows its devices by name.
    """
    words: list[str] = []
    notes: list[str] = []
    for option in run.options:
        if option.name in ("-v", "--volume") and option.value and option.value.startswith("/"):
            source = option.value.partition(":")[0]
            if not exists(source):
                notes.append(f"{source} is not there, and not mounted")
                continue
        if (option.name, option.value) == ("--runtime", "nvidia") or option.name == "--gpus":
            words.append("--device=nvidia.com/gpu=all")
            continue
        words += option.words
    return [*words, *run.words], notes
