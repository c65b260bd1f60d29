"""The images that a Dockerfile reads, and the Dockerfile with ids of images in place of their names. Pure.

`service/image_uploads.py` calls it for people who do not see every project. What an engine would look up by
a name is replaced by the id of the image that was judged: so no engine finds another one by the same words.
What cannot be known for sure is Invalid, with the line and what to write in its place.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from trainshed.core.supplies.dockerfile_text import (
    READING,
    DockerfileText,
    Instruction,
    Word,
    refused,
)
from trainshed.core.supplies.dockerfile_words import Values
from trainshed.core.supplies.image import refusal

SCRATCH = "scratch"  # no image at all

_STAGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_PLACES = ("id", "target", "dst", "destination")  # of a cache mount: by these engines know which it is
_MOUNT_KEYS = frozenset(
    {*_PLACES, "type", "from", "source", "src", "sharing", "mode", "uid", "gid", "ro", "readonly", "required"}
)
_QUOTES = re.compile(r"[\"'`\\]")


@dataclass(frozen=True, slots=True)
class ImageUse:
    """A place in the text that names an image, or something else that builds share."""

    line: int
    start: int
    end: int
    name: str  # of an image; empty where `text` stands there whatever is found
    text: str = ""


@dataclass(slots=True)
class Dockerfile:
    text: str
    args: Mapping[str, str]  # given with the build
    project: str = ""  # whose cache mounts it uses
    uses: list[ImageUse] = field(default_factory=list[ImageUse])
    sources: dict[str, int] = field(default_factory=dict[str, int])  # paths of the context in mounts; lines
    _stages: dict[str, str] = field(default_factory=dict[str, str])  # as they are written, by small letters
    _count: int = 0  # of stages
    _values: Values = field(default_factory=Values)

    def __post_init__(self) -> None:
        read = DockerfileText(self.text)
        self.text = read.text
        for instruction in read.instructions():
            self._read(instruction, read.is_continued(instruction.line))
            for line in instruction.inner:
                _check_inner(read, line)
        self.uses += [ImageUse(0, start, end, "", "#") for start, end in read.blanks]

    @property
    def images(self) -> dict[str, int]:
        """The names of images, each with the first line that has it."""
        names: dict[str, int] = {}
        for use in self.uses:
            if use.name:
                names.setdefault(use.name, use.line)
        return names

    def with_images(self, ids: Mapping[str, str]) -> str:
        """The text with these ids in place of all names."""
        pieces, at = list[str](), 0
        for use in sorted(self.uses, key=lambda use: use.start):
            pieces += self.text[at : use.start], ids[use.name] if use.name else use.text
            at = use.end
        return "".join((*pieces, self.text[at:]))

    def _read(self, instruction: Instruction, is_continued: bool) -> None:
        match instruction.keyword:
            case "arg" if not self._count:
                self._values.declare([word.text for word in instruction.words[1:]], self.args)
            case "from":
                if is_continued:
                    raise refused(instruction.line, "is continued: write FROM on one line.")
                self._read_from(instruction)
            case "onbuild" if may_read(instruction.text):
                words = "has `from` in an ONBUILD: later builds would read that image unseen. Leave it out."
                raise refused(instruction.line, words)
            case keyword if keyword in READING:
                for flag in _flags(iter(instruction.words[1:])):
                    for start, value in _sources(flag):
                        self._use(flag.line, start, start + len(value), self._source(flag.line, value))
                    if flag.text.lower().startswith("--mount="):
                        self._check_mount(flag)
            case _:
                pass

    def _read_from(self, instruction: Instruction) -> None:
        line, words = instruction.line, instruction.words[1:]
        flags = len([*_flags(iter(words))])
        words = words[flags:]
        if not _names_image([word.text for word in words]):
            raise refused(line, "must read FROM IMAGE, or FROM IMAGE AS STAGE.")
        image = words[0]
        value = self._values.expand(image.text)
        if value is None:
            how = "write the name itself, give ARG a plain default before the first FROM, or use --build-arg."
            raise refused(line, f"names its image by {image.text[:80]}, which is not known yet: {how}")
        self._use(line, image.start, image.start + len(image.text), self._target(line, value))
        self._count += 1
        if len(words) > 1:
            stage = words[2].text
            if not _STAGE.fullmatch(stage):
                raise refused(line, "names a stage with other than letters, digits, '_', '.' and '-'.")
            self._stages[stage.lower()] = stage

    def _check_mount(self, flag: Word) -> None:
        """A cache is the project's own; and no mount leads out of its place, as old engines let it."""
        fields = {key: value for key, value, _ in _fields(flag)}
        kinds = [value.lower() for key, value, _ in _fields(flag) if key == "type"] or ["bind"]
        keys = [key for key, _, _ in _fields(flag)]
        if (
            len(kinds) > 1
            or not fields.keys() <= _MOUNT_KEYS
            or len(fields) < len(keys)
            or any("$" in value or ".." in value.split("/") for value in fields.values())
            or "false" in (fields.get("ro", "").lower(), fields.get("readonly", "").lower())
        ):
            words = "has a mount that may lead elsewhere: leave out '$', '..', 'rw' and rare options in"
            raise refused(flag.line, f"{words} {flag.text[:80]}.")
        source = fields.get("source", fields.get("src", ""))
        if source and (kinds == ["cache"] or "from" in fields):
            words = "mounts a part of an image, a stage or a cache: mount all of it, without source, in"
            raise refused(flag.line, f"{words} {flag.text[:80]}.")
        if source:
            self.sources.setdefault(source, flag.line)
        if kinds != ["cache"]:
            return
        place = next((fields[key] for key in _PLACES if key in fields), "")
        whose = f"{self.project}\0{place}".encode(errors="surrogateescape")
        own, end = hashlib.sha256(whose).hexdigest()[:32], flag.start + len(flag.text)
        span = next(((at, at + len(value)) for key, value, at in _fields(flag) if key == "id"), None)
        self._use(flag.line, *(span or (end, end)), ("", own if span else f",id={own}"))

    def _use(self, line: int, start: int, end: int, target: tuple[str, str]) -> None:
        self.uses.append(ImageUse(line, start, end, *target))

    def _target(self, line: int, value: str) -> tuple[str, str]:
        """The image that is meant; or the words for a stage, which engines take only as it was written."""
        if value == SCRATCH:
            return "", value
        if value.lower() in self._stages:
            return "", self._stages[value.lower()]
        if sentence := refusal(value):
            raise refused(line, f"names no image that can be looked up. {sentence}")
        return value, ""

    def _source(self, line: int, value: str) -> tuple[str, str]:
        if "$" in value:
            raise refused(line, f"names an image by {value[:80]}: write the image or the stage itself.")
        is_number = value.isascii() and value.isdigit() and str(int(value[:9])) == value
        if is_number and int(value) < self._count - 1:
            return "", value
        return self._target(line, value)


