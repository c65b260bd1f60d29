"""Named secrets as JSON, in the words of Secret Manager where it has them. For `api/named_secrets.py`.

An answer never has a value, nor has a refusal.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from trainshed.core.jobs.named_secret import NamedSecret
from trainshed.wire import base
from trainshed.wire.base import Message, part, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import time_text


class SecretPayload(Message):
    data: str = text()
    data_crc32c: str = text()  # TLS and the cipher tell what was changed on the way


class VersionBody(Message):
    payload: SecretPayload | None = part(SecretPayload)


def parse_value(body: Mapping[str, object]) -> bytes:
    """The value of a new version; Invalid with every violation."""
    faults = Faults("")
    given = base.read(VersionBody, body, faults)
    data = given.payload.data if given.payload is not None else ""
    value = b""
    try:
        value = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        faults.add("payload.data", "must be base64.")
    if not data and not faults.under("payload"):
        faults.add("payload.data", "is required: the value, in base64.")
    faults.settle()
    return value


def render_secret(secret: NamedSecret) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": secret.name,
        "createTime": time_text(secret.created_at),
        "versionCount": secret.version,
    }
    times = {"updateTime": secret.updated_at, "lastUsedTime": secret.used_at}
    users = {"createdBy": secret.created_by, "updatedBy": secret.updated_by}
    answer |= {name: time_text(at) for name, at in times.items() if at is not None}
    return answer | {name: user for name, user in users.items() if user}


def render_version(secret: NamedSecret) -> dict[str, Any]:
    return {
        "name": f"{secret.name}/versions/{secret.version}",
        "createTime": time_text(secret.updated_at or secret.created_at),
        "state": "ENABLED",
    }
