"""upload/…/o: an object's bytes in one request, after its metadata, or in pieces that can be resumed.

A piece names its bytes (`Content-Range: bytes 0-99/*`) and is answered 308 with the number of stored bytes;
`*/*` only asks for it. The request that names the last byte, or the total once all bytes are stored, gets
the object. A request without Content-Range has the whole object. Uploads survive restarts of both sides.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from trainshed.api.call import Call, RawAnswer, Reply
from trainshed.api.storage_answer import bucket_of, json_answer, request_of
from trainshed.core.bucket import PLAIN, ObjectDraft, Upload, check_object_name
from trainshed.core.bucket_port import Bucket
from trainshed.core.errors import Invalid
from trainshed.service.storage import StorageService
from trainshed.wire.multipart import MOST_HEAD, Related, parse, related
from trainshed.wire.storage import fault, number, overlay, precondition, render_object, text

# These clients compare the MD5 in the answer with their own, and delete the object if it is missing.
_WANT_MD5 = ("gcloud", "apitools", "gsutil")
_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)")


@dataclass(frozen=True, slots=True)
class UploadRange:
    """A Content-Range: the range of the bytes, if any, and the total size, if known."""

    first: int | None
    last: int | None
    total: int | None

    def check(self, draft: ObjectDraft) -> None:
        """Called before any byte is stored, since stored bytes cannot be removed."""
        if self.total is not None:
            draft.check_size(self.total)
        elif self.last is not None and draft.size is not None and self.last >= draft.size:
            draft.check_size(self.last + 1)


@dataclass(slots=True)
class StorageUploadHandlers:
    storage: StorageService

    async def begin(self, call: Call) -> Reply:
        """POST: begins an upload by `uploadType`, or continues one."""
        if call.query.get("upload_id"):
            return await self.resume(call)
        kind = call.query.get("uploadType", "media")
        bucket = self.storage.open(bucket_of(call))
        if kind == "resumable":
            return await self._begun(call, bucket)
        if kind == "multipart":
            content = await related(call.headers.get("content-type", ""), call.chunks)
        elif kind == "media":
            content = Related({}, call.headers.get("content-type", ""), call.chunks)
        else:
            raise fault("uploadType", f"uploadType must be media, multipart or resumable, not '{kind[:40]}'.")
        draft = replace(
            _draft(call, content.metadata, content.content_type), request=request_of(call, "upload")
        )
        made = await bucket.put(draft, content.chunks)
        return json_answer(call, render_object(made, call.base_url))

    async def _begun(self, call: Call, bucket: Bucket) -> Reply:
        about = parse(await whole(call.chunks, MOST_HEAD))
        draft = _draft(call, about, call.headers.get("x-upload-content-type", ""))
        draft = replace(draft, size=number(call.headers, "X-Upload-Content-Length"))
        upload = await bucket.begin(draft)
        name = quote(draft.name, safe="")
        location = (
            f"{call.base_url}/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable&name={name}"
            f"&upload_id={upload.id}"
        )
        return RawAnswer(headers={"location": location, "x-guploader-uploadid": upload.id})

    async def resume(self, call: Call) -> Reply:
        """PUT, or POST as gcsfs does: a piece, the last piece, or a question for the size."""
        bucket, upload_id = self.storage.open(bucket_of(call)), call.query.get("upload_id", "")
        piece, upload = _piece(call.headers.get("content-range", "")), await bucket.upload(upload_id)
        if upload.done is not None:
            return await self._made(call, bucket, upload)
        if piece is None:
            if (size := number(call.headers, "Content-Length")) is not None:
                upload.draft.check_size(size)
            upload = await bucket.append(upload_id, 0, _again(bucket, upload, call.chunks))
            return await self._made(call, bucket, upload)
        piece.check(upload.draft)
        if piece.first is not None:
            upload = await bucket.append(upload_id, piece.first, call.chunks)
        if upload.done is not None or upload.received == piece.total:
            return await self._made(call, bucket, upload)
        if piece.total is not None and upload.received > piece.total:
            raise fault("Content-Range", f"The upload has {upload.received} bytes, more than {piece.total}.")
        safe = {"range": f"bytes=0-{upload.received - 1}"} if upload.received else {}
        return RawAnswer(status=308, headers=safe | {"x-guploader-uploadid": upload_id})

    async def abandon(self, call: Call) -> Reply:
        await self.storage.open(bucket_of(call)).abandon(call.query.get("upload_id", ""))
        return RawAnswer(status=499)

    async def _made(self, call: Call, bucket: Bucket, upload: Upload) -> Reply:
        crc32c, md5 = hashes(call.headers.get("x-goog-hash", ""))
        if upload.done is None:
            upload.draft.check_size(upload.received)
        made = upload.done or await bucket.finish(upload.id, crc32c=crc32c, md5=md5)
        return json_answer(call, render_object(made, call.base_url))


def _draft(call: Call, about: dict[str, object], content_type: str) -> ObjectDraft:
    attributes = overlay(PLAIN, about)
    if not attributes.content_type:
        attributes = overlay(attributes, {"contentType": content_type[:4096]})
    crc32c, md5 = hashes(call.headers.get("x-goog-hash", ""))
    if encoding := call.query.get("contentEncoding", ""):
        attributes = overlay(attributes, {"contentEncoding": encoding})
    return ObjectDraft(
        name=check_object_name(call.query.get("name") or text(about, "name")),
        attributes=attributes,
        precondition=precondition(call.query),
        crc32c=text(about, "crc32c") or crc32c,
        md5=text(about, "md5Hash") or md5 or call.headers.get("content-md5", ""),
        md5_at_once=any(client in call.user_agent.lower() for client in _WANT_MD5),
    )


def hashes(header: str) -> tuple[str, str]:
    """CRC32C and MD5 from `x-goog-hash: crc32c=…,md5=…`; empty where not given."""
    sums = dict(part.strip().split("=", 1) for part in header.split(",") if "=" in part)
    return sums.get("crc32c", ""), sums.get("md5", "")


def _piece(header: str) -> UploadRange | None:
    if not header:
        return None
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        raise fault("Content-Range", f"Content-Range is not understood: '{header[:60]}'.")
    first, last = (int(match[1]), int(match[2])) if match[1] else (None, None)
    total = None if match[3] == "*" else int(match[3])
    if first is not None and last is not None and (first > last or (total is not None and last >= total)):
        raise fault("Content-Range", f"Content-Range names bytes that cannot be: '{header[:60]}'.")
    return UploadRange(first, last, total)


async def _again(bucket: Bucket, upload: Upload, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The whole object again. Refused unless it begins with the bytes stored already."""
    kept, known, seen = bucket.received(upload.id), b"", 0
    left = upload.received  # stored bytes still to be compared
    async for chunk in chunks:
        at = 0
        while left and at < len(chunk):
            if seen == len(known):
                known, seen = await anext(kept), 0
            size = min(len(known) - seen, len(chunk) - at, left)
            if chunk[at : at + size] != known[seen : seen + size]:
                raise _other(upload)
            at, seen, left = at + size, seen + size, left - size
        yield chunk
    if left:
        raise _other(upload)


def _other(upload: Upload) -> Invalid:
    return fault(
        "Content-Range",
        f"The upload has {upload.received} bytes already, and a request without a Content-Range brings the "
        "whole from its first byte on; this one does not begin with them. Say which bytes come.",
    )


async def whole(chunks: AsyncIterator[bytes], most: int) -> bytes:
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > most:
            raise fault("", f"The request body is larger than {most} bytes.")
    return bytes(data)