def may_read(text: str) -> bool:
    """Whether a step that is run in another build may name an image there, however that is written."""
    return "from" in re.sub("[^a-z]", "", text.lower())


def _names_image(words: list[str]) -> bool:
    return len(words) == 1 or (len(words) == 3 and words[1].lower() == "as")


def _flags(words: Iterator[Word]) -> Iterator[Word]:
    """The flags at the begin of an instruction's words."""
    for word in words:
        if not word.text.startswith("--"):
            return
        if word.start < 0:
            raise refused(word.line, "goes on inside of a flag: put spaces before \\.")
        if _QUOTES.search(word.text):
            raise refused(word.line, f"has quotes in {word.text[:80]}: write it without them.")
        yield word


def _fields(flag: Word) -> Iterator[tuple[str, str, int]]:
    """The parts of a flag's value: each key in small letters, its value, and where the value stands."""
    name, equals, value = flag.text.partition("=")
    at = flag.start + len(name) + len(equals)
    for part in value.split(","):
        key, has_value, inner = part.partition("=")
        yield key.lower(), inner, at + len(key) + len(has_value)
        at += len(part) + 1


def _sources(flag: Word) -> Iterator[tuple[int, str]]:
    """What a flag reads from, and where that stands: `--from=X`, or `from=X` among others in `--mount`."""
    name, equals, value = flag.text.partition("=")
    if name.lower() == "--from":
        yield flag.start + len(name) + len(equals), value
        return
    for key, source, at in _fields(flag):
        if key == "from":
            yield at, source


def _shares(flag: Word) -> bool:
    """Whether a flag may read from what builds share: images, or caches."""
    return flag.text.lower().startswith("--mount=") or any(True for _ in _sources(flag))


def _check_inner(text: DockerfileText, line: int) -> None:
    """A line inside of an instruction, at which an engine could begin another one, must name no image."""
    words = text.words(line)
    first = next(words, None)
    keyword = first.text.lower() if first else ""
    if keyword == "from":
        own = [word.text for word in takewhile(lambda word: word.line == line, words)]
        rest = [word for word in own if not word.startswith("--")]
        if _names_image(rest) or (len(rest) < 3 and text.is_continued(line)):
            raise refused(line, "could be read as FROM of its own: begin the line with another word.")
    elif keyword == "onbuild" or (keyword in READING and any(map(_shares, _flags(words)))):
        why = "could be read as an instruction that names an image: begin the line with another word."
        raise refused(line, why)
