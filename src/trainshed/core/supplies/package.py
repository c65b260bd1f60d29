"""Python packages that a job brings: which addresses may name one, and what a fetched one is. Pure.

`wire/` checks addresses with `faults`; `runtimes/` and the container backend install the packages. An address
names an object in a bucket. Files of the server's machine and web addresses are refused: either would let a
job make the server read what the job itself may not reach.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.core.bucket import check_bucket_name, check_object_name
from trainshed.core.errors import Invalid

SCHEMES = ("gs", "s3", "az")
MOST = 100  # packages a pool
LARGEST = 2 << 30  # bytes, packed
UNPACKED = 8 << 30  # bytes
MOST_FILES = 200_000
FREE = 16 << 20  # bytes that any archive may unpack to
RATIO = 200  # ... beyond that, so many times its packed size

_SDISTS = (".tar.gz", ".zip")
_WHEEL = re.compile(r"[\w.]+-[\w.!+]+(?:-\d[\w.]*)?-[\w.]+-[\w.]+-[\w.]+\.whl", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://?(.*)", re.DOTALL)
_UNSAFE = re.compile(r"[^A-Za-z0-9._!+-]+")
_LONGEST_NAME = 120  # characters
_ADDRESS = re.compile(r"[\d.]+|0x[0-9a-f]+")
_MACHINES = ("localhost", "metadata", "metadata.google.internal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package as a job got it. A later change of the object does not affect that job."""

    uri: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        return file_name(self.uri)

    @property
    def sentence(self) -> str:
        return f"{self.uri} as it was then: sha256 {self.sha256}, {self.size} bytes."


def file_name(uri: str) -> str:
    """The name of its file on disk; pip reads a wheel's tags from it."""
    name = uri.rpartition("/")[2]
    if _WHEEL.fullmatch(name):
        return name
    return _UNSAFE.sub("_", name)[-_LONGEST_NAME:].lstrip("-.") or "package"


def split(uri: str) -> tuple[str, str, str]:
    """Scheme, bucket and object of an address that has no fault."""
    scheme, _, rest = uri.partition("://")
    bucket, _, name = rest.partition("/")
    return scheme, bucket, name


def faults(uris: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Every refused address: its index, and why."""
    if len(uris) > MOST:
        return ((MOST, f"is one of {len(uris)} packages; at most {MOST} are installed."),)
    return tuple((number, why) for number, uri in enumerate(uris) if (why := fault(uri)))


def fault(uri: str) -> str:
    """Why this cannot be the address of a package; empty where it can."""
    shown = f'"{uri[:200]}"'
    if not uri.isprintable() or not uri:
        return f"must be an address such as gs://BUCKET/trainer-0.1.tar.gz, not {uri[:200]!a}."
    match = _SCHEME.fullmatch(uri)
    if match is None or match[1].lower() == "file":
        return (
            f"names a file of the server's own machine, which no job may read: {shown}. Put it into a bucket "
            "(trainshed storage cp FILE gs://BUCKET/) and give its gs:// address."
        )
    if match[1] not in SCHEMES or "://" not in uri:
        return (
            f"must begin with gs://, s3:// or az://, which {shown} does not: no other address is followed, "
            "since it could lead into the server's own network. Copy the package into a bucket."
        )
    return _object_fault(uri, shown) or _kind_fault(uri, shown)


def _object_fault(uri: str, shown: str) -> str:
    _, bucket, name = split(uri)
    if _is_machine(bucket):
        return f"names a machine where a bucket should be named: {shown}."
    if not name:
        return f"must name an object in a bucket, such as gs://BUCKET/trainer-0.1.tar.gz, not {shown}."
    try:
        check_bucket_name(bucket)
        check_object_name(name)
    except Invalid as error:
        return f"cannot be the address of an object: {shown}. {error.message}"
    return ""


def _is_machine(bucket: str) -> bool:
    host = bucket.partition(":")[0].lower().rstrip(".")
    return ":" in bucket or "@" in bucket or host in _MACHINES or bool(_ADDRESS.fullmatch(host))


def _kind_fault(uri: str, shown: str) -> str:
    name = uri.rpartition("/")[2]
    if name.endswith(".whl"):
        if _WHEEL.fullmatch(name):
            return ""
        return (
            f"does not have the name of a wheel, from which pip reads what it is for: {shown}. Keep the name "
            "it was built with, such as trainer-0.1-py3-none-any.whl."
        )
    if name.endswith(_SDISTS) and name not in _SDISTS:
        return ""
    return (
        f"is no Python package by its name: {shown}. Give a source distribution (.tar.gz or .zip, as "
        "python setup.py sdist makes it) or a wheel (.whl)."
    )
