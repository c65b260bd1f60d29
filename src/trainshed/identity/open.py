"""For `--no-auth`: everybody on this machine may come in.

Where a request comes from is checked all the same, by `origin.py`.
"""


class NoAuthentication:
    """Implements `core.ports.Authenticator`."""

    def check(self, authorization: str | None) -> None:
        """Let everybody in, with whatever header."""
