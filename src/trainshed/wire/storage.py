"""Buckets and objects as JSON of Google's storage API, in both directions. For `api/storage_*.py`.

Numbers of 64 bits are strings, hashes base64, times RFC 3339. Unknown fields of a request are ignored, since
clients send whole resources back.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from trainshed.core.bucket import MOST_METADATA, PLAIN, Attributes, BucketInfo, ObjectInfo, Precondition
from trainshed.core.errors import TrainshedError
from trainshed.wire import scalars
from trainshed.wire.scalars import INT64_MOST
from trainshed.wire.status import to_storage
from trainshed.wire.storage_bucket import check_line, fault, render_lifecycle

Json = dict[str, Any]
_Frame = tuple[str, str, str, str, str, str, str]

_TEXTS = {
    "contentType": "content_type",
    "contentEncoding": "content_encoding",
    "contentDisposition": "content_disposition",
    "contentLanguage": "content_language",
    "cacheControl": "cache_control",
    "storageClass": "storage_class",
    "customTime": "custom_time",
}
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # names that a header may have
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.~/-]*")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_QUOTED = {byte: f"%{byte:02X}" for byte in range(256) if byte not in _SAFE}
_SECONDS = [f"{second:02}." for second in range(60)]
_MILLISECONDS = [f"{number:03}Z" for number in range(1000)]
_text = json.encoder.encode_basestring
_CONDITIONS = {
    "GenerationMatch": "generation",
    "GenerationNotMatch": "not_generation",
    "MetagenerationMatch": "metageneration",
    "MetagenerationNotMatch": "not_metageneration",
}


def render_bucket(info: BucketInfo, base_url: str) -> Json:
    result: Json = {
        "kind": "storage#bucket",
        "id": info.name,
        "name": info.name,
        "selfLink": f"{base_url}/storage/v1/b/{info.name}",
        "projectNumber": "0",
        "location": info.location,
        "locationType": "region",
        "storageClass": info.storage_class,
        "metageneration": str(info.metageneration),
        "etag": _etag(0, info.metageneration),
        "timeCreated": rfc3339(info.created_at),
        "updated": rfc3339(info.updated_at),
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
    }
    if info.versioning:
        result["versioning"] = {"enabled": True}
    if info.lifecycle:
        result["lifecycle"] = render_lifecycle(info.lifecycle)
    if info.labels:
        result["labels"] = dict(info.labels)
    if info.scheme != "gs":
        result["scheme"] = info.scheme  # ours: the scheme of the bucket's address
    return result


def render_object(info: ObjectInfo, base_url: str) -> Json:
    created = rfc3339(info.created_at)
    name = quoted(info.name)
    result: Json = {
        "kind": "storage#object",
        "id": f"{info.bucket}/{info.name}/{info.generation}",
        "selfLink": f"{base_url}/storage/v1/b/{info.bucket}/o/{name}",
        "mediaLink": (
            f"{base_url}/download/storage/v1/b/{info.bucket}/o/{name}?generation={info.generation}&alt=media"
        ),
        "name": info.name,
        "bucket": info.bucket,
        "generation": str(info.generation),
        "metageneration": str(info.metageneration),
        "size": str(info.size),
        "etag": etag(info),
        "timeCreated": created,
        "updated": created if info.updated_at == info.created_at else rfc3339(info.updated_at),
        "timeStorageClassUpdated": created,
        **_render_attributes(info.attributes),
    }
    if info.crc32c:
        result["crc32c"] = info.crc32c
    if info.md5:
        result["md5Hash"] = info.md5
    if info.components:
        result["componentCount"] = info.components
    if info.noncurrent_at is not None:
        result["timeDeleted"] = rfc3339(info.noncurrent_at)
    return result


def render_objects(infos: Sequence[ObjectInfo], base_url: str) -> str:
    """The list of `render_object` of each, as text. Four times as fast, for lists of thousands."""
    pieces: list[str] = []
    are_plain = (
        _PLAIN_NAME.fullmatch("".join([info.name for info in infos])) is not None
    )  # one match for all names
    frames: dict[tuple[int, int], _Frame] = {}  # most objects of a list share their attributes
    for info in infos:
        if info.components or not info.md5 or not info.crc32c or info.noncurrent_at is not None:
            pieces += (json.dumps(render_object(info, base_url), ensure_ascii=False), ",")
            continue
        key = (id(info.attributes), info.metageneration)
        if (frame := frames.get(key)) is None:
            frame = frames[key] = _frame(info, base_url)
        generation = str(info.generation)
        if are_plain:
            plain, name = f'"{info.name}"', info.name.replace("/", "%2F")
        else:
            plain, name = _text(info.name), quoted(info.name)
        created = rfc3339(info.created_at)
        # fmt: off
        pieces += (
            frame[0], plain[1:-1], "/", generation, frame[1], name, frame[2], name,
            "?generation=", generation, frame[3], plain,
            ',"generation":"', generation, '","size":"', str(info.size),
            '","crc32c":"', info.crc32c, '","md5Hash":"', info.md5, '","etag":"', f"{info.generation:016x}",
            frame[4], created, '","updated":"',
            created if info.updated_at is info.created_at else rfc3339(info.updated_at),
            frame[5], created, frame[6],
        )
        # fmt: on
    return f"[{''.join(pieces)[:-1]}]"


def _frame(info: ObjectInfo, base_url: str) -> _Frame:
    """The constant texts between the values that differ from object to object."""
    place, metageneration = f"storage/v1/b/{info.bucket}/o/", info.metageneration
    return (
        f'{{"kind":"storage#object","id":"{info.bucket}/',
        f'","selfLink":"{base_url}/{place}',
        f'","mediaLink":"{base_url}/download/{place}',
        f'&alt=media","bucket":"{info.bucket}","metageneration":"{metageneration}","name":',
        f'{metageneration:08x}","timeCreated":"',
        '","timeStorageClassUpdated":"',
        f'",{json.dumps(_render_attributes(info.attributes), ensure_ascii=False)[1:]},',
    )


def _render_attributes(attributes: Attributes) -> Json:
    result: Json = {key: value for key, field in _TEXTS.items() if (value := getattr(attributes, field))}
    result.setdefault("contentType", "application/octet-stream")
    if attributes.metadata:
        result["metadata"] = dict(attributes.metadata)
    return result


def quoted(name: str) -> str:
    """The name percent-encoded for a URL."""
    if _PLAIN_NAME.fullmatch(name):
        return name.replace("/", "%2F")
    return name.encode("utf-8", "replace").decode("latin-1").translate(_QUOTED)


def object_headers(info: ObjectInfo) -> dict[str, str]:
    """The headers of an answer with an object's bytes."""
    attributes = info.attributes
    hashes = (("crc32c", info.crc32c), ("md5", info.md5))
    headers = {
        "content-type": attributes.content_type or "application/octet-stream",
        "etag": f'"{etag(info)}"',
        "last-modified": info.updated_at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "accept-ranges": "bytes",
        "x-goog-generation": str(info.generation),
        "x-goog-metageneration": str(info.metageneration),
        "x-goog-hash": ",".join(f"{kind}={sum}" for kind, sum in hashes if sum),
        "x-goog-stored-content-length": str(info.size),
        "x-goog-stored-content-encoding": attributes.content_encoding or "identity",
        "x-goog-storage-class": attributes.storage_class,
    }
    for name, value in (
        ("content-encoding", attributes.content_encoding),
        ("content-disposition", _disposition(attributes.content_disposition)),
        ("content-language", attributes.content_language),
        ("cache-control", attributes.cache_control),
    ):
        if value:
            headers[name] = value
    # Values that a header cannot have are only in the object's JSON.
    own = {f"x-goog-meta-{key}": value for key, value in attributes.metadata.items()}
    return {
        key: value
        for key, value in (headers | own).items()
        if value.isascii() and value.isprintable() and _HEADER.fullmatch(key)
    }


