"""BUCKET/OBJECT: the storage XML API, as far as obstore and parallel multipart uploads need it.

Each part is an upload of its own, and its ETag is the id of that upload. The client names the parts and
their order at the end. Only addresses with a token reach this API, since its paths could match anything.
"""

import base64
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote

from trainshed.api.call import ANY_SIZE, Call, Handler, Method, RawAnswer, Reply
from trainshed.api.storage_answer import (
    READING,
    bucket_of,
    in_storage_words,
    nothing,
    object_of,
    object_permission,
    request_of,
)
from trainshed.api.storage_objects import cursor, sent, span
from trainshed.api.storage_uploads import hashes, whole
from trainshed.core.bucket import (
    ALWAYS,
    PAGE,
    PLAIN,
    Attributes,
    NotModified,
    ObjectDraft,
    ObjectInfo,
    ObjectQuery,
    Precondition,
    PreconditionFailed,
    check_object_name,
)
from trainshed.core.errors import TrainshedError
from trainshed.service.storage import CopySource, StorageService
from trainshed.wire.storage import etag, fault, number, object_headers
from trainshed.wire.storage_bucket import check_line
from trainshed.wire.storage_xml import document, element, parse_parts, render_error, render_listing

MOST_LIST = 4 << 20  # bytes of the XML that names the parts of an upload
_XML = {"content-type": "application/xml; charset=UTF-8"}
# Headers that are kept with the object.
_STORED = ("content-", "cache-control", "x-goog-storage-class", "x-goog-meta-")


@dataclass(slots=True)
class StorageXmlHandlers:
    storage: StorageService

    async def find(self, call: Call) -> Reply:
        query, bucket = call.query, bucket_of(call)
        token = query.get("continuation-token", "")
        listing = await self.storage.open(bucket).find(
            ObjectQuery(
                prefix=query.get("prefix", ""),
                delimiter=query.get("delimiter", ""),
                size=min(number(query, "max-keys") or PAGE, PAGE),
                after=cursor(token) if token else query.get("start-after", ""),
            )
        )
        more = base64.urlsafe_b64encode(listing.next_after.encode()).decode()
        return RawAnswer(render_listing(bucket, query.get("prefix", ""), listing, more), headers=_XML)

    async def get(self, call: Call) -> Reply:
        bucket, generation = self.storage.open(bucket_of(call)), number(call.query, "generation")
        if "if-match" in call.headers or "if-none-match" in call.headers:
            info = await bucket.get(object_of(call), generation)
            _check_tags(call, info)
            generation = info.generation
        asked = span(call.headers.get("range", ""))
        return await sent(call, await bucket.read(object_of(call), asked, generation, _condition(call)))

    async def head(self, call: Call) -> Reply:
        info = await self.storage.open(bucket_of(call)).get(object_of(call), number(call.query, "generation"))
        _condition(call).check(info)
        _check_tags(call, info)
        return RawAnswer(headers=object_headers(info) | {"content-length": str(info.size)})

    async def put(self, call: Call) -> Reply:
        bucket, name = self.storage.open(bucket_of(call)), object_of(call)
        if main := call.query.get("uploadId"):
            name = (await bucket.upload(main)).draft.name
            part = await bucket.begin(ObjectDraft(name=name))
            came = await bucket.append(part.id, 0, call.chunks)
            ObjectDraft(name=name, crc32c=hashes(call.headers.get("x-goog-hash", ""))[0]).check_hashes(
                came.crc32c, ""
            )
            return RawAnswer(headers={"etag": f'"{part.id}"', "x-goog-hash": f"crc32c={came.crc32c}"})
        if source := call.headers.get("x-goog-copy-source", ""):
            draft = ObjectDraft(
                name=name, precondition=_condition(call), request=request_of(call, f"copy {source}")
            )
            return await self._copied(call, draft, source)
        draft = replace(_draft(call, name), request=request_of(call, "put"))
        made = await bucket.put(draft, call.chunks)
        return RawAnswer(headers=_made(made))

    async def _copied(self, call: Call, draft: ObjectDraft, source: str) -> Reply:
        bucket, _, name = unquote(source).lstrip("/").partition("/")
        original = CopySource(bucket=bucket, name=check_object_name(name))
        made = await self.storage.copy(bucket_of(call), draft, original, lambda old: old)
        body = element("CopyObjectResult", element("ETag", text=f'"{etag(made)}"'))
        return RawAnswer(document(body), headers=_XML | _made(made))

    async def post(self, call: Call) -> Reply:
        """Begins an upload in parts, or joins the parts."""
        bucket, name = self.storage.open(bucket_of(call)), object_of(call)
        upload = call.query.get("uploadId", "")
        if not upload:
            if "uploads" not in call.query:
                raise fault("", "POST wants `uploads` or an `uploadId`.")
            begun = await bucket.begin(_draft(call, name))
            body = element(
                "InitiateMultipartUploadResult",
                element("Bucket", text=bucket.name),
                element("Key", text=name),
                element("UploadId", text=begun.id),
            )
            return RawAnswer(document(body), headers=_XML)
        parts, offset = parse_parts(await whole(call.chunks, MOST_LIST)), 0
        for part in parts:
            # A second request skips the bytes that are stored already.
            size = (await bucket.upload(part)).received
            await bucket.append(upload, offset, bucket.received(part))
            offset += size
        made = await bucket.finish(upload)
        for part in parts:
            await bucket.abandon(part)
        body = element(
            "CompleteMultipartUploadResult",
            element("Bucket", text=bucket.name),
            element("Key", text=made.name),
            element("ETag", text=f'"{etag(made)}"'),
        )
        return RawAnswer(document(body), headers=_XML | _made(made))

    async def delete(self, call: Call) -> Reply:
        bucket = self.storage.open(bucket_of(call))
        if upload := call.query.get("uploadId"):
            await bucket.abandon(upload)
        else:
            generation = number(call.query, "generation")
            await bucket.delete(
                object_of(call), generation, _condition(call), request_of(call, "delete by XML")
            )
        return nothing()


