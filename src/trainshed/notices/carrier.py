"""Carrier: implements `core.notice_port.NoticeCarrier` with HTTP and SMTP, in threads of its own.

The assembly makes it. What sends is imported when something is sent first: most servers tell nobody.
"""

from collections.abc import Callable

from trainshed.bounded_thread import Hold, bounded
from trainshed.core.notice import plain
from trainshed.core.notice_message import NoticeMail, NoticeRequest
from trainshed.core.notice_port import CarrierAnswer, Delivery
from trainshed.notices.account import SmtpAccount

LONGEST = 20.0  # seconds of one delivery
WORDS = 200  # characters of an answer that are kept
# Of the receiver's answers: those that another notice would get too, because the server is busy or failing.
_LATER = frozenset({408, 425, 429})
_FIRST_GOOD, _FIRST_MOVED, _FIRST_FAILED = 200, 300, 500


class Carrier:
    def __init__(self, account: SmtpAccount | None = None) -> None:
        self._account = account

    @property
    def sends_mail(self) -> bool:
        return self._account is not None

    async def post(self, url: str, request: NoticeRequest) -> CarrierAnswer:
        from trainshed.notices.post import post

        def run(hold: Hold) -> CarrierAnswer:
            status, words = post(url, request, hold)
            return CarrierAnswer(_meaning(status), words)

        return await _sent(run)

    async def mail(self, address: str, mail: NoticeMail) -> CarrierAnswer:
        from trainshed.notices.smtp import MailRefused, send

        account = self._account
        if account is None:
            return CarrierAnswer(Delivery.AWAY, "the server sends no mail: it was started without --smtp")

        def run(hold: Hold) -> CarrierAnswer:
            try:
                return CarrierAnswer(Delivery.DELIVERED, send(account, address, mail, hold))
            except MailRefused as error:
                return CarrierAnswer(Delivery.REFUSED, str(error))

        return await _sent(run)


async def _sent(run: Callable[[Hold], CarrierAnswer]) -> CarrierAnswer:
    try:
        answer = await bounded(run, LONGEST)
    except TimeoutError:
        return CarrierAnswer(Delivery.AWAY, f"no answer within {LONGEST:g} s")
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", "") or str(error) or type(error).__name__
        return CarrierAnswer(Delivery.AWAY, plain(str(words))[:WORDS])
    return CarrierAnswer(answer.delivery, plain(answer.words)[:WORDS])


def _meaning(status: int) -> Delivery:
    if _FIRST_GOOD <= status < _FIRST_MOVED:
        return Delivery.DELIVERED
    return Delivery.AWAY if status >= _FIRST_FAILED or status in _LATER else Delivery.REFUSED