def _disposition(stored: str) -> str:
    """Browsers save an object and never show it: a page in a bucket would be a page of this server."""
    kind, mark, rest = stored.partition(";")
    if not (stored.isascii() and stored.isprintable()):
        return "attachment"
    return stored if kind.strip().lower() == "attachment" else f"attachment{mark}{rest}"


def overlay(attributes: Attributes, body: Mapping[str, object]) -> Attributes:
    """The attributes, changed by the body. Null resets an attribute to its default."""
    changed: dict[str, Any] = {
        field: getattr(PLAIN, field) if body[key] is None else _attribute(body, key)
        for key, field in _TEXTS.items()
        if key in body
    }
    if "metadata" in body:
        given = body["metadata"]
        if given is not None and not isinstance(given, dict):
            raise fault("metadata", "metadata must be an object of texts.")
        new = dict(attributes.metadata) if given is not None else {}
        for key, value in cast("dict[str, object]", given or {}).items():
            if value is None:
                new.pop(key, None)
            elif isinstance(value, str):
                check_line("metadata", key + re.sub(r"[\t\r\n]", "", value))
                _check_text("metadata", key + value)
                new[key] = value
            else:
                raise fault(f"metadata.{key[:80]}", "A value of metadata must be a text.")
        if (
            sum(len(key.encode("utf-8", "replace")) + len(value) for key, value in new.items())
            > MOST_METADATA
        ):
            raise fault("metadata", f"All metadata together may have {MOST_METADATA} bytes.")
        changed["metadata"] = new
    return replace(attributes, **changed) if changed else attributes


