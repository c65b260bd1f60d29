"""Converts an object's attributes to the metadata that a remote store keeps, and back. Pure.

Such stores keep headers: short ASCII. What does not fit in one, and the sums of the bytes, go as JSON under
one key of ours; everything else lies open under its own name, for any tool to see.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from trainshed.core.bucket import PLAIN, Attributes

OURS = "trainshed"  # letters only: Azure takes no others
SAVED = "attachment"  # a server of ours, as the remote store, says so of every object
_HEADERS = {
    "Content-Type": "content_type",
    "Content-Encoding": "content_encoding",
    "Content-Disposition": "content_disposition",
    "Content-Language": "content_language",
    "Cache-Control": "cache_control",
}
_KEY = re.compile(r"[a-z][a-z0-9]*")  # in any store and any case of header
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def written(attributes: Attributes, sums: Mapping[str, str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    more: dict[str, Any] = dict(sums)
    for header, field in _HEADERS.items():
        value: str = getattr(attributes, field)
        if _VALUE.fullmatch(value):
            labels[header] = value
        elif value:
            more[field] = value
    if attributes.content_disposition == SAVED:
        more["content_disposition"] = SAVED
    if attributes.custom_time:
        more["custom_time"] = attributes.custom_time
    hidden: dict[str, str] = {}
    for key, value in attributes.metadata.items():
        if _KEY.fullmatch(key) and key != OURS and _VALUE.fullmatch(value):
            labels[key] = value
        else:
            hidden[key] = value
    if hidden:
        more["metadata"] = hidden
    return labels | {OURS: json.dumps(more, separators=(",", ":"))}


def read(labels: Mapping[str, str]) -> tuple[Attributes, dict[str, str]]:
    """The attributes, and the sums of the bytes where they were put through here."""
    lower = {key.lower(): value for key, value in labels.items()}
    more = _parsed(lower.pop(OURS, "{}"))
    fields = {field: lower.pop(header.lower(), "") for header, field in _HEADERS.items()}
    lower.pop("storage-class", None)
    if fields["content_disposition"] == SAVED:  # where it was stored, it is among `more` too
        fields["content_disposition"] = ""
    texts = {key: value for key, value in more.items() if isinstance(value, str)}
    hidden = cast("dict[str, str]", more.get("metadata") or {})
    attributes = replace(
        PLAIN,
        **(fields | {key: texts[key] for key in (*_HEADERS.values(), "custom_time") if key in texts}),
        metadata=lower | hidden,
    )
    return attributes, {kind: texts[kind] for kind in ("crc32c", "md5") if kind in texts}


def _parsed(text: str) -> dict[str, Any]:
    """Anybody may have written it: what is not ours counts as nothing."""
    try:
        more = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(more, dict):
        return {}
    result = cast("dict[str, Any]", more)
    hidden = result.get("metadata")
    if hidden is not None and not isinstance(hidden, dict):
        return {}
    return result
