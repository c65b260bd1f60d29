"""Channels of notices as JSON, and the request to add one. For `api/notice_channels.py`."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trainshed.core.notice import CHOICES, ChannelFigures, NoticeChannel, NoticeKind, NoticeWay
from trainshed.core.notice_message import key_of
from trainshed.wire import base
from trainshed.wire.base import Message, output_only, text, text_map, texts
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.scalars import time_text

NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
LONGEST_ADDRESS, LONGEST_USER = 2000, 200
SHORTEST_SECRET, LONGEST_SECRET = 16, 500
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_WAYS = tuple(way.value for way in NoticeWay)
_KINDS = ", ".join(kind.value for kind in CHOICES)


class ChannelBody(Message):
    name: object = output_only()
    project: object = output_only()
    way: object = output_only()
    webhook: str = text()
    slack: str = text()
    mail: str = text()
    on: tuple[str, ...] = texts()
    labels: Mapping[str, str] = text_map()
    secret: str = text()
    user: str = text()
    address: object = output_only()
    owner: object = output_only()
    create_time: object = output_only()
    waiting: object = output_only()
    given_up: object = output_only()
    last_success_time: object = output_only()
    last_error_time: object = output_only()
    last_error: object = output_only()

    @property
    def chosen_way(self) -> NoticeWay:
        """Of a body without faults."""
        return next(way for way in NoticeWay if getattr(self, way.value))

    @property
    def kinds(self) -> tuple[NoticeKind, ...]:
        """What it asks for; all there are where it does not say."""
        return tuple(dict.fromkeys(NoticeKind(word) for word in self.on)) or CHOICES


def parse_channel(name: str, body: Mapping[str, object], only_mail: str | None = None) -> ChannelBody:
    """The requested channel; Invalid with every violation. `only_mail`: the only address it may have."""
    faults = Faults("notice_channel")
    result = base.read(ChannelBody, body, faults)
    if not NAME.fullmatch(name):
        sentence = f"must be 1 to 63 small letters, digits and dashes, not '{name[:100]}'."
        faults.add("channel_id", sentence)
    given = [way for way in _WAYS if getattr(result, way)]
    if len(given) != 1 and not any(faults.under(way) for way in _WAYS):
        faults.add("", f"Name one of {', '.join(_WAYS)}, not {' and '.join(given) or 'none'}.")
    for way in given:
        if sentence := address_fault(NoticeWay(way), getattr(result, way)):
            faults.add(way, sentence)
    if only_mail is not None and given and result.mail != only_mail:
        faults.add(given[0], f"must be mail to your own account, {only_mail}: an admin adds other channels.")
    if len(result.user) > LONGEST_USER or not result.user.isprintable():
        faults.add("user", f"must be a name of at most {LONGEST_USER} printable characters.")
    for at, word in enumerate(result.on):
        if word not in CHOICES:
            faults.add(f"on[{at}]", f"must be one of {_KINDS}, not '{word[:40]}'.")
    check_labels(result.labels, "labels", faults)
    if result.secret and (sentence := _secret_fault(result.secret, given)):
        faults.add("secret", sentence)
    faults.settle()
    return result


def address_fault(way: NoticeWay, address: str) -> str:
    """What is wrong with it; empty where nothing is. A URL is not repeated, because it may be secret."""
    if way is NoticeWay.MAIL:
        fits = _MAIL.fullmatch(address) is not None
        return "" if fits else f"must be one mail address such as ada@example.com, not '{address[:100]}'."
    if len(address) > LONGEST_ADDRESS or not address.isascii() or not address.isprintable() or " " in address:
        return f"must be an address of at most {LONGEST_ADDRESS} printable ASCII characters without spaces."
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"cannot be read: {error}."
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with https://HOST or http://HOST, as 'https://hooks.example/jobs' does."
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must have no user, password or fragment: requests are signed, and a path may be secret."
    return ""


def render_channel(channel: NoticeChannel, figures: ChannelFigures, secret: str = "") -> dict[str, Any]:
    """The secret is answered once, to whoever adds the channel."""
    answer: dict[str, Any] = {
        "name": f"projects/{channel.project or '-'}/noticeChannels/{channel.name}",
        "project": channel.project or "-",
        "way": channel.way.value,
        "address": channel.shown,
        "on": [kind.value for kind in channel.on],
        "createTime": time_text(channel.created_at),
        "waiting": figures.waiting,
        "givenUp": figures.given_up,
    }
    if channel.labels:
        answer["labels"] = dict(channel.labels)
    if channel.user:
        answer["user"] = channel.user
    if channel.owner:
        answer["owner"] = channel.owner
    if figures.last_success_at is not None:
        answer["lastSuccessTime"] = time_text(figures.last_success_at)
    if figures.last_error_at is not None:
        answer["lastErrorTime"] = time_text(figures.last_error_at)
        answer["lastError"] = figures.last_error
    if secret:
        answer["secret"] = secret
    return answer


def _secret_fault(secret: str, ways: list[str]) -> str:
    if NoticeWay.WEBHOOK not in ways:
        return "is of no use here: only requests to a webhook are signed."
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET or not secret.isprintable():
        return f"must have {SHORTEST_SECRET} to {LONGEST_SECRET} printable characters."
    try:
        key_of(secret)
    except ValueError as error:
        return f"cannot be used: {error}."
    return ""
