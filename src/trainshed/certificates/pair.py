"""A certificate and its key, in files that others replace while the server runs (decision 66).

`server_tls` makes it. It looks at the files when a connection comes, at most once a second. A new pair counts
once it is whole: it can be read, the key fits, and a client would take it today. Until then the pair before
stays, and a line in the log says why. It never writes.
"""

import ipaddress
import logging
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainshed.disk.file_mark import FileMark, file_mark
from trainshed.settings.values import SettingsError

log = logging.getLogger(__name__)

FRESH = 1.0  # seconds for which the files are not looked at again
_EXPIRED, _NOT_YET = 10, 9  # as OpenSSL numbers what is wrong with a certificate
_BEGIN, _KEY = "-----BEGIN CERTIFICATE-----", "PRIVATE KEY-----"
_PAIR = "give the two files of one pair, such as fullchain.pem and privkey.pem of certbot"


class CertificatePair:
    """Raises SettingsError where the files are no pair that can be used now."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self._mark, self._looked_at, self._fault = _marks(certificate, key), time.monotonic(), ""
        self._context, about = load(certificate, key)
        self.names = names_in(about)  # for which the certificate is
        if not self.names:
            raise SettingsError(
                f"--tls-cert: the certificate {certificate} names no host (subjectAltName): "
                "have one issued for the names of this server"
            )

    def context(self) -> ssl.SSLContext:
        """What new connections speak."""
        now = time.monotonic()
        if now - self._looked_at >= FRESH:
            self._looked_at = now
            self._renew()
        return self._context

    def _renew(self) -> None:
        mark = _marks(self._certificate, self._key)
        if mark == self._mark and not self._fault:
            return
        try:
            self._context, _ = load(self._certificate, self._key)
            if self._fault or mark != self._mark:
                log.warning("New connections have the certificate that is in %s now", self._certificate)
            self._fault = ""
        except SettingsError as error:
            if str(error) != self._fault:
                log.warning("The certificate stays the one before: %s", error)
            self._fault = str(error)
        self._mark = mark


def load(certificate: Path, key: Path) -> tuple[ssl.SSLContext, Mapping[str, Any]]:
    """What a server speaks with this pair, and what a client reads in the certificate."""
    _check_text("--tls-cert", certificate, _BEGIN, "no certificate in PEM")
    text = _check_text("--tls-key", key, _KEY, "no private key in PEM")
    if "ENCRYPTED" in text:
        raise SettingsError(
            f"--tls-key: the key {key} has a passphrase: write it without one, "
            f"`openssl pkey -in {key} -out NEW`, and give that file"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")  # never asked for at the terminal
        return context, _seen_by_client(context, certificate)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (_EXPIRED, _NOT_YET):
            state = "has expired" if error.verify_code == _EXPIRED else "is not valid yet"
            raise SettingsError(
                f"--tls-cert: the certificate {certificate} {state}: renew it (certbot renew), "
                "or look at this machine's clock"
            ) from error
        raise SettingsError(
            f"--tls-cert: clients would not take the certificate {certificate}: {error.verify_message}"
        ) from error
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SettingsError(
                f"--tls-key: {key} is not the key of the certificate {certificate}: {_PAIR}"
            ) from error
        raise SettingsError(
            f"--tls-cert: {certificate} and --tls-key: {key} cannot be used: "
            f"{(error.reason or str(error)).lower().replace('_', ' ')}; {_PAIR}"
        ) from error
    except OSError as error:
        raise SettingsError(f"--tls-cert: {certificate} cannot be read: {error.strerror}; {_PAIR}") from error


def names_in(about: Mapping[str, Any]) -> tuple[str, ...]:
    """The names and addresses of a certificate, as `SSLSocket.getpeercert` tells it."""
    names = (
        name.lower() if kind == "DNS" else str(ipaddress.ip_address(name.strip()))
        for kind, name in about.get("subjectAltName", ())
        if kind in ("DNS", "IP Address")
    )
    return tuple(dict.fromkeys(names))


def _check_text(setting: str, file: Path, part: str, fault: str) -> str:
    try:
        text = file.read_text(errors="replace")
    except OSError as error:
        raise SettingsError(f"{setting}: {file} cannot be read: {error.strerror}; {_PAIR}") from error
    if part not in text:
        raise SettingsError(f"{setting}: {file} has {fault}; {_PAIR}")
    return text


def _seen_by_client(context: ssl.SSLContext, certificate: Path) -> Mapping[str, Any]:
    """Connects to it in memory as a client does that trusts this very certificate: is it good today?"""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(certificate)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there)
    server = context.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.getpeercert() or {}


def _marks(*files: Path) -> tuple[FileMark | None, ...]:
    return tuple(map(file_mark, files))
