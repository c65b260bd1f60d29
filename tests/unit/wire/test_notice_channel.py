"""Channels as JSON: all that is wrong with a request is told; answers have no address and no secret."""

import pytest

from tests.builders import at
from tests.unit.core.test_notice import a_channel
from trainshed.core.errors import Invalid
from trainshed.core.notice import CHOICES, ChannelFigures, NoticeKind, NoticeWay
from trainshed.service.notices import shown_address
from trainshed.wire.notice_channel import address_fault, parse_channel, render_channel


def test_a_channel_is_read_with_what_it_asks_for():
    body = parse_channel("team", {"slack": "https://x/y", "on": ["failed", "hung", "failed"]})
    assert (body.chosen_way, body.kinds) == (NoticeWay.SLACK, (NoticeKind.FAILED, NoticeKind.HUNG))
    assert parse_channel("team", {"mail": "a@b.example"}).kinds == CHOICES


def test_what_was_answered_can_be_sent_again():
    answer = render_channel(a_channel(), ChannelFigures(last_error_at=at(1), last_error="x"), "secret")
    del answer["secret"]
    assert parse_channel("team", {**answer, "webhook": "https://x"}).chosen_way is NoticeWay.WEBHOOK


@pytest.mark.parametrize(
    ("way", "address"),
    [
        (NoticeWay.WEBHOOK, "https://hooks.example/a?b=c"),
        (NoticeWay.WEBHOOK, "http://10.0.0.1:8080"),
        (NoticeWay.SLACK, "http://[::1]:80/x"),
        (NoticeWay.MAIL, "ada+jobs@mail.example.com"),
        (NoticeWay.MAIL, "root@localhost"),
    ],
)
def test_addresses_that_can_be_told(way: NoticeWay, address: str):
    assert address_fault(way, address) == ""


@pytest.mark.parametrize(
    ("way", "address"),
    [
        *(
            (NoticeWay.WEBHOOK, text)
            for text in ("hooks.example", "file:///etc/passwd", "https://", "http:///x")
        ),
        *(
            (NoticeWay.WEBHOOK, text)
            for text in ("https://a b/", "https://x/\r\nA: b", "https://\N{SNOWMAN}/")
        ),
        *(
            (NoticeWay.SLACK, text)
            for text in ("https://u:p@x/", "https://u@x/", "https://x/#a", "http://x:99999")
        ),
        *((NoticeWay.SLACK, text) for text in ("http://[::1", "https://" + "x" * 3000, "gopher://x")),
        *(
            (NoticeWay.MAIL, text)
            for text in ("ada", "a@b@c", "a@b, c@d", "a@b\nBcc: c@d", "<a@b>", "a b@c", "@b")
        ),
    ],
)
def test_addresses_that_cannot(way: NoticeWay, address: str):
    assert address_fault(way, address)
    with pytest.raises(Invalid):
        parse_channel("team", {way.value: address})


@pytest.mark.parametrize(
    "secret", ["short", "x" * 501, "whsec_" + "%" * 40, "a secret with \x07 in the middle"]
)
def test_a_secret_that_cannot_be_used_is_refused_and_not_repeated(secret: str):
    with pytest.raises(Invalid) as refusal:
        parse_channel("team", {"webhook": "https://x", "secret": secret})
    assert refusal.value.violations[0].field == "secret" and secret not in refusal.value.message


def test_a_secret_without_a_webhook_is_of_no_use():
    with pytest.raises(Invalid, match="no use"):
        parse_channel("team", {"slack": "https://x", "secret": "x" * 20})


@pytest.mark.parametrize(
    ("way", "address", "shown"),
    [
        (NoticeWay.SLACK, "https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com/…"),
        (NoticeWay.WEBHOOK, "http://[::1]:80/?token=x", "http://[::1]:80/…"),
        (NoticeWay.WEBHOOK, "https://x/", "https://x"),
        (NoticeWay.MAIL, "ada@example.com", "ada@example.com"),
    ],
)
def test_of_an_address_only_the_host_is_shown(way: NoticeWay, address: str, shown: str):
    assert shown_address(way, address) == shown
