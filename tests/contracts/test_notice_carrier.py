"""The carrier keeps the promises of `core.notice_port.NoticeCarrier`, with real receivers."""

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.receivers import HttpReceiver, mail_receiver
from trainshed.certificates.home import Certificates
from trainshed.core.notice_message import NoticeMail, NoticeRequest
from trainshed.core.notice_port import Delivery
from trainshed.notices import carrier as carriers
from trainshed.notices.account import SmtpAccount
from trainshed.notices.carrier import Carrier

REQUEST = NoticeRequest({"Content-Type": "application/json", "X": "y"}, b'{"a": 1}')
MAIL = NoticeMail("1-2-failed", "Job größe (1) failed", "It failed.\n.\nReally.")


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with HttpReceiver() as receiver:
        yield receiver


@pytest.mark.parametrize(
    ("status", "delivery"),
    [
        (200, Delivery.DELIVERED),
        (204, Delivery.DELIVERED),
        (302, Delivery.REFUSED),
        (400, Delivery.REFUSED),
        (404, Delivery.REFUSED),
        (429, Delivery.AWAY),
        (500, Delivery.AWAY),
        (503, Delivery.AWAY),
    ],
)
async def test_an_answer_says_whether_others_may_succeed(
    receiver: HttpReceiver, status: int, delivery: Delivery
) -> None:
    receiver.answer = lambda _: status
    answer = await Carrier().post(receiver.url, REQUEST)
    assert (answer.delivery, answer.words[:3]) == (delivery, str(status))
    assert len(answer.words) <= carriers.WORDS
    [request] = receiver.requests
    assert (request.body, request.headers["X"]) == (REQUEST.body, "y")
    assert request.headers["Host"] == f"127.0.0.1:{receiver.port}"


async def test_nobody_there_is_told_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = await Carrier().post(f"http://127.0.0.1:{port}/", REQUEST)
    assert (answer.delivery, answer.words) == (Delivery.AWAY, "Connection refused")
    answer = await Carrier().post("http://no-such-host.invalid/", REQUEST)
    assert answer.delivery is Delivery.AWAY and answer.words


async def test_what_does_not_speak_http_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            peer, _ = server.accept()
            with peer:
                while not peer.recv(1000).endswith(REQUEST.body):
                    pass
                peer.sendall(b"220 mail.example ESMTP\r\n")

        threading.Thread(target=speak).start()
        answer = await Carrier().post(f"http://127.0.0.1:{server.getsockname()[1]}/", REQUEST)
    assert answer.delivery is Delivery.AWAY and "does not speak HTTP" in answer.words


async def test_a_receiver_that_sends_byte_after_byte_is_left_after_a_while_and_its_thread_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(carriers, "LONGEST", 0.5)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                try:
                    while not over.wait(0.01):
                        peer.sendall(b"x")
                except OSError:
                    over.set()  # the carrier hung up

        thread = threading.Thread(target=drip)
        thread.start()
        answer = await Carrier().post(f"http://127.0.0.1:{server.getsockname()[1]}/", REQUEST)
        assert answer.delivery is Delivery.AWAY and "no answer within 0.5 s" in answer.words
        await asyncio.to_thread(over.wait, 30)
        assert over.is_set()
        thread.join()
    deadline = time.monotonic() + 30
    while any(thread.name == "exchange" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("tls"), ("localhost",), os.environ)
    made.renew()
    return made


def context_of(authority: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    authority: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpReceiver(tls=context_of(authority)) as receiver:
        url = receiver.url.replace("http://127.0.0.1", "https://localhost")
        answer = await Carrier().post(url, REQUEST)
        assert answer.delivery is Delivery.AWAY and "certificate" in answer.words.lower()
        assert receiver.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
        answer = await Carrier().post(url, REQUEST)
        assert answer.delivery is Delivery.DELIVERED, answer.words
        assert receiver.requests[0].headers["Host"] == f"localhost:{receiver.port}"


def account(port: int, **changes: object) -> SmtpAccount:
    given: dict[str, object] = {"host": "localhost", "port": port, "is_tls": False, "user": ""}
    return SmtpAccount(**{**given, "sender": "shed@example.com", **changes})  # pyright: ignore[reportArgumentType]


async def test_a_mail_arrives_as_it_was_written() -> None:
    with mail_receiver() as mails:
        answer = await Carrier(account(mails.port)).mail("ada@example.com", MAIL)
    assert answer.delivery is Delivery.DELIVERED, answer.words
    [(recipient, mail)] = mails.mails
    assert (recipient, mail["Subject"], mail["Message-ID"]) == (
        "ada@example.com",
        MAIL.subject,
        "<1-2-failed@trainshed.invalid>",
    )
    assert mail.get_content().replace("\r\n", "\n").strip() == MAIL.text
    assert mail["Auto-Submitted"] == "auto-generated" and mails.logins == []


async def test_an_address_that_is_refused_is_no_fault_of_the_server() -> None:
    with mail_receiver(refused="ada@example.com") as mails:
        answer = await Carrier(account(mails.port)).mail("ada@example.com", MAIL)
    assert (answer.delivery, answer.words) == (Delivery.REFUSED, "550 no such user")


async def test_a_password_goes_over_tls_by_starttls_to_a_server_that_is_vouched_for(
    authority: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    with mail_receiver(context_of(authority)) as mails:
        own = account(mails.port, user="ada", password_file=tmp_path / "password")
        answer = await Carrier(own).mail("ada@example.com", MAIL)
        assert answer.delivery is Delivery.AWAY and "certificate" in answer.words.lower()
        assert mails.logins == []
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
        answer = await Carrier(own).mail("ada@example.com", MAIL)
        assert answer.delivery is Delivery.DELIVERED, answer.words
    assert mails.logins == [("AGFkYQBzM2NyZXQ=", True)]


async def test_what_is_wrong_with_a_password_is_told(tmp_path: Path) -> None:
    with mail_receiver() as mails:
        mails.is_closed = True
        own = account(mails.port, user="ada", password_file=tmp_path / "password")
        answer = await Carrier(own).mail("ada@example.com", MAIL)
        assert answer.delivery is Delivery.AWAY
        assert answer.words.startswith("the password of ada cannot be read: [Errno 2]")
        (tmp_path / "password").write_text("s3cret")
        answer = await Carrier(own).mail("ada@example.com", MAIL)
        assert (answer.delivery, answer.words) == (Delivery.AWAY, "535 who are you?")


async def test_a_password_is_not_sent_in_clear_to_another_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setattr("trainshed.notices.account.HERE", ())
    with mail_receiver() as mails:
        own = account(mails.port, user="ada", password_file=tmp_path / "password")
        answer = await Carrier(own).mail("ada@example.com", MAIL)
    assert answer.delivery is Delivery.AWAY and "offers no STARTTLS" in answer.words
    assert mails.logins == [] and mails.mails == []


async def test_a_server_without_a_mail_server_sends_none() -> None:
    assert not Carrier().sends_mail
    answer = await Carrier().mail("ada@example.com", MAIL)
    assert answer.delivery is Delivery.AWAY and "--smtp" in answer.words
