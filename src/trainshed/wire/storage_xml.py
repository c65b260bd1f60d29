"""The storage XML API, for clients such as obstore: listings, multipart uploads and errors as XML."""

import re
import xml.etree.ElementTree as ET

from trainshed.core.bucket import ObjectInfo, ObjectListing
from trainshed.core.errors import TrainshedError
from trainshed.wire.status import to_storage
from trainshed.wire.storage import etag, fault, rfc3339

MOST_PARTS = 10_000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # slow to compile: done at first use
_CODES = {
    400: "InvalidArgument",
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "Conflict",
    412: "PreconditionFailed",
    416: "InvalidRange",
    507: "InsufficientStorage",
}


def element(name: str, *inside: str, text: str = "") -> str:
    # Characters that XML cannot have (a NUL in a name) are replaced.
    return f"<{name}>{escape(re.sub(_NOT_XML, chr(0xFFFD), text))}{''.join(inside)}</{name}>"


def document(root: str) -> bytes:
    """Adds the namespace that Google's own client requires."""
    return (_HEAD + root.replace(">", f' xmlns="{_SPACE}">', 1)).encode("utf-8", "replace")


def render_listing(bucket: str, prefix: str, listing: ObjectListing, token: str) -> bytes:
    parts = [element("Name", text=bucket), element("Prefix", text=prefix)]
    parts.append(element("KeyCount", text=str(len(listing.items) + len(listing.prefixes))))
    parts.append(element("IsTruncated", text="true" if token else "false"))
    if token:
        parts.append(element("NextContinuationToken", text=token))
    parts += [element("Contents", *_contents(item)) for item in listing.items]
    parts += [element("CommonPrefixes", element("Prefix", text=item)) for item in listing.prefixes]
    return document(element("ListBucketResult", *parts))


def _contents(info: ObjectInfo) -> tuple[str, ...]:
    return (
        element("Key", text=info.name),
        element("Generation", text=str(info.generation)),
        element("MetaGeneration", text=str(info.metageneration)),
        element("LastModified", text=rfc3339(info.updated_at)),
        element("ETag", text=f'"{etag(info)}"'),
        element("Size", text=str(info.size)),
        element("StorageClass", text=info.attributes.storage_class),
    )


def render_error(error: TrainshedError, *, reads: bool) -> tuple[int, bytes]:
    code, _ = to_storage(error, reads=reads)
    word = _CODES.get(code, "ServiceUnavailable")
    return code, document(
        element("Error", element("Code", text=word), element("Message", text=error.message))
    )


def parse_parts(body: bytes) -> list[str]:
    """The parts of an upload in order, each by its ETag without quotes."""
    if b"<!" in body:
        raise fault("", "A list of parts has no declarations.")
    try:
        root = ET.fromstring(body)
    except (ET.ParseError, ValueError) as error:
        raise fault("", f"The list of parts is not XML: {error}.") from error
    numbered: list[tuple[int, str]] = []
    for part in root:
        fields = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in part}
        number, tag = fields.get("PartNumber", ""), fields.get("ETag", "").strip('"')
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or not tag:
            raise fault("Part", "Each part must have a PartNumber and an ETag.")
        numbered.append((int(number), tag))
    if not 1 <= len(numbered) <= MOST_PARTS:
        raise fault("Part", f"There must be 1 to {MOST_PARTS} parts, not {len(numbered)}.")
    return [tag for _, tag in sorted(numbered)]


def escape(text: str) -> str:
    """Same as `xml.sax.saxutils.escape`, without its slow import."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