def _attribute(body: Mapping[str, object], key: str) -> str:
    value = text(body, key)
    check_line(key, value)
    if key == "customTime" and value and not _is_time(value):
        raise fault(key, f"customTime must be a time as in RFC 3339, not '{value[:40]}'.")
    return value


def _is_time(value: str) -> bool:
    if not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value[:19].upper())
    except ValueError:
        return False
    return True


def text(body: Mapping[str, object], key: str) -> str:
    value = body.get(key, "")
    if not isinstance(value, str) or len(value) > 4096:
        raise fault(key, f"{key} must be a text of at most 4096 characters.")
    _check_text(key, value)
    return value


def _check_text(field: str, value: str) -> None:
    try:
        scalars.read_text(value)
    except ValueError as error:
        raise fault(field, f"{field} {error}") from error


def precondition(query: Mapping[str, str], which: str = "if") -> Precondition:
    """From `ifGenerationMatch` and similar; `ifSource` for those of a copy's source."""
    return Precondition(**{field: number(query, which + name) for name, field in _CONDITIONS.items()})


def number(query: Mapping[str, str], name: str) -> int | None:
    given = query.get(name, "")
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 19 or int(given) > INT64_MOST:
        raise fault(name, f"{name} must be a whole number of 64 bits, not '{given[:40]}'.")
    return int(given)


def render_error(error: TrainshedError, *, reads: bool = True) -> tuple[int, Json]:
    code, reason = to_storage(error, reads=reads)
    detail = {"message": error.message, "domain": "global", "reason": reason}
    return code, {"error": {"code": code, "message": error.message, "errors": [detail]}}


def rfc3339(at: datetime) -> str:
    # Cached pieces: otherwise a list of thousands spends a third of its time here.
    minute = _minute(at.year, at.month, at.day, at.hour, at.minute)
    return minute + _SECONDS[at.second] + _MILLISECONDS[at.microsecond // 1000]


@lru_cache(4096)
def _minute(year: int, month: int, day: int, hour: int, minute: int) -> str:
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:"


def etag(info: ObjectInfo) -> str:
    return _etag(info.generation, info.metageneration)


def _etag(generation: int, metageneration: int) -> str:
    return f"{generation:016x}{metageneration:08x}"  # also valid base64, which some clients require
