"""Buckets and objects as values, and the rules for their names and preconditions.

The API, the service and every adapter of buckets use it. The name of an object is any text of up to 1024
bytes of UTF-8, with colons, `..` and slashes anywhere. No code here or above makes a path of a name; an
adapter that keeps files chooses its own paths.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainshed.core.bucket_rule import LifecycleRule
from trainshed.core.errors import Conflict, Exhausted, Invalid, Violation

LONGEST_NAME = 1024  # bytes of UTF-8
MOST_METADATA = 64 * 1024  # bytes of all keys and values of one object together
PAGE = 1000  # entries of a listing, at most
MOST_PARTS = 32  # objects one compose may take
NOBODY = ("", "<none>")  # the projects of clients that were given none, and so of the buckets they make

_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.))*[a-z0-9]")
_STRANGE = re.compile(r"[^a-z0-9._-]")
_EDGES = re.compile(r"[a-z0-9]{1,2}")
_IP = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


class PreconditionFailed(Conflict):
    """The object is not in the state the request asked for."""


class NotModified(PreconditionFailed):
    """The object is still the one the caller knows."""


class DamagedObject(Conflict):
    """The bytes on the disk are not those that were stored."""


class DiskFull(Exhausted):
    """The disk of the server is full. Make room there, then try again."""


class OutOfRange(Invalid):
    """The object ends before the bytes that were asked for begin."""

    def __init__(self, size: int) -> None:
        self.size = size
        sentence = f"The object has {size} bytes; none of those asked for is among them."
        super().__init__((Violation("Range", sentence),))


def check_bucket_name(name: str) -> str:
    """The name, where Google would accept it."""
    if 3 <= len(name) <= 222 and _BUCKET.fullmatch(name) and all(len(part) <= 63 for part in name.split(".")):
        return name
    sentence = (
        f"Invalid bucket name: '{name[:80]}'. A bucket's name has 3 to 63 lower-case letters, digits, "
        "'-', '_' or '.', and begins and ends with a letter or digit."
    )
    raise Invalid((Violation("name", sentence),))


def check_new_bucket_name(name: str) -> str:
    """The name, where Google would accept it for a new bucket. Never used for buckets that exist."""
    broken = [rule for fault, rule in _new_name_rules(name) if fault]
    if broken:
        sentence = f"Invalid bucket name: '{name[:80]}'. {' '.join(broken)}"
        raise Invalid((Violation("name", sentence),))
    return check_bucket_name(name)


def _new_name_rules(name: str) -> Iterator[tuple[bool, str]]:
    """Whether each rule is broken, and the rule."""
    parts = name.split(".")
    yield len(name) < 3, "It must have at least 3 characters."
    yield len(parts) == 1 and len(name) > 63, f"Without dots it has at most 63 characters, not {len(name)}."
    yield len(name) > 222, f"It has at most 222 characters, not {len(name)}."
    long = len(parts) > 1 and max(map(len, parts)) > 63
    yield long, "Each part between dots has at most 63 characters."
    strange = "".join(sorted(set(_STRANGE.findall(name))))[:20]
    yield bool(strange), f"It has lower-case letters, digits, '-', '_' and '.' only, not {strange!r}."
    edges = name[:1] + name[-1:]
    yield bool(name) and not _EDGES.fullmatch(edges), "It must begin and end with a letter or digit."
    yield ".." in name, "It must not have two dots in a row."
    yield _IP.fullmatch(name) is not None, "It must not look like an IP address."
    yield name.startswith("goog"), "It must not begin with 'goog'."
    yield "google" in name, "It must not contain 'google'."


def check_object_name(name: str) -> str:
    """The name, where an object may have it."""
    if fault := _name_fault(name):
        raise Invalid((Violation("name", fault),))
    return name


def _name_fault(name: str) -> str:
    if not name:
        return "An object must have a name."
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "An object's name must be valid UTF-8."
    if length > LONGEST_NAME:
        return f"An object's name has at most {LONGEST_NAME} bytes of UTF-8; this one has {length}."
    if name in (".", "..") or "\r" in name or "\n" in name:
        return "An object cannot be named '.' or '..', nor have a carriage return or a line feed in its name."
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketInfo:
    name: str
    project: str
    location: str
    created_at: datetime
    updated_at: datetime
    metageneration: int = 1
    storage_class: str = "STANDARD"
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    versioning: bool = False  # an object that is replaced or deleted stays as an old version
    lifecycle: tuple[LifecycleRule, ...] = ()
    scheme: str = "gs"  # how people write its address; its name alone says which bucket it is

    def is_open_to(self, project: str) -> bool:
        """Whether the bucket belongs to the project, or to none."""
        return self.project in (project, *NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Metadata of an object, which may be changed without its bytes."""

    content_type: str = ""
    content_encoding: str = ""
    content_disposition: str = ""
    content_language: str = ""
    cache_control: str = ""
    storage_class: str = "STANDARD"
    custom_time: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])