def xml_methods(storage: StorageService) -> tuple[Method, ...]:
    xml, object_path = StorageXmlHandlers(storage), "/{bucket}/{object...}"
    rows: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/{bucket}", xml.find),
        ("GET", object_path, xml.get),
        ("HEAD", object_path, xml.head),
        ("PUT", object_path, xml.put),
        ("POST", object_path, xml.post),
        ("DELETE", object_path, xml.delete),
    )
    return tuple(
        Method(
            verb=verb,
            path=path,
            handler=handler,
            permission=object_permission(verb),
            worded=partial(in_storage_words, reads=verb in READING, render=_refused),
            streams=True,
            most_body=ANY_SIZE,
            storage=True,
            plain=True,
            keyed=True,
        )
        for verb, path, handler in rows
    )


def _refused(error: TrainshedError, reads: bool) -> RawAnswer:
    code, body = render_error(error, reads=reads)
    return RawAnswer(b"" if code == 304 else body, code, _XML)


def _condition(call: Call) -> Precondition:
    headers = call.headers
    if "x-goog-if-generation-match" not in headers and "x-goog-if-metageneration-match" not in headers:
        return ALWAYS
    return Precondition(
        generation=number(headers, "x-goog-if-generation-match"),
        metageneration=number(headers, "x-goog-if-metageneration-match"),
    )


def _check_tags(call: Call, info: ObjectInfo) -> None:
    wanted, known = call.headers.get("if-match", ""), call.headers.get("if-none-match", "")
    if wanted and not _names(wanted, info):
        raise PreconditionFailed("The object has another ETag.")
    if known and _names(known, info):
        raise NotModified("The object still has the ETag.")


def _names(tags: str, info: ObjectInfo) -> bool:
    return any(tag.strip().strip('"') in ("*", etag(info)) for tag in tags.split(","))


def _draft(call: Call, name: str) -> ObjectDraft:
    headers = call.headers
    for header, value in headers.items():
        if header.startswith(_STORED):
            check_line(header, value)
    attributes = Attributes(
        content_type=headers.get("content-type", ""),
        content_encoding=headers.get("content-encoding", ""),
        content_disposition=headers.get("content-disposition", ""),
        content_language=headers.get("content-language", ""),
        cache_control=headers.get("cache-control", ""),
        storage_class=headers.get("x-goog-storage-class", "") or PLAIN.storage_class,
    )
    own = {
        key.removeprefix("x-goog-meta-"): value
        for key, value in headers.items()
        if key.startswith("x-goog-meta-")
    }
    crc32c, md5 = hashes(headers.get("x-goog-hash", ""))
    return ObjectDraft(
        name=name,
        attributes=replace(attributes, metadata=own),
        precondition=_condition(call),
        crc32c=crc32c,
        md5=md5 or headers.get("content-md5", ""),
    )


def _made(info: ObjectInfo) -> dict[str, str]:
    return {"etag": f'"{etag(info)}"', "x-goog-generation": str(info.generation)}
