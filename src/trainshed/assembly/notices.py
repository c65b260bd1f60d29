"""Notices: who is told what becomes of jobs, and what tells them."""

from dataclasses import dataclass

from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.control.notices import NoticeSender
from trainshed.control.queue import WorkQueue
from trainshed.core.notice import MOST_CHANNELS
from trainshed.notices.account import SmtpAccount
from trainshed.notices.carrier import Carrier
from trainshed.service.notices import NoticeService
from trainshed.settings.table import Settings
from trainshed.settings.values import mail_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    sender: NoticeSender
    service: NoticeService


def make_notices(shared: SharedParts, storage: Storage) -> Notices:
    settings, clock = shared.settings, shared.clock
    store, secrets, carrier = storage.store, storage.channel_secrets, Carrier(mail_account(settings))
    sender = NoticeSender(
        store=store.notices,
        secrets=secrets,
        carrier=carrier,
        clock=clock,
        queue=WorkQueue(clock, MOST_CHANNELS),  # so that no channel waits for others
        server=settings.public_url or shared.address,
    )
    service = NoticeService(
        store=store.notices,
        secrets=secrets,
        clock=clock,
        carrier=carrier,
        deliver=sender.deliver,
        resume=sender.resume,
    )
    return Notices(sender=sender, service=service)


def mail_account(settings: Settings) -> SmtpAccount | None:
    """None where the server sends no mail."""
    if not settings.smtp:
        return None
    server = mail_server(settings.smtp)
    return SmtpAccount(
        host=server.host,
        port=server.port,
        is_tls=server.is_tls,
        user=server.user,
        sender=settings.smtp_from,
        password_file=settings.smtp_password_file,
    )
