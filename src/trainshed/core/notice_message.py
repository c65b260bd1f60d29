"""What is sent of a notice: the request of a webhook, signed; the text for Slack; the mail. Pure.

`control/notices.py` calls `request_of` and `mail_of`. Requests are signed as Standard Webhooks has it:
HMAC-SHA256 over "ID.TIMESTAMP.BODY". By that a receiver knows who sent the request, that nobody changed it,
and when it was sent.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.core.notice import Notice, NoticeChannel, NoticeKind, NoticeWay

SECRET_PREFIX = "whsec_"  # what follows it is base64
LONGEST_SUBJECT = 120  # characters


@dataclass(frozen=True, slots=True)
class NoticeRequest:
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class NoticeMail:
    id: str
    subject: str
    text: str


def key_of(secret: str) -> bytes:
    """The key in a secret: what base64 says behind the prefix, else the text itself. Raises ValueError."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"what follows {SECRET_PREFIX} is not base64") from error


def new_secret(random_bytes: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def signature(secret: str, identity: str, timestamp: str, body: bytes) -> str:
    content = f"{identity}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key_of(secret), content, hashlib.sha256).digest()).decode()


def request_of(
    channel: NoticeChannel, notice: Notice, secret: str, server: str, now: datetime
) -> NoticeRequest:
    """What is posted, to a webhook or as Slack has it. `server` is this server's address for people."""
    headers = {"Content-Type": "application/json", "User-Agent": "trainshed"}
    if channel.way is NoticeWay.SLACK:
        return NoticeRequest(headers, json.dumps({"text": slack_text(notice, server)}).encode())
    body = json.dumps(webhook_body(notice, server)).encode()
    timestamp = str(int(now.timestamp()))
    signed = {
        "Webhook-Id": notice.id,
        "Webhook-Timestamp": timestamp,
        "Webhook-Signature": signature(secret, notice.id, timestamp, body),
        "Trainshed-Event": event_type(notice),
    }
    return NoticeRequest(headers | signed, body)


def event_type(notice: Notice) -> str:
    """job.failed, job.ended, …; budget and test are about no job."""
    return f"job.{notice.kind.value}" if notice.job else notice.kind.value


def webhook_body(notice: Notice, server: str) -> dict[str, object]:
    """What is not known is left out."""
    times = {
        "createTime": notice.created_at,
        "startTime": notice.started_at,
        "endTime": notice.ended_at,
    }
    data: dict[str, object] = {
        "message": notice.sentence,
        "project": notice.project,
        "location": notice.location,
        "job": notice.job,
        "name": _resource(notice),
        "displayName": notice.display_name,
        "labels": dict(notice.labels),
        "submitter": notice.submitter,
        "state": f"JOB_STATE_{notice.state.value}" if notice.state else "",
        "reason": notice.reason,
        "verdict": notice.verdict,
        "task": notice.task,
        "attempt": notice.attempt,
        "console": console_link(notice, server),
        **{name: _time(at) for name, at in times.items() if at is not None},
    }
    return {
        "id": notice.id,
        "type": event_type(notice),
        "timestamp": _time(notice.at),
        "data": {name: value for name, value in data.items() if value or name == "attempt"},
    }


def slack_text(notice: Notice, server: str) -> str:
    """Slack takes &, < and > for markup unless they are escaped."""
    text = notice.sentence.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    link = console_link(notice, server)
    return f"{text}\n{link}" if link else text


def mail_of(notice: Notice, server: str) -> NoticeMail:
    subject = notice.sentence.partition(" — ")[0]
    if len(subject) > LONGEST_SUBJECT:
        subject = f"{subject[: LONGEST_SUBJECT - 1]}…"
    lines = [notice.sentence, ""]
    if notice.verdict:
        lines += [notice.verdict, ""]
    if notice.job:
        lines += [f"Job:     {_resource(notice)}"]
    if link := console_link(notice, server):
        lines += [f"Console: {link}"]
    lines += [f"Time:    {notice.at:%Y-%m-%d %H:%M:%S} UTC", ""]
    tag = "trainshed test" if notice.kind is NoticeKind.TEST else f"trainshed {notice.project}".strip()
    return NoticeMail(id=notice.id, subject=f"[{tag}] {subject}", text="\n".join(lines))


def console_link(notice: Notice, server: str) -> str:
    if not notice.job:
        return ""
    return f"{server}/console/jobs/{notice.project}/{notice.location}/{notice.job}"


def _resource(notice: Notice) -> str:
    if not notice.job:
        return ""
    return f"projects/{notice.project}/locations/{notice.location}/customJobs/{notice.job}"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
