"""TLS of the server's own address: which certificate it shows, and the name by which it is called.

`serving` makes it where the settings ask for TLS; other servers do not import it. The certificate comes from
the files of the settings, or from an authority of the home (decision 66). It raises SettingsError with the
setting, the file and the fix.
"""

import asyncio
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from ssl import SSLContext

from trainshed.certificates.home import Certificates
from trainshed.certificates.pair import CertificatePair
from trainshed.core.errors import Unavailable
from trainshed.settings.table import Settings, SettingsError

log = logging.getLogger(__name__)

DAILY = 24 * 3600.0  # seconds between looks at an own certificate that may expire
_WILD = ("", "0.0.0.0", "::")  # addresses at which nobody calls the server
_NAME = re.compile(r"(?P<name>[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d+)?|\[(?P<address>[0-9a-f:.]+)\](:\d+)?")


class ServerTls:
    """Makes what is missing, so it may take as long as three runs of openssl."""

    def __init__(self, settings: Settings) -> None:
        names = own_names(settings)
        self._own: Certificates | None = None
        if settings.tls_cert is not None and settings.tls_key is not None:
            self._pair = CertificatePair(settings.tls_cert, settings.tls_key)
        else:
            folder = settings.home / "tls" / "own"
            self._own = Certificates(folder, names, os.environ, has_roots=False)
            try:
                self._own.renew()
            except Unavailable as error:
                raise SettingsError(
                    f"--tls: no certificate can be made: {error}; mend that, or give --tls-cert and --tls-key"
                ) from error
            self._pair = CertificatePair(self._own.server, self._own.server)
        self.name = name_to_call(names, self._pair.names)
        named = (name for name in self._pair.names if not name.startswith("*"))
        self.names = tuple(
            f"[{name}]" if ":" in name else name for name in named
        )  # as the Host header has them

    @property
    def ca(self) -> Path | None:
        """What clients have to trust; None where the certificate is from somebody else."""
        return self._own.ca if self._own is not None else None

    def context(self) -> SSLContext:
        """What new connections speak."""
        return self._pair.context()

    async def renew_daily(self) -> None:
        while self._own is not None:
            await asyncio.sleep(DAILY)
            try:
                await asyncio.to_thread(self._own.renew)
            except Unavailable as error:
                log.warning("The server's certificate cannot be renewed: %s", error)


def own_names(settings: Settings) -> tuple[str, ...]:
    """The names and addresses by which the settings say that this server is called."""
    host = settings.host.lower()
    given = [] if host in _WILD else [host]
    for text in settings.allowed_hosts:
        match = _NAME.fullmatch(text.lower())
        given += [match["name"] or match["address"]] if match else []
    return tuple(dict.fromkeys((*given, "127.0.0.1", "localhost")))


def name_to_call(names: Sequence[str], certified: Sequence[str]) -> str:
    """The first of the server's names for which the certificate is; else the first that it has."""
    for name in (*names, *(name for name in certified if not name.startswith("*"))):
        if any(is_covered(name, pattern) for pattern in certified):
            return name
    raise SettingsError(
        f"--tls-cert: the certificate is for {', '.join(certified)}, and this server is {', '.join(names)}: "
        "name it with --allowed-host"
    )


def is_covered(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        first, dot, rest = name.partition(".")
        return bool(first and dot) and rest == pattern[2:]
    return name == pattern
