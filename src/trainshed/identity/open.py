"""For `--no-auth`: everybody on this machine may come in.

Where a request comes from is checked all the same, by `origin.py`.
"""

from trainshed.core.accounts.permission import OWNER, Principal


class NoAuthentication:
    """Implements `core.ports.Authenticator`."""

    def authenticate(self, authorization: str | None) -> Principal:
        """Everybody is the owner, with whatever header."""
        return OWNER

    def current(self) -> str:
        """There is no token."""
        return ""
