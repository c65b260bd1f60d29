"""SmtpAccount: by which server, as whom and from which address mails are sent. The assembly makes it.

The password is read from its file at each mail, so that a new one needs no restart.
"""

from dataclasses import dataclass
from pathlib import Path

HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpAccount:
    host: str
    port: int
    is_tls: bool  # from the first byte; else by STARTTLS, where the server offers it
    user: str
    sender: str  # the address that mails come from
    password_file: Path | None = None

    @property
    def is_here(self) -> bool:
        return self.host in HERE

    def password(self) -> str:
        """Raises OSError with a sentence where it cannot be read."""
        try:
            return self.password_file.read_text(encoding="utf-8").strip() if self.password_file else ""
        except (OSError, ValueError) as error:
            raise OSError(f"the password of {self.user} cannot be read: {error}") from error
