"""Sends one mail through the SMTP server of the settings. `carrier.py` calls it in a thread.

A password goes out only where the connection is encrypted, or stays on this machine. Certificates are
verified as Python does by default.
"""

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from trainshed.bounded_thread import Hold
from trainshed.core.notice_message import NoticeMail
from trainshed.notices.account import SmtpAccount

TIMEOUT = 10.0  # seconds for each step
PERMANENT = 500  # SMTP's codes from here on mean that no later try succeeds


class MailRefused(ValueError):
    """The mail server takes no mails for this address."""


def send(account: SmtpAccount, address: str, mail: NoticeMail, hold: Hold) -> str:
    """What became of it. Raises MailRefused, OSError or ValueError."""
    try:
        with _connect(account) as smtp:
            if smtp.sock is not None:
                hold(smtp.sock)
            _secure(smtp, account)
            smtp.send_message(_message(account, address, mail))
    except smtplib.SMTPRecipientsRefused as error:
        code, words = next(iter(error.recipients.values()))
        raise (MailRefused if code >= PERMANENT else OSError)(_answer(code, words)) from error
    except smtplib.SMTPResponseException as error:
        raise OSError(_answer(error.smtp_code, error.smtp_error)) from error
    return f"taken by {account.host}"


def _answer(code: int, words: bytes | str) -> str:
    return f"{code} {words.decode('utf-8', 'replace') if isinstance(words, bytes) else words}"


def _connect(account: SmtpAccount) -> smtplib.SMTP:
    if not account.is_tls:
        return smtplib.SMTP(account.host, account.port, timeout=TIMEOUT)
    context = ssl.create_default_context()
    return smtplib.SMTP_SSL(account.host, account.port, timeout=TIMEOUT, context=context)


def _secure(smtp: smtplib.SMTP, account: SmtpAccount) -> None:
    smtp.ehlo_or_helo_if_needed()
    if not account.is_tls and smtp.has_extn("starttls"):
        smtp.starttls(context=ssl.create_default_context())
        smtp.ehlo()
    elif not account.is_tls and account.user and not account.is_here:
        raise OSError(f"{account.host} offers no STARTTLS, so the password of {account.user} is not sent")
    if account.user:
        smtp.login(account.user, account.password())


def _message(account: SmtpAccount, address: str, mail: NoticeMail) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = mail.subject, account.sender, address
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = f"<{mail.id}@trainshed.invalid>"  # the same at each try
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message