PLAIN = Attributes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    bucket: str
    name: str
    generation: int  # microseconds; every new content has a higher one
    metageneration: int  # begins at 1 with every generation
    size: int
    crc32c: str  # as Google writes it: base64, big-endian
    md5: str  # base64; empty while that of a large object is still being made
    created_at: datetime
    updated_at: datetime
    attributes: Attributes = PLAIN
    components: int = 0  # of how many objects it was composed; 0: of none
    noncurrent_at: datetime | None = None  # of an old version: when it was replaced or deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must be true of the current object. A generation of 0 means that there must be none."""

    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None

    def check(self, current: ObjectInfo | None) -> None:
        generation, metageneration = (current.generation, current.metageneration) if current else (0, 0)
        if self.generation is not None and self.generation != generation:
            raise PreconditionFailed(
                f"The object has the generation {generation}, not {self.generation}."
                if current
                else f"The object is not there; the generation {self.generation} was asked for."
            )
        if self.metageneration is not None and self.metageneration != metageneration:
            raise PreconditionFailed(
                f"The object has the metageneration {metageneration}, not {self.metageneration}."
            )
        if self.not_generation is not None and self.not_generation == generation:
            raise NotModified(f"The object still has the generation {generation}.")
        if self.not_metageneration is not None and self.not_metageneration == metageneration:
            raise NotModified(f"The object still has the metageneration {metageneration}.")


ALWAYS = Precondition()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDraft:
    """An object to be stored, without its bytes. A hash that is given must be that of the bytes."""

    name: str
    attributes: Attributes = PLAIN
    precondition: Precondition = ALWAYS
    crc32c: str = ""
    md5: str = ""
    components: int = 0
    size: int | None = None  # of a whole upload in pieces, where the client gave it at the start
    md5_at_once: bool = False  # the answer must have the MD5, however large the object is
    # Objects of the same bucket that are deleted in this one's commit, unless replaced meanwhile.
    removes: tuple[ObjectInfo, ...] = ()
    request: str = ""  # names the caller's request: sent again, it gets the first answer

    @property
    def wants_md5(self) -> bool:
        return self.md5_at_once or bool(self.md5)

    def check_size(self, size: int) -> None:
        if self.size is not None and self.size != size:
            sentence = f"The upload was begun as one of {self.size} bytes; this would make it one of {size}."
            raise Invalid((Violation("X-Upload-Content-Length", sentence),))

    def check_hashes(self, crc32c: str, md5: str) -> None:
        for kind, given, actual in (("CRC32C", self.crc32c, crc32c), ("MD5 hash", self.md5, md5)):
            if given and given != actual:
                sentence = f'Provided {kind} "{given}" doesn\'t match calculated {kind} "{actual}".'
                raise Invalid((Violation("crc32c" if kind == "CRC32C" else "md5Hash", sentence),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQuery:
    """Which objects to list. With a delimiter, names that continue after it are listed as one prefix."""

    prefix: str = ""
    delimiter: str = ""
    start: str = ""  # the first name that may be listed
    end: str = ""  # the first name that may not; empty: no end
    trailing: bool = False  # also list an object whose name ends with the delimiter as an object
    size: int = PAGE
    after: str = ""  # the cursor: names and prefixes up to here were listed already
    versions: bool = False  # list old versions too, the oldest of each name first
    after_generation: int = 0  # with versions: the name `after` was listed up to this one


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectListing:
    items: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...] = ()
    next_after: str = ""  # empty: that was all
    next_generation: int = 0  # with versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of an object: first and last byte, both included, either open; or the last so many bytes."""

    first: int | None = None
    last: int | None = None

    def within(self, size: int) -> tuple[int, int]:
        """Where it begins, and how long it is, in an object of that size."""
        if self.first is None and self.last is None:
            return 0, size
        if self.first is None:
            first = max(0, size - (self.last or 0))
            last = size - 1
        else:
            first, last = self.first, size - 1 if self.last is None else min(self.last, size - 1)
        if first > last:
            raise OutOfRange(size)
        return first, last - first + 1


WHOLE = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """The state of an upload in pieces."""

    id: str
    draft: ObjectDraft
    received: int  # bytes that are stored durably
    crc32c: str = ""  # of those bytes; only set by `append`
    done: ObjectInfo | None = None
