"""b/BUCKET/o: list, get, read, change, copy, compose and delete objects."""

import base64
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from trainshed.api.call import Call, Json, RawAnswer, Reply
from trainshed.api.storage_answer import JSON, bucket_of, json_answer, nothing, object_of, request_of
from trainshed.core.bucket import (
    PAGE,
    PLAIN,
    WHOLE,
    ObjectDraft,
    ObjectInfo,
    ObjectQuery,
    Span,
    check_object_name,
)
from trainshed.core.bucket_port import ObjectReading
from trainshed.service.storage import CopySource, StorageService
from trainshed.wire.storage import (
    fault,
    number,
    object_headers,
    overlay,
    precondition,
    render_object,
    render_objects,
)

AT_ONCE = 1 << 20  # bytes of an answer that is sent whole
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(slots=True)
class StorageObjectHandlers:
    storage: StorageService

    async def find(self, call: Call) -> Reply:
        query = call.query
        if query.get("matchGlob"):
            raise fault("matchGlob", "matchGlob is not supported here: list by prefix, and match what comes.")
        after, _, generation = cursor(query.get("pageToken", "")).partition("\n")  # no name has one in it
        listing = await self.storage.open(bucket_of(call)).find(
            ObjectQuery(
                prefix=query.get("prefix", ""),
                delimiter=query.get("delimiter", ""),
                start=query.get("startOffset", ""),
                end=query.get("endOffset", ""),
                trailing=call.flag("includeTrailingDelimiter"),
                size=min(number(query, "maxResults") or PAGE, PAGE),
                after=after,
                versions=call.flag("versions"),
                after_generation=number({"pageToken": generation}, "pageToken") or 0,
            )
        )
        answer: Json = {"kind": "storage#objects"}
        if listing.next_after:
            at = f"\n{listing.next_generation}" if listing.next_generation else ""
            answer["nextPageToken"] = base64.urlsafe_b64encode(f"{listing.next_after}{at}".encode()).decode()
        if listing.prefixes:
            answer["prefixes"] = list(listing.prefixes)
        if not listing.items or call.flag("softDeleted"):
            return json_answer(call, answer)
        if query.get("fields"):
            answer["items"] = [render_object(item, call.base_url) for item in listing.items]
            return json_answer(call, answer)
        head = json.dumps(answer, ensure_ascii=False)[:-1]
        text = f'{head}, "items": {render_objects(listing.items, call.base_url)}}}'
        return RawAnswer(text.encode("utf-8", "replace"), headers=JSON)

    async def get(self, call: Call) -> Reply:
        if call.query.get("alt") == "media":
            return await self.media(call)
        info = await self.storage.open(bucket_of(call)).get(object_of(call), number(call.query, "generation"))
        precondition(call.query).check(info)
        return json_answer(call, render_object(info, call.base_url))

    async def media(self, call: Call) -> Reply:
        reading = await self.storage.open(bucket_of(call)).read(
            object_of(call),
            span(call.headers.get("range", "")),
            number(call.query, "generation"),
            precondition(call.query),
        )
        return await sent(call, reading)

    async def head(self, call: Call) -> Reply:
        """The headers of `get`. The object's bytes are not read."""
        return await (self.head_media(call) if call.query.get("alt") == "media" else self.get(call))

    async def head_media(self, call: Call) -> Reply:
        info = await self.storage.open(bucket_of(call)).get(object_of(call), number(call.query, "generation"))
        precondition(call.query).check(info)
        first, length = span(call.headers.get("range", "")).within(info.size)
        return RawAnswer(b"", *_head(info, first, length))

    async def patch(self, call: Call) -> Reply:
        info = await self.storage.open(bucket_of(call)).change(
            object_of(call),
            lambda old: overlay(old, call.body),
            number(call.query, "generation"),
            precondition(call.query),
            request_of(call, "patch"),
        )
        return json_answer(call, render_object(info, call.base_url))

    async def update(self, call: Call) -> Reply:
        new = overlay(PLAIN, call.body)
        info = await self.storage.open(bucket_of(call)).change(
            object_of(call),
            lambda _: new,
            number(call.query, "generation"),
            precondition(call.query),
            request_of(call, "update"),
        )
        return json_answer(call, render_object(info, call.base_url))

    async def delete(self, call: Call) -> Reply:
        generation = number(call.query, "generation")
        await self.storage.open(bucket_of(call)).delete(
            object_of(call), generation, precondition(call.query), request_of(call, "delete")
        )
        return nothing()

    async def compose(self, call: Call) -> Reply:
        bucket = bucket_of(call)
        given = call.body.get("sourceObjects")
        if not isinstance(given, list):
            raise fault("sourceObjects", "sourceObjects must be a list of objects.")
        sources = [_source(bucket, item) for item in cast("list[object]", given)]
        about = call.body.get("destination")
        about = cast("Json", about) if isinstance(about, dict) else {}
        draft = ObjectDraft(
            name=object_of(call),
            attributes=overlay(PLAIN, about),
            precondition=precondition(call.query),
            request=request_of(call, "compose"),
        )
        removes = call.body.get("deleteSourceObjects", False)
        if not isinstance(removes, bool):
            raise fault("deleteSourceObjects", "deleteSourceObjects must be true or false.")
        made = await self.storage.compose(bucket, draft, sources, removes=removes)
        return json_answer(call, render_object(made, call.base_url))

    async def copy(self, call: Call) -> Reply:
        return json_answer(call, await self._copied(call, "copy"))

    async def rewrite(self, call: Call) -> Reply:
        made = await self._copied(call, "rewrite")
        size = made["size"]
        answer = {
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": size,
            "objectSize": size,
            "done": True,
            "resource": made,
        }
        return json_answer(call, answer)

    async def move(self, call: Call) -> Reply:
        """Copies the object and deletes the original, unless that was replaced meanwhile."""
        return json_answer(call, await self._copied(call, "move", removes=True))

    async def restore(self, call: Call) -> Reply:
        """Copies an old version to the live object. The old version stays."""
        generation = number(call.query, "generation")
        if generation is None:
            raise fault("generation", "generation must say which version is to be restored.")
        bucket = bucket_of(call)
        draft = ObjectDraft(
            name=object_of(call),
            precondition=precondition(call.query),
            request=request_of(call, "restore"),
        )
        source = CopySource(bucket=bucket, name=draft.name, generation=generation)
        made = await self.storage.copy(bucket, draft, source, lambda old: old)
        return json_answer(call, render_object(made, call.base_url))

    async def _copied(self, call: Call, verb: str, *, removes: bool = False) -> Json:
        bucket = bucket_of(call)
        target = bucket_of(call, "target") if "target" in call.path else bucket
        draft = ObjectDraft(
            name=object_of(call, "name"),
            precondition=precondition(call.query),
            request=request_of(call, verb),
        )
        source = CopySource(
            bucket=bucket,
            name=object_of(call),
            generation=number(call.query, "sourceGeneration"),
            precondition=precondition(call.query, "ifSource"),
        )
        made = await self.storage.copy(
            target, draft, source, lambda old: overlay(old, call.body), removes=removes
        )
        return render_object(made, call.base_url)


