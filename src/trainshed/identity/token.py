"""One token for the whole server, in a file only its owner may read.

Made at the first start and never changed by itself. To change it, put another file in its place: its token
counts at once, and after a second the token before opens nothing any more. The file is complete from the
moment it has its name, so a reader never sees half a token. The token is never logged.
"""

import hmac
import logging
import os
import secrets
import time
from pathlib import Path

from trainshed.core.accounts.permission import OWNER, Principal
from trainshed.core.errors import Forbidden, Unauthenticated, Unavailable
from trainshed.disk.file_mark import file_mark

log = logging.getLogger(__name__)

SHORTEST = 16  # characters; anything less was not made here and can be guessed
FRESH = 1.0  # seconds for which a token that fits is accepted without a look at its file


class TokenFile:
    """Implements `core.ports.Authenticator`. Reads the file whenever it changed; makes a missing one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not path.exists():
                _make(path)
            self._mark = file_mark(path)
            self.token = _read(path)
            self._looked_at = time.monotonic()
        except OSError as error:
            raise Unavailable(f"The token file {path} cannot be used: {error.strerror or error}.") from error

    def authenticate(self, authorization: str | None) -> Principal:
        if not authorization or not authorization.strip():
            raise Forbidden(
                'This server wants a token. Run `eval "$(trainshed env)"` in your shell, or send the header '
                "`Authorization: Bearer TOKEN` with the content of the token file in the server's home."
            )
        scheme, _, given = authorization.strip().partition(" ")
        word = given.strip().encode("utf-8", "surrogatepass")
        if not self._fits(word) or self._is_stale():
            self._renew()
        if scheme.lower() != "bearer" or not self._fits(word):
            raise Unauthenticated(
                "The token is not the one of the token file in the server's home. "
                'Run `eval "$(trainshed env)"` again: it may have changed.'
            )
        return OWNER

    def current(self) -> str:
        """The token that counts now."""
        if self._is_stale():
            self._renew()
        return self.token

    def _is_stale(self) -> bool:
        # Every look is a system call, in which a busy server's loop loses the interpreter to another thread.
        return time.monotonic() - self._looked_at >= FRESH

    def _fits(self, word: bytes) -> bool:
        # Compared in constant time, so that nobody can find the token letter by letter.
        return hmac.compare_digest(word, self.token.encode())

    def _renew(self) -> None:
        """Take the token of a file that was put in place. One without a token changes nothing."""
        self._looked_at = time.monotonic()
        try:
            mark = file_mark(self.path)
            if mark is None or mark != self._mark:  # reading one that is not there says why
                self._mark = mark
                self.token = _read(self.path)
        except (OSError, Unavailable) as error:
            log.warning("The token stays the one before: %s", error)


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))  # no newline: gcloud sends the file as it is
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link fails where the name is taken: of two first starts, both use the same token.
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> str:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        log.warning("The token file %s could be used by others (mode %03o); it is now 0600", path, mode)
        path.chmod(0o600)
    token = path.read_text("utf-8", "replace").strip()
    if len(token) < SHORTEST or not token.isascii() or len(token.split()) != 1:
        raise Unavailable(
            f"The token file {path} does not hold a token (one word of at least {SHORTEST} characters). "
            "Remove it to get a new one at the next start."
        )
    return token