def _source(bucket: str, given: object) -> CopySource:
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    name, wanted = fields.get("name"), cast("object", fields.get("objectPreconditions") or {})
    if not isinstance(name, str):
        raise fault("sourceObjects", "Each of sourceObjects must have a name.")
    if not isinstance(wanted, dict):
        raise fault("sourceObjects.objectPreconditions", "objectPreconditions must be an object.")
    numbers = {
        key: "" if value is None else str(value)
        for key, value in (
            ("generation", fields.get("generation")),
            ("ifGenerationMatch", cast("dict[str, Any]", wanted).get("ifGenerationMatch")),
        )
    }
    return CopySource(
        bucket=bucket,
        name=check_object_name(name),
        generation=number(numbers, "generation"),
        precondition=precondition(numbers),
    )


def span(header: str) -> Span:
    """The range of a Range header; the whole object for several ranges or other units."""
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return WHOLE
    return Span(first=int(match[1]) if match[1] else None, last=int(match[2]) if match[2] else None)


async def sent(call: Call, reading: ObjectReading) -> RawAnswer:
    """The bytes with their headers. Small objects are read first, so that damage gives an error answer."""
    content: bytes | AsyncIterator[bytes] = reading.chunks
    if reading.length <= AT_ONCE:
        content = b"".join([chunk async for chunk in reading.chunks])
    elif call.sender is not None and reading.sent is not None:
        content = reading.sent(call.sender)
    return RawAnswer(content, *_head(reading.info, reading.first, reading.length))


def _head(info: ObjectInfo, first: int, length: int) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer with this range of the object."""
    headers = object_headers(info) | {"content-length": str(length)}
    if length == info.size:
        return 200, headers
    return 206, headers | {"content-range": f"bytes {first}-{first + length - 1}/{info.size}"}


def cursor(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token.encode()).decode()
    except ValueError as error:
        raise fault("pageToken", "The page token is not one of this server.") from error
